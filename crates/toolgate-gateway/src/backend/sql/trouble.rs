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

/// What SQLite says, without the statement that it would repeat.
pub(super) fn words(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqlInputError { msg, .. } | rusqlite::Error::SqliteFailure(_, Some(msg)) => msg.clone(),
        other => other.to_string(),
    }
}
