//! Where checkpoints go: whole lines at the end of a file, or a request each.

use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use toolgate::audit::checkpoint::{Checkpoint, LONGEST_LINE, PublicKey};
use ureq::Agent;
use ureq::http::Uri;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use crate::config::To;

/// A place that takes checkpoints.
pub(super) enum Delivery {
    File(PathBuf),
    Url { agent: Agent, address: Uri },
}

/// How long a request may take, all in all.
const REQUEST: Duration = Duration::from_secs(5);
const CONNECT: Duration = Duration::from_secs(3);
/// How long a file may be locked by another process.
const LOCKED: Duration = Duration::from_secs(5);

impl Delivery {
    pub(super) fn new(to: &To) -> Self {
        match to {
            To::File(path) => Self::File(path.clone()),
            To::Url(address) => Self::Url { agent: agent(address), address: address.clone() },
        }
    }

    /// Hands one over, durably as far as that can be known.
    pub(super) fn deliver(&self, checkpoint: &Checkpoint) -> Result<(), String> {
        match self {
            Self::File(path) => append(path, checkpoint).map_err(|error| error.to_string()),
            Self::Url { agent, address } => {
                let request = agent.post(address).header("content-type", "application/json");
                let answer = request.send(format!("{checkpoint}\n")).map_err(|error| error.to_string())?;
                match answer.status().is_success() {
                    true => Ok(()),
                    false => Err(format!("it answered with status {}", answer.status().as_u16())),
                }
            }
        }
    }

    /// The last one of a key that it holds, as far as it can be asked.
    pub(super) fn last_of(&self, key: PublicKey) -> Option<Checkpoint> {
        let Self::File(path) = self else { return None };
        let end = end_of(&mut File::open(path).ok()?).ok()?;
        let lines = end.split(|byte| *byte == b'\n').rev();
        let mut read = lines.filter_map(|line| Checkpoint::parse(line).ok());
        read.find(|checkpoint| checkpoint.key == key && checkpoint.is_genuine())
    }
}

impl fmt::Display for Delivery {
    /// Without what stands behind the host, which may be meant for it alone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Url { address, .. } => {
                let (scheme, host) = (address.scheme_str(), address.authority().map(|authority| authority.as_str()));
                write!(f, "{}://{}", scheme.unwrap_or_default(), host.unwrap_or_default())
            }
        }
    }
}

/// A client that goes where it was sent alone: no proxy of the environment, no redirect.
pub(crate) fn agent(address: &Uri) -> Agent {
    let config = Agent::config_builder()
        .proxy(None)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        .timeout_global(Some(REQUEST))
        .timeout_connect(Some(CONNECT))
        .user_agent("toolgate");
    let config = match address.scheme_str() {
        Some("https") => config.tls_config(tls()),
        Some(_) | None => config,
    };
    config.build().new_agent()
}

/// The authorities that this system trusts, an operator's own among them.
fn tls() -> TlsConfig {
    let found = rustls_native_certs::load_native_certs().certs;
    let trusted: Vec<Certificate<'static>> =
        found.iter().map(|certificate| Certificate::from_der(certificate).to_owned()).collect();
    TlsConfig::builder()
        .root_certs(RootCerts::new_with_certs(&trusted))
        .unversioned_rustls_crypto_provider(rustls::crypto::ring::default_provider().into())
        .build()
}

/// INVARIANT (whole lines): a line that a crash left unfinished is no part of the next.
fn append(path: &Path, checkpoint: &Checkpoint) -> io::Result<()> {
    // The folder is not made: where a disk is not mounted, that would be another place.
    let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
    lock(&file)?;
    let length = file.metadata()?.len();
    let end = end_of(&mut file)?;
    let unfinished = end.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    if !unfinished.is_empty() {
        let before = length.saturating_sub(u64::try_from(unfinished.len()).unwrap_or(length));
        let whole = Checkpoint::parse(unfinished).is_ok();
        // Where lines may only be added it stays, as a line that cannot be read.
        if whole || file.set_len(before).is_err() {
            file.write_all(b"\n")?;
        }
    }
    file.write_all(format!("{checkpoint}\n").as_bytes())?;
    file.sync_all()?;
    match path.parent().filter(|_| length == 0) {
        Some(folder) if !folder.as_os_str().is_empty() => File::open(folder)?.sync_all(),
        Some(_) | None => Ok(()),
    }
}

fn lock(file: &File) -> io::Result<()> {
    let begun = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if begun.elapsed() < LOCKED => {
                thread::park_timeout(Duration::from_millis(5));
            }
            Err(TryLockError::WouldBlock) => return Err(io::Error::other("another process keeps it locked")),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// The last bytes of a file, more than its last line.
fn end_of(file: &mut File) -> io::Result<Vec<u8>> {
    let most = u64::try_from(LONGEST_LINE * 4).unwrap_or(u64::MAX);
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(most)))?;
    let mut end = Vec::new();
    file.take(most).read_to_end(&mut end)?;
    Ok(end)
}
