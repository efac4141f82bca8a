//! `[guards]` of a folder: what ends a run that only tries doors.

use toolgate::fields::{Fields, Problems};
use toolgate::guards::Guards;

/// What is said where nothing ends a run.
const OFF: &str = "off";

/// Reads the table; without it the guards are those of every gate.
pub(super) fn read(top: &mut Fields<'_>, problems: &mut Problems) -> Guards {
    let Some(mut fields) = top.table("guards", problems) else { return Guards::default() };
    let is_off = fields.entries().any(|(key, value)| key == "refused" && value == OFF);
    let count = match is_off {
        true => fields.raw("refused").and(None),
        false => Some(fields.count("refused", Guards::REFUSED, problems)),
    };
    let texts = fields.entries().filter(|(key, value)| *key == "refused" && value.is_string() && *value != OFF);
    if texts.count() > 0 {
        let at = fields.place("refused");
        problems.0.retain(|problem| problem.at != at);
        let message = "expected a number, or \"off\"";
        problems.hinted(at, "type", message, Some("refused = \"off\" ends no run".to_owned()));
    }
    let per = fields.span("per", Guards::PER, problems);
    if per.is_zero() {
        problems.note(fields.place("per"), "minimum", "a window of no length counts nothing");
    }
    fields.end(problems);
    count.map_or_else(Guards::off, |count| Guards::default().refused(count, per))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::*;

    fn said(table: &Value) -> (Guards, Vec<String>) {
        let mut problems = Problems::default();
        let guards = read(&mut Fields::of(table.as_object().unwrap(), ""), &mut problems);
        (guards, problems.0.into_iter().map(|problem| problem.at).collect())
    }

    #[test]
    fn a_folder_has_the_guards_of_every_gate_until_it_says_otherwise() {
        assert_eq!(said(&json!({})), (Guards::default(), vec![]));
        let strict = Guards::default().refused(5, Duration::from_secs(3600));
        assert_eq!(said(&json!({"guards": {"refused": 5, "per": "1h"}})), (strict, vec![]));
        assert_eq!(said(&json!({"guards": {"refused": "off"}})), (Guards::off(), vec![]));
    }

    #[test]
    fn guards_that_would_stop_everything_or_nothing_are_faults() {
        for (table, at) in [
            (json!({"refused": 0}), "/guards/refused"),
            (json!({"refused": "never"}), "/guards/refused"),
            (json!({"per": "0s"}), "/guards/per"),
            (json!({"off": true}), "/guards/off"),
        ] {
            assert_eq!(said(&json!({ "guards": table })).1, [at]);
        }
    }
}
