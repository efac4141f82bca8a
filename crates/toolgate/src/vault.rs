//! The gate key: what is sealed with it at rest, and the keyed digests that stand for values which leave no trace.
//!
//! A plain digest of a short value is no secret: whoever holds it can try all values. A keyed one tells only whoever holds
//! the key that two values are equal. What is personal is bound to its subject as well, by a salt that can be
//! erased: nobody can read it from then on, with the key or without.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

use data_encoding::HEXLOWER;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf;
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};

use crate::json::Digest;

/// The secret of a gate. INVARIANT (no trace): it has no text form, and is printed nowhere.
#[derive(Clone)]
pub struct GateKey([u8; LENGTH]);

/// Whose personal data it is: a keyed digest of a tenant and a name, so that the store names nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Subject(Digest);

/// What makes the keys of one subject its own.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Salt(pub(crate) [u8; LENGTH]);

/// Seals, opens and digests under one key: the gate's, or a subject's.
#[derive(Clone)]
pub(crate) struct Seal {
    sealing: hmac::Key,
    digesting: hmac::Key,
}

/// Why there is no gate key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file cannot be read or made.
    #[error("the key file {file} cannot be used: {error}")]
    File {
        /// The file.
        file: String,
        /// What the system says.
        error: io::Error,
    },
    /// The file can be read by others.
    #[error("the key file {0} can be read by other users; take their rights away: chmod 600 {0}")]
    Open(String),
    /// What should be a key is none.
    #[error("{0} holds no key: expected 64 hexadecimal digits")]
    Form(String),
    /// What should be a key to sign with is none.
    #[error("{0} holds no key to sign with: expected an Ed25519 key in PKCS#8, as PEM")]
    Signing(String),
    /// The system has no randomness.
    #[error("the system gives no random numbers, so no key can be made")]
    Random,
}

/// What cannot be opened: it was sealed with another key, or altered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unopened;

const LENGTH: usize = 32;

impl GateKey {
    /// A new key.
    pub fn generate() -> Result<Self, KeyError> {
        Ok(Self(random()?))
    }

    /// The key that 64 hexadecimal digits stand for; `from` says where they come from, for the error.
    pub fn parse(text: &str, from: &str) -> Result<Self, KeyError> {
        let form = || KeyError::Form(from.to_owned());
        let bytes = HEXLOWER.decode(text.trim().to_ascii_lowercase().as_bytes()).map_err(|_| form())?;
        Ok(Self(bytes.try_into().map_err(|_| form())?))
    }

    /// The key in a file, which is made, for this user alone, if it is not there.
    pub fn in_file(path: &Path) -> Result<Self, KeyError> {
        let text = text_in_file(path, || Ok(format!("{}\n", HEXLOWER.encode(&Self::generate()?.0))))?;
        Self::parse(&text, &path.display().to_string())
    }

    /// What tells two keys apart, and nothing of either.
    pub(crate) fn fingerprint(&self) -> Digest {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.0);
        digest(&key, &[b"toolgate key"])
    }

    /// What is sealed with the gate's own key.
    pub(crate) fn seal(&self) -> Seal {
        self.derive(&[])
    }

    /// What is sealed for one subject.
    pub(crate) fn seal_of(&self, salt: &Salt) -> Seal {
        self.derive(&salt.0)
    }

    /// The subject of this name.
    pub(crate) fn subject(&self, tenant: &str, name: &str) -> Subject {
        Subject(self.seal().digest("subject", &[tenant.as_bytes(), name.as_bytes()]))
    }

    fn derive(&self, salt: &[u8]) -> Seal {
        let root = hkdf::Salt::new(hkdf::HKDF_SHA256, salt).extract(&self.0);
        Seal::new(&part(&root, b"seal"), &part(&root, b"digest"))
    }
}

/// INVARIANT (never a known key): what is not filled in is not returned.
#[expect(clippy::expect_used, reason = "HKDF with SHA-256 gives up to 8,160 bytes, and a key has 32")]
fn part(root: &hkdf::Prk, name: &[u8]) -> [u8; LENGTH] {
    let mut key = [0; LENGTH];
    let name = [name];
    let material = root.expand(&name, hkdf::HKDF_SHA256).expect("HKDF-SHA256 gives 32 bytes");
    material.fill(&mut key).expect("HKDF-SHA256 fills 32 bytes");
    key
}

impl Seal {
    fn new(sealing: &[u8; LENGTH], digesting: &[u8; LENGTH]) -> Self {
        let key = |bytes| hmac::Key::new(hmac::HMAC_SHA256, bytes);
        Self { sealing: key(sealing), digesting: key(digesting) }
    }

    /// INVARIANT (few nonces): each place has a key of its own. NIST SP 800-38D section 8.3 bounds what one key may seal
    /// under random nonces to 2^32 texts, and a busy ledger writes that many within weeks.
    #[expect(clippy::expect_used, reason = "the key has the one length that the cipher takes")]
    fn cipher(&self, place: &[u8]) -> LessSafeKey {
        let key = hmac::sign(&self.sealing, place);
        LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key.as_ref()).expect("AES-256 takes 32 bytes"))
    }

    /// Seals `text`, bound to `place`: it cannot be opened as what stands elsewhere.
    pub(crate) fn seal(&self, place: &[u8], text: &[u8]) -> Result<Vec<u8>, KeyError> {
        let nonce: [u8; NONCE_LEN] = random()?;
        let mut sealed = Vec::with_capacity(NONCE_LEN + text.len() + AES_256_GCM.tag_len());
        sealed.extend_from_slice(&nonce);
        let mut body = text.to_vec();
        let nonce = Nonce::assume_unique_for_key(nonce);
        let cipher = self.cipher(place);
        cipher.seal_in_place_append_tag(nonce, Aad::from(place), &mut body).map_err(|_| KeyError::Random)?;
        sealed.append(&mut body);
        Ok(sealed)
    }

    /// Opens what was sealed for `place`.
    pub(crate) fn open(&self, place: &[u8], sealed: &[u8]) -> Result<Vec<u8>, Unopened> {
        let (nonce, body) = sealed.split_at_checked(NONCE_LEN).ok_or(Unopened)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| Unopened)?;
        let mut body = body.to_vec();
        let cipher = self.cipher(place);
        let text = cipher.open_in_place(nonce, Aad::from(place), &mut body).map_err(|_| Unopened)?;
        Ok(text.to_vec())
    }

    /// The keyed digest of what `parts` say for `purpose`.
    pub(crate) fn digest(&self, purpose: &str, parts: &[&[u8]]) -> Digest {
        let mut all = vec![purpose.as_bytes()];
        all.extend_from_slice(parts);
        digest(&self.digesting, &all)
    }
}

impl Salt {
    pub(crate) fn generate() -> Result<Self, KeyError> {
        Ok(Self(random()?))
    }
}

impl Subject {
    pub(crate) fn as_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }

    pub(crate) fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(Digest::from(bytes))
    }
}

/// Each part with its length before it, so that no two lists run into the same bytes.
fn digest(key: &hmac::Key, parts: &[&[u8]]) -> Digest {
    let mut context = hmac::Context::with_key(key);
    for part in parts {
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part);
    }
    let mut bytes = [0; 32];
    bytes.copy_from_slice(context.sign().as_ref());
    Digest::from(bytes)
}

pub(crate) fn random<const N: usize>() -> Result<[u8; N], KeyError> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).map_err(|_| KeyError::Random)?;
    Ok(bytes)
}

/// The text of a file that is this user's alone, which is made if it is not there.
pub(crate) fn text_in_file(path: &Path, make: impl FnOnce() -> Result<String, KeyError>) -> Result<String, KeyError> {
    match File::open(path) {
        Ok(file) => read_private(file, path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => make_private(path, make()?),
        Err(error) => Err(unusable(path, error)),
    }
}

fn read_private(mut file: File, path: &Path) -> Result<String, KeyError> {
    if is_open_to_others(&file).map_err(|error| unusable(path, error))? {
        return Err(KeyError::Open(path.display().to_string()));
    }
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(|error| unusable(path, error))?;
    Ok(text)
}

/// INVARIANT (whole or absent): a file of this name has its whole text from its first moment on, whoever else makes one.
fn make_private(path: &Path, text: String) -> Result<String, KeyError> {
    let part = path.with_extension(format!("{}.part", ulid::Ulid::generate()));
    let written = private(&part).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    let linked = written.and_then(|()| fs::hard_link(&part, path));
    let _ = fs::remove_file(&part);
    match linked {
        // What is sealed with a key whose name did not outlast the power would be lost with it.
        Ok(()) => sync_folder_of(path).map(|()| text).map_err(|error| unusable(path, error)),
        // Another process was faster: its key it is.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let text = read_private(File::open(path).map_err(|error| unusable(path, error))?, path)?;
            sync_folder_of(path).map_err(|error| unusable(path, error))?;
            Ok(text)
        }
        Err(error) => Err(unusable(path, error)),
    }
}

fn unusable(path: &Path, error: io::Error) -> KeyError {
    KeyError::File { file: path.display().to_string(), error }
}

#[cfg(unix)]
fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder_of(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(unix)]
fn private(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

#[cfg(not(unix))]
fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

#[cfg(unix)]
fn is_open_to_others(file: &File) -> io::Result<bool> {
    use std::os::unix::fs::PermissionsExt;
    Ok(file.metadata()?.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
fn is_open_to_others(_: &File) -> io::Result<bool> {
    Ok(false)
}

impl fmt::Debug for GateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GateKey")
    }
}

impl fmt::Debug for Salt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Salt")
    }
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal")
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_opens_in_its_own_place_under_its_own_key_alone() {
        let key = GateKey::generate().unwrap();
        let sealed = key.seal().seal(b"entry 1", b"the secret").unwrap();
        assert!(!sealed.windows(6).any(|part| part == b"secret"));
        assert_eq!(key.seal().open(b"entry 1", &sealed).unwrap(), b"the secret");
        assert_eq!(key.seal().open(b"entry 2", &sealed), Err(Unopened));
        assert_eq!(GateKey::generate().unwrap().seal().open(b"entry 1", &sealed), Err(Unopened));
        let salt = Salt::generate().unwrap();
        assert_eq!(key.seal_of(&salt).open(b"entry 1", &sealed), Err(Unopened));
    }

    #[test]
    fn a_key_is_made_once_for_this_user_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gate.key");
        let made = GateKey::in_file(&path).unwrap();
        assert_eq!(GateKey::in_file(&path).unwrap().fingerprint(), made.fingerprint());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
            fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
            assert!(matches!(GateKey::in_file(&path), Err(KeyError::Open(_))));
        }
    }

    #[test]
    fn a_key_that_could_not_be_made_left_a_part_of_itself_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gate.key");
        fs::create_dir(&path).unwrap();
        assert!(make_private(&path, "the key".into()).is_err());
        let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["gate.key"]);
        assert!(sync_folder_of(Path::new("gate.key")).is_ok(), "a name alone stands in this folder");
        assert!(cfg!(not(unix)) || sync_folder_of(&folder.path().join("none/gate.key")).is_err());
    }

    #[test]
    fn a_key_that_could_not_be_derived_was_one_of_zeros() {
        let root = hkdf::Salt::new(hkdf::HKDF_SHA256, b"salt").extract(b"key");
        assert_ne!(part(&root, b"seal"), [0; LENGTH]);
        assert_ne!(part(&root, b"seal"), part(&root, b"digest"));
    }

    #[test]
    fn what_is_no_key_is_refused_by_name() {
        assert!(matches!(GateKey::parse("beef", "TOOLGATE_KEY"), Err(KeyError::Form(from)) if from == "TOOLGATE_KEY"));
    }

    #[test]
    fn a_digest_depends_on_key_purpose_and_parts() {
        let seal = GateKey::generate().unwrap().seal();
        let one = seal.digest("secret", &[b"ab", b"c"]);
        assert_eq!(one, seal.digest("secret", &[b"ab", b"c"]));
        assert_ne!(one, seal.digest("secret", &[b"a", b"bc"]));
        assert_ne!(one, seal.digest("personal", &[b"ab", b"c"]));
    }
}
