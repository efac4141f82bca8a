//! What a text may cost: bytes, brackets and members.

use std::fmt::Write;

use super::*;

#[test]
fn depth_counts_open_brackets() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(try_read(&nested(64)).is_ok());
    refused(&nested(65), FlawCode::Depth, 64, "more than 64 open brackets");
    assert!(try_read(&format!("[{}]", vec!["[]"; 100].join(","))).is_ok());
    let flaw = members(format!(r#"{{"a": {}}}"#, nested(64)).as_bytes(), &Limits::default()).unwrap_err();
    assert_eq!(flaw.code, FlawCode::Depth);
}

#[test]
fn no_setting_can_exhaust_the_stack() {
    let limits = Limits { depth: usize::MAX, ..Limits::default() };
    let deep = r#"{"a":"#.repeat(511) + "{}" + &"}".repeat(511);
    let bombs = ["[".repeat(100_000), r#"{"a":"#.repeat(100_000), format!("[{}", "[".repeat(100_000))];
    let walk = move || {
        let value = read(deep.as_bytes(), &limits).unwrap();
        assert_eq!(canonical(&value), deep);
        assert_eq!(members(deep.as_bytes(), &limits).unwrap().len(), 1);
        for bomb in bombs {
            assert_eq!(read(bomb.as_bytes(), &limits).unwrap_err().code, FlawCode::Depth);
            assert!(items(bomb.as_bytes(), &limits).is_err());
        }
    };
    // The stack of a thread by default, and of a worker of the runtime.
    let thread = std::thread::Builder::new().stack_size(2 << 20);
    thread.spawn(walk).unwrap().join().unwrap();
}

#[test]
fn huge_texts_are_refused_before_they_are_read_whole() {
    let bombs = [
        (format!(r#"{{"account":"{}"}}"#, "a".repeat(12_000_000)), FlawCode::Size),
        (" ".repeat(12_000_000), FlawCode::Size),
        ("[".repeat(100_000), FlawCode::Depth),
        (r#"{"a":"#.repeat(100_000), FlawCode::Depth),
        (format!("1{}", "0".repeat(900_000)), FlawCode::Number),
        (format!("0.{}1", "0".repeat(900_000)), FlawCode::Number),
        ("1e999999999999999999999999".to_owned(), FlawCode::Number),
        ("-1E-99999999999999999999999".to_owned(), FlawCode::Number),
    ];
    for (bomb, code) in bombs {
        let flaw = read_arguments(bomb.as_bytes(), &Limits::default()).unwrap_err();
        assert_eq!(flaw.code, code);
        // What is too deep is refused where it gets too deep: the rest is not read.
        assert!(code != FlawCode::Depth || flaw.offset <= 65 * r#"{"a":"#.len(), "{}", flaw.offset);
    }
}

#[test]
fn members_are_counted_over_the_whole_text() {
    let object = |count: usize| {
        let mut text = "{".to_owned();
        for n in 0..count {
            let _ = write!(text, "\"k{n}\":0,");
        }
        text.pop();
        text + "}"
    };
    assert_eq!(try_arguments(&object(10_000)).unwrap().len(), 10_000);
    assert_eq!(try_read(&object(10_001)).unwrap_err().code, FlawCode::Members);
    let two = format!("[{},{}]", object(6_000), object(6_000));
    assert_eq!(try_read(&two).unwrap_err().code, FlawCode::Members);
    let level = |text: &str| members(text.as_bytes(), &Limits::default()).map(|members| members.len());
    assert_eq!(level(&object(10_001)).unwrap_err().code, FlawCode::Members);
    assert_eq!(level(&format!(r#"{{"a":{}}}"#, object(10_001))), Ok(1));
}
