//! Fills a copy with the files of the original: those that git knows, or all of them as clones that share their blocks.

use std::{
    collections::BTreeSet,
    fs::{self, DirBuilder, File, FileTimes, OpenOptions, Permissions},
    io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    thread,
};

use rustix::fs::OFlags;

use crate::error::IsolationError;

/// What is copied, and from where to where.
#[derive(Debug)]
pub(crate) struct Population {
    pub(crate) from: PathBuf,
    pub(crate) to: PathBuf,
    /// Files that git tracks or would add.
    pub(crate) files: Vec<PathBuf>,
    /// Folders that are made and left empty.
    pub(crate) folders: Vec<PathBuf>,
    /// Whether everything else is copied, too, such as ignored build output; each file shares its blocks with the original.
    pub(crate) clones_all: bool,
    /// What is not copied, below `from`.
    pub(crate) excluded: BTreeSet<PathBuf>,
}

/// Tests whether files of `folder` can be cloned into `target`; the reason if not. Blocks.
pub(crate) fn probe_clone(folder: &Path, files: &[PathBuf], target: &Path) -> Result<(), String> {
    let sample = files
        .iter()
        .map(|file| folder.join(file))
        .find(|path| fs::symlink_metadata(path).is_ok_and(|about| about.is_file() && about.len() > 0));
    let Some(sample) = sample else { return Err("there is no file to share blocks with".to_owned()) };
    let probe = target.join("probe");
    let attempt = || {
        let from = File::open(&sample)?;
        let to = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&probe)?;
        rustix::fs::ioctl_ficlone(&to, &from)?;
        io::Result::Ok(())
    };
    let result = attempt();
    // A probe that stays is removed with the copy.
    let _ = fs::remove_file(&probe);
    result.map_err(|error| match error.raw_os_error() {
        Some(number) if number == rustix::io::Errno::XDEV.raw_os_error() => {
            format!("{} is on another file system than {}", target.display(), folder.display())
        }
        _ => format!("the file system of {} cannot share blocks between files ({error})", target.display()),
    })
}

/// The most threads that copy files.
const MOST_THREADS: usize = 4;

/// A file or link to copy, below the root.
#[derive(Debug)]
struct Copied {
    path: PathBuf,
    about: fs::Metadata,
}

/// Copies. Returns notices about what could not be copied. Blocks.
///
/// # Errors
/// The system's, with the path.
pub(crate) fn populate(population: &Population) -> Result<Vec<String>, IsolationError> {
    let mut notices = Vec::new();
    let files = if population.clones_all { all(population, &mut notices)? } else { known(population)? };
    notices.extend(copy_all(population, &files)?);
    for folder in &population.folders {
        let path = population.to.join(folder);
        fs::create_dir_all(&path).map_err(IsolationError::io(&path))?;
    }
    Ok(notices)
}

/// Copies files by several threads: most of the time goes into calls that make and open files.
fn copy_all(population: &Population, files: &[Copied]) -> Result<Vec<String>, IsolationError> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
    let share = files.len().div_ceil(threads).max(1);
    thread::scope(|scope| {
        let workers: Vec<_> =
            files.chunks(share).map(|files| scope.spawn(|| copy_some(population, files))).collect();
        let mut notices = Vec::new();
        for worker in workers {
            notices.extend(worker.join().map_err(|_| IsolationError::Panicked)??);
        }
        Ok(notices)
    })
}

fn copy_some(population: &Population, files: &[Copied]) -> Result<Vec<String>, IsolationError> {
    let mut notices = Vec::new();
    for Copied { path, about } in files {
        let (from, to) = (population.from.join(path), population.to.join(path));
        match copy_entry(&from, &to, about, population.clones_all) {
            // What git does not know need not be readable.
            Err(IsolationError::Io { source, .. })
                if population.clones_all && source.kind() == io::ErrorKind::PermissionDenied =>
            {
                notices.push(format!("{} is not in the copy: it cannot be read", from.display()));
            }
            other => other?,
        }
    }
    Ok(notices)
}

/// The files that git tracks or would add, with their folders made.
fn known(population: &Population) -> Result<Vec<Copied>, IsolationError> {
    let mut files = Vec::with_capacity(population.files.len());
    let mut last_folder = PathBuf::new();
    for path in &population.files {
        if is_in(path, &population.excluded) {
            continue;
        }
        let from = population.from.join(path);
        let about = match fs::symlink_metadata(&from) {
            Ok(about) => about,
            // A tracked file that the user has deleted, or put a folder in the place of.
            Err(error) if is_missing(&error) => continue,
            Err(error) => return Err(IsolationError::io(&from)(error)),
        };
        if let Some(folder) = path.parent()
            && folder != last_folder
        {
            make_folders(&population.from, &population.to, folder)?;
            folder.clone_into(&mut last_folder);
        }
        files.push(Copied { path: path.clone(), about });
    }
    Ok(files)
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Whether a path is one of `excluded` or below one.
fn is_in(path: &Path, excluded: &BTreeSet<PathBuf>) -> bool {
    !excluded.is_empty() && path.ancestors().any(|above| excluded.contains(above))
}

/// Makes a folder and those above it, with the rights of the originals.
fn make_folders(from: &Path, to: &Path, folder: &Path) -> Result<(), IsolationError> {
    let mut missing: Vec<&Path> = folder
        .ancestors()
        .take_while(|above| !above.as_os_str().is_empty() && !to.join(above).is_dir())
        .collect();
    while let Some(folder) = missing.pop() {
        make_folder(&from.join(folder), &to.join(folder))?;
    }
    Ok(())
}

fn make_folder(from: &Path, to: &Path) -> Result<(), IsolationError> {
    let mode = fs::metadata(from).map_or(0o755, |about| about.mode());
    match DirBuilder::new().mode(mode & 0o777 | 0o700).create(to) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(IsolationError::io(to)(error)),
        _ => Ok(()),
    }
}

/// Everything below `from`, except for its own `.git` and what is excluded, with the folders made.
fn all(population: &Population, notices: &mut Vec<String>) -> Result<Vec<Copied>, IsolationError> {
    let device = fs::metadata(&population.from).map_err(IsolationError::io(&population.from))?.dev();
    let mut files = Vec::new();
    let mut open = vec![PathBuf::new()];
    while let Some(folder) = open.pop() {
        let from = population.from.join(&folder);
        let entries = match fs::read_dir(&from) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                notices.push(format!("{} is not in the copy: it cannot be read", from.display()));
                continue;
            }
            Err(error) if is_missing(&error) => continue,
            Err(error) => return Err(IsolationError::io(&from)(error)),
        };
        for entry in entries {
            let entry = entry.map_err(IsolationError::io(&from))?;
            let below = folder.join(entry.file_name());
            if below == Path::new(".git") || population.excluded.contains(&below) {
                continue;
            }
            let about = match entry.metadata() {
                Ok(about) => about,
                Err(error) if is_missing(&error) => continue,
                Err(error) => return Err(IsolationError::io(entry.path())(error)),
            };
            if !about.is_dir() {
                files.push(Copied { path: below, about });
            } else if about.dev() == device {
                make_folder(&entry.path(), &population.to.join(&below))?;
                open.push(below);
            } else {
                notices.push(format!(
                    "{} is not in the copy: it is another file system",
                    entry.path().display()
                ));
            }
        }
    }
    Ok(files)
}

/// Copies a file or a symbolic link with its mode and its time. What is neither is left out.
fn copy_entry(from: &Path, to: &Path, about: &fs::Metadata, clones: bool) -> Result<(), IsolationError> {
    if about.is_symlink() {
        let target = fs::read_link(from).map_err(IsolationError::io(from))?;
        return symlink(target, to).map_err(IsolationError::io(to));
    }
    if !about.is_file() {
        return Ok(());
    }
    // Nothing that was put in the file's place meanwhile is followed or waited for.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let source = match OpenOptions::new().read(true).custom_flags(flags).open(from) {
        Err(error) if is_missing(&error) => return Ok(()),
        opened => opened.map_err(IsolationError::io(from))?,
    };
    let write = || {
        let target = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
        // A file whose blocks cannot be shared, such as one of another device, is copied.
        if !(clones && rustix::fs::ioctl_ficlone(&target, &source).is_ok()) {
            io::copy(&mut &source, &mut &target)?;
        }
        target.set_permissions(Permissions::from_mode(about.mode() & 0o777))?;
        target.set_times(FileTimes::new().set_modified(about.modified()?))
    };
    write().map_err(IsolationError::io(to))
}

/// Puts links into a copy: folders such as `node_modules` are then those of the original. Returns the names of the links. Blocks.
///
/// # Errors
/// The system's.
pub(crate) fn link(from: &Path, to: &Path, names: &[PathBuf]) -> Result<(), IsolationError> {
    for name in names {
        let path = to.join(name);
        if let Some(folder) = name.parent() {
            make_folders(from, to, folder)?;
        }
        symlink(from.join(name), &path).map_err(IsolationError::io(&path))?;
    }
    Ok(())
}
