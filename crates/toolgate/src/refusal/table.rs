//! The one table of codes: who mends it, whether to retry, how each door says it.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Effect, Fix, Retry};

/// How an MCP door says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum McpForm {
    /// A tool result with `isError`, which the model reads.
    ToolResult,
    /// A JSON-RPC error, for a broken envelope or a missing tool.
    ProtocolError,
}

/// The class of an attempt in the record, for counting and alarms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditClass {
    /// The call was not well formed.
    Invalid,
    /// Somebody asked for what they may not do.
    Denied,
    /// It waits for a person.
    Held,
    /// Another call stands in the way.
    Conflict,
    /// A bound was reached.
    Limited,
    /// The tool or its backend failed.
    Failed,
    /// The outcome must be found out.
    Unknown,
}

/// What the table says of a code and an effect.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Who can mend it.
    pub fix: Fix,
    /// Whether to send the call again.
    pub retry: Retry,
    /// How an MCP door says it.
    pub mcp: McpForm,
    /// The HTTP status of one outcome.
    pub status: u16,
    /// The class in the record.
    pub class: AuditClass,
    /// The message, where the stage has nothing better to say.
    pub text: &'static str,
}

/// Declares the codes with their names and pages in one place.
macro_rules! codes {
    ($($(#[$doc:meta])* $code:ident = $name:literal,)+) => {
        /// The stable code of a refusal.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Code { $($(#[$doc])* $code,)+ }

        impl Code {
            /// All codes, in the order of the documentation.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$code),+];

            /// The code as it stands in answers, records and documentation.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$code => $name,)+ }
            }

            /// The page that explains the code, in Markdown.
            pub fn page(self) -> &'static str {
                match self { $(Self::$code => include_str!(concat!($name, ".md")),)+ }
            }
        }
    };
}

codes! {
    /// Nobody is known to be asking.
    Unauthenticated = "unauthenticated",
    /// There is no such tool for this session.
    UnknownTool = "unknown_tool",
    /// The call's envelope is not one.
    InvalidCall = "invalid_call",
    /// The arguments are not strict JSON.
    InvalidJson = "invalid_json",
    /// The arguments do not fit the schema.
    InvalidArguments = "invalid_arguments",
    /// The model's turn was cut off, so nothing of it runs.
    TurnTruncated = "turn_truncated",
    /// Not permitted, or not there: which of the two is not said.
    Forbidden = "forbidden",
    /// A business rule says no.
    RuleFailed = "rule_failed",
    /// A person must approve exactly this call.
    ApprovalRequired = "approval_required",
    /// The named approval cannot be used for this call.
    ApprovalInvalid = "approval_invalid",
    /// An amount or a count is used up for now.
    LimitReached = "limit_reached",
    /// The gate has too much to do.
    Overloaded = "overloaded",
    /// The run has used up its budget.
    BudgetExhausted = "budget_exhausted",
    /// The run repeats itself.
    LoopDetected = "loop_detected",
    /// The model did not manage to mend its call.
    RepairExhausted = "repair_exhausted",
    /// An equal call, or one on the same lane, is still running.
    InProgress = "in_progress",
    /// The action was done by somebody else.
    AlreadyDone = "already_done",
    /// The operation id or key stands for another call.
    KeyConflict = "key_conflict",
    /// Whether an earlier action happened is not known.
    OutcomeUnknown = "outcome_unknown",
    /// The deadline passed.
    TimedOut = "timed_out",
    /// The caller went away.
    Cancelled = "cancelled",
    /// The tool may not connect there.
    EgressDenied = "egress_denied",
    /// The tool reported a failure.
    ToolFailed = "tool_failed",
    /// The tool's backend could not be reached or was busy.
    Unavailable = "unavailable",
    /// The result does not keep the contract.
    InvalidResult = "invalid_result",
    /// The result cannot be made to fit its bound.
    ResultTooLarge = "result_too_large",
}

impl Code {
    /// The code with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.as_str() == name)
    }

    /// What the table says of this code with this effect.
    pub fn row(self, effect: Effect) -> Row {
        row(self, effect)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The table.
pub(super) fn row(code: Code, effect: Effect) -> Row {
    use {AuditClass as A, Code as C, Fix as F, Retry as R};
    let said = |fix, retry, status, class, text| Row { fix, retry, mcp: McpForm::ToolResult, status, class, text };
    let before = match code {
        C::Unauthenticated => {
            Row { mcp: McpForm::ProtocolError, ..said(F::User, R::AfterChange, 401, A::Denied, "Nobody is signed in.") }
        }
        C::UnknownTool => Row {
            mcp: McpForm::ProtocolError,
            ..said(F::Model, R::AfterChange, 404, A::Denied, "There is no tool of this name.")
        },
        C::InvalidCall => said(F::Model, R::AfterChange, 400, A::Invalid, "The call is not well formed."),
        C::InvalidJson => said(F::Model, R::AfterChange, 400, A::Invalid, "The arguments are not strict JSON."),
        C::InvalidArguments => {
            said(F::Model, R::AfterChange, 422, A::Invalid, "The arguments do not fit the tool's schema.")
        }
        C::TurnTruncated => said(
            F::Model,
            R::AfterChange,
            422,
            A::Invalid,
            "The message was cut off before it ended, so none of its calls ran. Send fewer or shorter calls.",
        ),
        C::Forbidden => said(F::User, R::Never, 403, A::Denied, "This is not permitted, or there is no such thing."),
        C::RuleFailed => said(F::User, R::AfterChange, 422, A::Denied, "A rule of this tool forbids the call."),
        C::ApprovalRequired => {
            said(F::User, R::Same, 202, A::Held, "A person must approve exactly this call before it can run.")
        }
        C::ApprovalInvalid => said(
            F::User,
            R::AfterChange,
            403,
            A::Denied,
            "The named approval cannot be used for this call. Leave it out to ask for a new one.",
        ),
        C::LimitReached => said(F::User, R::AfterChange, 429, A::Limited, "A limit of this tool is reached."),
        C::Overloaded => said(F::Nobody, R::Same, 503, A::Limited, "Too many calls are waiting. Try again soon."),
        C::BudgetExhausted => said(F::User, R::Never, 429, A::Limited, "The budget of this run is used up."),
        C::LoopDetected => {
            said(F::Model, R::AfterChange, 429, A::Limited, "The same call was made too often. Do something else.")
        }
        C::RepairExhausted => {
            said(F::User, R::Never, 422, A::Invalid, "The call was sent wrongly too often. Ask the user for help.")
        }
        C::InProgress => said(
            F::Nobody,
            R::After(std::time::Duration::from_millis(1000)),
            409,
            A::Conflict,
            "This action, or another one on the same thing, is still running. Wait, then send the same call again.",
        ),
        C::AlreadyDone => said(
            F::Nobody,
            R::Never,
            409,
            A::Conflict,
            "This action was already done by somebody else. It was not done again.",
        ),
        C::KeyConflict => said(
            F::Operator,
            R::AfterChange,
            422,
            A::Conflict,
            "The key of this operation already stands for a call with other arguments. Nothing was done for this call.",
        ),
        C::OutcomeUnknown => said(
            F::Operator,
            R::Same,
            409,
            A::Unknown,
            "Whether an earlier action happened is not known yet, so nothing was done. \
             Do not try it in another way: it could happen twice. The operator can find out.",
        ),
        C::TimedOut => {
            said(F::Nobody, R::Same, 504, A::Failed, "The tool did not answer in time. Nothing was changed.")
        }
        C::Cancelled => said(F::Nobody, R::Same, 499, A::Failed, "The call was cancelled. Nothing was changed."),
        C::EgressDenied => said(F::Operator, R::Never, 403, A::Denied, "The tool may not connect to this address."),
        C::ToolFailed => said(F::Operator, R::Same, 502, A::Failed, "The tool failed. Nothing was changed."),
        C::Unavailable => {
            said(F::Nobody, R::Same, 503, A::Failed, "The tool cannot be reached now. Nothing was changed.")
        }
        C::InvalidResult => {
            said(F::Operator, R::Never, 502, A::Failed, "The tool's result does not keep its contract and is withheld.")
        }
        C::ResultTooLarge => said(
            F::Model,
            R::AfterChange,
            502,
            A::Failed,
            "The result is larger than its bound and cannot be cut. Ask for less.",
        ),
    };
    match effect {
        Effect::None => before,
        Effect::Done => after_the_fact(code, before),
        Effect::Unknown => in_doubt(code, before),
    }
}

/// The action happened, so no repeat is of use and no other call mends it.
fn after_the_fact(code: Code, before: Row) -> Row {
    let text = match code {
        Code::InvalidResult => {
            "The action was done, but the tool's answer does not keep its contract and is withheld. Do not repeat it."
        }
        Code::ResultTooLarge => {
            "The action was done, but its result is larger than its bound and cannot be cut. Do not repeat it."
        }
        Code::ToolFailed | Code::Unavailable => "The action was done, but the tool then failed. Do not repeat it.",
        Code::TimedOut | Code::Cancelled => "The action was done, but its result came too late. Do not repeat it.",
        Code::Unauthenticated
        | Code::UnknownTool
        | Code::InvalidCall
        | Code::InvalidJson
        | Code::InvalidArguments
        | Code::TurnTruncated
        | Code::Forbidden
        | Code::RuleFailed
        | Code::ApprovalRequired
        | Code::ApprovalInvalid
        | Code::LimitReached
        | Code::Overloaded
        | Code::BudgetExhausted
        | Code::LoopDetected
        | Code::RepairExhausted
        | Code::InProgress
        | Code::AlreadyDone
        | Code::KeyConflict
        | Code::OutcomeUnknown
        | Code::EgressDenied => before.text,
    };
    let fix = if code == Code::AlreadyDone { before.fix } else { Fix::Operator };
    Row { fix, retry: Retry::Never, text, ..before }
}

/// Nobody knows whether the action happened. The same call may come again: it is reconciled first and never run blindly.
fn in_doubt(code: Code, before: Row) -> Row {
    let text = match code {
        Code::TimedOut => {
            "The tool did not answer in time, and whether the action happened is not known. Do not try it in another \
             way. The same call may be sent again: it is looked up first and never done twice."
        }
        Code::Cancelled => {
            "The call was cancelled while it ran, and whether the action happened is not known. The same call may be \
             sent again: it is looked up first and never done twice."
        }
        Code::ToolFailed | Code::Unavailable => {
            "The tool failed while it ran, and whether the action happened is not known. Do not try it in another \
             way. The same call may be sent again: it is looked up first and never done twice."
        }
        Code::InvalidResult | Code::ResultTooLarge => {
            "The tool's answer cannot be used, and whether the action happened is not known. The same call may be \
             sent again: it is looked up first and never done twice."
        }
        Code::OutcomeUnknown => {
            "Whether this action happened is not known: it ended before its outcome was recorded. Do not try it in \
             another way. The same call may be sent again: it is looked up first and never done twice."
        }
        Code::Unauthenticated
        | Code::UnknownTool
        | Code::InvalidCall
        | Code::InvalidJson
        | Code::InvalidArguments
        | Code::TurnTruncated
        | Code::Forbidden
        | Code::RuleFailed
        | Code::ApprovalRequired
        | Code::ApprovalInvalid
        | Code::LimitReached
        | Code::Overloaded
        | Code::BudgetExhausted
        | Code::LoopDetected
        | Code::RepairExhausted
        | Code::InProgress
        | Code::AlreadyDone
        | Code::KeyConflict
        | Code::EgressDenied => before.text,
    };
    Row { fix: Fix::Operator, retry: Retry::Same, class: AuditClass::Unknown, text, ..before }
}
