//! Exit codes: what a script learns without reading.

use std::process::ExitCode;

use toolgate::Reply;
use toolgate::refusal::{AuditClass, Effect};

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It did what was asked.
    Ok,
    /// The gate or its store failed.
    Fault,
    /// The command, the folder or the input is wrong; nothing was run.
    Usage,
    /// The call was refused.
    Refused,
    /// The call waits for approval.
    Pending,
    /// Whether the call had an effect is not known.
    Unknown,
}

impl Exit {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 6] = [Self::Ok, Self::Fault, Self::Usage, Self::Refused, Self::Pending, Self::Unknown];

    /// The number that the shell sees.
    pub fn number(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Fault => 1,
            Self::Usage => 2,
            Self::Refused => 3,
            Self::Pending => 4,
            Self::Unknown => 5,
        }
    }

    /// What it means.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Ok => "done: the command did what was asked",
            Self::Fault => "a fault: the gate or its store failed, and nothing ran",
            Self::Usage => "usage or configuration: the command, the folder or the input is wrong, and nothing ran",
            Self::Refused => "refused: the call was answered with a reason",
            Self::Pending => "pending: the call waits for a person's approval",
            Self::Unknown => "unknown: whether the call had an effect is not known; never repeat it in another way",
        }
    }

    /// How a call ended.
    pub(crate) fn of(reply: &Reply) -> Self {
        if reply.effect() == Effect::Unknown {
            return Self::Unknown;
        }
        let Some(refusal) = reply.refusal() else { return Self::Ok };
        match refusal.code().row(refusal.effect()).class {
            AuditClass::Held => Self::Pending,
            AuditClass::Invalid
            | AuditClass::Denied
            | AuditClass::Conflict
            | AuditClass::Limited
            | AuditClass::Failed
            | AuditClass::Unknown => Self::Refused,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.number())
    }
}
