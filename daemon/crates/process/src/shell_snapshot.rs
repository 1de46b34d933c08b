//! Functions, aliases and options of the user's interactive shell, for commands of the model: the setting `bash.snapshot`.
//!
//! The shell is started once as an interactive one, in the group, the sandbox and the environment of commands, and prints what its `~/.bashrc`
//! has set. That goes to a private file, which commands read before they begin. A failure is noted and never fails a command.

use std::{
    ffi::OsString,
    fmt::Write as _,
    fs,
    io::{self, Write as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use agentd_sandbox::SandboxPolicy;
use tempfile::NamedTempFile;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use crate::{
    artifacts::OUTPUT,
    command::CommandStreams,
    group::ProcessGroup,
    shell_run::{ShellCommand, ShellError, ShellRun, StopCause},
};

/// How long the interactive shell may take.
const LIMIT: Duration = Duration::from_secs(10);

/// The most that it may print, in bytes: 2 MiB.
const MAX_OUTPUT: usize = 2 << 20;

/// Starts the shell once more as an interactive one without input, and has it print its options, aliases and functions. Names that begin with
/// exactly one underscore are completions. A constant: nothing is ever put into it. Words are quoted where aliases still count.
const SCRIPT: &str = r#"exec "$BASH" -i -c '
\builtin unset HISTFILE; \builtin printf "\n%s\n" agentd-snapshot-options; \builtin shopt -p; \builtin printf "%s\n" agentd-snapshot-aliases; \builtin alias -p; \builtin printf "%s\n" agentd-snapshot-functions; \builtin unalias -a
while \builtin read -r _ _ name
do
    case $name in __*) ;; _*) continue ;; esac
    \builtin declare -f -- "$name"
done < <(\builtin declare -F)
\builtin printf "%s\n" agentd-snapshot-end
' </dev/null 2>/dev/null"#;

/// The lines before the options, the aliases and the functions, and after all.
const MARKS: [&str; 4] = [
    "\nagentd-snapshot-options\n",
    "agentd-snapshot-aliases\n",
    "agentd-snapshot-functions\n",
    "agentd-snapshot-end\n",
];

/// Options that no shell can be given later, and the one that is set after the functions were read: they are written with their aliases replaced.
const LEFT_OUT: [&str; 3] = ["login_shell", "restricted_shell", "expand_aliases"];

/// What the shell of one session said. Cheap to clone; all clones are the same. The file goes with the last one.
#[derive(Debug, Clone, Default)]
pub(crate) struct SnapshotState(Arc<OnceCell<Result<NamedTempFile, String>>>);

impl SnapshotState {
    /// Why there is none, where it was tried.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.0.get()?.as_ref().err().map(String::as_str)
    }
}

/// Where the snapshot of a session is made.
#[derive(Debug, Clone)]
pub struct ShellSnapshot {
    state: SnapshotState,
    /// The folder for its file, which commands in the sandbox can read and not write.
    folder: PathBuf,
}

/// How a command that needs it would start.
pub(crate) struct SnapshotShell<'a> {
    pub(crate) group: &'a ProcessGroup,
    pub(crate) shell: &'a Path,
    pub(crate) cwd: &'a Path,
    pub(crate) env: &'a [(OsString, OsString)],
    pub(crate) sandbox: Option<&'a Arc<SandboxPolicy>>,
    pub(crate) cancel: &'a CancellationToken,
}

impl ShellSnapshot {
    /// The snapshot of a session, with its file in `folder`.
    pub(crate) fn new(state: SnapshotState, folder: PathBuf) -> Self {
        Self { state, folder }
    }

    /// The line that reads the snapshot, with its line feed; empty where there is none. The first call makes it.
    ///
    /// Cancel safety: if dropped, the shell is killed, and the next call starts it again.
    pub(crate) async fn line(&self, shell: SnapshotShell<'_>) -> String {
        let taken = self.state.0.get_or_try_init(|| self.take(shell)).await;
        match taken {
            Ok(Ok(file)) => source_line(file.path()),
            Ok(Err(_)) | Err(NotTaken) => String::new(),
        }
    }

    async fn take(&self, shell: SnapshotShell<'_>) -> Result<Result<NamedTempFile, String>, NotTaken> {
        let made = match printed(shell).await {
            Ok(printed) => self.written(printed).await,
            Err(SnapshotFault::NotTaken) => return Err(NotTaken),
            Err(SnapshotFault::Failed(why)) => Err(why),
        };
        Ok(made.map_err(|why| {
            tracing::warn!(why, "commands run without the functions and aliases of the user's shell");
            format!("The setting bash.snapshot has no effect in this session: {why}")
        }))
    }

    async fn written(&self, printed: Vec<u8>) -> Result<NamedTempFile, String> {
        let folder = self.folder.clone();
        let write = move || {
            let script = script(&printed).ok_or_else(|| {
                "the shell ended before its functions were known: something in ~/.bashrc ends it or puts another program in its place"
                    .to_owned()
            })?;
            write(&folder, &script)
                .map_err(|error| format!("its file cannot be written to {}: {error}", folder.display()))
        };
        let written = tokio::task::spawn_blocking(write).await;
        written.unwrap_or_else(|error| Err(format!("its file was not written: {error}")))
    }
}

/// Another call will try it: this one was aborted, or its shell does not start, which the call itself will say.
struct NotTaken;

enum SnapshotFault {
    NotTaken,
    Failed(String),
}

/// What the interactive shell prints.
async fn printed(shell: SnapshotShell<'_>) -> Result<Vec<u8>, SnapshotFault> {
    let SnapshotShell { group, shell, cwd, env, sandbox, cancel } = shell;
    if shell.file_name().is_none_or(|name| name != "bash") {
        return Err(SnapshotFault::Failed(format!(
            "the shell is {}, and only bash can be asked for its functions and aliases",
            shell.display()
        )));
    }
    let command = ShellCommand {
        shell: shell.to_owned(),
        command: SCRIPT.to_owned(),
        cwd: cwd.to_owned(),
        env: env.to_vec(),
        timeout: Some(LIMIT),
        cancel: cancel.clone(),
        streams: CommandStreams::Output,
        sandbox: sandbox.cloned(),
    };
    let mut run = ShellRun::start(group, command).await.map_err(|_: ShellError| SnapshotFault::NotTaken)?;
    let mut printed = Vec::new();
    while let Some(piece) = run.next().await {
        printed.extend_from_slice(piece);
        if printed.len() > MAX_OUTPUT {
            let why = format!("its functions and aliases are longer than {} MiB", MAX_OUTPUT >> 20);
            return Err(SnapshotFault::Failed(why));
        }
    }
    match run.finish().stopped {
        None => Ok(printed),
        Some(StopCause::Aborted) => Err(SnapshotFault::NotTaken),
        Some(StopCause::TimedOut) => Err(SnapshotFault::Failed(format!(
            "an interactive shell was not ready within {} seconds: something in ~/.bashrc waits",
            LIMIT.as_secs()
        ))),
        Some(StopCause::Limit(limit)) => Err(SnapshotFault::Failed(limit.to_string())),
    }
}

/// The script that commands read: options, then functions, then aliases, which count from the next line on. `None` where something is missing.
/// Pure.
fn script(printed: &[u8]) -> Option<Vec<u8>> {
    let [options, aliases, functions] = parts(printed)?;
    let mut script = b"shopt -u expand_aliases\n".to_vec();
    for line in options.split_inclusive(|byte| *byte == b'\n') {
        let is_left_out = |option: &&str| line.trim_ascii_end().ends_with(option.as_bytes());
        if !LEFT_OUT.iter().any(is_left_out) {
            script.extend_from_slice(line);
        }
    }
    script.extend_from_slice(functions);
    script.extend_from_slice(aliases);
    script.extend_from_slice(b"shopt -s expand_aliases\n");
    Some(script)
}

/// The parts between the marks.
fn parts(printed: &[u8]) -> Option<[&[u8]; 3]> {
    let mut rest = after(printed, MARKS[0])?.1;
    let mut parts = [&[][..]; 3];
    for (part, mark) in parts.iter_mut().zip(&MARKS[1..]) {
        (*part, rest) = after(rest, mark)?;
    }
    Some(parts)
}

fn after<'a>(text: &'a [u8], mark: &str) -> Option<(&'a [u8], &'a [u8])> {
    let at = memchr::memmem::find(text, mark.as_bytes())?;
    Some((&text[..at], &text[at + mark.len()..]))
}

/// The name of a file: what is random stands between these.
const NAME: (&str, &str) = ("agentd-shell-", ".bash");

/// Writes the file, which only the user can read, and which is locked as long as it is open. Blocks.
fn write(folder: &Path, script: &[u8]) -> io::Result<NamedTempFile> {
    let mut file = tempfile::Builder::new().prefix(NAME.0).suffix(NAME.1).tempfile_in(folder)?;
    file.as_file().lock()?;
    file.write_all(script)?;
    Ok(file)
}

/// A file that was changed this long ago is locked, if a session uses it.
const SURELY_LOCKED: Duration = Duration::from_secs(60);

/// Removes the files in `folder` that a daemon of this user left when it was killed. Blocks.
pub fn sweep_shell_snapshots(folder: &Path) {
    // A folder that is not there has none.
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_one =
            entry.file_name().to_str().is_some_and(|it| it.starts_with(NAME.0) && it.ends_with(NAME.1));
        if is_one
            && is_left(&entry.path())
            && let Err(error) = fs::remove_file(entry.path())
        {
            tracing::warn!(%error, path = %entry.path().display(), "cannot remove what a killed daemon left");
        }
    }
}

/// Whether it is a file of this user that nobody uses.
fn is_left(path: &Path) -> bool {
    let Ok(file) = OUTPUT.open(path) else { return false };
    let Ok(about) = file.metadata() else { return false };
    let age = about.modified().ok().and_then(|changed| changed.elapsed().ok()).unwrap_or_default();
    about.uid() == rustix::process::geteuid().as_raw() && age > SURELY_LOCKED && file.try_lock().is_ok()
}

/// The line that reads the file. What is wrong in it fails no command.
fn source_line(path: &Path) -> String {
    let mut line = String::new();
    let quoted = path.to_string_lossy().replace('\'', r"'\''");
    // Writing to a string cannot fail.
    let _ = writeln!(line, "source '{quoted}' 2>/dev/null");
    line
}

#[cfg(test)]
mod tests {
    use std::{fs::File, time::SystemTime};

    use super::*;

    #[test]
    fn the_parts_are_put_into_the_order_that_bash_needs() {
        let printed = "Welcome!\nagentd\n\nagentd-snapshot-options\nshopt -s extglob\nshopt -u login_shell\nshopt -s expand_aliases\n\
                       agentd-snapshot-aliases\nalias ll='ls -l'\nagentd-snapshot-functions\nf () \n{ \n    ls\n}\nagentd-snapshot-end\nbye\n";
        assert_eq!(
            String::from_utf8(script(printed.as_bytes()).unwrap()).unwrap(),
            "shopt -u expand_aliases\nshopt -s extglob\nf () \n{ \n    ls\n}\nalias ll='ls -l'\nshopt -s expand_aliases\n"
        );
        let nothing = "\nagentd-snapshot-options\nagentd-snapshot-aliases\nagentd-snapshot-functions\n";
        assert_eq!(script(nothing.as_bytes()), None, "the end is missing");
        assert!(script(format!("{nothing}agentd-snapshot-end\n").as_bytes()).is_some());
        assert_eq!(script(b""), None);
    }

    #[test]
    fn a_path_cannot_leave_its_quotes() {
        assert_eq!(source_line(Path::new("/t/it's $x")), "source '/t/it'\\''s $x' 2>/dev/null\n");
    }

    #[test]
    fn the_file_is_private_and_goes_with_its_path() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let file = write(folder.path(), b"x").unwrap();
        assert_eq!(file.path().metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let kept = file.path().to_path_buf();
        drop(file);
        assert!(!kept.exists());
    }

    #[test]
    fn what_a_killed_daemon_left_is_removed_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let long_ago = SystemTime::now() - 2 * SURELY_LOCKED;
        let left = |name: &str| {
            let path = folder.path().join(name);
            File::create(&path).unwrap().set_modified(long_ago).unwrap();
            path
        };
        let old = left("agentd-shell-a1b2c3.bash");
        let kept = [left("agentd-shell-x.log"), left("other.bash")];
        let used = write(folder.path(), b"x").unwrap();
        used.as_file().set_modified(long_ago).unwrap();
        let new = folder.path().join("agentd-shell-new.bash");
        File::create(&new).unwrap();
        let link = folder.path().join("agentd-shell-link.bash");
        std::os::unix::fs::symlink(&kept[1], &link).unwrap();
        sweep_shell_snapshots(folder.path());
        assert!(!old.exists());
        assert!(kept.iter().chain([&new, &link]).all(|path| path.exists()) && used.path().exists());
        sweep_shell_snapshots(&folder.path().join("none"));
    }
}
