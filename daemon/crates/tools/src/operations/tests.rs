//! The tools on every file system: the same calls give the same results.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use agentd_agent::Tool;
use futures::future::join_all;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{
    EditTool, FileQueue, FindTool, GrepTool, LsTool, ReadTool, WriteTool,
    testing::{call, done, refused, text},
};

/// All file tools on one host.
struct Tools {
    read: Arc<dyn Tool>,
    write: Arc<dyn Tool>,
    edit: Arc<dyn Tool>,
    grep: Arc<dyn Tool>,
    find: Arc<dyn Tool>,
    ls: Arc<dyn Tool>,
    root: PathBuf,
}

impl Tools {
    fn new(host: &Arc<dyn FileHost>, root: &Path) -> Self {
        let (host, queue) = (|| Arc::clone(host), FileQueue::new());
        Self {
            read: Arc::new(ReadTool::new().with_host(host())),
            write: Arc::new(WriteTool::new(queue.clone()).with_host(host())),
            edit: Arc::new(EditTool::new(queue).with_host(host())),
            grep: Arc::new(GrepTool::new().with_host(host())),
            find: Arc::new(FindTool::new().with_host(host())),
            ls: Arc::new(LsTool::new().with_host(host())),
            root: root.to_owned(),
        }
    }

    async fn write(&self, path: &str, content: &str) -> String {
        done(&self.write, &self.root, json!({"path": path, "content": content})).await
    }

    async fn read(&self, path: &str) -> String {
        done(&self.read, &self.root, json!({"path": path})).await
    }

    async fn edit(&self, path: &str, old: &str, new: &str) -> Result<String, String> {
        let edits = json!([{"oldText": old, "newText": new}]);
        let result = call(&self.edit, &self.root, json!({"path": path, "edits": edits})).await;
        result.map(|result| text(&result).to_owned()).map_err(|error| error.0)
    }
}

type MakeLink = Box<dyn Fn(&Path, &Path)>;

/// A host, a folder to work in, and how to create a link there.
struct TestHost {
    host: Arc<dyn FileHost>,
    root: PathBuf,
    link: MakeLink,
    _dir: Option<tempfile::TempDir>,
}

fn places() -> Vec<TestHost> {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let local = TestHost {
        host: Arc::new(LocalHost),
        root,
        link: Box::new(|path, target| std::os::unix::fs::symlink(target, path).unwrap()),
        _dir: Some(dir),
    };
    let memory = MemoryHost::new();
    memory.folder("/memory/dir").unwrap();
    let memory = TestHost {
        host: Arc::new(memory.clone()),
        root: "/memory/dir".into(),
        link: Box::new(move |path, target| memory.link(path, target).unwrap()),
        _dir: None,
    };
    vec![local, memory]
}

#[tokio::test]
async fn files_are_written_read_and_changed() {
    for TestHost { host, root, link, _dir } in places() {
        let tools = Tools::new(&host, &root);
        assert_eq!(tools.write("a/b c/d.txt", "one\ntwo\n").await, "Successfully wrote to a/b c/d.txt");
        assert_eq!(tools.read("a/b c/d.txt").await, "one\ntwo\n");
        link(&root.join("link"), Path::new("a/b c"));
        assert_eq!(
            tools.edit("link/d.txt", "two", "2").await.as_deref(),
            Ok("Successfully replaced 1 block(s) in link/d.txt.")
        );
        assert_eq!(tools.read("a/b c/d.txt").await, "one\n2\n");
        link(&root.join("to-come"), Path::new("a/new"));
        tools.write("to-come", "x").await;
        assert_eq!(tools.read("a/new").await, "x");
        tools.write("long", &"line\n".repeat(3000)).await;
        assert!(
            tools
                .read("long")
                .await
                .ends_with("[Showing lines 1-2000 of 3001. Use offset=2001 to continue.]")
        );
    }
}

#[tokio::test]
async fn what_goes_wrong_reads_the_same() {
    for TestHost { host, root, link, _dir } in places() {
        let tools = Tools::new(&host, &root);
        let shown = |path: &str| root.join(path).display().to_string();
        tools.write("file", "x").await;
        assert_eq!(
            refused(&tools.read, &root, json!({"path": "no"})).await,
            format!("ENOENT: no such file or directory, access '{}'", shown("no"))
        );
        assert_eq!(
            refused(&tools.read, &root, json!({"path": "file/below"})).await,
            format!("ENOTDIR: not a directory, access '{}'", shown("file/below"))
        );
        assert_eq!(
            refused(&tools.read, &root, json!({"path": "."})).await,
            "EISDIR: illegal operation on a directory, read"
        );
        assert_eq!(
            tools.edit("no", "a", "b").await,
            Err("Could not edit file: no. Error code: ENOENT.".into())
        );
        assert_eq!(
            tools.edit(".", "a", "b").await,
            Err("Could not edit file: .. Error code: EISDIR.".into())
        );
        link(&root.join("one"), Path::new("two"));
        link(&root.join("two"), Path::new("one"));
        assert_eq!(
            tools.edit("one", "a", "b").await,
            Err("Could not edit file: one. Error code: ELOOP.".into())
        );
        assert_eq!(
            refused(&tools.write, &root, json!({"path": ".", "content": ""})).await,
            format!("EISDIR: illegal operation on a directory, open '{}'", root.display())
        );
        assert_eq!(
            refused(&tools.ls, &root, json!({"path": "no"})).await,
            format!("Path not found: {}", shown("no"))
        );
        assert_eq!(
            refused(&tools.ls, &root, json!({"path": "file"})).await,
            format!("Not a directory: {}", shown("file"))
        );
    }
}

#[tokio::test]
async fn folders_are_searched_alike() {
    for TestHost { host, root, link, _dir } in places() {
        let tools = Tools::new(&host, &root);
        for (path, content) in [
            (".git/config", "needle in git"),
            (".gitignore", "*.log\nout/\n"),
            ("a.log", "needle"),
            ("b/c/d.txt", "first\nneedle here\nlast"),
            ("b/e.txt", "no\nNEEDLE"),
            ("b/binary", "needle\0"),
            ("b-/f.txt", "a needle"),
            ("out/g.txt", "needle"),
            ("z z.txt", "needle\nneedle"),
        ] {
            tools.write(path, content).await;
        }
        link(&root.join("nowhere"), Path::new("missing"));
        link(&root.join("folder"), Path::new("b"));
        let search = async |arguments| done(&tools.grep, &root, arguments).await;
        assert_eq!(
            search(json!({"pattern": "needle"})).await,
            ".git/config:1: needle in git\nb/c/d.txt:2: needle here\nb-/f.txt:1: a needle\n\
             z z.txt:1: needle\nz z.txt:2: needle"
        );
        assert_eq!(
            search(json!({"pattern": "needle", "path": "b", "context": 1, "ignoreCase": true})).await,
            "c/d.txt-1- first\nc/d.txt:2: needle here\nc/d.txt-3- last\ne.txt-1- no\ne.txt:2: NEEDLE"
        );
        assert_eq!(
            search(json!({"pattern": "needle", "limit": 2, "glob": "*.txt"})).await,
            "b/c/d.txt:2: needle here\nb-/f.txt:1: a needle\n\n\
             [2 matches limit reached. Use limit=4 for more, or refine pattern]"
        );
        assert_eq!(
            search(json!({"pattern": "needle", "path": "z z.txt", "limit": 1})).await,
            "z z.txt:1: needle\n\n[1 matches limit reached. Use limit=2 for more, or refine pattern]"
        );
        assert_eq!(search(json!({"pattern": "absent"})).await, "No matches found");
        let find = async |arguments| done(&tools.find, &root, arguments).await;
        assert_eq!(find(json!({"pattern": "*.txt"})).await, "b/c/d.txt\nb/e.txt\nb-/f.txt\nz z.txt");
        assert_eq!(find(json!({"pattern": "b/**"})).await, "b/binary\nb/c/\nb/c/d.txt\nb/e.txt");
        assert_eq!(
            find(json!({"pattern": "*.txt", "limit": 1})).await,
            "b/c/d.txt\n\n[1 results limit reached. Use limit=2 for more, or refine pattern]"
        );
        assert_eq!(
            done(&tools.ls, &root, json!({})).await,
            ".git/\n.gitignore\na.log\nb/\nb-/\nfolder/\nout/\nz z.txt"
        );
        assert_eq!(
            done(&tools.ls, &root, json!({"limit": 1})).await,
            ".git/\n\n[1 entries limit reached. Use limit=2 for more]"
        );
        tools.write("empty/x", "").await;
        assert_eq!(done(&tools.ls, &root, json!({"path": "empty"})).await, "x");
    }
}

#[tokio::test]
async fn rights_of_files_in_memory_count() {
    let memory = MemoryHost::new();
    memory.put("/w/closed", "x").unwrap();
    memory.permit("/w/closed", false, false).unwrap();
    let tools = Tools::new(&(Arc::new(memory.clone()) as Arc<dyn FileHost>), Path::new("/w"));
    let denied = "EACCES: permission denied";
    assert_eq!(
        refused(&tools.read, &tools.root, json!({"path": "closed"})).await,
        format!("{denied}, access '/w/closed'")
    );
    assert_eq!(
        tools.edit("closed", "x", "y").await,
        Err("Could not edit file: closed. Error code: EACCES.".into())
    );
    assert_eq!(
        refused(&tools.write, &tools.root, json!({"path": "closed", "content": "y"})).await,
        format!("{denied}, open '/w/closed'")
    );
    assert_eq!(memory.get("/w/closed").as_deref(), Some(&b"x"[..]));
}

#[tokio::test]
async fn the_home_of_the_host_counts() {
    let memory = MemoryHost::new().with_home("/home/far");
    memory.put("/home/far/notes", "mine").unwrap();
    let tools = Tools::new(&(Arc::new(memory) as Arc<dyn FileHost>), Path::new("/"));
    assert_eq!(tools.read("~/notes").await, "mine");
}

type Meddling = Arc<Mutex<Option<Box<dyn FnOnce() + Send>>>>;

/// A host on which something happens right before a file is replaced.
struct Meddler {
    host: Arc<dyn FileHost>,
    meddling: Meddling,
}

struct Meddled {
    files: Box<dyn FileSystem>,
    meddling: Meddling,
}

impl FileHost for Meddler {
    fn files(&self, cancel: &CancellationToken) -> Box<dyn FileSystem> {
        Box::new(Meddled { files: self.host.files(cancel), meddling: Arc::clone(&self.meddling) })
    }
}

impl FileSystem for Meddled {
    fn open(&self, path: &Path) -> io::Result<OpenFile> {
        self.files.open(path)
    }

    fn about(&self, path: &Path) -> io::Result<FileFacts> {
        self.files.about(path)
    }

    fn check_change(&self, path: &Path) -> io::Result<()> {
        self.files.check_change(path)
    }

    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        self.files.real_path(path)
    }

    fn create_folders(&self, path: &Path) -> io::Result<()> {
        self.files.create_folders(path)
    }

    fn replace(
        &self,
        path: &Path,
        content: &[u8],
        before: Option<&FileSnapshot<'_>>,
    ) -> Result<(), WriteError> {
        if let Some(meddle) = self.meddling.lock().unwrap_or_else(PoisonError::into_inner).take() {
            meddle();
        }
        self.files.replace(path, content, before)
    }

    fn list(&self, folders: &[PathBuf]) -> io::Result<Vec<io::Result<Vec<FolderEntry>>>> {
        self.files.list(folders)
    }

    fn read_each(&self, files: &[PathBuf], take: TakeFile<'_>) -> io::Result<()> {
        self.files.read_each(files, take)
    }
}

const CHANGED: &str = "Could not edit file: file. It was changed by something else while the edit was being made, and \
                       nothing was written. Read the file again, then repeat the edit.";

/// Edits `file` on `host` while `meddle` changes it, and returns the edit's result.
async fn edit_meddled(
    host: Arc<dyn FileHost>,
    root: &Path,
    meddle: impl FnOnce() + Send + 'static,
) -> Result<String, String> {
    let meddler = Meddler { host, meddling: Arc::new(Mutex::new(Some(Box::new(meddle)))) };
    Tools::new(&(Arc::new(meddler) as Arc<dyn FileHost>), root).edit("file", "old", "new").await
}

#[tokio::test]
async fn an_edit_loses_no_change_of_others() {
    let memory = MemoryHost::new();
    memory.put("/file", "old text").unwrap();
    let other = memory.clone();
    let edited = edit_meddled(Arc::new(memory.clone()), Path::new("/"), move || {
        other.put("/file", "old, theirs").unwrap()
    });
    assert_eq!(edited.await, Err(CHANGED.into()));
    assert_eq!(memory.get("/file").as_deref(), Some(&b"old, theirs"[..]));

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    let fresh = || std::fs::write(&path, "old text").unwrap();
    let is = |content: &str| assert_eq!(std::fs::read_to_string(&path).unwrap(), content);
    type Change = fn(&Path);
    let changes: [(Change, Option<&str>); 4] = [
        // Same length, within the same clock tick: only the content differs.
        (|path| std::fs::write(path, "old eggs").unwrap(), Some("old eggs")),
        (|path| std::fs::write(path, "old text, and more").unwrap(), Some("old text, and more")),
        (
            |path| {
                std::fs::write(path.with_extension("new"), "old text").unwrap();
                std::fs::rename(path.with_extension("new"), path).unwrap();
            },
            Some("old text"),
        ),
        (|path| std::fs::remove_file(path).unwrap(), None),
    ];
    for (change, left) in changes {
        fresh();
        let there = path.clone();
        let edited = edit_meddled(Arc::new(LocalHost), dir.path(), move || change(&there)).await;
        assert_eq!(edited, Err(CHANGED.into()));
        match left {
            Some(content) => is(content),
            None => assert!(!path.exists()),
        }
    }
    // A hard-linked file is written in place, and checked before that, too.
    fresh();
    std::fs::hard_link(&path, dir.path().join("name")).unwrap();
    let there = path.clone();
    let meddle = move || std::fs::write(&there, "old eggs").unwrap();
    assert_eq!(edit_meddled(Arc::new(LocalHost), dir.path(), meddle).await, Err(CHANGED.into()));
    is("old eggs");
    assert!(edit_meddled(Arc::new(LocalHost), dir.path(), || ()).await.is_ok());
    is("new eggs");
    let left: Vec<_> =
        std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn parallel_changes_of_one_file_by_several_names_all_land() {
    const CALLS: usize = 100;
    for TestHost { host, root, link, _dir } in places() {
        let tools = Tools::new(&host, &root);
        let lines: String = (0..CALLS).map(|number| format!("line {number}.\n")).collect();
        tools.write("real/file", &lines).await;
        link(&root.join("one"), Path::new("real/file"));
        link(&root.join("two"), Path::new("real"));
        let edits = (0..CALLS).map(|number| {
            let path = ["one", "two/file", "real/file"][number % 3];
            let (old, new) = (format!("line {number}."), format!("changed {number}."));
            let tools = &tools;
            async move { tools.edit(path, &old, &new).await }
        });
        for edited in join_all(edits).await {
            edited.unwrap();
        }
        let expected: String = (0..CALLS).map(|number| format!("changed {number}.\n")).collect();
        assert_eq!(tools.read("real/file").await, expected);
    }
}
