//! Declaring tools to a model: what a provider takes of a schema, and what of it is then told in words.
//!
//! INVARIANT (never stricter): whatever the contract takes, the shown schema takes as well. The contract judges every
//! call, whatever was shown.

mod merge;
mod openapi;
mod strict;
mod subset;
mod weaker;
mod whole;
mod words;

use serde_json::{Value, json};

use super::Dialect;
use super::{anthropic, bedrock, gemini, mcp, ollama, openai_chat, openai_responses};
use crate::contract::Contract;
use crate::contract::names::NameRule;

pub(super) use openapi::Parameters;
pub(super) use whole::whole;

use weaker::weaker;

impl Dialect {
    /// How these tools are declared to a model: the list that goes into `tools` of a request, or for Bedrock into
    /// `toolConfig.tools`.
    pub fn definitions(self, tools: &[&Contract]) -> Value {
        let declared = |declare: fn(&Contract) -> Value| tools.iter().map(|tool| declare(tool)).collect::<Value>();
        match self {
            Self::OpenaiChat => declared(|tool| {
                openai_chat::definition(
                    &NameRule::CHARACTERS_64.shown(tool.name()),
                    tool,
                    weaker(tool.input(), &subset::OPENAI),
                )
            }),
            Self::OpenaiStrict => declared(|tool| {
                let name = NameRule::CHARACTERS_64.shown(tool.name());
                let form = strict::document(tool.input());
                let is_strict = form.is_some();
                let schema = form.unwrap_or_else(|| weaker(tool.input(), &subset::OPENAI));
                let mut definition = openai_chat::definition(&name, tool, schema);
                if let Some(Value::Object(function)) = definition.get_mut("function") {
                    function.insert("strict".to_owned(), json!(is_strict));
                }
                definition
            }),
            Self::OpenaiResponses => declared(|tool| {
                let schema = weaker(tool.input(), &subset::OPENAI);
                openai_responses::definition(&NameRule::CHARACTERS_64.shown(tool.name()), tool, schema)
            }),
            Self::Anthropic => declared(|tool| {
                let schema = weaker(tool.input(), &subset::ANTHROPIC);
                anthropic::definition(&NameRule::CHARACTERS_128.shown(tool.name()), tool, schema)
            }),
            Self::Gemini => {
                let functions = declared(|tool| {
                    let name = NameRule::CHARACTERS_63.shown(tool.name());
                    gemini::definition(&name, tool, openapi::parameters(weaker(tool.input(), &subset::GEMINI)))
                });
                if tools.is_empty() { json!([]) } else { json!([{ "functionDeclarations": functions }]) }
            }
            Self::Bedrock => declared(|tool| {
                let schema = weaker(tool.input(), &subset::BEDROCK);
                bedrock::definition(&NameRule::CHARACTERS_64.shown(tool.name()), tool, schema)
            }),
            Self::Ollama => declared(|tool| {
                let schema = weaker(tool.input(), &subset::OLLAMA);
                ollama::definition(&NameRule::ANY_LENGTH.shown(tool.name()), tool, schema)
            }),
            Self::Mcp => declared(mcp::definition),
        }
    }
}

#[cfg(test)]
mod tests;
