//! `[audit]` of a folder: what its record holds, and the key of what it seals and digests.

use std::path::{Path, PathBuf};

use toolgate::fields::{Fields, Problems};
use toolgate::gate::Kept;
use toolgate::ledger::StoreError;
use toolgate::vault::GateKey;

use super::checkpoints::Checkpoints;

/// What a folder says of its record.
#[derive(Debug, Default)]
pub(super) struct Audit {
    pub(super) kept: Kept,
    pub(super) key: KeyAt,
    /// Where the end of the record is kept as well.
    pub(super) checkpoints: Option<Checkpoints>,
}

/// Where the gate key is. INVARIANT (by name): a key is nowhere in a folder's settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum KeyAt {
    /// In the file beside the store.
    #[default]
    Beside,
    /// In a variable of the environment.
    Variable(String),
    /// In a file, relative to the folder. It is made if it is not there.
    File(PathBuf),
}

impl Audit {
    pub(super) fn read(dir: &Path, top: &mut Fields<'_>, problems: &mut Problems) -> Self {
        let Some(mut fields) = top.table("audit", problems) else { return Self::default() };
        let kept = [("keep", Kept::Values), ("digest", Kept::Digests)];
        let kept = fields.word("arguments", &kept, Kept::default(), problems);
        let key = fields.text("key", problems).map_or(KeyAt::Beside, |text| {
            let place = fields.place("key");
            KeyAt::parse(text).unwrap_or_else(|| {
                let message = "expected \"env:NAME\" or \"file:PATH\": the key itself does not stand here";
                problems.hinted(place, "format", message, Some("key = \"env:TOOLGATE_KEY\"".into()));
                KeyAt::Beside
            })
        });
        let checkpoints = Checkpoints::read(dir, &mut fields, problems);
        fields.end(problems);
        Self { kept, key, checkpoints }
    }
}

impl KeyAt {
    fn parse(text: &str) -> Option<Self> {
        let is_name = |name: &str| !name.is_empty() && !name.contains(['=', '\0']);
        match text.split_once(':')? {
            ("env", name) if is_name(name) => Some(Self::Variable(name.to_owned())),
            ("file", path) if !path.is_empty() => Some(Self::File(path.into())),
            _ => None,
        }
    }

    /// The key of the folder `dir`; `None` where it lies beside the store.
    #[expect(clippy::disallowed_methods, reason = "the folder names the variable that holds its key")]
    pub(super) fn read(&self, dir: &Path) -> Result<Option<GateKey>, StoreError> {
        let broken = |error: String| StoreError::Broken(format!("the key that [audit] names cannot be used: {error}"));
        match self {
            Self::Beside => Ok(None),
            Self::Variable(name) => {
                let text =
                    std::env::var(name).map_err(|_| broken(format!("the variable {name} is not set to a text")))?;
                GateKey::parse(&text, &format!("the variable {name}"))
                    .map(Some)
                    .map_err(|error| broken(error.to_string()))
            }
            Self::File(path) => GateKey::in_file(&dir.join(path)).map(Some).map_err(|error| broken(error.to_string())),
        }
    }
}
