//! Streams that were recorded whole: as a list, and as server-sent events.

use super::*;

const CHUNKS: [&str; 2] = [
    r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"t","arguments":"{\"n\""}}]}}]}"#,
    r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}}]}"#,
];

fn read(dialect: Dialect, message: &str) -> Turn {
    decode(dialect, message).unwrap_or_else(|fault| panic!("{fault}\n{message}"))
}

fn decode(dialect: Dialect, message: &str) -> Result<Turn, WireFault> {
    dialect.decode(message.as_bytes(), &Limits { size: message.len(), ..Limits::default() })
}

#[test]
fn a_list_of_events_is_a_message() {
    let [first, second] = CHUNKS;
    for message in [
        format!("{{\"stream\":[{first},{second}]}}"),
        format!("\u{feff}\n{{ \"stream\" : [\n{first} ,{second}, \"[DONE]\" ] }}\n"),
    ] {
        assert_eq!(calls(&read(Dialect::OpenaiChat, &message)), [("a", "t", "{\"n\":1}")]);
    }
}

#[test]
fn a_recording_is_a_message_whatever_its_line_ends_are() {
    let [first, second] = CHUNKS;
    let lines = [
        ": a comment".to_owned(),
        String::new(),
        "event: message".to_owned(),
        "id: 1".to_owned(),
        "retry: 10".to_owned(),
        format!("data: {first}"),
        String::new(),
        String::new(),
        "data:".to_owned(),
        String::new(),
        "database: no field of ours".to_owned(),
        format!("data:{second}"),
        String::new(),
        "data: [DONE]".to_owned(),
        String::new(),
    ];
    for end in ["\n", "\r\n", "\r"] {
        for begin in ["", "\u{feff}", end] {
            let text = format!("{begin}{}{end}", lines.join(end));
            assert_eq!(calls(&read(Dialect::OpenaiChat, &text)), [("a", "t", "{\"n\":1}")], "{text:?}");
            let cut = text.trim_end();
            assert_eq!(calls(&read(Dialect::OpenaiChat, cut)), [("a", "t", "{\"n\":1}")], "{cut:?}");
        }
    }
}

#[test]
fn an_event_may_have_several_lines_of_data() {
    let text = format!("data: {}\n\n", CHUNKS[0].replace(",\"function\"", ",\ndata: \"function\""));
    assert_eq!(calls(&read(Dialect::OpenaiChat, &text)), [("a", "t", "{\"n\"")]);
    let broken = "data: {\"choices\":\ndata:  [{,\ndata: ]}\n\n";
    let fault = decode(Dialect::OpenaiChat, broken).unwrap_err();
    assert_eq!((fault.line, fault.column), (2, 10), "{fault}");
}

#[test]
fn the_data_of_an_event_says_what_it_is_whatever_its_name_says() {
    let block = r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"t","input":{}}}"#;
    let stop = r#"{"type":"content_block_stop","index":0}"#;
    let text = format!("event: ping\ndata: {block}\n\nevent: content_block_delta\ndata: {stop}\n\n");
    assert_eq!(calls(&read(Dialect::Anthropic, &text)), [("a", "t", "{}")]);
    let failed = "event: ping\ndata: {\"type\":\"error\",\"error\":{}}\n\n";
    assert!(decode(Dialect::Anthropic, failed).is_err());
}

#[test]
fn a_fault_is_placed_in_the_whole_recording() {
    for (message, line, column) in [
        (format!("{{\"stream\":[{},\n  {{\"choices\": 1}}]}}", CHUNKS[0]), 2, 15),
        ("{\"stream\":[{\"choices\":[]}, {\"choices\":\n 1}]}".to_owned(), 2, 2),
        ("{\"stream\":[]}".to_owned(), 1, 1),
        ("{\"stream\":{}}".to_owned(), 1, 11),
        ("{\"stream\":[],\"role\":\"assistant\"}".to_owned(), 1, 1),
        (": one\r\r\ndata: {\"choices\":[]}\r\r\ndata:{\"choices\": 1}".to_owned(), 5, 18),
        ("data: [DONE]\n\ndata: {}\n\n".to_owned(), 3, 7),
        (": nothing\n\n".to_owned(), 1, 1),
    ] {
        let fault = decode(Dialect::OpenaiChat, &message).unwrap_err();
        assert_eq!((fault.line, fault.column), (line, column), "{fault}\n{message}");
    }
}

#[test]
fn a_dialect_that_is_not_read_as_a_stream_says_so() {
    for dialect in [Dialect::Gemini, Dialect::Bedrock, Dialect::Ollama, Dialect::Mcp] {
        for message in ["{\"stream\":[{}]}", "data: {}\n\n"] {
            let fault = decode(dialect, message).unwrap_err();
            assert_eq!(fault.message, format!("a stream, and {dialect} is not read as one"));
        }
    }
}
