//! `agentd --fsck`: checks session files for `agentctl fsck`. The request comes on stdin; stdout gets a line for each file.

use std::{
    fs,
    io::{self, BufRead, BufWriter, Write},
    path::{Path, PathBuf},
};

use agentd_config::{AgentDir, Environment, NoAgentDir, SessionDir, session_dir, settings::load};
use agentd_process::ArtifactFolder;
use agentd_protocol::fsck::{FsckFile, FsckKind, FsckOddity, FsckRepair, FsckRequest, FsckState};
use agentd_store::{
    LoadReport, NewSession, Oddity, Store, StoreError, StoreOptions, intent_log::intent_log_path,
    unreadable_lines,
};

/// The extension of an intent log.
const INTENT_LOG_EXTENSION: &str = "ledger";

/// Why the check did not begin, or broke off.
#[derive(Debug, thiserror::Error)]
pub enum FsckError {
    /// The folder of the user's sessions is unknown.
    #[error(transparent)]
    NoAgentDir(#[from] NoAgentDir),
    /// Stdin holds no request.
    #[error("--fsck is for agentctl fsck, which says on stdin what to look at: {0}")]
    Request(#[source] serde_json::Error),
    /// A folder of sessions cannot be read.
    #[error("cannot read the folder {}: {source}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Stdin or stdout failed.
    #[error("what was found cannot be passed on: {0}")]
    Io(#[from] io::Error),
}

/// Answers one request. Checks one file after the other; at most one is in memory.
///
/// # Errors
/// [`FsckError`].
pub fn run(environment: &Environment, compat: bool, cwd: &Path, now_ms: i64) -> Result<(), FsckError> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    let request: FsckRequest = serde_json::from_str(&line).map_err(FsckError::Request)?;
    let agent_dir = AgentDir::find(environment, compat, cwd)?;
    let options = StoreOptions { run_dir: Some(agent_dir.run_dir()), ..StoreOptions::default() };
    let mut check = SessionFileCheck {
        max_line_bytes: options.max_line_bytes,
        store: Store::new(options),
        repair: request.repair,
        new: NewSession::new(cwd.display().to_string(), now_ms),
        out: BufWriter::new(io::stdout().lock()),
    };
    for path in &request.paths {
        let path = Path::new(path);
        if path.extension().is_some_and(|end| end == INTENT_LOG_EXTENSION) {
            check.intent_log(path)?;
        } else {
            check.session(path)?;
        }
    }
    if request.all {
        for folder in folders(&agent_dir, environment, cwd)? {
            check.folder(&folder)?;
        }
    }
    Ok(())
}

struct SessionFileCheck<W> {
    store: Store,
    max_line_bytes: usize,
    repair: bool,
    /// The header for copies of sessions whose header is lost.
    new: NewSession,
    out: W,
}

impl<W: Write> SessionFileCheck<W> {
    /// Checks a folder: its sessions, and the intent logs and outputs of sessions that do not exist.
    fn folder(&mut self, folder: &Path) -> Result<(), FsckError> {
        for path in names(folder)? {
            match path.extension().and_then(|end| end.to_str()) {
                Some("jsonl") if !path.is_dir() => self.session(&path)?,
                Some(INTENT_LOG_EXTENSION) if !is_there(&path.with_extension("jsonl")) => {
                    self.intent_log(&path)?
                }
                Some("artifacts") if path.is_dir() && !is_there(&path.with_extension("")) => {
                    self.artifacts(&path)?;
                }
                _ if path.is_dir() && is_artifacts(&path) => self.artifacts(&path)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Checks a session file, and its intent log if there is one.
    fn session(&mut self, path: &Path) -> Result<(), FsckError> {
        let mut found = file(path, FsckKind::Session);
        match (found.bytes, self.store.check(path)) {
            (0, Err(StoreError::NotASession { .. })) => {}
            (_, Err(error)) => {
                found.state = FsckState::Unreadable;
                found.error = Some(error.to_string());
            }
            (_, Ok(checked)) => {
                found.id = checked.id;
                found.entries = checked.entries as u64;
                found.old_version = checked.report.migrated_from;
                describe(&checked.report, &mut found);
                if let Some(version) = checked.too_new {
                    let too_new = StoreError::TooNew { path: path.to_owned(), found: version };
                    found.state = FsckState::Odd;
                    found.error = Some(too_new.to_string());
                }
                found.open = self.store.is_open(path).unwrap_or(false);
                if self.repair && found.state == FsckState::Odd {
                    found.repair = Some(self.repair(path));
                }
            }
        }
        self.report(&found)?;
        let intent_log = intent_log_path(path);
        if is_there(&intent_log) { self.intent_log(&intent_log) } else { Ok(()) }
    }

    fn repair(&self, path: &Path) -> FsckRepair {
        match self.store.repair(path, self.new.clone()) {
            Ok(repaired) => {
                // The copy is complete without the outputs: its messages name the files of the original.
                let copies = ArtifactFolder::beside(&repaired.path);
                let shared = ArtifactFolder::beside(path).share_with(&copies);
                FsckRepair {
                    path: Some(repaired.path.display().to_string()),
                    id: Some(repaired.id),
                    entries: repaired.entries as u64,
                    renamed: repaired.renamed as u64,
                    relinked: repaired.relinked as u64,
                    dropped: repaired.dropped,
                    error: shared.err().map(|error| format!("the copy lacks long outputs: {error}")),
                }
            }
            Err(error) => FsckRepair { error: Some(error.to_string()), ..FsckRepair::default() },
        }
    }

    /// Checks that the lines of an intent log can be read. Only the daemon knows their meaning.
    fn intent_log(&mut self, path: &Path) -> Result<(), FsckError> {
        let mut found = file(path, FsckKind::IntentLog);
        match unreadable_lines(path, self.max_line_bytes) {
            Ok((places, count)) => {
                found.oddities = places
                    .iter()
                    .map(|(kind, place)| shown(&Oddity { kind: *kind, place: *place }))
                    .collect();
                found.more = count - found.oddities.len() as u64;
                if count > 0 {
                    found.state = FsckState::Odd;
                }
            }
            Err(error) => {
                found.state = FsckState::Unreadable;
                found.error = Some(error.to_string());
            }
        }
        // A session file of another end than `.jsonl` has its log under its whole name.
        if !is_there(&path.with_extension("jsonl")) && !is_there(&path.with_extension("")) {
            found.state = FsckState::Odd;
            found.error = Some("its session is not there: nothing needs it".to_owned());
        }
        self.report(&found)
    }

    fn artifacts(&mut self, path: &Path) -> Result<(), FsckError> {
        let mut found = file(path, FsckKind::Artifacts);
        found.state = FsckState::Odd;
        found.error = Some("its session is not there: nothing needs these outputs".to_owned());
        self.report(&found)
    }

    fn report(&mut self, found: &FsckFile) -> Result<(), FsckError> {
        serde_json::to_writer(&mut self.out, found).map_err(io::Error::from)?;
        self.out.write_all(b"\n")?;
        Ok(self.out.flush()?)
    }
}

fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// A clean result for a file, with its size.
fn file(path: &Path, kind: FsckKind) -> FsckFile {
    FsckFile {
        path: path.display().to_string(),
        kind,
        state: FsckState::Clean,
        id: None,
        entries: 0,
        bytes: fs::metadata(path).map_or(0, |metadata| if metadata.is_file() { metadata.len() } else { 0 }),
        old_version: None,
        open: false,
        oddities: Vec::new(),
        more: 0,
        error: None,
        repair: None,
    }
}

fn describe(report: &LoadReport, found: &mut FsckFile) {
    if report.is_clean() {
        return;
    }
    found.state = FsckState::Odd;
    found.oddities = report.oddities().iter().map(shown).collect();
    found.more = report.total().saturating_sub(found.oddities.len() as u64);
}

fn shown(oddity: &Oddity) -> FsckOddity {
    FsckOddity {
        kind: oddity.kind.name().to_owned(),
        line: oddity.place.line,
        byte: oddity.place.byte,
        bytes: oddity.place.bytes,
        message: oddity.kind.to_string(),
    }
}

/// The folders of sessions: one for each working directory, and the one that the user chose.
pub(crate) fn folders(
    agent_dir: &AgentDir,
    environment: &Environment,
    cwd: &Path,
) -> Result<Vec<PathBuf>, FsckError> {
    let root = agent_dir.sessions_dir();
    let mut folders = vec![root.clone()];
    folders.extend(names(&root)?.into_iter().filter(|path| path.is_dir()));
    let settings = load(agent_dir, cwd, environment, None).settings;
    let chosen = session_dir(None, environment, settings.session_dir.as_deref(), agent_dir, cwd);
    if let SessionDir::Exact(path) = chosen
        && !folders.contains(&path)
    {
        folders.push(path);
    }
    Ok(folders)
}

/// The paths in a folder, sorted; none for a missing folder.
fn names(folder: &Path) -> Result<Vec<PathBuf>, FsckError> {
    let error = |source| FsckError::Folder { path: folder.to_owned(), source };
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(error)?,
    };
    let mut names = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<Vec<PathBuf>>>()
        .map_err(error)?;
    names.sort();
    Ok(names)
}

/// Whether a folder among session files holds the long outputs of a missing session: it has the name of a session file without the
/// extension, `<time>_<id>`.
fn is_artifacts(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut with_end = path.as_os_str().to_owned();
    with_end.push(".jsonl");
    let is_named_so = name.contains('_') && !name.starts_with("--");
    is_named_so && Path::new(&with_end).symlink_metadata().is_err()
}
