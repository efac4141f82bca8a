//! `toolgate admit --jsonl`: admission alone, a case a line.

mod case;
mod lines;

use std::io::{self, BufWriter, ErrorKind, Write};

use clap::Args;

use super::{Exit, Failure};
use case::Cases;
use lines::{Line, Lines};

/// Admission alone: whether calls keep their contracts, without policies, identity or a store. Nothing can run.
#[derive(Debug, Args)]
#[command(after_help = "Example: toolgate admit --jsonl < cases.jsonl", after_long_help = MANUAL)]
pub(super) struct Admit {
    /// Read a case from each line of stdin, and answer each with a line
    #[arg(long, visible_alias = "json")]
    jsonl: bool,
}

const MANUAL: &str = r#"Example: toolgate admit --jsonl < cases.jsonl

A case is a JSON object:
  {"id": ..., "contract": {...}, "dialect": "arguments", "input": ...}

  id            anything; the answer carries it
  contract      the keys of a contract file as JSON, with its `name`; a description and a backend are not needed
  contracts     a list of contracts, in place of `contract`
  dialect       `arguments` (the default: the arguments of a call of the one contract), or the dialect of a message:
                `openai-chat`, `anthropic`, `mcp`
  input         a string is the raw text; any other JSON is taken as it stands in the line, byte by byte
  input_base64  the raw bytes, in place of `input`

An answer is one of:
  {"id": ..., "calls": [...]}   each call of the input, in its order:
                                {"call_id", "tool", "arguments", "digest", "leniencies"} of one that is admitted,
                                {"call_id", "error"} of one that is refused
  {"id": ..., "error": {...}}   `invalid_line`: the line is no case, or longer than 16 MB
                                `invalid_contract`: every problem of the contracts, with its place in them
                                `broken_message`: the input is no message of its dialect

`arguments` are the effective ones; `digest` is the SHA-256 of the canonical [tool, arguments] in hex. An input that is
arguments alone has the call id "". Empty lines are passed over. The exit code is 0 once every line has its answer."#;

/// The largest case, in bytes.
const LONGEST_LINE: usize = 16 * 1024 * 1024;

impl Admit {
    pub(super) fn run(self) -> Result<Exit, Failure> {
        if !self.jsonl {
            let failure = Failure::usage("admit reads its cases from stdin, and only where it is told to");
            return Err(failure.hint("toolgate admit --jsonl < cases.jsonl"));
        }
        let mut lines = Lines::new(io::stdin(), LONGEST_LINE);
        let mut answers = BufWriter::with_capacity(1 << 16, io::stdout().lock());
        let mut cases = Cases::new();
        loop {
            // Whoever waits for an answer before the next case has it; a corpus in a file is answered in big pieces.
            if !lines.has_next()
                && let Err(error) = answers.flush()
            {
                return unwritten(&error);
            }
            let read = lines.next().map_err(|error| Failure::fault(format!("stdin cannot be read: {error}")))?;
            let answer = match read {
                None => return answers.flush().map_or_else(|error| unwritten(&error), |()| Ok(Exit::Ok)),
                Some(Line::Whole(line)) if line.trim_ascii().is_empty() => continue,
                Some(Line::Whole(line)) => cases.answer(line),
                Some(Line::TooLong) => case::too_long(LONGEST_LINE),
            };
            if let Err(error) = writeln!(answers, "{answer}") {
                return unwritten(&error);
            }
        }
    }
}

/// A reader that has seen enough, such as `head`, is no error.
fn unwritten(error: &io::Error) -> Result<Exit, Failure> {
    match error.kind() {
        ErrorKind::BrokenPipe => Ok(Exit::Ok),
        _ => Err(Failure::fault(format!("the answers cannot be written: {error}"))),
    }
}
