//! The command `toolgate`.

use std::process::ExitCode;

fn main() -> ExitCode {
    toolgate_gateway::cli::main()
}
