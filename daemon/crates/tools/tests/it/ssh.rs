//! The tools over `ssh`, as far as that needs no network: a stand-in for `ssh` runs on this machine what it is given, by
//! a shell of its own. What real connections do is the business of `tests/outside/ssh`.

use std::{
    ffi::OsString,
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use agentd_agent::{Invocation, Tool, ToolProgress};
use agentd_process::{GuardCommand, Launcher, ProcessGroup, Shell as _};
use agentd_tools::{
    BashFeatures, BashOptions, BashTool, EditTool, FileQueue, FindTool, GrepTool, LsTool, ReadTool,
    WriteTool,
    operations::{FileHost, SshHost, SshOptions},
};
use futures::future::join_all;
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// No call in these tests takes longer.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Answers `-G` with no settings, makes as if it connected for `-N`, and else runs the command line, after noise as start-up
/// files make it.
const STAND_IN: &str = r#"#!/bin/sh
for last; do
  case $last in
  -G | -N) exit 0 ;;
  esac
done
echo 'Welcome to the machine!'
echo 'a warning of a start-up file' >&2
exec /bin/sh -c "$last"
"#;

const ODD_NAMES: [&str; 8] = [
    "with space",
    "it's \"quoted\"",
    "two\nlines",
    "end\n",
    "$(touch injected)`touch injected`",
    "-rf",
    "back\\slash*?[x]",
    "日本 い é.txt",
];

struct Bench {
    root: PathBuf,
    host: SshHost,
    group: ProcessGroup,
    queue: FileQueue,
    cancel: CancellationToken,
    dir: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        Self::with(STAND_IN, "work")
    }

    fn with(stand_in: &str, folder: &str) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let base = dir.path().canonicalize().expect("its real name");
        for name in ["bin", "work", "tmp"] {
            fs::create_dir(base.join(name)).expect("a folder");
        }
        let ssh = base.join("bin/ssh");
        fs::write(&ssh, stand_in).expect("a program");
        fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).expect("a program");
        let program = PathBuf::from(env!("CARGO_BIN_EXE_agentd-tools-test-guard"));
        let launcher = Launcher::new(GuardCommand { program, args: Vec::new() });
        let mut path = base.join("bin").into_os_string();
        path.push(":/usr/local/bin:/usr/bin:/bin");
        let env: Vec<(OsString, OsString)> = vec![
            ("PATH".into(), path),
            ("HOME".into(), base.clone().into()),
            ("TMPDIR".into(), base.join("tmp").into()),
        ];
        let group = launcher.group();
        let host = SshHost::new(SshOptions {
            target: format!("box:{}", base.join(folder).display()).parse().expect("a target"),
            arguments: Vec::new(),
            connections: launcher.group(),
            commands: group.clone(),
            env: env.into(),
            temp_dir: base.join("tmp"),
        });
        let cancel = CancellationToken::new();
        Self { root: base.join("work"), host, group, queue: FileQueue::new(), cancel, dir }
    }

    fn host(&self) -> Arc<dyn FileHost> {
        Arc::new(self.host.clone())
    }

    fn tool(&self, name: &str) -> Arc<dyn Tool> {
        match name {
            "read" => Arc::new(ReadTool::new().with_host(self.host())),
            "write" => Arc::new(WriteTool::new(self.queue.clone()).with_host(self.host())),
            "edit" => Arc::new(EditTool::new(self.queue.clone()).with_host(self.host())),
            "grep" => Arc::new(GrepTool::new().with_host(self.host())),
            "find" => Arc::new(FindTool::new().with_host(self.host())),
            "ls" => Arc::new(LsTool::new().with_host(self.host())),
            "bash" => Arc::new(BashTool::new(BashOptions {
                undo: None,
                shell: Arc::new(self.host.clone()),
                command_prefix: None,
                outputs: self.dir.path().into(),
                home: None,
                features: BashFeatures::default(),
            })),
            other => panic!("no tool {other}"),
        }
    }

    /// The text of a call, or the message of one that failed.
    async fn call(&self, tool: &str, arguments: Value) -> Result<String, String> {
        let invocation = Invocation {
            call_id: "call".into(),
            arguments,
            cwd: self.root.clone(),
            sees_images: false,
            images: agentd_images::Images::default(),
            session_env: vec![("PI_SESSION_ID".into(), "the id".into())],
            environment: None,
            cancel: self.cancel.clone(),
            progress: ToolProgress::new(|_| ()),
        };
        let tool = self.tool(tool);
        let done = timeout(TIME_LIMIT, tool.execute(invocation)).await.expect("a call that ends");
        done.map(|result| result.content[0].as_text().expect("text").to_owned()).map_err(|error| error.0)
    }

    async fn write(&self, path: &str, content: &str) {
        let said = self.call("write", json!({"path": path, "content": content})).await;
        assert_eq!(said, Ok(format!("Successfully wrote to {path}")));
    }

    async fn edit(&self, path: &str, old: &str, new: &str) -> Result<String, String> {
        self.call("edit", json!({"path": path, "edits": [{"oldText": old, "newText": new}]})).await
    }

    async fn bash(&self, command: &str) -> Result<String, String> {
        self.call("bash", json!({"command": command})).await
    }

    /// What is in the working directory and in that for temporary files.
    fn leftovers(&self) -> Vec<String> {
        let names = |folder: &Path| {
            fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").file_name())
        };
        let mut found: Vec<String> = names(&self.root)
            .chain(names(&self.dir.path().join("tmp")))
            .map(|name| name.to_string_lossy().into_owned())
            .filter(|name| !name.starts_with("agentd-ssh-"))
            .collect();
        found.sort();
        found
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_written_read_and_changed() {
    let bench = Bench::new();
    bench.write("a/b/file", "one\ntwo\n").await;
    assert_eq!(bench.call("read", json!({"path": "a/b/file"})).await.as_deref(), Ok("one\ntwo\n"));
    symlink("a/b/file", bench.root.join("link")).expect("a link");
    symlink("a/to-come", bench.root.join("dangling")).expect("a link");
    fs::set_permissions(bench.root.join("a/b/file"), fs::Permissions::from_mode(0o751)).expect("a file");
    assert!(bench.edit("link", "two", "2").await.is_ok());
    assert_eq!(fs::read_to_string(bench.root.join("a/b/file")).expect("the file"), "one\n2\n");
    assert!(bench.root.join("link").is_symlink());
    assert_eq!(fs::metadata(bench.root.join("a/b/file")).expect("the file").mode() & 0o777, 0o751);
    bench.write("dangling", "x").await;
    assert_eq!(fs::read_to_string(bench.root.join("a/to-come")).expect("the file"), "x");
    fs::hard_link(bench.root.join("a/b/file"), bench.root.join("twin")).expect("a link");
    assert!(bench.edit("twin", "one", "1").await.is_ok());
    assert_eq!(fs::read_to_string(bench.root.join("a/b/file")).expect("the file"), "1\n2\n");
    assert_eq!(bench.leftovers(), ["a", "dangling", "link", "twin"]);
    bench.write("~/in-home", "h").await;
    assert!(bench.root.parent().expect("a parent").join("in-home").exists());
    let big = "0123456789abcde\n".repeat(200_000);
    bench.write("big", &big).await;
    assert_eq!(fs::read_to_string(bench.root.join("big")).expect("the file"), big);
    let said = bench.call("read", json!({"path": "big", "offset": 199_999})).await.expect("text");
    assert_eq!(said, "0123456789abcde\n0123456789abcde\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn names_are_never_code() {
    let bench = Bench::new();
    for name in ODD_NAMES {
        bench.write(&format!("{name}/{name}"), "needle").await;
        assert!(bench.edit(&format!("./{name}/{name}"), "needle", "a needle").await.is_ok(), "{name:?}");
        let said = bench.call("read", json!({"path": format!("{name}/{name}")})).await;
        assert_eq!(said.as_deref(), Ok("a needle"), "{name:?}");
        assert_eq!(fs::read_to_string(bench.root.join(name).join(name)).expect("the file"), "a needle");
    }
    assert!(!bench.root.join("injected").exists());
    let mut names: Vec<String> = ODD_NAMES.map(|name| format!("{name}/")).into();
    let listed = bench.call("ls", json!({})).await.expect("a list");
    for name in &names {
        assert!(listed.contains(name.as_str()), "{name:?} in {listed}");
    }
    names.sort();
    let found = bench.call("find", json!({"pattern": "*", "limit": 100})).await.expect("a list");
    let expected: Vec<String> =
        names.iter().flat_map(|name| [name.clone(), format!("{name}{}", &name[..name.len() - 1])]).collect();
    assert_eq!(found, expected.join("\n"));
    let searched = bench.call("grep", json!({"pattern": "needle"})).await.expect("matches");
    assert_eq!(searched.matches(":1: a needle").count(), ODD_NAMES.len(), "{searched}");
    // Commands have what they were given, and the variables of the session.
    assert_eq!(
        bench.bash("printf '%s\n' \"$PI_SESSION_ID\"; pwd").await,
        Ok(format!("the id\n{}\n", bench.root.display()))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_read_as_on_this_machine() {
    let bench = Bench::new();
    let shown = |name: &str| bench.root.join(name).display().to_string();
    bench.write("file", "x").await;
    fs::write(bench.root.join("bytes"), [0xff, 0xfe, 0]).expect("a file");
    symlink("loop", bench.root.join("loop")).expect("a link");
    let read = async |path: &str| bench.call("read", json!({"path": path})).await.expect_err("an error");
    assert_eq!(read("no").await, format!("ENOENT: no such file or directory, access '{}'", shown("no")));
    assert_eq!(read("file/x").await, format!("ENOTDIR: not a directory, access '{}'", shown("file/x")));
    assert_eq!(
        read("loop").await,
        format!("ELOOP: too many symbolic links encountered, access '{}'", shown("loop"))
    );
    assert_eq!(read(".").await, "EISDIR: illegal operation on a directory, read");
    assert_eq!(
        read("/dev/zero").await,
        "Cannot read /dev/zero: it is a device, not a regular file. Use bash to read from it."
    );
    let error = |code: &str, path: &str| Err(format!("Could not edit file: {path}. Error code: {code}."));
    assert_eq!(bench.edit("no", "a", "b").await, error("ENOENT", "no"));
    assert_eq!(bench.edit("loop", "a", "b").await, error("ELOOP", "loop"));
    assert_eq!(bench.edit(".", "a", "b").await, error("EISDIR", "."));
    assert!(bench.edit("bytes", "a", "b").await.expect_err("an error").contains("not UTF-8"));
    let write = async |path: &str| {
        bench.call("write", json!({"path": path, "content": ""})).await.expect_err("an error")
    };
    assert_eq!(
        write(".").await,
        format!("EISDIR: illegal operation on a directory, open '{}'", bench.root.display())
    );
    assert!(write("file/x").await.starts_with("ENOTDIR: "), "{}", write("file/x").await);
    assert_eq!(
        bench.call("ls", json!({"path": "no"})).await,
        Err(format!("Path not found: {}", shown("no")))
    );
    assert_eq!(
        bench.call("find", json!({"pattern": "*", "path": "file"})).await,
        Err(format!("Not a directory: {}", shown("file")))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn folders_are_searched_by_the_rules() {
    let bench = Bench::new();
    for (path, content) in [
        (".gitignore", "*.log\nout/\n"),
        ("a.log", "needle"),
        ("b/c/d.txt", "first\nneedle\nlast"),
        ("b-/f.txt", "a needle"),
        ("out/g.txt", "needle"),
    ] {
        let path = bench.root.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, content).expect("a file");
    }
    fs::create_dir(bench.root.join(".git")).expect("a folder");
    let mut data = vec![0; 3 << 20];
    data.extend_from_slice(b"\nneedle\n");
    fs::write(bench.root.join("data"), data).expect("a file");
    symlink("nowhere", bench.root.join("dangling")).expect("a link");
    symlink("b", bench.root.join("folder")).expect("a link");
    let grep = async |arguments| bench.call("grep", arguments).await;
    assert_eq!(
        grep(json!({"pattern": "needle", "context": 1})).await.as_deref(),
        Ok("b/c/d.txt-1- first\nb/c/d.txt:2: needle\nb/c/d.txt-3- last\nb-/f.txt:1: a needle")
    );
    assert_eq!(
        grep(json!({"pattern": "needle", "limit": 1})).await.as_deref(),
        Ok("b/c/d.txt:2: needle\n\n[1 matches limit reached. Use limit=2 for more, or refine pattern]")
    );
    assert_eq!(
        grep(json!({"pattern": "needle", "path": "b-/f.txt"})).await.as_deref(),
        Ok("f.txt:1: a needle")
    );
    assert_eq!(bench.call("find", json!({"pattern": "*.txt"})).await.as_deref(), Ok("b/c/d.txt\nb-/f.txt"));
    assert_eq!(
        bench.call("ls", json!({})).await.as_deref(),
        Ok(".git/\n.gitignore\na.log\nb/\nb-/\ndata\nfolder/\nout/")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn parallel_edits_of_one_file_all_land() {
    const CALLS: usize = 12;
    let bench = Bench::new();
    let lines: String = (0..CALLS).map(|number| format!("line {number}.\n")).collect();
    bench.write("file", &lines).await;
    symlink("file", bench.root.join("link")).expect("a link");
    let edits = (0..CALLS).map(|number| {
        let (path, bench) = (["file", "link"][number % 2], &bench);
        async move { bench.edit(path, &format!("line {number}."), &format!("changed {number}.")).await }
    });
    for edited in join_all(edits).await {
        assert!(edited.is_ok(), "{edited:?}");
    }
    let expected: String = (0..CALLS).map(|number| format!("changed {number}.\n")).collect();
    assert_eq!(fs::read_to_string(bench.root.join("file")).expect("the file"), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_end_as_on_this_machine() {
    let bench = Bench::new();
    assert_eq!(
        bench.bash("echo out; echo err >&2; exit 3").await.as_deref(),
        Ok("out\nerr\n\n\nCommand exited with code 3")
    );
    assert_eq!(bench.bash("kill -9 $$").await.as_deref(), Ok("(no output)\n\nCommand exited with code 137"));
    assert_eq!(bench.bash("cat").await.as_deref(), Ok("(no output)"));
    let counted = bench.bash("head -c 3000000 /dev/zero | tr '\\0' x").await.expect("output");
    assert!(counted.contains("(line is 2.9MB)"), "{}", &counted[counted.len() - 200..]);
    let missing = bench.call("bash", json!({"command": "true"}));
    assert_eq!(missing.await.as_deref(), Ok("(no output)"));
    let timed_out =
        bench.call("bash", json!({"command": "echo begun; sleep 1000 & sleep 1000", "timeout": 0.5})).await;
    assert_eq!(timed_out, Err("begun\n\n\nCommand timed out after 0.5 seconds".into()));
    // What is left in the background goes on, and ends with the session.
    let said =
        bench.bash("setsid -w sleep 1000 >/dev/null 2>&1 & sleep 1000 & echo $!").await.expect("a number");
    let pid: u32 = said.trim().parse().expect("a number");
    assert!(Path::new(&format!("/proc/{pid}")).exists());
    timeout(TIME_LIMIT, bench.group.terminate(Duration::from_secs(5))).await.expect("an end");
    gone(pid).await;
}

/// Waits until a process has ended.
async fn gone(pid: u32) {
    let is_there = || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
    };
    let waited = timeout(TIME_LIMIT, async {
        while is_there() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    waited.await.expect("the process should end");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_abort_kills_what_runs_there() {
    let bench = Bench::new();
    let command = bench.bash("echo $$ >pid.new; mv pid.new pid; trap '' TERM HUP; sleep 1000 & sleep 1000");
    let abort = async {
        let path = bench.root.join("pid");
        while !path.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        bench.cancel.cancel();
        fs::read_to_string(path).expect("a number").trim().parse::<u32>().expect("a number")
    };
    let (said, pid) = tokio::join!(command, abort);
    assert_eq!(said, Err("Command aborted".into()));
    gone(pid).await;
    assert_eq!(bench.call("read", json!({"path": "pid"})).await, Err("Operation aborted".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ssh_says_reaches_the_user() {
    let refused =
        "#!/bin/sh\n[ $1 = -G ] && exit 0\necho 'me@box: Permission denied (publickey).' >&2\nexit 255\n";
    let bench = Bench::with(refused, "work");
    let expected = "Cannot reach box by ssh: me@box: Permission denied (publickey). agentd cannot type passwords: set up a \
                    key or an agent, so that `ssh -o BatchMode=yes box true` works.";
    for (tool, arguments) in [
        ("read", json!({"path": "x"})),
        ("write", json!({"path": "x", "content": ""})),
        ("edit", json!({"path": "x", "edits": [{"oldText": "a", "newText": "b"}]})),
        ("grep", json!({"pattern": "x"})),
        ("find", json!({"pattern": "x"})),
        ("ls", json!({})),
        ("bash", json!({"command": "true"})),
    ] {
        assert_eq!(bench.call(tool, arguments).await, Err(expected.into()), "{tool}");
    }
    let error = bench.host.directory(Path::new("/")).await.expect_err("no way there");
    assert_eq!(error.to_string(), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_is_not_there_is_told() {
    let bench = Bench::with(STAND_IN, "missing");
    let error = bench.host.directory(Path::new("/")).await.expect_err("no folder").to_string();
    let folder = bench.root.with_file_name("missing");
    let expected = format!(
        "Working directory {} on box cannot be entered: ENOENT: no such file or directory",
        folder.display()
    );
    assert_eq!(error, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_breaks_leaves_no_half_of_a_file() {
    // Gives a script that replaces a file all but the last bytes of its input.
    let torn = r#"#!/bin/sh
for last; do
  case $last in
  -G | -N) exit 0 ;;
  esac
done
if [ -e "$HOME/torn" ]; then head -c 5000 | sh -c "$last"; exit 255; fi
exec /bin/sh -c "$last"
"#;
    let bench = Bench::with(torn, "work");
    bench.write("file", "old").await;
    fs::write(bench.dir.path().join("torn"), "").expect("a file");
    let content = "new".repeat(10_000);
    let said = bench.call("write", json!({"path": "file", "content": content})).await;
    assert_eq!(said, Err("The connection to box was lost. Check that `ssh box` works.".into()));
    assert_eq!(fs::read_to_string(bench.root.join("file")).expect("the file"), "old");
    assert_eq!(bench.leftovers(), ["file"]);
    fs::remove_file(bench.dir.path().join("torn")).expect("a file");
    // A command whose end nobody knows.
    let lost = bench.bash("echo begun; kill -9 $PPID").await.expect_err("no end");
    assert!(lost.starts_with("begun\n\n\nThe connection to box was lost."), "{lost}");
}
