mod bounds;
mod canonical;
mod level;
mod numbers;
mod properties;
mod reader;

use super::*;

fn try_read(text: &str) -> Result<Value, Flaw> {
    read(text.as_bytes(), &Limits::default())
}

fn try_arguments(text: &str) -> Result<Map<String, Value>, Flaw> {
    read_arguments(text.as_bytes(), &Limits::default())
}

/// Asserts a refusal by its code, its byte offset and its words.
#[track_caller]
fn refused(text: &str, code: FlawCode, offset: usize, words: &str) {
    let flaw = try_read(text).expect_err(text);
    assert_eq!((flaw.code, flaw.offset, &*flaw.message), (code, offset, words), "{text}");
}

#[track_caller]
fn refused_arguments(text: &str, code: FlawCode, offset: usize, words: &str) {
    let flaw = try_arguments(text).expect_err(text);
    assert_eq!((flaw.code, flaw.offset, &*flaw.message), (code, offset, words), "{text}");
}
