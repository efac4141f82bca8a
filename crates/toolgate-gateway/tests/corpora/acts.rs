//! Rows that are told in steps, read as acts: who calls with which key and arguments, who is killed and when, what the
//! clock does. A step that is told in other words is none.

use std::time::Duration;

/// Somebody of some tenant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Who {
    pub(super) user: String,
    pub(super) tenant: String,
}

/// A call of the row's tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) who: Who,
    /// The operation's id.
    pub(super) key: Option<String>,
    pub(super) arguments: Arguments,
}

/// With which arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Arguments {
    /// Some that fit; those of another number are others.
    Some(usize),
    /// Values, in the order of the schema's members.
    Values(Vec<String>),
    /// Some that fit, with this amount.
    Amount(u64),
    /// This text.
    Text(String),
}

/// One thing that happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Call(Told),
    /// Several calls at the same moment.
    Together(Vec<Told>),
    /// The process that makes the call before this dies at a crash point.
    Killed(&'static str),
    /// The connection is lost while the call before this runs.
    CutOff,
    Restart,
    /// So much time passes.
    Passes(Duration),
    /// The clock on the wall is set ahead so far, and back again.
    SetAheadAndBack(Duration),
    /// It is this time of the day, in milliseconds.
    At(u64),
}

/// What is told to be so before anything happens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Given {
    /// What happened before.
    pub(super) acts: Vec<Act>,
    /// The backend honours a key, and can be asked what it did.
    pub(super) honours_keys: bool,
    pub(super) retained: Option<Duration>,
    /// Nothing more fits on the volume of the ledger.
    pub(super) is_full: bool,
}

impl Who {
    pub(super) fn anybody() -> Self {
        Self { user: "u_1".into(), tenant: "t_a".into() }
    }

    /// `u_9 of t_a`, or a tenant alone.
    pub(super) fn read(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split(' ').collect();
        match words[..] {
            [user, "of", tenant] => Some(Self { user: user.into(), tenant: tenant.into() }),
            [tenant] if tenant.starts_with("t_") => Some(Self { tenant: tenant.into(), ..Self::anybody() }),
            _ => None,
        }
    }
}

impl Told {
    fn of(arguments: Arguments) -> Self {
        Self { who: Who::anybody(), key: None, arguments }
    }
}

impl Given {
    /// Clauses, separated by semicolons.
    pub(super) fn read(text: &str) -> Option<Self> {
        let mut given = Self::default();
        for clause in text.split("; ") {
            given.clause(clause)?;
        }
        Some(given)
    }

    fn clause(&mut self, clause: &str) -> Option<()> {
        if clause == "no history" || clause.starts_with("limit ") || clause.starts_with("window is the UTC day") {
            // How much may be taken stands in the contract.
        } else if clause == "backend supports Idempotency-Key" {
            self.honours_keys = true;
        } else if clause.starts_with("ledger volume is full") {
            self.is_full = true;
        } else if let Some(span) = clause.strip_prefix("retention ") {
            self.retained = Some(hours(span)?);
        } else if let Some(rest) = clause.strip_prefix("record of ") {
            let (key, age) = rest.split_once(" is ")?;
            let told = Told { key: Some(key.into()), ..Told::of(Arguments::Some(0)) };
            self.acts.extend([Act::Call(told), Act::Passes(hours(age.strip_suffix(" old")?)?)]);
        } else if let Some((key, _)) = clause.split_once(" is still dispatched") {
            let told = Told { key: Some(key.into()), ..Told::of(Arguments::Some(0)) };
            self.acts.extend([Act::Call(told), Act::Killed("after_open")]);
        } else {
            let (who, rest) = clause.split_once(" used key ")?;
            let (used, _) = rest.split_once(", done")?;
            let (key, arguments) = match used.split_once(" with ") {
                Some((key, values)) => (key, Arguments::Values(values.split('/').map(str::to_owned).collect())),
                None => (used, Arguments::Some(0)),
            };
            self.acts.push(Act::Call(Told { who: Who::read(who)?, key: Some(key.into()), arguments }));
        }
        Some(())
    }
}

/// A step of `abuse.jsonl`.
pub(super) fn step(text: &str) -> Option<Vec<Act>> {
    if let Some((time, rest)) = text.strip_prefix("at ").and_then(|rest| rest.split_once(" UTC ")) {
        return Some([vec![Act::At(time_of_day(time)?)], step(rest)?].concat());
    }
    if let Some(when) = text.strip_prefix("kill -9 ") {
        return Some(vec![Act::Killed(crash_point(when)?)]);
    }
    if let Some(span) = text.strip_prefix("wall clock jumps forward ") {
        return Some(vec![Act::SetAheadAndBack(days(span.strip_suffix(" and back")?)?)]);
    }
    if text == "restart" {
        return Some(vec![Act::Restart]);
    }
    if let Some((count, rest)) = text.split_once(" parallel calls of ") {
        let (amount, keys) = rest.split_once(" with ")?;
        let (count, amount) = (number(count)?, amount.parse().ok()?);
        let key = |index: usize| match keys {
            "different keys" => Some(format!("parallel-{index}")),
            "the same key" | "one key" => Some("parallel".into()),
            _ => None,
        };
        let told = |index| Some(Told { key: Some(key(index)?), ..Told::of(Arguments::Amount(amount)) });
        return Some(vec![Act::Together((0..count).map(told).collect::<Option<_>>()?)]);
    }
    calls(text)
}

/// `[WHO] call[s] [again] [with key K [and L]] [again] [V/W | AMOUNT]`.
fn calls(text: &str) -> Option<Vec<Act>> {
    let words: Vec<&str> = text.split(' ').collect();
    let at = words.iter().position(|word| matches!(*word, "call" | "calls"))?;
    let who = if at == 0 { Who::anybody() } else { Who::read(&words[..at].join(" "))? };
    let (mut keys, mut arguments) = (Vec::new(), Arguments::Some(0));
    let mut rest = words[at + 1..].iter().peekable();
    while let Some(word) = rest.next() {
        match *word {
            "again" => {}
            "with" => {
                rest.next_if(|word| matches!(**word, "key" | "keys"))?;
                keys.push(Some((*rest.next()?).to_owned()));
                while rest.next_if(|word| **word == "and").is_some() {
                    keys.push(Some((*rest.next()?).to_owned()));
                }
            }
            values if values.contains('/') => {
                arguments = Arguments::Values(values.split('/').map(str::to_owned).collect());
            }
            amount => arguments = Arguments::Amount(amount.parse().ok()?),
        }
    }
    if keys.is_empty() {
        keys.push(None);
    }
    let call = |key| Act::Call(Told { who: who.clone(), key, arguments: arguments.clone() });
    Some(keys.into_iter().map(call).collect())
}

/// A step of `faults.jsonl`, in which `tool` is called.
pub(super) fn attempt(text: &str, tool: &str) -> Option<Vec<Act>> {
    let mut acts = Vec::new();
    for clause in clauses(text) {
        let named = clause.split_once(tool);
        let key = ["operation ", "key "]
            .iter()
            .find_map(|label| clause.strip_prefix(label)?.split_once(':').map(|(key, _)| key.to_owned()));
        let letters = clause.split(' ').filter_map(letter);
        if let Some((_, rest)) = named {
            let values = rest.strip_prefix('(').and_then(|rest| rest.split_once(')'));
            let arguments = values.map_or(Arguments::Some(0), |(values, _)| {
                Arguments::Values(values.split(", ").map(str::to_owned).collect())
            });
            acts.push(Act::Call(Told { key, ..Told::of(arguments) }));
        } else if letters.clone().next().is_some() {
            acts.extend(letters.map(|letter| Act::Call(Told::of(Arguments::Some(letter)))));
        } else if clause.contains("connection drops") {
            acts.push(Act::CutOff);
        } else if !["fails", "retried", "starts over", "reconnects", "is written"]
            .iter()
            .any(|word| clause.contains(word))
        {
            return None;
        }
    }
    Some(acts)
}

/// What stands between commas and semicolons, those in brackets aside.
fn clauses(text: &str) -> Vec<&str> {
    let (mut clauses, mut begun, mut depth) = (Vec::new(), 0, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' | ';' if depth == 0 => {
                clauses.push(text[begun..at].trim());
                begun = at + 1;
            }
            _ => {}
        }
    }
    clauses.push(text[begun..].trim());
    clauses
}

/// The number of a call that has a letter for its name.
fn letter(word: &str) -> Option<usize> {
    let [letter @ b'A'..=b'Z'] = word.as_bytes() else { return None };
    Some(usize::from(letter - b'A'))
}

/// The crash point that is told in words.
fn crash_point(when: &str) -> Option<&'static str> {
    Some(match when {
        when if when.contains("after the backend committed") && when.contains("before the ledger") => "after_effect",
        when if when.contains("before the intent") => "before_open",
        when if when.contains("before dispatch") || when.contains("after the intent") => "after_open",
        when if when.contains("after dispatch") => "after_send",
        when if when.contains("after the ledger stored") => "after_close",
        _ => return None,
    })
}

fn number(word: &str) -> Option<usize> {
    ["zero", "one", "two", "three", "four", "five"]
        .iter()
        .position(|known| *known == word)
        .or_else(|| word.parse().ok())
}

fn hours(text: &str) -> Option<Duration> {
    text.strip_suffix(" h")?.parse().ok().map(|hours: u64| Duration::from_secs(hours * 3600))
}

fn days(text: &str) -> Option<Duration> {
    text.strip_suffix(" days")?.parse().ok().map(|days: u64| Duration::from_secs(days * 86_400))
}

/// `HH:MM:SS.mmm`.
fn time_of_day(text: &str) -> Option<u64> {
    let (whole, millis) = text.split_once('.').unwrap_or((text, "0"));
    let parts = whole.split(':').map(|part| part.parse().ok()).collect::<Option<Vec<u64>>>()?;
    let [hours, minutes, seconds] = parts[..] else { return None };
    Some(((hours * 60 + minutes) * 60 + seconds) * 1000 + millis.parse::<u64>().ok()?)
}

#[test]
fn what_is_told_in_steps_is_what_is_meant() {
    let told = |key: &str, arguments| Told { key: Some(key.into()), ..Told::of(arguments) };
    let values = |values: &[&str]| Arguments::Values(values.iter().map(|&value| value.to_owned()).collect());
    let of_b = Told { who: Who::read("t_b").unwrap(), ..told("k", values(&["a", "9"])) };
    assert_eq!(step("t_b calls with key k a/9"), Some(vec![Act::Call(of_b)]));
    let (k, l) = (told("k", Arguments::Some(0)), told("l", Arguments::Some(0)));
    assert_eq!(step("call with k and l again"), None);
    assert_eq!(step("call with key k and l again"), Some(vec![Act::Call(k.clone()), Act::Call(l)]));
    let late = Told::of(Arguments::Amount(7));
    assert_eq!(step("at 00:00:01.050 UTC call 7"), Some(vec![Act::At(1050), Act::Call(late)]));
    assert_eq!(step("do as you like"), None);
    let given = Given::read("retention 2 h; record of k is 1 h old").unwrap();
    assert_eq!(given.acts, [Act::Call(k), Act::Passes(Duration::from_secs(3600))]);
    let pay = |key: Option<&str>, arguments| Act::Call(Told { key: key.map(str::to_owned), ..Told::of(arguments) });
    let two = attempt("task attempt 1 calls pay(acme, 5): ok, the model request fails", "pay");
    assert_eq!(two, Some(vec![pay(None, values(&["acme", "5"]))]));
    assert_eq!(attempt("key k: pay(acme, 9)", "pay"), Some(vec![pay(Some("k"), values(&["acme", "9"]))]));
    let both = attempt("the model asks for A and C again", "pay").unwrap();
    assert_eq!(both, [pay(None, Arguments::Some(0)), pay(None, Arguments::Some(2))]);
    assert_eq!(attempt("pay is explained", "other"), None);
}
