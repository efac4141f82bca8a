//! What goes wrong with a file, in words for the operator.

use rusqlite::{Error, ErrorCode};

use super::super::StoreError;
use crate::vault::KeyError;

pub(super) const READ_ONLY: &str = "it can be read but not written; open it without mode=ro, with the right to write, \
                                    on a file system that can be written";
const DAMAGED: &str = "it holds a row that cannot be read; it was changed by another program or is damaged";

pub(super) fn broken(text: &str) -> StoreError {
    StoreError::Broken(text.into())
}

pub(super) fn unstorable() -> StoreError {
    broken("a value cannot be stored, so nothing was")
}

pub(super) fn damaged() -> StoreError {
    broken(DAMAGED)
}

impl StoreError {
    /// The same, naming the file.
    pub(super) fn of(self, file: &str) -> Self {
        match self {
            Self::Broken(text) => Self::Broken(format!("the store {file}: {text}")),
            Self::Busy => Self::Busy,
        }
    }
}

impl From<KeyError> for StoreError {
    fn from(error: KeyError) -> Self {
        Self::Broken(error.to_string())
    }
}

impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        if let Error::FromSqlConversionFailure(..)
        | Error::IntegralValueOutOfRange(..)
        | Error::InvalidColumnType(..)
        | Error::Utf8Error(..) = error
        {
            return damaged();
        }
        let text = match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => return Self::Busy,
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => READ_ONLY,
            Some(ErrorCode::CannotOpen) => {
                "it cannot be opened; the path must name a file in a folder that exists, with the right to write both"
            }
            Some(ErrorCode::DiskFull) => "its disk is full, so nothing was written; make room, and it goes on",
            Some(ErrorCode::SystemIoFailure) => "its disk cannot be read or written; see to the disk first",
            Some(ErrorCode::NotADatabase) => "it is not a database; name another file",
            Some(ErrorCode::DatabaseCorrupt) => "it is damaged; keep it for examination, and bring back a copy",
            Some(ErrorCode::FileLockingProtocolFailed) => {
                "its locks do not work; keep the store on a local disk, not on a network file system"
            }
            _ => "a statement failed that should not; the file may have been changed by another program",
        };
        match error.sqlite_error() {
            Some(error) => Self::Broken(format!("{text} (SQLite code {})", error.extended_code)),
            None => broken(text),
        }
    }
}
