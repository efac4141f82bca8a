//! The command `toolgate`.

use std::process::ExitCode;

/// A call makes and drops some hundreds of small values, on threads that take turns with it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    toolgate_gateway::cli::main()
}
