//! No events make an assembler panic; a fault is final; a turn that was cut off runs nothing; the recorded stream, as a list
//! and as server-sent events, gives what its events give one by one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use toolgate::json::{Limits, read};
use toolgate::wire::{Assembler, Dialect, Proposed, Turn};

/// What of a turn must be the same.
fn told(turn: &Turn) -> String {
    format!("{:?} {} {:?}", turn.calls(), turn.cut_off(), turn.warnings())
}

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits::default();
    let events: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').filter(|event| !event.trim_ascii().is_empty()).collect();
    for dialect in Dialect::ALL {
        let Some(mut stream) = Assembler::new(dialect, &limits) else { continue };
        let taken: Vec<bool> = events.iter().map(|event| stream.push(event).is_ok()).collect();
        let turn = stream.end();
        let first_wrong = taken.iter().position(|taken| !taken).unwrap_or(taken.len());
        assert!(taken.iter().skip(first_wrong).all(|taken| !taken), "an event was taken after a fault");
        if let Ok(turn) = &turn {
            assert_eq!(first_wrong, taken.len(), "a turn after a fault");
            let runs = turn.calls().iter().any(|call| matches!(call, Proposed::Call(_)));
            assert!(!(runs && turn.cut_off()), "a turn that was cut off runs something");
        }
        // A line of JSON has no line end in it, so it is one line of data.
        if events.iter().any(|event| event.contains(&b'\r') || read(event, &limits).is_err()) {
            continue;
        }
        let turn = turn.ok().map(|turn| told(&turn));
        let recorded = |text: Vec<u8>| dialect.decode(&text, &Limits { size: text.len(), ..limits }).ok().map(|turn| told(&turn));
        let list = [&b"{\"stream\":["[..], &events.join(&b',')[..], b"]}"].concat();
        assert_eq!(recorded(list), turn, "{dialect} as a list");
        let text: Vec<u8> = events.iter().flat_map(|event| [b"data: ", *event, b"\n\n"].concat()).collect();
        if !text.is_empty() {
            assert_eq!(recorded(text), turn, "{dialect} as server-sent events");
        }
    }
});
