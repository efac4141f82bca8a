//! Why a command did not do what was asked: a code with a page, the exit that it means, a sentence, and what to do.

use toolgate::approval::NotDecided;
use toolgate::fault::Fault;
use toolgate::ledger::StoreError;

use super::Exit;
use crate::identity::Unlisted;

/// What a person reads when a command does not do what was asked.
///
/// INVARIANT (addressed): there is none without a code, and no code without a page.
#[derive(Debug)]
pub(crate) struct Failure {
    code: FailureCode,
    message: String,
    hint: Option<String>,
}

/// Declares the codes with their names, exits and pages in one place.
macro_rules! codes {
    ($($(#[$doc:meta])* $code:ident = $name:literal => $exit:ident,)+) => {
        /// The stable code of a command that did not do what was asked.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum FailureCode { $($(#[$doc])* $code,)+ }

        impl FailureCode {
            /// All codes, in the order of the documentation.
            pub(crate) const ALL: [Self; [$($name),+].len()] = [$(Self::$code),+];

            /// The code as it stands behind `error`.
            pub(crate) fn as_str(self) -> &'static str {
                match self { $(Self::$code => $name,)+ }
            }

            /// How the command ends.
            pub(crate) fn exit(self) -> Exit {
                match self { $(Self::$code => Exit::$exit,)+ }
            }

            /// The page that explains the code, in Markdown.
            pub(crate) fn page(self) -> &'static str {
                match self { $(Self::$code => include_str!(concat!("pages/", $name, ".md")),)+ }
            }
        }
    };
}

codes! {
    /// The words of the command line are none that there are.
    Usage = "usage" => Usage,
    /// No gate folder was named, and none is here.
    NoFolder = "no_folder" => Usage,
    /// The gate folder is not there.
    NoSuchFolder = "no_such_folder" => Usage,
    /// The gate folder has faults.
    FolderFaults = "folder_faults" => Usage,
    /// The folder does not do what one of its cases says.
    CaseFailed = "case_failed" => Usage,
    /// Something is already where a new folder was to be.
    FolderNotEmpty = "folder_not_empty" => Usage,
    /// Nothing has been called yet.
    NoStore = "no_store" => Usage,
    /// Somebody is named whom the folder does not list, or nobody is.
    UnknownUser = "unknown_user" => Usage,
    /// A tag is named that no tool of the folder has.
    UnknownTag = "unknown_tag" => Usage,
    /// There is no token of this id.
    NoToken = "no_token" => Usage,
    /// The people of the folder are listed, and have no tokens.
    PeopleListed = "people_listed" => Usage,
    /// Somebody else listens at the port.
    PortInUse = "port_in_use" => Usage,
    /// It cannot listen at the address.
    CannotListen = "cannot_listen" => Usage,
    /// Other machines would reach a door that asks nobody who they are.
    NotLoopback = "not_loopback" => Usage,
    /// Other machines would reach a door that answers for no name.
    NoHosts = "no_hosts" => Usage,
    /// The program of a server is not there, or cannot be read.
    NoProgram = "no_program" => Usage,
    /// There is no place for the state of a wrapped server.
    NoStateFolder = "no_state_folder" => Usage,
    /// The lock of a wrapped server cannot be read.
    LockUnreadable = "lock_unreadable" => Usage,
    /// A wrapped server is not what was pinned.
    NotAsPinned = "not_as_pinned" => Usage,
    /// A server does not start, or does not tell its tools.
    ServerFailed = "server_failed" => Usage,
    /// There is no such code.
    UnknownCode = "unknown_code" => Usage,
    /// There is no such command or topic.
    UnknownTopic = "unknown_topic" => Usage,
    /// The record tells of no such call.
    UnknownRef = "unknown_ref" => Usage,
    /// The ledger holds no such action.
    UnknownAction = "unknown_action" => Usage,
    /// Several actions have a key that begins so.
    AmbiguousKey = "ambiguous_key" => Usage,
    /// No tool and no tenant has this name.
    UnknownTarget = "unknown_target" => Usage,
    /// No stop of this id stands.
    UnknownStop = "unknown_stop" => Usage,
    /// Nothing personal is kept of this subject.
    UnknownSubject = "unknown_subject" => Usage,
    /// There is no such schema.
    UnknownSchema = "unknown_schema" => Usage,
    /// stdin cannot be read, or is too large.
    UnreadableInput = "unreadable_input" => Usage,
    /// What stands on stdin is no message of its dialect.
    InvalidMessage = "invalid_message" => Usage,
    /// The id of the operation is not one.
    InvalidOperation = "invalid_operation" => Usage,
    /// A file cannot be written.
    Unwritable = "unwritable" => Usage,
    /// The folder keeps no checkpoints.
    NoCheckpoints = "no_checkpoints" => Usage,
    /// There is no such approval.
    ApprovalMissing = "approval_missing" => Refused,
    /// The approval is not pending any more.
    ApprovalClosed = "approval_closed" => Refused,
    /// The approval has expired.
    ApprovalExpired = "approval_expired" => Refused,
    /// This person may not answer the approval.
    ApprovalNotYours = "approval_not_yours" => Refused,
    /// There is no such standing grant.
    GrantMissing = "grant_missing" => Refused,
    /// This person may not give the standing grant, or take it back.
    GrantNotYours = "grant_not_yours" => Refused,
    /// There are too many standing grants already.
    TooManyGrants = "too_many_grants" => Refused,
    /// The edited call cannot be asked for.
    EditNotAsked = "edit_not_asked" => Refused,
    /// It is known what became of the action, or it is running.
    NotUnknown = "not_unknown" => Refused,
    /// What became of the action is being looked for.
    BeingReconciled = "being_reconciled" => Refused,
    /// The result cannot be one of the tool.
    ResultUnfit = "result_unfit" => Refused,
    /// The record does not hold what was sent.
    NotKept = "not_kept" => Refused,
    /// What the record tells of cannot be a case.
    NotACase = "not_a_case" => Refused,
    /// Actions of whoever is to be erased may be running, or nobody knows how they ended.
    SubjectInDoubt = "subject_in_doubt" => Refused,
    /// As many stops stand as may.
    TooManyStops = "too_many_stops" => Refused,
    /// The chain of the record does not hold.
    RecordBroken = "record_broken" => Refused,
    /// The store cannot be opened, read or written.
    StoreFailed = "store_failed" => Fault,
    /// The store has too much to do.
    StoreBusy = "store_busy" => Fault,
    /// The record of earlier calls could not be written.
    RecordFailed = "record_failed" => Fault,
    /// The end of the record could not be kept where checkpoints go.
    CheckpointFailed = "checkpoint_failed" => Fault,
    /// Somebody outside could not be told of an approval that waits.
    WebhookFailed = "webhook_failed" => Fault,
    /// The answer could not be written.
    OutputFailed = "output_failed" => Fault,
    /// The tokens cannot be read, so that they admit nobody.
    TokensUnreadable = "tokens_unreadable" => Fault,
    /// The keys of an issuer cannot be had, so that its tokens admit nobody.
    KeysUnavailable = "keys_unavailable" => Fault,
    /// The system gives no random numbers.
    NoRandom = "no_random" => Fault,
    /// A running gate takes no calls, or is not there.
    NotReady = "not_ready" => Fault,
    /// The gate itself failed.
    GateFault = "gate_fault" => Fault,
}

impl Failure {
    pub(crate) fn new(code: FailureCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None }
    }

    /// The command line does not say what could be done.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(FailureCode::Usage, message)
    }

    /// The gate itself failed.
    pub(crate) fn fault(message: impl Into<String>) -> Self {
        Self::new(FailureCode::GateFault, message)
    }

    /// One command or one edit that mends it.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn code(&self) -> FailureCode {
        self.code
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// What to do: what is known of this one, else where its code is explained.
    pub(crate) fn advice(&self) -> String {
        self.hint.clone().unwrap_or_else(|| format!("toolgate explain {}", self.code.as_str()))
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self::from(&fault)
    }
}

impl From<&Fault> for Failure {
    fn from(fault: &Fault) -> Self {
        let code = match fault {
            Fault::Store(StoreError::Broken(_)) => FailureCode::StoreFailed,
            Fault::Store(StoreError::Busy) => FailureCode::StoreBusy,
            Fault::Record(_) => FailureCode::RecordFailed,
            Fault::Closing | Fault::Lost => FailureCode::GateFault,
        };
        Self::new(code, fault.to_string())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::from(&error)
    }
}

impl From<&StoreError> for Failure {
    fn from(error: &StoreError) -> Self {
        let code = match error {
            StoreError::Broken(_) => FailureCode::StoreFailed,
            StoreError::Busy => FailureCode::StoreBusy,
        };
        Self::new(code, error.to_string())
    }
}

impl From<NotDecided> for Failure {
    fn from(reason: NotDecided) -> Self {
        let code = match &reason {
            NotDecided::Missing => FailureCode::ApprovalMissing,
            NotDecided::Closed(_) => FailureCode::ApprovalClosed,
            NotDecided::Expired => FailureCode::ApprovalExpired,
            NotDecided::NotYours(_) => FailureCode::ApprovalNotYours,
            NotDecided::Store => FailureCode::StoreFailed,
        };
        Self::new(code, reason.to_string())
    }
}

impl From<Unlisted> for Failure {
    fn from(unlisted: Unlisted) -> Self {
        let code = if unlisted.unknowable { FailureCode::KeysUnavailable } else { FailureCode::UnknownUser };
        Self { hint: unlisted.hint.clone(), ..Self::new(code, unlisted.to_string()) }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::collections::BTreeSet;

    use toolgate::refusal::HEADINGS;

    use super::*;

    #[test]
    fn every_code_has_a_page_with_the_four_headings() {
        for code in FailureCode::ALL {
            let (name, page) = (code.as_str(), code.page());
            assert!(page.starts_with(&format!("# {name}\n")), "the page of {name} starts with its name");
            for heading in HEADINGS {
                assert!(page.contains(&format!("\n## {heading}\n\n")), "the page of {name} lacks {heading}");
            }
            assert_ne!(code.exit(), Exit::Ok, "{name}");
        }
    }

    #[test]
    fn every_page_belongs_to_a_code() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/cli/pages");
        let pages: BTreeSet<String> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        let codes = FailureCode::ALL.iter().map(|code| format!("{}.md", code.as_str())).collect();
        assert_eq!(pages, codes);
    }
}
