//! `[audit.checkpoints]` of a folder: where the end of its record is kept as well, how often, and signed with which key.

use std::path::{Path, PathBuf};
use std::time::Duration;

use toolgate::audit::checkpoint::SigningKey;
use toolgate::fields::{Fields, Problems};
use toolgate::vault::KeyError;
use ureq::http::Uri;

use crate::state::make_folder;

/// Where checkpoints go, how often, and with which key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Checkpoints {
    pub(crate) to: To,
    pub(crate) every: Duration,
    /// The file of the key.
    pub(crate) key: PathBuf,
}

/// Where checkpoints go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum To {
    /// Lines at the end of a file.
    File(PathBuf),
    /// A request each.
    Url(Uri),
}

const MINUTE: Duration = Duration::from_secs(60);
const KEY: &str = "state/checkpoints.key";

impl Checkpoints {
    /// Reads `checkpoints` of the table `[audit]`, for the folder `dir`.
    pub(super) fn read(dir: &Path, audit: &mut Fields<'_>, problems: &mut Problems) -> Option<Self> {
        let mut fields = audit.table("checkpoints", problems)?;
        let place = fields.place("to");
        let to = fields.needed("to", problems).and_then(|text| {
            let to = To::parse(dir, text);
            if to.is_none() {
                let message = "expected a file, or an http:// or https:// address such as \
                               https://audit.example.com/toolgate, without a name or password in it";
                problems.note(place, "format", message);
            }
            to
        });
        let every = fields.span("every", MINUTE, problems);
        let place = fields.place("key");
        let key = match fields.text("key", problems).map(|text| text.strip_prefix("file:").unwrap_or_default()) {
            Some("") => {
                let hint = Some(format!("key = \"file:{KEY}\""));
                problems.hinted(place, "format", "expected \"file:PATH\": the key does not stand here", hint);
                dir.join(KEY)
            }
            Some(path) => dir.join(path),
            None => dir.join(KEY),
        };
        fields.end(problems);
        Some(Self { to: to?, every, key })
    }

    /// The key that signs, which is made if it is not there.
    pub(crate) fn signing_key(&self) -> Result<SigningKey, KeyError> {
        if let Some(folder) = self.key.parent() {
            // What cannot be made shows where the key is.
            let _ = make_folder(folder);
        }
        SigningKey::in_file(&self.key)
    }
}

impl To {
    fn parse(dir: &Path, text: &str) -> Option<Self> {
        if !text.starts_with("http://") && !text.starts_with("https://") {
            // An address of another kind would be made a file, and nobody would look for it there.
            return Some(Self::File(dir.join(text))).filter(|_| !text.is_empty() && !text.contains("://"));
        }
        let address: Uri = text.parse().ok()?;
        let named = address.authority().is_some_and(|authority| authority.as_str().contains('@'));
        address.host().is_some_and(|host| !host.is_empty() && !named).then_some(Self::Url(address))
    }
}

#[cfg(test)]
#[allow(clippy::panic, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_another_kind_is_no_file() {
        let parsed = |text: &str| To::parse(Path::new("shop"), text);
        for text in ["ftp://a.example/x", "s3://bucket/x", "HTTP://a.example/x", "https://me:pw@a.example/x", ""] {
            assert_eq!(parsed(text), None, "{text}");
        }
        assert_eq!(parsed("../kept/lines.jsonl"), Some(To::File("shop/../kept/lines.jsonl".into())));
        assert!(matches!(parsed("https://a.example/x"), Some(To::Url(_))));
    }
}
