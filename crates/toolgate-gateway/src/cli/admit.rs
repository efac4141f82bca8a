//! `toolgate admit --jsonl`: admission alone, a case a line.

mod case;
mod lines;

use std::io::{self, BufWriter, ErrorKind, Write};

use clap::Args;

use toolgate::refusal::Pages;

use super::failure::FailureCode;
use super::{Exit, Failure};
use case::Cases;
use lines::{Line, Lines};

/// Admission alone: whether calls keep their contracts, without policies, identity or a store. Nothing can run.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  toolgate admit --jsonl < cases.jsonl", after_long_help = MANUAL)]
pub(super) struct Admit {
    /// Read a case from each line of stdin, and answer each with a line
    #[arg(long)]
    jsonl: bool,
    /// The same
    #[arg(long)]
    json: bool,
}

/// The pages of the codes that only answers of this command have.
pub(super) const CODES: Pages = Pages::of(include_str!("admit/codes.md"));

const MANUAL: &str = r#"A case is a JSON object:
  {"id": ..., "contract": {...}, "dialect": "arguments", "input": ...}

  id            anything; the answer carries it
  contract      the keys of a contract file as JSON, with its `name`; there need
                be no description and no backend
  contracts     a list of contracts, in place of `contract`
  dialect       `arguments` (the default: those of a call of the one contract),
                or that of a message: `openai-chat`, `openai-strict`,
                `openai-responses`, `anthropic`, `gemini`, `bedrock-converse`,
                `ollama`, `mcp`
  input         a string is the raw text; any other JSON is taken as it stands
                in the line, byte by byte
  input_base64  the raw bytes, in place of `input`

An answer is one of:
  {"id": ..., "calls": [...]}  each call of the input, in its order. Admitted:
                               {"call_id", "tool", "arguments", "digest",
                               "leniencies"}; refused: {"call_id", "error"}
  {"id": ..., "error": {...}}  `invalid_line`: the line is no case, or too long
                               `invalid_contract`: every problem of a contract
                               `broken_message`: the input is no message

`arguments` are the effective ones; `digest` is the SHA-256 of the canonical
[tool, arguments] in hex. An input that is arguments alone has the call id "".
Empty lines are passed over, and one of more than 16 MB is no case. The exit
code is 0 once every line has its answer."#;

/// The largest case, in bytes.
const LONGEST_LINE: usize = 16 * 1024 * 1024;

impl Admit {
    pub(super) fn run(self) -> Result<Exit, Failure> {
        if !self.jsonl && !self.json {
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
            let read = lines.next().map_err(|error| unread(&error))?;
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
        _ => Err(Failure::new(FailureCode::OutputFailed, format!("the answers cannot be written: {error}"))),
    }
}

fn unread(error: &io::Error) -> Failure {
    Failure::new(FailureCode::UnreadableInput, format!("stdin cannot be read: {error}"))
}
