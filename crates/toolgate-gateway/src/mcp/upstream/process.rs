//! The child process of a server: its own process group, and an end that always comes.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::{Environment, Program};

/// A running child process.
pub(super) struct Process {
    child: Child,
    group: Group,
}

/// Its ends of pipes.
pub(super) struct Pipes {
    pub(super) stdin: ChildStdin,
    pub(super) stdout: ChildStdout,
    pub(super) stderr: ChildStderr,
}

/// A process group, killed when this falls. What the program itself started is in it too.
struct Group(Option<Pid>);

/// The groups that run, by the number of their leader.
static RUNNING: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// What every program may see of our environment.
const NEEDED: [&str; 5] = ["PATH", "HOME", "LANG", "TMPDIR", "TZ"];
/// INVARIANT (our token is ours): with it a program could speak to the gate in the name of whoever started it.
const OURS_ALONE: &str = "TOOLGATE_TOKEN";
/// How long a program has to end once its stdin is closed, and once it was asked by a signal.
const GRACE: Duration = Duration::from_secs(2);

impl Process {
    /// Starts the program. The error is for a person.
    pub(super) fn start(program: &Program) -> Result<(Self, Pipes), String> {
        let Some((name, arguments)) = program.command.split_first() else {
            return Err("the command is empty".to_owned());
        };
        let Some(path) = program.path() else { return Err("there is no such program".to_owned()) };
        #[expect(clippy::disallowed_methods, reason = "the programs of MCP servers are started here alone")]
        let mut command = Command::new(&path);
        command
            .arg0(name)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .env_remove(OURS_ALONE);
        if let Some(directory) = &program.directory {
            command.current_dir(directory);
        }
        if let Environment::Listed(listed) = &program.environment {
            command.env_clear();
            for name in NEEDED {
                if let Some(value) = variable(name) {
                    command.env(name, value);
                }
            }
            command.envs(listed.iter().filter(|(name, _)| *name != OURS_ALONE));
        }
        let mut child = command.spawn().map_err(|error| format!("it cannot be started: {error}"))?;
        let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let process = Self { child, group: Group::of(pid) };
        match pipes {
            (Some(stdin), Some(stdout), Some(stderr)) => Ok((process, Pipes { stdin, stdout, stderr })),
            _ => Err("it cannot be started: it has no pipes".to_owned()),
        }
    }

    /// Waits until the program ends by itself.
    pub(super) async fn ended(&mut self) {
        // An error means that there is nothing to wait for.
        let _ = self.child.wait().await;
    }

    /// Ends the program, whose stdin was closed before: by itself, then by a request, then by force. Nothing of its group
    /// stays.
    pub(super) async fn end(mut self) {
        if timeout(GRACE, self.child.wait()).await.is_err() {
            self.group.signal(Signal::TERM);
            if timeout(GRACE, self.child.wait()).await.is_err() {
                self.group.signal(Signal::KILL);
                let _ = self.child.wait().await;
            }
        }
        // What it started may have outlived it.
        self.group.kill();
    }
}

/// Kills every program that runs, and what it started: for a process that ends without waiting for anything.
pub(crate) fn kill_all() {
    let running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for group in running.into_iter().filter_map(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
}

impl Group {
    fn of(leader: Option<Pid>) -> Self {
        RUNNING.lock().unwrap_or_else(PoisonError::into_inner).extend(leader.map(Pid::as_raw_pid));
        Self(leader)
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.0 {
            // An error means that nobody is left in it.
            let _ = kill_process_group(group, signal);
        }
    }

    fn kill(&mut self) {
        self.signal(Signal::KILL);
        if let Some(group) = self.0.take() {
            RUNNING.lock().unwrap_or_else(PoisonError::into_inner).remove(&Pid::as_raw_pid(group));
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Program {
    /// The file that is run: as it is written where it has a `/`, else the first of this name in the folders of `PATH`.
    /// Links are left as they are: what a program is may hang on the name that it was called by.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        let name = Path::new(self.command.first()?);
        if name.components().count() > 1 || name.is_absolute() {
            let path = match &self.directory {
                Some(directory) => directory.join(name),
                None => name.to_owned(),
            };
            return path.is_file().then(|| std::path::absolute(&path).unwrap_or(path));
        }
        let path = match &self.environment {
            Environment::Listed(listed) if listed.contains_key("PATH") => listed.get("PATH").map(OsString::from),
            Environment::Listed(_) | Environment::Inherited => variable("PATH"),
        };
        let found = std::env::split_paths(&path?).map(|folder| folder.join(name)).find(|path| is_program(path))?;
        Some(std::path::absolute(&found).unwrap_or(found))
    }
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

#[expect(clippy::disallowed_methods, reason = "a program gets what it needs of our environment")]
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}
