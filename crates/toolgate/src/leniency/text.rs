//! The argument text as a whole: what stands around the object.

use serde_json::{Map, Value};

use super::{Leniencies, Leniency, Used};
use crate::json::{self, FlawCode, Limits};

const FENCE: &str = "```";

/// Letters of the name of one special token.
const LONGEST_NAME: usize = 64;

/// End tokens that are written without bars.
const BARE_ENDS: [&str; 5] = ["<eos>", "<eot>", "<eom>", "<end_of_turn>", "<end_of_text>"];

/// The arguments in a text that is no object as it stands, by some of these leniencies, each at most once. What is
/// inside is read as strictly as ever, and must be an object: blank text in a fence is no call without arguments.
pub(crate) fn read(bytes: &[u8], allowed: Leniencies, limits: &Limits) -> Option<(Map<String, Value>, Vec<Used>)> {
    let mut left: Vec<(Leniency, Opener)> =
        OPENERS.into_iter().filter(|(leniency, _)| allowed.has(*leniency)).collect();
    if left.is_empty() {
        return None;
    }
    let mut text = std::str::from_utf8(bytes).ok().filter(|text| text.len() <= limits.size)?.to_owned();
    let mut used = Vec::new();
    loop {
        let (index, inside) =
            left.iter().enumerate().find_map(|(index, (_, open))| Some((index, open(&text, limits)?)))?;
        let (leniency, _) = left.remove(index);
        used.push(Used::of_the_call(leniency));
        if let Ok(Value::Object(members)) = json::read(inside.as_bytes(), limits) {
            return Some((members, used));
        }
        text = inside;
    }
}

/// What is inside of a text, if it is written in the one way that a leniency takes.
type Opener = fn(&str, &Limits) -> Option<String>;

/// From the outside: a token stands behind a fence, and a string may stand in one.
const OPENERS: [(Leniency, Opener); 3] =
    [(Leniency::TrailingToken, before_tokens), (Leniency::CodeFence, in_fence), (Leniency::JsonAsString, in_string)];

/// The text in the one fence that all of it is: ```` ```json ```` or ```` ``` ````, and nothing around it but white
/// space.
fn in_fence(text: &str, _: &Limits) -> Option<String> {
    let inside = text.trim().strip_prefix(FENCE)?.strip_suffix(FENCE)?;
    let named = inside.get(..4).is_some_and(|name| name.eq_ignore_ascii_case("json"));
    let inside = if named { inside.get(4..)? } else { inside };
    Some(inside.to_owned())
}

/// The text of the one JSON string that all of it is.
fn in_string(text: &str, limits: &Limits) -> Option<String> {
    match json::read(text.as_bytes(), limits) {
        Ok(Value::String(inside)) => Some(inside),
        Ok(_) | Err(_) => None,
    }
}

/// The text before the special tokens that it ends with. They stand after a whole value: one that is cut off or wrong
/// in itself is never mended by taking something away.
fn before_tokens(text: &str, limits: &Limits) -> Option<String> {
    let end = match in_fence_with_rest(text) {
        Some(end) => end,
        None => match json::read(text.as_bytes(), limits) {
            Err(flaw) if flaw.code == FlawCode::TrailingData => flaw.offset,
            Ok(_) | Err(_) => return None,
        },
    };
    let mut rest = text.get(end..)?.trim_start();
    let mut tokens = 0;
    while !rest.is_empty() {
        rest = after_token(rest)?.trim_start();
        tokens += 1;
    }
    (tokens > 0).then(|| text.get(..end).map(str::to_owned)).flatten()
}

/// Where the fence ends that a text begins with.
fn in_fence_with_rest(text: &str) -> Option<usize> {
    let start = text.len() - text.trim_start().len();
    text.get(start..)?.strip_prefix(FENCE)?;
    let last = text.rfind(FENCE)?;
    (last > start).then(|| last + FENCE.len())
}

/// What follows the special token that a text begins with: `<|name|>`, `<｜name｜>`, `</name>`, `[/NAME]`, or one of the
/// end tokens without bars. Whatever could be a value, or words, is none.
fn after_token(text: &str) -> Option<&str> {
    const FORMS: [(&str, &str); 4] = [("<|", "|>"), ("<｜", "｜>"), ("</", ">"), ("[/", "]")];
    if let Some(rest) = BARE_ENDS.iter().find_map(|token| text.strip_prefix(token)) {
        return Some(rest);
    }
    let (name, rest) = FORMS.iter().find_map(|(open, close)| text.strip_prefix(open)?.split_once(close))?;
    let is_of_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '▁');
    (!name.is_empty() && name.chars().count() <= LONGEST_NAME && name.chars().all(is_of_name)).then_some(rest)
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::disallowed_methods,
    reason = "a test may panic"
)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(used: &[Used]) -> Vec<&'static str> {
        used.iter().map(|used| used.by.as_str()).collect()
    }

    /// The one member of what is read, and what was used for it.
    fn opened(text: &str, allowed: &[Leniency]) -> Option<(Value, Vec<&'static str>)> {
        let (members, used) = read(text.as_bytes(), allowed.iter().copied().collect(), &Limits::default())?;
        Some((members["a"].clone(), names(&used)))
    }

    fn one() -> Value {
        Value::from(1)
    }

    #[test]
    fn a_fence_is_taken_where_it_is_the_whole_text() {
        for text in ["```json\n{\"a\":1}\n```", "```\n{\"a\":1}\n```", " ```JSON {\"a\":1}``` \n", "```{\"a\":1}```"] {
            assert_eq!(opened(text, &[Leniency::CodeFence]), Some((one(), vec!["code_fence"])), "{text}");
            assert_eq!(opened(text, &[Leniency::TrailingToken, Leniency::JsonAsString]), None, "{text}");
        }
        let inside = "```\n{\"a\":\"```\"}\n```";
        assert_eq!(opened(inside, &[Leniency::CodeFence]), Some((Value::from("```"), vec!["code_fence"])));
    }

    #[test]
    fn a_fence_with_anything_beside_it_is_not() {
        for text in [
            "Here you go:\n```json\n{\"a\":1}\n```",
            "```json\n{\"a\":1}\n```\nDone.",
            "```json\n{\"a\":1}\n```\nor\n```json\n{\"a\":2}\n```",
            "```python\n{\"a\":1}\n```",
            "```json\n{\"a\":1,}\n```",
            "```json\n{\"a\":1}",
            "{\"a\":1}\n```",
            "````\n{\"a\":1}\n````",
            "```\n```",
            "```json\n\n```",
            "```json\n[1]\n```",
            "```",
        ] {
            assert_eq!(opened(text, &[Leniency::CodeFence, Leniency::TrailingToken]), None, "{text}");
        }
    }

    #[test]
    fn special_tokens_are_taken_off_after_the_whole_object() {
        for text in [
            "{\"a\":1}</tool_call>",
            "{\"a\":1}\n</tool_call>\n<|im_end|>\n",
            "{\"a\":1} <|eot_id|>",
            "{\"a\":1}<｜tool▁call▁end｜>",
            "{\"a\":1}</s>",
            "{\"a\":1}[/TOOL_CALLS]",
            "{\"a\":1}<end_of_turn>",
        ] {
            assert_eq!(opened(text, &[Leniency::TrailingToken]), Some((one(), vec!["trailing_token"])), "{text}");
            assert_eq!(opened(text, &[Leniency::CodeFence, Leniency::JsonAsString]), None, "{text}");
        }
    }

    #[test]
    fn what_could_be_meant_is_no_token() {
        for text in [
            "{\"a\":1}{\"a\":2}",
            "{\"a\":1}<|im_end|>{\"a\":2}",
            "{\"a\":1}</tool_call>Checking now",
            "{\"a\":1}Checking now",
            "{\"a\":1}}",
            "{\"a\":1}]",
            "{\"a\":1}[1]",
            "{\"a\":1}<b>",
            "{\"a\":1}</>",
            "{\"a\":1}<||>",
            "{\"a\":1}<|a b|>",
            "{\"a\":1}<|im_end",
            "{\"a\":1</tool_call>",
            "{\"a\":1,</tool_call>}",
            "<tool_call>{\"a\":1}</tool_call>",
            "</tool_call>",
            "[1]</tool_call>",
            "{\"a\":1,\"a\":2}</tool_call>",
        ] {
            assert_eq!(opened(text, &[Leniency::TrailingToken]), None, "{text}");
        }
    }

    #[test]
    fn an_object_in_a_string_is_opened_once() {
        let allowed = &[Leniency::JsonAsString];
        assert_eq!(opened(r#""{\"a\":1}""#, allowed), Some((one(), vec!["json_as_string"])));
        for text in [r#""""#, r#"" ""#, r#""{\"a\":1,}""#, r#""[1]""#, r#""\"{\\\"a\\\":1}\"""#, "null", "1"] {
            assert_eq!(opened(text, allowed), None, "{text}");
        }
    }

    #[test]
    fn several_are_used_from_the_outside_in() {
        let all = Leniency::ALL;
        let text = "```json\n\"{\\\"a\\\":1}\"\n```<|im_end|>";
        let used = vec!["trailing_token", "code_fence", "json_as_string"];
        assert_eq!(opened(text, &all), Some((one(), used)));
        assert_eq!(opened(text, &[Leniency::CodeFence, Leniency::JsonAsString]), None);
        let inside = "```json\n{\"a\":1}</tool_call>\n```";
        assert_eq!(opened(inside, &all), Some((one(), vec!["code_fence", "trailing_token"])));
    }

    #[test]
    fn the_bounds_hold_inside_too() {
        let limits = Limits { size: 40, depth: 2, members: 2 };
        let read = |text: &str| read(text.as_bytes(), Leniency::ALL.into_iter().collect(), &limits).is_some();
        assert!(read("```{\"a\":[1]}```"));
        assert!(!read("```{\"a\":[[1]]}```"));
        assert!(!read("```{\"a\":1,\"b\":2,\"c\":3}```"));
        assert!(!read(&format!("```{{\"a\":1}}{}```", " ".repeat(40))));
    }

    proptest! {
        #[test]
        fn an_object_comes_out_of_its_wrappings_as_it_went_in(
            name in "[a-z`<>|{}/]{1,8}",
            value in "[a-z`<>|{}\\[\\]/ \\\\\"]{0,24}",
            fenced: bool, tokens in "(</[a-z_]{1,9}>|<\\|[a-z_]{1,9}\\|>| ){0,3}", encoded: bool,
        ) {
            let object = serde_json::json!({ name: value });
            let mut text = object.to_string();
            if encoded { text = Value::from(text).to_string(); }
            if fenced { text = format!("```json\n{text}\n```"); }
            text.push_str(&tokens);
            if let Some((members, used)) = read(text.as_bytes(), Leniency::ALL.into_iter().collect(), &Limits::default()) {
                prop_assert_eq!(Value::Object(members), object);
                prop_assert_eq!(used.len(), usize::from(fenced) + usize::from(encoded) + usize::from(!tokens.trim().is_empty()));
            } else {
                prop_assert!(!fenced && !encoded && tokens.trim().is_empty(), "not read: {}", text);
            }
        }

        #[test]
        fn no_text_makes_it_panic_and_none_that_is_right_is_opened(text in "[`<>|/{}\"a1:, \\\\json]{0,40}") {
            let limits = Limits::default();
            if let Some((_, used)) = read(text.as_bytes(), Leniency::ALL.into_iter().collect(), &limits) {
                prop_assert!(!used.is_empty());
                prop_assert!(json::read_arguments(text.as_bytes(), &limits).is_err());
            }
        }
    }
}
