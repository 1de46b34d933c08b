//! The files of this machine as a session's sandbox permits them.
//!
//! The policy judges real paths. What it permits is then opened by a path on which no link may be (`openat2`), so that a link which a
//! command puts there meanwhile makes the call fail instead of leading it elsewhere. Every access goes through here, walks of the
//! search tools too: [`FileSystem::is_local`] is false.

use std::{
    ffi::OsString,
    fs::File,
    io,
    os::{
        fd::{AsRawFd as _, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::{Path, PathBuf},
    sync::Arc,
};

use agentd_sandbox::{AccessRefusal, SandboxPolicy};
use rustix::{
    fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, mkdirat, openat2, statat},
    io::Errno,
};
use tokio_util::sync::CancellationToken;

use super::{
    FileFacts, FileHost, FileKind, FileSnapshot, FileSystem, FolderEntry, GuardedHost, LocalHost, OpenFile,
    WriteError, local,
};
use crate::{atomic, real_path::real_path};

/// Folders and files that a walk asks for at once: enough that taking them costs little.
const BATCH: usize = 64;

/// This machine, within a sandbox.
#[derive(Clone)]
pub struct SandboxedHost {
    policy: Arc<SandboxPolicy>,
    /// Protects the agent directory.
    guarded: GuardedHost,
}

impl SandboxedHost {
    /// The files that `policy` permits, and of these only those that `guarded` permits to be written.
    #[must_use]
    pub fn new(policy: Arc<SandboxPolicy>, guarded: GuardedHost) -> Self {
        Self { policy, guarded }
    }
}

impl FileHost for SandboxedHost {
    fn files(&self, cancel: &CancellationToken) -> Box<dyn FileSystem> {
        Box::new(SandboxedFiles {
            policy: Arc::clone(&self.policy),
            guarded: self.guarded.files(cancel),
            local: LocalHost.files(cancel),
        })
    }
}

struct SandboxedFiles {
    policy: Arc<SandboxPolicy>,
    guarded: Box<dyn FileSystem>,
    local: Box<dyn FileSystem>,
}

impl SandboxedFiles {
    /// The real path of one that may be read.
    fn readable(&self, path: &Path) -> io::Result<PathBuf> {
        // The path as given first: what is denied must not even be looked at.
        self.policy.check_read(path).map_err(refused)?;
        let real = real_path(path)?;
        self.policy.check_read(&real).map_err(refused)?;
        Ok(real)
    }

    /// The real path of one that may be written.
    fn writable(&self, path: &Path) -> io::Result<PathBuf> {
        let real = self.readable(path)?;
        self.policy.check_write(&real).map_err(refused)?;
        Ok(real)
    }
}

impl SandboxedFiles {
    /// The open folder and the name of a path that may be written.
    fn writable_entry(&self, path: &Path) -> io::Result<(OwnedFd, OsString)> {
        let real = self.writable(path)?;
        let (Some(parent), Some(name)) = (real.parent(), real.file_name()) else {
            return Err(Errno::ISDIR.into());
        };
        Ok((open_real(parent, OFlags::PATH | OFlags::DIRECTORY)?, name.to_owned()))
    }
}

fn refused(refusal: AccessRefusal) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, refusal)
}

/// Opens a real path; a link anywhere on it is an error.
fn open_real(real: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC;
    Ok(openat2(CWD, real, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS)?)
}

/// A path to an entry of an open folder. It stays the same whatever happens to the folder's own path.
fn entry_of(folder: &OwnedFd, name: &Path) -> PathBuf {
    Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name)
}

impl FileSystem for SandboxedFiles {
    fn open(&self, path: &Path) -> io::Result<OpenFile> {
        let real = self.readable(path)?;
        // Opening a pipe without this would wait for a writer.
        local::opened(File::from(open_real(&real, OFlags::RDONLY | OFlags::NONBLOCK)?))
    }

    fn about(&self, path: &Path) -> io::Result<FileFacts> {
        let real = self.readable(path)?;
        File::from(open_real(&real, OFlags::PATH)?).metadata().map(|metadata| local::about(&metadata))
    }

    fn check_change(&self, path: &Path) -> io::Result<()> {
        self.local.check_change(&self.writable(path)?)
    }

    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        real_path(path)
    }

    fn root_of_walk(&self, folder: &Path) -> PathBuf {
        self.local.root_of_walk(folder)
    }

    fn may_write(&self, path: &Path) -> Result<(), WriteError> {
        self.guarded.may_write(path)?;
        self.writable(path).map(drop).map_err(|source| WriteError::System {
            call: "open",
            path: path.to_owned(),
            source,
        })
    }

    fn create_folders(&self, path: &Path) -> io::Result<()> {
        let real = self.writable(path)?;
        let mut missing = Vec::new();
        let mut existing = real.as_path();
        let mut folder = loop {
            match open_real(existing, OFlags::PATH | OFlags::DIRECTORY) {
                Ok(folder) => break folder,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let (Some(parent), Some(name)) = (existing.parent(), existing.file_name()) else {
                        return Err(error);
                    };
                    missing.push(name);
                    existing = parent;
                }
                Err(error) => return Err(error),
            }
        };
        for name in missing.into_iter().rev() {
            match mkdirat(&folder, name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            folder = rustix::fs::openat(&folder, name, flags, Mode::empty())?;
        }
        Ok(())
    }

    fn replace(
        &self,
        path: &Path,
        content: &[u8],
        before: Option<&FileSnapshot<'_>>,
    ) -> Result<(), WriteError> {
        self.guarded.may_write(path)?;
        let failed = |source| WriteError::System { call: "open", path: path.to_owned(), source };
        let real = self.writable(path).map_err(failed)?;
        let (Some(parent), Some(name)) = (real.parent(), real.file_name()) else {
            return Err(failed(Errno::ISDIR.into()));
        };
        let folder = open_real(parent, OFlags::PATH | OFlags::DIRECTORY).map_err(failed)?;
        atomic::replace_real(path, &entry_of(&folder, Path::new(name)), content, before)
    }

    fn move_file(&self, from: &Path, to: &Path) -> Result<(), WriteError> {
        self.guarded.may_write(from)?;
        self.guarded.may_write(to)?;
        let failed = |source| WriteError::System { call: "rename", path: to.to_owned(), source };
        let (from_folder, from_name) = self.writable_entry(from).map_err(failed)?;
        let (to_folder, to_name) = self.writable_entry(to).map_err(failed)?;
        local::move_at(from_folder, Path::new(&from_name), to_folder, Path::new(&to_name)).map_err(failed)
    }

    fn remove_file(&self, path: &Path) -> Result<(), WriteError> {
        self.guarded.may_write(path)?;
        let failed = |source| WriteError::System { call: "unlink", path: path.to_owned(), source };
        let (folder, name) = self.writable_entry(path).map_err(failed)?;
        rustix::fs::unlinkat(folder, &name, AtFlags::empty()).map_err(|error| failed(error.into()))
    }

    fn list(&self, folders: &[PathBuf]) -> io::Result<Vec<io::Result<Vec<FolderEntry>>>> {
        Ok(folders.iter().map(|folder| self.list_one(folder)).collect())
    }

    fn batch(&self) -> usize {
        BATCH
    }
}

impl SandboxedFiles {
    /// The entries of a folder that may be read.
    fn list_one(&self, folder: &Path) -> io::Result<Vec<FolderEntry>> {
        // Walks pass over what they cannot read, so the error is a plain one.
        let real = self.readable(folder).map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => Errno::ACCESS.into(),
            _ => error,
        })?;
        let folder = open_real(&real, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let mut entries = Vec::new();
        for entry in Dir::read_from(&folder)? {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let kind = |flags| statat(&folder, name, flags).map(|stat| FileType::from_raw_mode(stat.st_mode));
            let kind_of_entry = match entry.file_type() {
                FileType::Unknown => kind(AtFlags::SYMLINK_NOFOLLOW)?,
                known => known,
            };
            let target = match kind_of_entry {
                FileType::Symlink => kind(AtFlags::empty()).ok(),
                other => Some(other),
            };
            entries.push(FolderEntry {
                name: std::ffi::OsStr::from_bytes(name.to_bytes()).to_owned(),
                kind: kind_of(kind_of_entry),
                target: target.map(kind_of),
            });
        }
        Ok(entries)
    }
}

fn kind_of(kind: FileType) -> FileKind {
    match kind {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Folder,
        FileType::Symlink => FileKind::Link,
        FileType::Fifo => FileKind::Pipe,
        FileType::Socket => FileKind::Socket,
        FileType::CharacterDevice | FileType::BlockDevice | FileType::Unknown => FileKind::Device,
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    struct TestFolders {
        _folder: tempfile::TempDir,
        root: PathBuf,
        files: Box<dyn FileSystem>,
    }

    impl TestFolders {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let root = folder.path().canonicalize().unwrap();
            for name in ["work/.git/hooks", "out", "secret", "agent"] {
                fs::create_dir_all(root.join(name)).unwrap();
            }
            fs::write(root.join("secret/key"), "key").unwrap();
            fs::write(root.join("out/file"), "old").unwrap();
            fs::write(root.join("work/a"), "a").unwrap();
            symlink(root.join("out"), root.join("work/leads-out")).unwrap();
            symlink("../secret/key", root.join("work/leads-to-key")).unwrap();
            symlink(root.join("work/a"), root.join("work/leads-to-a")).unwrap();
            let policy = SandboxPolicy {
                writable: vec![root.join("work")],
                denied: vec![root.join("secret")],
                ..SandboxPolicy::default()
            };
            let guarded = GuardedHost::new(root.join("agent"), Vec::new());
            let files = SandboxedHost::new(Arc::new(policy), guarded).files(&CancellationToken::new());
            Self { _folder: folder, root, files }
        }

        fn text(&self, path: &str) -> String {
            fs::read_to_string(self.root.join(path)).unwrap()
        }
    }

    #[test]
    fn writing_goes_to_the_writable_folders_by_any_name() {
        let it = TestFolders::new();
        for path in ["work/a", "work/leads-to-a", "work/new"] {
            it.files.replace(&it.root.join(path), b"new", None).unwrap();
        }
        assert_eq!((it.text("work/a"), it.text("work/new")), ("new".to_owned(), "new".to_owned()));
        assert!(it.root.join("work/leads-to-a").is_symlink());
        for path in ["out/file", "work/leads-out/file", "work/leads-out/new", "work/.git/hooks/x", "agent/x"]
        {
            let error = it.files.replace(&it.root.join(path), b"new", None).unwrap_err().to_string();
            assert!(error.contains("sandbox") || error.contains("agent directory"), "{path}: {error}");
            assert!(it.files.may_write(&it.root.join(path)).is_err(), "{path}");
        }
        assert_eq!(it.text("out/file"), "old");
        it.files.create_folders(&it.root.join("work/x/y")).unwrap();
        assert!(it.root.join("work/x/y").is_dir());
        assert!(it.files.create_folders(&it.root.join("work/leads-out/x")).is_err());
        assert!(!it.root.join("out/x").exists());
    }

    #[test]
    fn what_is_denied_is_neither_read_nor_listed() {
        let it = TestFolders::new();
        for path in ["secret/key", "work/leads-to-key", "secret"] {
            let error = it.files.open(&it.root.join(path)).err().unwrap();
            assert!(error.to_string().contains("denies"), "{path}: {error}");
            assert!(it.files.about(&it.root.join(path)).is_err(), "{path}");
        }
        assert!(it.files.open(&it.root.join("work/a")).is_ok());
        let lists = it.files.list(&[it.root.join("secret"), it.root.join("work")]).unwrap();
        assert!(lists[0].is_err());
        let mut names: Vec<_> =
            lists[1].as_ref().unwrap().iter().map(|entry| entry.name.to_string_lossy()).collect();
        names.sort_unstable();
        assert_eq!(names, [".git", "a", "leads-out", "leads-to-a", "leads-to-key"]);
    }

    #[test]
    fn a_link_that_appears_after_the_check_leads_nowhere() {
        let it = TestFolders::new();
        // The folder of a path that was judged becomes a link before it is opened.
        let judged = it.root.join("work/sub/file");
        symlink(it.root.join("out"), it.root.join("work/sub")).unwrap();
        let error = open_real(&judged, OFlags::RDONLY).unwrap_err();
        assert_eq!(Errno::from_io_error(&error), Some(Errno::LOOP));
        assert!(open_real(judged.parent().unwrap(), OFlags::PATH | OFlags::DIRECTORY).is_err());
    }
}
