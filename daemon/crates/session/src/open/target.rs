//! Which session file is meant, and opening it.

use std::path::{Path, PathBuf};

use agentd_config::{
    AgentDir, SessionDir as SessionDirRule, is_of_project, resolve_path, session_dir, settings::load,
};
use agentd_files::fail_point::{self, Point};
use agentd_process::ArtifactFolder;
use agentd_protocol::{
    error::Failure,
    settings::{Durability as DurabilitySetting, Settings},
};
use agentd_store::{
    Durability, FileCreation, FoundSession, NewSession, OpenSession, SessionDir, Store, StoreOptions,
    check_session_id, copy_all, create_dirs, find, find_by_id, looks_like_path, newest, read_header,
};

use super::error::OpenError;
use crate::{
    clock::now_ms,
    messages::BranchCopy,
    options::{SessionOptions, Target},
    unload::{Leaf, Unloaded},
};

/// Where sessions are kept, and how.
pub(super) struct SessionFiles<'a> {
    pub(super) agent_dir: &'a AgentDir,
    pub(super) settings: &'a Settings,
    /// The daemon's life, for the notes of who has a file.
    pub(super) epoch: &'a str,
    /// The setting `limits.maxSessionBytes`.
    pub(super) session_bytes: u64,
}

impl SessionFiles<'_> {
    fn store(&self) -> Store {
        Store::new(StoreOptions {
            durability: match self.settings.durability.unwrap_or_default() {
                DurabilitySetting::Os => Durability::Os,
                DurabilitySetting::Fsync => Durability::Fsync,
            },
            run_dir: Some(self.agent_dir.run_dir()),
            epoch: self.epoch.to_owned(),
            ..StoreOptions::default()
        })
    }

    /// Whether a file is small enough to be opened. One that has just reached the limit is: it can be read, and copied in parts.
    fn check_size(&self, path: &Path) -> Result<(), OpenError> {
        let limit = self.session_bytes.saturating_mul(2);
        // A file without metadata fails when it is opened.
        let bytes = path.metadata().map_or(0, |file| file.len());
        if bytes <= limit {
            return Ok(());
        }
        let path = path.display();
        let text =
            format!("The session file {path} has {bytes} bytes; files of more than {limit} are not opened.");
        let instead = "Twice the limit of a session is opened.";
        Err(OpenError::Limit(Failure::limit(text, "limits.maxSessionBytes", instead)))
    }
}

/// A session that left memory.
pub(super) fn reopen(unloaded: &Unloaded, files: &SessionFiles<'_>) -> Result<OpenSession, OpenError> {
    let store = files.store();
    let mut session = match &unloaded.unsaved {
        Some(lines) => store.resume(&unloaded.file, lines)?,
        None if !unloaded.file.exists() => return Err(OpenError::Gone(unloaded.file.to_path_buf())),
        None => store.reopen(&unloaded.file)?,
    };
    let placed = match &unloaded.leaf {
        Leaf::Last => Ok(()),
        Leaf::At(id) => session.tree.set_leaf(Some(id)),
        Leaf::Root => session.tree.set_leaf(None),
    };
    if let Err(error) = placed {
        tracing::warn!(%error, "a session that comes back goes on after its last entry");
    }
    Ok(session)
}

/// A session of a copied branch. Its file is made at once if there is a message in it, and has nowhere to be without a
/// folder.
pub(super) fn adopt(copied: BranchCopy, files: &SessionFiles<'_>) -> Result<OpenSession, OpenError> {
    let BranchCopy { tree, folder, artifacts, tools: _, mode: _, text: _ } = copied;
    let session = files.store().adopt(*tree, folder.as_deref(), FileCreation::WithMessage)?;
    fail_point::hit(Point::CopyFiled);
    share(artifacts.as_ref(), &session);
    Ok(session)
}

/// Gives a copy the long outputs of its original, so that their ids mean the same in both. The copy is whole without them:
/// its messages name the files of the original.
fn share(original: Option<&ArtifactFolder>, copy: &OpenSession) {
    if let (Some(original), Some(file)) = (original, copy.writer.path())
        && let Err(error) = original.share_with(&ArtifactFolder::beside(file))
    {
        tracing::warn!(%error, path = %file.display(), "a copy of a session lacks long outputs of the original");
    }
}

/// The session that the options ask for.
pub(super) struct OpenedTarget {
    pub(super) session: OpenSession,
    /// Whether it has a past.
    pub(super) has_past: bool,
    /// The file that `--continue` would go on with, were it not the project's.
    pub(super) passed_over: Option<PathBuf>,
}

/// Opens the session that the options ask for.
pub(super) fn open_session(
    options: &SessionOptions,
    files: &SessionFiles<'_>,
) -> Result<OpenedTarget, OpenError> {
    let opened = |session, has_past| Ok(OpenedTarget { session, has_past, passed_over: None });
    let (agent_dir, settings, store) = (files.agent_dir, files.settings, files.store());
    let cwd = options.cwd.display().to_string();
    let new =
        |id: Option<&str>| NewSession { id: id.map(str::to_owned), ..NewSession::new(cwd.clone(), now_ms()) };
    if let Target::Ephemeral(id) = &options.target {
        return opened(store.in_memory(new(id.as_deref()))?, false);
    }
    let root = agent_dir.sessions_dir();
    let dir = folder(options, agent_dir, settings);
    create_dirs(&dir.path)?;
    if let Target::Fork { source, id } = &options.target {
        if let Some(id) = id {
            check_session_id(id)?;
            if let Some(path) = find_by_id(id, &dir, &cwd).map_err(unsearchable(&dir))? {
                return Err(OpenError::IdTaken { id: id.clone(), path });
            }
        }
        let source = existing_file(source, options, &dir, &root, OtherFolder::Fine)?;
        files.check_size(&source)?;
        let (tree, _) = store.read(&source)?;
        let parent_session = Some(source.display().to_string());
        let copy = copy_all(&tree, NewSession { parent_session, ..new(id.as_deref()) })?;
        let session = store.adopt(copy, Some(&dir.path), FileCreation::AtOnce)?;
        share(Some(&ArtifactFolder::beside(&source)), &session);
        return opened(session, true);
    }
    let (found, passed_over) = match existing(options, &dir, agent_dir)? {
        ExistingFile::File(path) => (Some(path), None),
        ExistingFile::None => (None, None),
        ExistingFile::OfProject(path) => (None, Some(path)),
    };
    if let Some(path) = found {
        files.check_size(&path)?;
        let new = match &options.target {
            Target::File { id, parent, .. } => {
                NewSession { parent_session: parent.clone(), ..new(id.as_deref()) }
            }
            _ => new(None),
        };
        let session = store.open(&path, new)?;
        let has_past = !session.tree.entries().is_empty();
        return opened(session, has_past);
    }
    let made = match &options.target {
        Target::Child(parent) => {
            let parent_session = Some(parent.clone());
            store.create(&dir.path, NewSession { parent_session, ..new(None) })?
        }
        Target::Id(id) => store.create(&dir.path, new(Some(id)))?,
        _ => store.create(&dir.path, new(None))?,
    };
    Ok(OpenedTarget { session: made, has_past: false, passed_over })
}

/// The file that the options mean and that is there already, with the id that it holds; `None` for a new session. Opens
/// nothing. Reads files; blocks.
///
/// # Errors
/// The errors of opening, as far as it comes to that.
pub fn locate(options: &SessionOptions) -> Result<Option<(PathBuf, String)>, OpenError> {
    if matches!(options.target, Target::New | Target::Child(_) | Target::Fork { .. } | Target::Ephemeral(_)) {
        return Ok(None);
    }
    let agent_dir = AgentDir::find(&options.environment, options.compat, &options.cwd)?;
    let loaded = load(&agent_dir, &options.cwd, &options.environment, options.approve);
    let dir = folder(options, &agent_dir, &loaded.settings);
    let ExistingFile::File(path) = existing(options, &dir, &agent_dir)? else { return Ok(None) };
    let path = path.canonicalize().unwrap_or(path);
    // A file that is no session fails when it is opened.
    let header = read_header(&path).ok().flatten();
    Ok(header.map(|header| (path, header.id().to_owned())))
}

/// The folder of session files.
fn folder(options: &SessionOptions, agent_dir: &AgentDir, settings: &Settings) -> SessionDir {
    match folder_rule(options, agent_dir, settings) {
        SessionDirRule::PerCwd(root) => SessionDir::of_cwd(&root, &options.cwd),
        SessionDirRule::Exact(path) => SessionDir::custom(path, &agent_dir.sessions_dir(), &options.cwd),
    }
}

/// Which folder a session's flag, variable and these settings name.
pub(super) fn folder_rule(
    options: &SessionOptions,
    agent_dir: &AgentDir,
    settings: &Settings,
) -> SessionDirRule {
    session_dir(
        options.session_dir.as_deref(),
        &options.environment,
        settings.session_dir.as_deref(),
        agent_dir,
        &options.cwd,
    )
}

/// A file that is there already.
enum ExistingFile {
    /// None.
    None,
    /// This one.
    File(PathBuf),
    /// This one, which no flag named and which belongs to the project: the project's author may have written it.
    OfProject(PathBuf),
}

impl From<Option<PathBuf>> for ExistingFile {
    fn from(found: Option<PathBuf>) -> Self {
        found.map_or(Self::None, Self::File)
    }
}

/// The file that is meant, where it must or can be there already.
fn existing(
    options: &SessionOptions,
    dir: &SessionDir,
    agent_dir: &AgentDir,
) -> Result<ExistingFile, OpenError> {
    let cwd = options.cwd.display().to_string();
    match &options.target {
        Target::New | Target::Child(_) | Target::Fork { .. } | Target::Ephemeral(_) => Ok(ExistingFile::None),
        Target::Continue => {
            let preferred = options.preferred.as_deref().filter(|id| check_session_id(id).is_ok());
            let preferred = preferred.map(|id| find_by_id(id, dir, &cwd)).transpose();
            let found = match preferred.map_err(unsearchable(dir))?.flatten() {
                Some(path) => Some(path),
                None => newest(dir, &cwd).map_err(unsearchable(dir))?,
            };
            match found {
                Some(path) if is_of_project(&path, &options.cwd, agent_dir, &options.environment) => {
                    Ok(ExistingFile::OfProject(path))
                }
                found => Ok(found.into()),
            }
        }
        Target::Existing(text) => {
            let root = agent_dir.sessions_dir();
            existing_file(text, options, dir, &root, OtherFolder::Refused).map(ExistingFile::File)
        }
        Target::File { path, .. } => Ok(ExistingFile::File(path.clone())),
        Target::Id(id) => {
            check_session_id(id)?;
            Ok(find_by_id(id, dir, &cwd).map_err(unsearchable(dir))?.into())
        }
    }
}

/// Whether a session of another working directory will do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OtherFolder {
    Fine,
    Refused,
}

/// Resolves `--session` and `--fork`: a path, an id, or the beginning of one.
fn existing_file(
    text: &str,
    options: &SessionOptions,
    dir: &SessionDir,
    root: &Path,
    elsewhere: OtherFolder,
) -> Result<PathBuf, OpenError> {
    if looks_like_path(text) {
        return Ok(resolve_path(text, &options.cwd, &options.environment));
    }
    let id = text.to_owned();
    match find(text, dir, root, &options.cwd.display().to_string()).map_err(unsearchable(dir))? {
        Some(FoundSession::Local(path)) => Ok(path),
        Some(FoundSession::Elsewhere { path, .. }) if elsewhere == OtherFolder::Fine => Ok(path),
        Some(FoundSession::Elsewhere { path, cwd }) => Err(OpenError::Elsewhere { id, cwd, path }),
        None => Err(OpenError::NotFound(id)),
    }
}

fn unsearchable(dir: &SessionDir) -> impl FnOnce(std::io::Error) -> OpenError + '_ {
    |source| OpenError::Search { dir: dir.path.clone(), source }
}

/// The folder that the session's header names.
pub(super) fn working_directory(
    session: &OpenSession,
    options: &SessionOptions,
) -> Result<PathBuf, OpenError> {
    let cwd = session.tree.header().cwd();
    if cwd.is_empty() {
        return Ok(options.cwd.clone());
    }
    if Path::new(cwd).is_dir() {
        return Ok(PathBuf::from(cwd));
    }
    Err(OpenError::NoCwd {
        id: session.tree.header().id().to_owned(),
        cwd: cwd.to_owned(),
        file: session.writer.path().map(Path::to_owned).unwrap_or_default(),
        current: options.cwd.clone(),
    })
}

/// Whether both lead to the same folder.
pub(crate) fn same_folder(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    one == other || real(one).is_some_and(|path| real(other) == Some(path))
}
