mod anthropic;
mod anything;
mod bedrock;
mod every;
mod gemini;
mod mcp;
mod ollama;
mod openai_chat;
mod openai_responses;

use serde_json::json;
use serde_json::value::RawValue;

use super::*;
use crate::call::Ref;
use crate::ledger::StoreError;
use crate::redaction::{Kept, Redaction};
use crate::reply::{Answer, Outcome};
use crate::schema::Truncated;
use crate::trace::Trace;
use crate::vault::GateKey;

fn read(dialect: Dialect, message: &str) -> Turn {
    dialect.decode(message.as_bytes(), &Limits::default()).unwrap_or_else(|fault| panic!("{fault}\n{message}"))
}

fn fault(dialect: Dialect, message: &str) -> String {
    match dialect.decode(message.as_bytes(), &Limits::default()) {
        Ok(turn) => panic!("read as {turn:?}: {message}"),
        Err(fault) => fault.to_string(),
    }
}

/// The id, the tool and the raw arguments of each call; none may be broken.
fn whole(turn: &Turn) -> Vec<(&str, &str, &str)> {
    let mut calls = Vec::new();
    for proposed in turn.calls() {
        match proposed {
            Proposed::Call(call) => {
                calls.push((call.id(), call.tool(), std::str::from_utf8(&call.arguments).expect("arguments are text")));
            }
            Proposed::Broken(broken) => panic!("{broken:?}"),
        }
    }
    calls
}

fn broken(turn: &Turn, index: usize) -> &Broken {
    match &turn.calls()[index] {
        Proposed::Broken(broken) => broken,
        Proposed::Call(call) => panic!("whole: {call:?}"),
    }
}

/// The places and codes of what is wrong with a call.
fn problems(turn: &Turn, index: usize) -> Vec<(&str, &str)> {
    let refusal = &broken(turn, index).refusal;
    assert_eq!((refusal.code(), refusal.effect()), (Code::InvalidCall, Effect::None));
    refusal.problem_list().iter().map(|problem| (problem.at.as_str(), problem.code.as_str())).collect()
}

/// A call object of a dialect. The parts are JSON text; one that is `None` is left out.
fn call(dialect: Dialect, id: Option<&str>, name: Option<&str>, arguments: Option<&str>) -> String {
    let member = |name: &str, value: Option<&str>| value.map(|value| format!(r#""{name}":{value}"#));
    let object = |members: &[Option<String>]| {
        format!("{{{}}}", members.iter().flatten().map(String::as_str).collect::<Vec<_>>().join(","))
    };
    let typed = |kind: &str| member("type", Some(&format!("{kind:?}")));
    let name = member("name", name);
    match dialect {
        Dialect::OpenaiChat | Dialect::OpenaiStrict | Dialect::Ollama => {
            let function = object(&[name, member("arguments", arguments)]);
            object(&[member("id", id), typed("function"), member("function", Some(&function))])
        }
        Dialect::OpenaiResponses => {
            object(&[typed("function_call"), member("call_id", id), name, member("arguments", arguments)])
        }
        Dialect::Anthropic => object(&[typed("tool_use"), member("id", id), name, member("input", arguments)]),
        Dialect::Gemini => {
            let inside = object(&[member("id", id), name, member("args", arguments)]);
            object(&[member("functionCall", Some(&inside))])
        }
        Dialect::Bedrock => {
            let inside = object(&[member("toolUseId", id), name, member("input", arguments)]);
            object(&[member("toolUse", Some(&inside))])
        }
        Dialect::Mcp => panic!("a request has one call, which is its own"),
    }
}

/// Where the id, the name and the arguments of such a call stand.
fn places(dialect: Dialect) -> [&'static str; 3] {
    match dialect {
        Dialect::OpenaiChat | Dialect::OpenaiStrict | Dialect::Ollama => {
            ["/id", "/function/name", "/function/arguments"]
        }
        Dialect::OpenaiResponses => ["/call_id", "/name", "/arguments"],
        Dialect::Anthropic => ["/id", "/name", "/input"],
        Dialect::Gemini => ["/functionCall/id", "/functionCall/name", "/functionCall/args"],
        Dialect::Bedrock => ["/toolUse/toolUseId", "/toolUse/name", "/toolUse/input"],
        Dialect::Mcp => ["/id", "/params/name", "/params/arguments"],
    }
}

/// Whether a call of the dialect must have an id.
fn needs_ids(dialect: Dialect) -> bool {
    !matches!(dialect, Dialect::Gemini | Dialect::Ollama)
}

/// A call with this id and this name, and an empty object for its arguments.
fn simple_call(dialect: Dialect, id: &str, name: &str) -> String {
    call(dialect, Some(&format!("{id:?}")), Some(&format!("{name:?}")), Some(&written(dialect, "{}")))
}

/// An object as the arguments of a dialect: itself, or a string that holds it.
fn written(dialect: Dialect, object: &str) -> String {
    match dialect {
        Dialect::OpenaiChat | Dialect::OpenaiStrict | Dialect::OpenaiResponses => {
            serde_json::to_string(object).unwrap()
        }
        Dialect::Anthropic | Dialect::Gemini | Dialect::Bedrock | Dialect::Ollama | Dialect::Mcp => object.to_owned(),
    }
}

/// The dialects whose messages may hold several calls.
const MANY: [Dialect; 7] = [
    Dialect::OpenaiChat,
    Dialect::OpenaiStrict,
    Dialect::OpenaiResponses,
    Dialect::Anthropic,
    Dialect::Gemini,
    Dialect::Bedrock,
    Dialect::Ollama,
];

/// The whole response of a provider with these call objects, for this reason at its end.
fn response(dialect: Dialect, calls: &[String], reason: &str) -> String {
    let calls = calls.join(",");
    match dialect {
        Dialect::OpenaiChat | Dialect::OpenaiStrict => format!(
            r#"{{"choices":[{{"index":0,"message":{{"role":"assistant","content":null,"tool_calls":[{calls}]}},"finish_reason":"{reason}"}}]}}"#
        ),
        Dialect::OpenaiResponses => format!(r#"{{"object":"response","status":"{reason}","output":[{calls}]}}"#),
        Dialect::Anthropic => format!(r#"{{"role":"assistant","content":[{calls}],"stop_reason":"{reason}"}}"#),
        Dialect::Gemini => format!(
            r#"{{"candidates":[{{"content":{{"parts":[{calls}],"role":"model"}},"finishReason":"{reason}"}}]}}"#
        ),
        Dialect::Bedrock => {
            format!(r#"{{"output":{{"message":{{"role":"assistant","content":[{calls}]}}}},"stopReason":"{reason}"}}"#)
        }
        Dialect::Ollama => format!(
            r#"{{"message":{{"role":"assistant","content":"","tool_calls":[{calls}]}},"done":true,"done_reason":"{reason}"}}"#
        ),
        Dialect::Mcp => panic!("a request has one call, which is its own"),
    }
}

/// Why a model stops that is done.
fn done(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::OpenaiChat | Dialect::OpenaiStrict => "tool_calls",
        Dialect::OpenaiResponses => "completed",
        Dialect::Anthropic | Dialect::Bedrock => "tool_use",
        Dialect::Gemini => "STOP",
        Dialect::Ollama | Dialect::Mcp => "stop",
    }
}

/// A response with these call objects, from a model that was done.
fn message(dialect: Dialect, calls: &[String]) -> String {
    response(dialect, calls, done(dialect))
}

/// One answer as it stands in the messages of a dialect; what the dialect does not write is empty.
struct Told {
    id: String,
    name: String,
    flagged: bool,
    text: String,
}

/// The answers that messages of a dialect give, in their order.
fn answers(dialect: Dialect, messages: &[Value]) -> Vec<Told> {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let inside = |list: &str| -> Vec<Value> {
        assert!(messages.len() <= 1, "one message for all");
        messages.iter().flat_map(|message| message[list].as_array().unwrap().clone()).collect()
    };
    match dialect {
        Dialect::OpenaiChat | Dialect::OpenaiStrict | Dialect::Ollama => messages
            .iter()
            .map(|message| Told {
                id: word(&message["tool_call_id"]),
                name: word(&message["tool_name"]),
                flagged: false,
                text: word(&message["content"]),
            })
            .collect(),
        Dialect::OpenaiResponses => messages
            .iter()
            .map(|item| {
                assert_eq!(item["type"], json!("function_call_output"));
                Told { id: word(&item["call_id"]), name: String::new(), flagged: false, text: word(&item["output"]) }
            })
            .collect(),
        Dialect::Anthropic => inside("content")
            .iter()
            .map(|block| Told {
                id: word(&block["tool_use_id"]),
                name: String::new(),
                flagged: block["is_error"] == json!(true),
                text: word(&block["content"]),
            })
            .collect(),
        Dialect::Gemini => inside("parts")
            .iter()
            .map(|part| &part["functionResponse"])
            .map(|answer| Told {
                id: word(&answer["id"]),
                name: word(&answer["name"]),
                flagged: answer["response"].get("error").is_some(),
                text: answer["response"].to_string(),
            })
            .collect(),
        Dialect::Bedrock => inside("content")
            .iter()
            .map(|block| &block["toolResult"])
            .map(|result| Told {
                id: word(&result["toolUseId"]),
                name: String::new(),
                flagged: result["status"] == json!("error"),
                text: word(&result["content"][0]["text"]),
            })
            .collect(),
        Dialect::Mcp => messages
            .iter()
            .map(|response| Told {
                id: word(&response["id"]),
                name: String::new(),
                flagged: response.get("error").is_some(),
                text: response.to_string(),
            })
            .collect(),
    }
}

/// An assistant message of openai-chat with these call objects.
fn openai(calls: &str) -> String {
    format!(r#"{{"role":"assistant","content":null,"tool_calls":[{calls}]}}"#)
}

/// A message of anthropic with these blocks.
fn anthropic(blocks: &str) -> String {
    format!(r#"{{"role":"assistant","content":[{blocks}],"stop_reason":"tool_use"}}"#)
}

fn reply(answer: Answer) -> Reply {
    let trace = Trace::start(&Redaction::new(GateKey::generate().unwrap(), Kept::Values));
    Reply::new("1".to_owned(), "get_order".to_owned(), Ref::fresh(), answer, trace)
}

fn outcome(result: &str, truncated: Vec<Truncated>, content: bool) -> Answer {
    let result = RawValue::from_string(result.to_owned()).unwrap();
    Answer::Result(Outcome { result, effect: Effect::Done, truncated, content })
}

/// A result, as a gate answers with it.
fn result_of(result: &str) -> Reply {
    reply(outcome(result, Vec::new(), false))
}

fn refused(refusal: Refusal) -> Reply {
    reply(Answer::Refused(refusal))
}

const OPENAI_COMPLETION: &str = r#"{
  "id": "chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT", "object": "chat.completion", "created": 1741569952, "model": "gpt-5.1",
  "choices": [{
    "index": 0,
    "message": {
      "role": "assistant", "content": null, "refusal": null, "annotations": [],
      "tool_calls": [
        {"id": "call_a1", "type": "function",
         "function": {"name": "get_order", "arguments": "{\"order_id\": \"ord_4821\"}"}},
        {"index": 1, "id": "call_a2", "type": "function",
         "function": {"name": "create_refund",
                      "arguments": "{\"order_id\":\"ord_4821\",\"amount_cents\":1500,\"note\":\"\\u00fc \\\"late\\\"\\n\"}"}}
      ]
    },
    "logprobs": null, "finish_reason": "tool_calls"
  }],
  "usage": {"prompt_tokens": 82, "completion_tokens": 17, "total_tokens": 99}, "service_tier": "default"
}"#;

const MCP_REQUEST: &str = r#"{
  "jsonrpc": "2.0", "id": "7", "method": "tools/call",
  "params": {"name": "create_refund", "arguments": {"order_id": "ord_4821", "note": "\u00fc \"late\"\n"},
             "_meta": {"progressToken": 1}}
}"#;

const ANTHROPIC_MESSAGE: &str = r#"{
  "id": "msg_01Aq9w938a90dw8q", "type": "message", "role": "assistant", "model": "claude-opus-4-5",
  "content": [
    {"type": "thinking", "thinking": "The order first.", "signature": "EqQBCg=="},
    {"type": "text", "text": "I will look at the order. {\"type\": \"tool_use\"}"},
    {"type": "tool_use", "id": "toolu_01A", "name": "get_order", "input": {"order_id" : "ord_4821"}},
    {"type": "server_tool_use", "id": "srvtoolu_01", "name": "web_search", "input": {"query": "refund"}},
    {"type": "tool_use", "id": "toolu_01B", "name": "list_regions", "input": {}, "caller": {"type": "direct"}}
  ],
  "stop_reason": "tool_use", "stop_sequence": null, "usage": {"input_tokens": 472, "output_tokens": 91}
}"#;

const RESPONSES_RESPONSE: &str = r#"{
  "id": "resp_67ccd2bed1ec8190", "object": "response", "created_at": 1741476542, "status": "completed", "error": null,
  "incomplete_details": null, "model": "gpt-5.1",
  "output": [
    {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAA"},
    {"id": "msg_1", "type": "message", "status": "completed", "role": "assistant",
     "content": [{"type": "output_text", "text": "{\"type\": \"function_call\"}", "annotations": []}]},
    {"id": "ws_1", "type": "web_search_call", "status": "failed", "action": {"type": "search", "query": "refund"}},
    {"id": "fc_1", "type": "function_call", "status": "completed", "call_id": "call_a1", "name": "get_order",
     "arguments": "{\"order_id\": \"ord_4821\"}"},
    {"type": "function_call", "call_id": "call_a2", "name": "list_regions", "arguments": "", "namespace": null,
     "parsed_arguments": null, "caller": {"type": "direct"}}
  ],
  "parallel_tool_calls": true, "tools": [{"type": "function", "name": "get_order"}], "usage": {"total_tokens": 99}
}"#;

const GEMINI_RESPONSE: &str = r#"{
  "candidates": [{
    "content": {
      "parts": [
        {"text": "The order first.", "thought": true},
        {"functionCall": {"name": "get_order", "args": {"order_id" : "ord_4821", "big": 12345678901234567890123}},
         "thoughtSignature": "EqQBCg=="},
        {"executableCode": {"language": "PYTHON", "code": "print(default_api.get_order())"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
        {"functionCall": {"id": "fc-7", "name": "list_regions", "args": {}, "willContinue": false}}
      ],
      "role": "model"
    },
    "finishReason": "STOP", "index": 0, "safetyRatings": []
  }],
  "usageMetadata": {"totalTokenCount": 99}, "modelVersion": "gemini-3-pro", "responseId": "r1"
}"#;

const BEDROCK_RESPONSE: &str = r#"{
  "output": {"message": {
    "role": "assistant",
    "content": [
      {"reasoningContent": {"reasoningText": {"text": "The order first.", "signature": "c2ln"}}},
      {"text": "I will look at the order."},
      {"toolUse": {"toolUseId": "tooluse_a1", "name": "get_order", "input": {"order_id" : "ord_4821"}}},
      {"toolUse": {"toolUseId": "srv_1", "name": "nova_grounding", "input": {}, "type": "server_tool_use"}},
      {"toolUse": {"toolUseId": "tooluse_a2", "name": "list_regions", "input": {}}}
    ]
  }},
  "stopReason": "tool_use", "usage": {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3}, "metrics": {"latencyMs": 5}
}"#;

const OLLAMA_RESPONSE: &str = r#"{
  "model": "qwen3", "created_at": "2026-07-07T20:22:19.184789Z",
  "message": {
    "role": "assistant", "content": "", "thinking": "The order first.",
    "tool_calls": [
      {"function": {"name": "get_order", "arguments": {"order_id" : "ord_4821"}}},
      {"id": "call_x7", "type": "function", "function": {"index": 1, "name": "list_regions", "arguments": {}}}
    ]
  },
  "done_reason": "stop", "done": true, "total_duration": 4883583458, "eval_count": 26
}"#;

/// A whole message of each form that is read.
const MESSAGES: [(Dialect, &str); 7] = [
    (Dialect::OpenaiChat, OPENAI_COMPLETION),
    (Dialect::OpenaiResponses, RESPONSES_RESPONSE),
    (Dialect::Anthropic, ANTHROPIC_MESSAGE),
    (Dialect::Gemini, GEMINI_RESPONSE),
    (Dialect::Bedrock, BEDROCK_RESPONSE),
    (Dialect::Ollama, OLLAMA_RESPONSE),
    (Dialect::Mcp, MCP_REQUEST),
];
