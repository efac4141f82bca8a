//! What the neutral words of the corpora mean here: verdicts, families of codes and outcomes. Nothing else maps them.

use super::Verdict;

/// What becomes of a row of `faults.jsonl`, in the words of its `verdict`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    /// Every call is admitted; whether the oddity is warned of too.
    Accepted { warned: bool },
    /// Every call is refused.
    Refused,
    /// Every call is refused, unless the contract has a leniency by name.
    RefusedUnlessLenient,
}

/// `None` for a word that is not known.
pub(super) fn expected(verdict: &str) -> Option<Expected> {
    Some(match verdict {
        "accept" => Expected::Accepted { warned: false },
        "accept_with_warning" => Expected::Accepted { warned: true },
        "reject" | "reject_or_warn" | "reject_at_registration" => Expected::Refused,
        "reject_or_optin_coerce" | "reject_or_optin_repair" => Expected::RefusedUnlessLenient,
        _ => return None,
    })
}

/// The codes that a family of `faults.jsonl` means.
#[derive(Debug)]
pub(super) struct Codes {
    /// Of the refusal.
    pub(super) refusals: Vec<&'static str>,
    /// Of its problems, one of which must be there; empty where the refusal says all.
    pub(super) problems: Vec<String>,
}

/// `None` for a family that is not known.
pub(super) fn refusal(family: &str) -> Option<Codes> {
    let codes = |refusals: &[&'static str], problems: &[&str]| Codes {
        refusals: refusals.to_vec(),
        problems: problems.iter().map(|&problem| problem.to_owned()).collect(),
    };
    let (room, kind) = family.split_once('.')?;
    Some(match (room, kind) {
        ("parse", "syntax") => {
            codes(&["invalid_json"], &["syntax", "truncated", "control_character", "lone_surrogate"])
        }
        ("parse", "limit" | "too_large" | "too_deep") => codes(&["invalid_json"], &["depth", "size", "members"]),
        ("parse", kind) if kind.starts_with("number") => codes(&["invalid_json"], &["number"]),
        ("parse", kind) => codes(&["invalid_json", "broken_message"], &[kind]),
        ("schema", "range") => codes(
            &["invalid_arguments"],
            &["minimum", "maximum", "exclusive_minimum", "exclusive_maximum", "multiple_of"],
        ),
        ("schema", kind) => codes(&["invalid_arguments"], &[kind]),
        ("registry", "unknown_tool") => codes(&["unknown_tool"], &[]),
        ("registry", "duplicate_name") => codes(&["invalid_contract"], &["unique"]),
        ("wire", "stream") => codes(&["invalid_call"], &["stream"]),
        ("wire", _) => codes(&["invalid_call", "broken_message"], &[]),
        ("loop", "turn_truncated") => codes(&["turn_truncated"], &[]),
        _ => return None,
    })
}

/// The code of the warning that a family of `faults.jsonl` means; `None` where nothing is to be warned of.
pub(super) fn warning(family: &str) -> Option<&str> {
    match family.split_once('.')? {
        ("wire" | "lint", kind) => Some(kind),
        // Drafts of JSON Schema that are known are read as what they are.
        _ => None,
    }
}

/// The codes of warnings about a message. The others are about a contract.
pub(super) const OF_MESSAGES: [&str; 2] = ["stream", "duplicate_call_id"];

/// Whether an outcome of `abuse.jsonl` is this verdict. A word that is not known is none.
pub(super) fn is_outcome(outcome: &str, verdict: &Verdict) -> bool {
    let codes: &[&str] = match outcome {
        "ok" => return *verdict == Verdict::Admitted,
        "invalid_args" => &["invalid_json", "invalid_arguments"],
        "reject_wire" => &["broken_message", "invalid_call", "invalid_json", "turn_truncated"],
        "unknown_tool" => &["unknown_tool"],
        "config_rejected" | "quarantined" => &["invalid_contract"],
        "budget_exceeded" => &["broken_message"],
        _ => &[],
    };
    codes.iter().any(|code| verdict.is_refused_as(code))
}
