//! `[approvals.webhook]` of a folder: who is told of approvals that wait, and with which secret that is signed.

use std::fmt;
use std::path::{Path, PathBuf};

use data_encoding::BASE64;
use toolgate::fields::{Fields, Problems};
use ureq::http::Uri;

use crate::here::is_here;

/// Who is told of approvals that wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Webhook {
    /// INVARIANT (not overheard): it is reached by https, or on this machine.
    pub(crate) url: Uri,
    secret: SecretAt,
}

/// Where the secret is. INVARIANT (by name): it is nowhere in a folder's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
enum SecretAt {
    /// In a variable of the environment.
    Variable(String),
    /// In a file.
    File(PathBuf),
}

/// What requests are signed with.
pub(crate) struct Secret(Vec<u8>);

/// Why there is none. The text says where it was looked for, and never what was found.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct NoSecret(String);

/// What the text of a secret begins with.
const PREFIX: &str = "whsec_";
/// How many bytes a secret has.
const BYTES: std::ops::RangeInclusive<usize> = 24..=64;

impl Webhook {
    /// Reads `webhook` of the table `[approvals]`, for the folder `dir`.
    pub(super) fn read(dir: &Path, approvals: &mut Fields<'_>, problems: &mut Problems) -> Option<Self> {
        let mut fields = approvals.table("webhook", problems)?;
        let place = fields.place("url");
        let url = fields.needed("url", problems).and_then(|text| {
            let url = address(text);
            if url.is_none() {
                let message = "expected an https:// address, or an http:// one of this machine such as \
                               http://127.0.0.1:9000/approvals, without a name or password in it";
                problems.note(place, "format", message);
            }
            url
        });
        let place = fields.place("secret");
        let secret = fields.needed("secret", problems).and_then(|text| {
            let secret = SecretAt::parse(dir, text);
            if secret.is_none() {
                let message = "expected \"env:NAME\" or \"file:PATH\": the secret itself does not stand here";
                problems.hinted(place, "format", message, Some("secret = \"env:TOOLGATE_WEBHOOK\"".into()));
            }
            secret
        });
        fields.end(problems);
        Some(Self { url: url?, secret: secret? })
    }

    /// One whose secret lies in a file.
    #[cfg(test)]
    pub(crate) fn of(url: &str, secret: &Path) -> Self {
        Self { url: address(url).unwrap(), secret: SecretAt::File(secret.to_owned()) }
    }

    /// What requests are signed with.
    #[expect(clippy::disallowed_methods, reason = "the folder names the variable that holds its secret")]
    pub(crate) fn secret(&self) -> Result<Secret, NoSecret> {
        let (text, place) = match &self.secret {
            SecretAt::Variable(name) => (std::env::var(name).ok(), format!("the variable {name}")),
            SecretAt::File(path) => (std::fs::read_to_string(path).ok(), format!("the file {}", path.display())),
        };
        let text = text.ok_or_else(|| NoSecret(format!("{place} cannot be read")))?;
        Secret::parse(text.trim()).ok_or_else(|| {
            let needed = "does not hold whsec_ and the base64 of 24 to 64 bytes";
            NoSecret(format!("{place} {needed}; `echo whsec_$(openssl rand -base64 32)` makes one"))
        })
    }
}

impl SecretAt {
    fn parse(dir: &Path, text: &str) -> Option<Self> {
        match text.split_once(':')? {
            ("env", name) if !name.is_empty() && !name.contains(['=', '\0']) => Some(Self::Variable(name.to_owned())),
            ("file", path) if !path.is_empty() => Some(Self::File(dir.join(path))),
            _ => None,
        }
    }
}

impl Secret {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let bytes = BASE64.decode(text.strip_prefix(PREFIX)?.as_bytes()).ok()?;
        BYTES.contains(&bytes.len()).then_some(Self(bytes))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

fn address(text: &str) -> Option<Uri> {
    let url: Uri = text.parse().ok()?;
    let host = url.host().filter(|host| !host.is_empty())?;
    let named = url.authority().is_some_and(|authority| authority.as_str().contains('@'));
    let fits = match url.scheme_str() {
        Some("https") => true,
        Some("http") => is_here(host),
        Some(_) | None => false,
    };
    (fits && !named).then_some(url)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn a_webhook_is_reached_by_https_or_on_this_machine() {
        for text in [
            "https://a.example/x",
            "http://127.0.0.1:9/x",
            "http://127.0.0.2/x",
            "http://[::1]:9/x",
            "http://localhost/x",
        ] {
            assert!(address(text).is_some(), "{text}");
        }
        for text in
            ["http://a.example/x", "http://127.0.0.1.a.example/x", "https://me:pw@a.example/x", "/x", "ftp://a/x"]
        {
            assert_eq!(address(text), None, "{text}");
        }
    }

    #[test]
    fn a_secret_is_as_long_as_one_and_says_nothing_of_itself() {
        let text = format!("whsec_{}", BASE64.encode(&[7; 32]));
        let secret = Secret::parse(&text).unwrap();
        assert_eq!((secret.bytes(), format!("{secret:?}").as_str()), (&[7; 32][..], "Secret"));
        let short = format!("whsec_{}", BASE64.encode(&[7; 23]));
        for text in [text.trim_start_matches("whsec_"), &short, "whsec_", "whsec_?", "hunter2"] {
            assert!(Secret::parse(text).is_none(), "{text}");
        }
    }
}
