//! A repository in a temporary folder, and what the tests do with it.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{PermissionsExt as _, symlink},
    },
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use agentd_isolation::{
    CaptureMode, CaptureOptions, Captured, Git, IsolatedCopy, Isolation, IsolationError, IsolationOptions,
    MessageWriter, merge,
};
use agentd_process::{GuardCommand, Launcher};
use agentd_protocol::isolation::{IsolationBackend, IsolationMerge};

/// A folder on a file system that can share blocks; without it the tests run in the temporary folder.
const FOLDER: &str = "AGENTD_TEST_REFLINK_DIR";

pub(crate) struct Bench {
    dir: tempfile::TempDir,
    pub(crate) git: Git,
}

/// All files of a folder without `.git`: what they are and what is in them.
pub(crate) type Files = BTreeMap<Vec<u8>, (char, Vec<u8>)>;

/// What a merge must not change without need.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RepositoryState {
    pub(crate) files: Files,
    pub(crate) status: Vec<u8>,
    pub(crate) head: String,
    pub(crate) refs: String,
}

pub(crate) fn environment(home: &Path) -> Vec<(OsString, OsString)> {
    let variables = [
        ("PATH", OsString::from("/usr/local/bin:/usr/bin:/bin")),
        ("HOME", home.as_os_str().to_owned()),
        ("GIT_CONFIG_NOSYSTEM", "1".into()),
        ("GIT_AUTHOR_NAME", "User".into()),
        ("GIT_AUTHOR_EMAIL", "user@example.org".into()),
        ("GIT_COMMITTER_NAME", "User".into()),
        ("GIT_COMMITTER_EMAIL", "user@example.org".into()),
    ];
    variables.map(|(name, value)| (name.into(), value)).to_vec()
}

pub(crate) fn helper() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_agentd-isolation-test-guard"))
}

pub(crate) fn temporary() -> tempfile::TempDir {
    match std::env::var_os(FOLDER) {
        Some(folder) => tempfile::tempdir_in(folder).unwrap(),
        None => tempfile::tempdir().unwrap(),
    }
}

impl Bench {
    /// An empty repository.
    pub(crate) fn empty() -> Self {
        let dir = temporary();
        let group = Launcher::new(GuardCommand { program: helper(), args: Vec::new() }).group();
        let bench = Self { git: Git::new(group, &environment(dir.path())), dir };
        fs::create_dir(bench.path("")).unwrap();
        bench.run(&["init", "--quiet", "--initial-branch=main"]);
        bench
    }

    /// A repository with one commit of these files.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let bench = Self::empty();
        for (path, text) in files {
            bench.write(path, text);
        }
        bench.commit_all("first");
        bench
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap()
    }

    pub(crate) fn path(&self, below: impl AsRef<OsStr>) -> PathBuf {
        self.home().join("my repo").join(below.as_ref())
    }

    pub(crate) fn base(&self) -> PathBuf {
        self.home().join("copies")
    }

    pub(crate) fn write(&self, below: impl AsRef<OsStr>, text: impl AsRef<[u8]>) {
        write(&self.path(below), text);
    }

    pub(crate) fn read(&self, below: impl AsRef<OsStr>) -> String {
        String::from_utf8_lossy(&fs::read(self.path(below)).unwrap()).into_owned()
    }

    /// Runs git in the repository.
    pub(crate) fn run(&self, args: &[&str]) -> String {
        self.run_in(&self.path(""), args)
    }

    pub(crate) fn run_in(&self, folder: &Path, args: &[&str]) -> String {
        let output = self.command(folder, args).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "git {args:?} in {}: {errors}", folder.display());
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    pub(crate) fn command(&self, folder: &Path, args: &[&str]) -> Command {
        let mut command = Command::new("git");
        command.env_clear().envs(environment(&self.home())).current_dir(folder).args(args);
        command
    }

    pub(crate) fn commit_all(&self, message: &str) {
        self.run(&["add", "--all"]);
        self.run(&["commit", "--quiet", "--allow-empty", "-m", message]);
    }

    pub(crate) fn options(&self, id: &str) -> IsolationOptions {
        IsolationOptions {
            git: self.git.clone(),
            cwd: self.path(""),
            id: id.to_owned(),
            backend: IsolationBackend::Auto,
            links: Vec::new(),
            base_dir: self.base(),
        }
    }

    pub(crate) async fn begin(&self, id: &str) -> IsolatedCopy {
        Isolation::begin(self.options(id)).await.unwrap()
    }

    pub(crate) fn patch_path(&self, id: &str) -> PathBuf {
        self.home().join(format!("{id}.patch"))
    }

    pub(crate) async fn capture(&self, copy: &mut IsolatedCopy, mode: CaptureMode) -> Captured {
        let message = format!("task {}\n\nwith a second paragraph", copy.id());
        let patch_path = self.patch_path(copy.id());
        copy.capture(&CaptureOptions { mode, patch_path, message, writer: None }).await.unwrap()
    }

    /// Captures commits whose messages `writer` writes.
    pub(crate) async fn capture_written(
        &self,
        copy: &mut IsolatedCopy,
        writer: Arc<dyn MessageWriter>,
    ) -> Captured {
        let (message, patch_path) = ("plain".to_owned(), self.patch_path(copy.id()));
        let options = CaptureOptions { mode: CaptureMode::Branch, patch_path, message, writer: Some(writer) };
        copy.capture(&options).await.unwrap()
    }

    /// Captures, removes the copy, merges.
    pub(crate) async fn bring_back(&self, mut copy: IsolatedCopy, mode: CaptureMode) -> IsolationMerge {
        let captured = self.capture(&mut copy, mode).await;
        copy.remove().await.unwrap();
        self.merge(&captured).await.unwrap()
    }

    pub(crate) async fn merge(&self, captured: &Captured) -> Result<IsolationMerge, IsolationError> {
        merge(&self.git, captured).await
    }

    pub(crate) fn state(&self) -> RepositoryState {
        RepositoryState {
            files: files(&self.path("")),
            status: self.status(&self.path("")),
            head: self.run(&["rev-parse", "HEAD"]),
            refs: self.run(&["for-each-ref"]),
        }
    }

    pub(crate) fn status(&self, folder: &Path) -> Vec<u8> {
        let args = ["status", "--porcelain", "-z", "--untracked-files=all"];
        self.command(folder, &args).output().unwrap().stdout
    }

    /// Nothing of ours is left in the repository or in the folder of copies.
    pub(crate) fn check_clean(&self) {
        assert_eq!(self.run(&["worktree", "list"]).lines().count(), 1);
        assert_eq!(self.run(&["for-each-ref", "refs/heads/agentd", "refs/stash"]), "");
        assert!(!self.path(".git/worktrees").exists() && !self.path(".git/agentd-merge").exists());
        assert!(!self.path(".git/index.lock").exists());
        self.run(&["fsck", "--strict", "--no-dangling"]);
        let left = fs::read_dir(self.base()).unwrap().flatten().map(|entry| entry.file_name());
        let left: Vec<_> = left.filter(|name| name != "lock").collect();
        assert_eq!(left, Vec::<OsString>::new());
    }
}

pub(crate) fn write(path: &Path, text: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

pub(crate) fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

pub(crate) fn files(root: &Path) -> Files {
    let mut files = Files::new();
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let entry = entry.unwrap();
            let (path, about) = (entry.path(), entry.metadata().unwrap());
            let below = path.strip_prefix(root).unwrap().as_os_str().as_bytes().to_vec();
            if entry.file_name() == ".git" {
                continue;
            }
            if about.is_dir() {
                open.push(path);
            } else if about.is_symlink() {
                files.insert(below, ('l', fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec()));
            } else {
                let kind = if about.permissions().mode() & 0o100 == 0 { 'f' } else { 'x' };
                files.insert(below, (kind, fs::read(&path).unwrap()));
            }
        }
    }
    files
}

/// Names that are hard to pass on.
pub(crate) fn odd_names() -> Vec<OsString> {
    let names: [&[u8]; 7] = [
        b"with blank",
        b"tab\there",
        b"line\nend",
        b"\xff\xfe not unicode",
        b"quote\"back\\slash",
        b"-dash",
        b":(top)magic",
    ];
    names.map(|name| OsStr::from_bytes(name).to_owned()).to_vec()
}

/// A repository with everything in it: committed, staged, changed, deleted, untracked and ignored files of all kinds.
pub(crate) fn everything() -> Bench {
    let bench = Bench::empty();
    for name in odd_names() {
        bench.write(&name, b"committed\n");
        bench.write(PathBuf::from("deep/er").join(&name), b"committed\n");
    }
    for name in ["plain", "changed", "staged", "both", "gone", "gone-staged", "to-run", "kind", "renamed"] {
        bench.write(name, format!("{name}\n1\n2\n3\n4\n5\n6\n7\n8\n9\n"));
    }
    bench.write("binary", [0_u8, 1, 255, 10, 13, 0]);
    bench.write(".gitignore", "ignored\n*.o\nbuild/\n");
    symlink("plain", bench.path("link")).unwrap();
    symlink("/does/not/exist", bench.path("broken link")).unwrap();
    bench.commit_all("everything");
    bench.write("ignored", "ignored\n");
    bench.write("build/x.o", "object\n");
    bench.write("staged", "staged\n");
    bench.write("both", "staged\n");
    bench.write("new staged", "new\n");
    bench.run(&["add", "staged", "both", "new staged"]);
    bench.write("both", "changed after it was staged\n");
    bench.write("changed", "changed\n1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    bench.write("untracked", "untracked\n");
    bench.write("untracked folder/file", [0_u8, 159, 146, 150]);
    fs::remove_file(bench.path("gone")).unwrap();
    bench.run(&["rm", "--quiet", "gone-staged"]);
    bench.run(&["mv", "renamed", "renamed away"]);
    set_mode(&bench.path("to-run"), 0o755);
    fs::remove_file(bench.path("kind")).unwrap();
    symlink("plain", bench.path("kind")).unwrap();
    symlink("untracked", bench.path("untracked link")).unwrap();
    for name in odd_names() {
        bench.write(PathBuf::from("untracked odd").join(name), b"odd\n");
    }
    bench
}
