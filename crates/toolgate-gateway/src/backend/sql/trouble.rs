//! Why a statement gave no result, and what that proves.

use rusqlite::ErrorCode;
use toolgate::backend::{Failure, FailureKind};
use toolgate::refusal::Effect;

/// Why there is no result. The texts are for the operator.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Trouble {
    #[error("the deadline passed while the statement ran")]
    TimedOut,
    #[error("the caller went away while the statement ran")]
    Cancelled,
    #[error("the database was locked by others until the deadline")]
    Busy,
    #[error("{0}")]
    Unopenable(String),
    #[error("the statement gave no row")]
    NoRow,
    #[error("the statement gave more than one row where the contract says one")]
    ManyRows,
    #[error("{0}")]
    TooLarge(String),
    #[error("a constraint refused it: {0}")]
    Constraint(String),
    /// A value has no form on the other side.
    #[error("{0}")]
    Value(String),
    #[error("the statement failed: {0}")]
    Statement(String),
    /// It may be committed, or not.
    #[error("the commit failed: {0}")]
    Commit(String),
    #[error("the work ended without an answer")]
    Lost,
}

/// What `[errors]` and `[retry]` call them.
pub(super) const SIGNALS: [&str; 12] = [
    "timeout",
    "cancelled",
    "503",
    "connect",
    "no_row",
    "many_rows",
    "too_large",
    "constraint",
    "value",
    "statement",
    "commit",
    "panic",
];

impl Trouble {
    /// What an error of SQLite means. An interruption is the deadline unless the watch knows better.
    pub(super) fn of(error: &rusqlite::Error) -> Self {
        match code(error) {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            Some(ErrorCode::OperationInterrupted) => Self::TimedOut,
            Some(ErrorCode::ConstraintViolation) => Self::Constraint(words(error)),
            Some(ErrorCode::CannotOpen | ErrorCode::NotADatabase) => Self::Unopenable(words(error)),
            Some(ErrorCode::TooBig) => Self::TooLarge("a value is larger than SQLite takes".into()),
            _ => Self::Statement(words(error)),
        }
    }

    /// What is known of the effect of a write.
    pub(super) fn effect(&self) -> Effect {
        match self {
            Self::Commit(_) | Self::Lost => Effect::Unknown,
            // INVARIANT (rolled back): all these are told before the commit, and then nothing is committed.
            Self::TimedOut
            | Self::Cancelled
            | Self::Busy
            | Self::Unopenable(_)
            | Self::NoRow
            | Self::ManyRows
            | Self::TooLarge(_)
            | Self::Constraint(_)
            | Self::Value(_)
            | Self::Statement(_) => Effect::None,
        }
    }

    /// The failure as the gate knows it; `[errors]` and `[retry]` go by its signal.
    pub(super) fn into_failure(self) -> Failure {
        let (kind, signal) = match &self {
            Self::TimedOut => (FailureKind::TimedOut, "timeout"),
            Self::Cancelled => (FailureKind::Cancelled, "cancelled"),
            Self::Busy => (FailureKind::Unavailable, "503"),
            Self::Unopenable(_) => (FailureKind::Unavailable, "connect"),
            Self::NoRow => (FailureKind::Reported, "no_row"),
            Self::ManyRows => (FailureKind::Reported, "many_rows"),
            Self::TooLarge(_) => (FailureKind::TooLarge, "too_large"),
            Self::Constraint(_) => (FailureKind::Reported, "constraint"),
            Self::Value(_) => (FailureKind::Reported, "value"),
            Self::Statement(_) => (FailureKind::Reported, "statement"),
            Self::Commit(_) => (FailureKind::Reported, "commit"),
            Self::Lost => (FailureKind::Reported, "panic"),
        };
        Failure::new(kind, signal, self.to_string())
    }
}

fn code(error: &rusqlite::Error) -> Option<ErrorCode> {
    match error {
        rusqlite::Error::SqliteFailure(error, _) | rusqlite::Error::SqlInputError { error, .. } => Some(error.code),
        _ => None,
    }
}

/// What is wrong with a text of SQL, for whoever wrote it. The names in it are the author's own.
pub(super) fn in_our_words(error: &rusqlite::Error) -> String {
    let said = words(error);
    let after = |start: &str| said.strip_prefix(start).map(str::trim);
    let quoted = |start: &str, end: &str| {
        said.strip_prefix(start)?.strip_suffix(end).map(|name| name.trim().trim_matches('"').to_owned())
    };
    if let Some(name) = after("no such column:") {
        format!("there is no column `{name}`")
    } else if let Some(name) = after("no such table:") {
        format!("there is no table `{name}`")
    } else if let Some(name) = after("no such function:") {
        format!("there is no function `{name}`")
    } else if let Some(name) = after("ambiguous column name:") {
        format!("`{name}` is a column of more than one table; name the table before it")
    } else if let Some((table, column)) = after("table").and_then(|rest| rest.split_once(" has no column named ")) {
        format!("the table `{}` has no column `{}`", table.trim(), column.trim())
    } else if let Some(name) = quoted("near ", ": syntax error") {
        format!("it is no SQL from `{name}` on")
    } else if let Some(name) = quoted("unrecognized token:", "") {
        format!("it is no SQL from `{name}` on")
    } else if said == "incomplete input" {
        "it ends too early".to_owned()
    } else if let Some(name) = quoted("table ", " already exists") {
        format!("the table `{name}` is made twice")
    } else if matches!(code(error), Some(ErrorCode::ConstraintViolation)) {
        "a row breaks a constraint of its table".to_owned()
    } else {
        "SQLite does not take it; the command `sqlite3` on the same text tells more".to_owned()
    }
}

/// What SQLite says, without the statement that it would repeat.
pub(super) fn words(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqlInputError { msg, .. } | rusqlite::Error::SqliteFailure(_, Some(msg)) => msg.clone(),
        other => other.to_string(),
    }
}
