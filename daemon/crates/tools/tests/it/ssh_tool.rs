//! The tool `ssh` and URLs of files on other hosts, with a stand-in for the program `ssh` that notes its arguments and works on this
//! machine. What real connections do is the business of `tests/outside/ssh`.

use std::{
    ffi::OsString,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use agentd_agent::{Invocation, Tool, ToolProgress};
use agentd_process::{GuardCommand, Launcher, ProcessGroup};
use agentd_protocol::{settings::SshHostKeys, tool::ToolResult};
use agentd_tools::{
    FileQueue, ReadTool, RemoteHost, RemoteHostOptions, RemoteHosts, SessionUrls, SshTool, SshUrls, WriteTool,
};
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// No call in these tests takes longer.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Notes its arguments, one a line; hangs for the host `slow`, refuses `closed`, and else runs the command line in `home`.
const STAND_IN: &str = r#"#!/bin/sh
printf '%s\n' "$@" -- >>"$HOME/../log"
for last; do
  case $last in
  slow) exec sleep 1000 ;;
  closed) echo 'ssh: connect to host closed port 22: Connection refused' >&2; exit 255 ;;
  -G | -N) exit 0 ;;
  esac
done
cd "$HOME" && exec /bin/sh -c "$last"
"#;

struct Bench {
    dir: tempfile::TempDir,
    hosts: RemoteHosts,
    commands: ProcessGroup,
    cancel: CancellationToken,
}

fn host(name: &str, host: &str) -> RemoteHost {
    RemoteHost {
        name: name.to_owned(),
        host: host.to_owned(),
        username: None,
        port: None,
        key: None,
        description: None,
    }
}

impl Bench {
    fn new(hosts: impl FnOnce(&Path) -> Vec<RemoteHost>) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let base = dir.path().canonicalize().expect("its real name");
        for name in ["bin", "home", "tmp"] {
            fs::create_dir(base.join(name)).expect("a folder");
        }
        let ssh = base.join("bin/ssh");
        fs::write(&ssh, STAND_IN).expect("a program");
        fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).expect("a program");
        let program = PathBuf::from(env!("CARGO_BIN_EXE_agentd-tools-test-guard"));
        let launcher = Launcher::new(GuardCommand { program, args: Vec::new() });
        let mut path = base.join("bin").into_os_string();
        path.push(":/usr/local/bin:/usr/bin:/bin");
        let env: Vec<(OsString, OsString)> =
            vec![("PATH".into(), path), ("HOME".into(), base.join("home").into())];
        let commands = launcher.group();
        let hosts = RemoteHosts::new(RemoteHostOptions {
            hosts: hosts(&base),
            host_keys: SshHostKeys::Strict,
            connections: launcher.group(),
            commands: commands.clone(),
            env: env.into(),
            temp_dir: base.join("tmp"),
        });
        Self { dir, hosts: hosts.expect("hosts"), commands, cancel: CancellationToken::new() }
    }

    fn root(&self) -> PathBuf {
        self.dir.path().canonicalize().expect("its real name")
    }

    async fn call(&self, tool: &dyn Tool, arguments: Value) -> Result<ToolResult, String> {
        let invocation = Invocation {
            call_id: "call".into(),
            arguments,
            cwd: self.root(),
            sees_images: false,
            images: agentd_images::Images::default(),
            session_env: vec![("PI_SESSION_ID".into(), "the id".into())],
            environment: None,
            cancel: self.cancel.clone(),
            progress: ToolProgress::new(|_| ()),
        };
        let done = timeout(TIME_LIMIT, tool.execute(invocation)).await.expect("a call that ends");
        done.map_err(|error| error.0)
    }

    async fn ssh(&self, arguments: Value) -> Result<String, String> {
        let tool = SshTool::new(self.hosts.clone(), self.dir.path().into(), |spec| spec);
        self.call(&tool, arguments).await.map(text)
    }

    /// Everything that the stand-in was called with.
    fn log(&self) -> String {
        fs::read_to_string(self.root().join("log")).unwrap_or_default()
    }
}

fn text(result: ToolResult) -> String {
    result.content[0].as_text().expect("a text").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_run_on_the_host_that_is_named() {
    let bench = Bench::new(|base| {
        let key = base.join("key");
        fs::write(&key, "k").expect("a key");
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("a key");
        let (username, port, description) = (Some("me".into()), Some(2222), Some("the build machine".into()));
        vec![
            RemoteHost { username, port, key: Some(key), description, ..host("box", "10.0.0.1") },
            host("other", "other"),
        ]
    });
    let root = bench.root();
    let tool = SshTool::new(bench.hosts.clone(), bench.dir.path().into(), |spec| spec);
    let description = &tool.spec().description;
    assert!(description.ends_with("Hosts:\n- box: the build machine\n- other"), "{description}");
    let home = root.join("home");
    let said = bench.ssh(json!({"host": "box", "command": "pwd; echo \"$PI_SESSION_ID\"; exit 3"})).await;
    assert_eq!(said.expect("a result"), format!("{}\n\n\n\nCommand exited with code 3", home.display()));
    fs::create_dir(home.join("sub")).expect("a folder");
    for cwd in ["sub", "~/sub", home.join("sub").to_str().expect("UTF-8")] {
        let said = bench.ssh(json!({"host": "box", "command": "pwd", "cwd": cwd})).await;
        assert_eq!(said.expect("a result"), format!("{}\n", home.join("sub").display()), "{cwd}");
    }
    let log = bench.log();
    let key = root.join("key");
    for part in [
        "-o\nStrictHostKeyChecking=yes\n-o\nConnectTimeout=30\n-l\nme\n-p\n2222\n-o\nIdentitiesOnly=yes\n-i\n"
            .to_owned() + key.to_str().expect("UTF-8"),
        "-o\nBatchMode=yes".to_owned(),
        "-o\nControlMaster=yes".to_owned(),
        "--\n10.0.0.1\n".to_owned(),
    ] {
        assert!(log.contains(&part), "{part}: {log}");
    }
    assert!(!log.contains("exit 3"), "commands are no part of a command line: {log}");
    assert_eq!(log.matches("ControlMaster=yes").count(), 1, "one connection");
    // Output as of bash: the end of a long one, and where the rest is.
    let long = bench.ssh(json!({"host": "other", "command": "seq 1 5000"})).await.expect("a result");
    assert!(long.contains("4999\n5000") && long.contains("Full output: "), "{}", &long[long.len() - 200..]);
    let sockets = fs::read_dir(root.join("tmp")).expect("a folder");
    let modes = sockets
        .map(|entry| entry.expect("an entry").metadata().expect("its facts").permissions().mode() & 0o777);
    assert_eq!(modes.collect::<Vec<_>>(), [0o700, 0o700], "a private folder for each connection");
    drop(tool);
    drop(bench.hosts);
    let left: Vec<_> = fs::read_dir(root.join("tmp")).expect("a folder").collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_done_says_why() {
    let bench = Bench::new(|base| {
        let key = base.join("key");
        fs::write(&key, "k").expect("a key");
        fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).expect("a key");
        vec![
            host("box", "box"),
            host("closed", "closed"),
            RemoteHost { key: Some(key), ..host("open-key", "x") },
            RemoteHost { key: Some(base.join("no-key")), ..host("no-key", "x") },
        ]
    });
    for (arguments, said) in [
        (
            json!({"host": "nowhere", "command": "ls"}),
            "Unknown host \"nowhere\". There are: box, closed, open-key, no-key.",
        ),
        (json!({"host": "-oProxyCommand=touch x", "command": "ls"}), "Unknown host"),
        (
            json!({"host": "closed", "command": "ls"}),
            "Cannot reach closed by ssh: ssh: connect to host closed port 22: Connection refused",
        ),
        (json!({"host": "open-key", "command": "ls"}), "can be read by others (mode 644): chmod 600"),
        (json!({"host": "no-key", "command": "ls"}), "cannot be used"),
        (json!({"host": "box", "command": "ls", "timeout": 0}), "Invalid timeout"),
        (json!({"host": "box", "command": "ls", "timeout": 3601}), "Invalid timeout"),
        (
            json!({"host": "box", "command": "ls", "cwd": "/nowhere"}),
            "Working directory does not exist: /nowhere",
        ),
        (
            json!({"host": "box", "command": "echo begun; sleep 100", "timeout": 1}),
            "begun\n\n\nCommand timed out after 1 seconds",
        ),
    ] {
        let error = bench.ssh(arguments.clone()).await.expect_err("an error");
        assert!(error.contains(said), "{arguments}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_abort_ends_the_command_and_a_connection_that_is_being_made() {
    let bench = Bench::new(|_| vec![host("box", "box"), host("slow", "slow")]);
    let begun = bench.root().join("home/begun");
    for arguments in [
        json!({"host": "box", "command": "touch begun; sleep 1000"}),
        json!({"host": "slow", "command": "ls"}),
    ] {
        let bench = Bench {
            cancel: CancellationToken::new(),
            dir: tempfile::tempdir().expect("a folder"),
            hosts: bench.hosts.clone(),
            commands: bench.commands.clone(),
        };
        let cancel = bench.cancel.clone();
        let is_slow = arguments["host"] == "slow";
        let (begun, calling) = (begun.clone(), bench.ssh(arguments));
        let aborting = async {
            while !is_slow && !begun.exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            cancel.cancel();
        };
        let (said, ()) = tokio::join!(calling, aborting);
        assert!(said.expect_err("an error").contains("aborted"));
    }
    let gone = async {
        while bench.commands.running() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(TIME_LIMIT, gone).await.expect("no command is left");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_hosts_have_urls() {
    let bench = Bench::new(|_| vec![host("box", "box")]);
    let urls = SessionUrls::new(vec![Arc::new(SshUrls(bench.hosts.clone()))], None);
    let read = ReadTool::new().with_urls(urls.clone());
    let write = WriteTool::new(FileQueue::new()).with_urls(urls);
    let home = bench.root().join("home");
    let shown = home.display();
    let there = format!("ssh://box{shown}/a file.txt");
    let wrote = bench.call(&write, json!({"path": there, "content": "one\ntwo\nthree\n"})).await.map(text);
    assert_eq!(wrote, Ok(format!("Successfully wrote 14 bytes to {there}")));
    assert_eq!(fs::read_to_string(home.join("a file.txt")).expect("the file"), "one\ntwo\nthree\n");
    for (path, said) in [(there.clone(), "one\ntwo\nthree\n"), ("ssh://box/~/a file.txt:2".to_owned(), "two")]
    {
        let found = bench.call(&read, json!({"path": path})).await.map(text).expect("a text");
        assert!(found.starts_with(said), "{path}: {found}");
    }
    fs::create_dir(home.join("sub")).expect("a folder");
    let list = bench.call(&read, json!({"path": format!("ssh://box{shown}")})).await.map(text);
    assert_eq!(list, Ok("a file.txt\nsub/\n".to_owned()));
    fs::write(home.join("big"), vec![b'x'; (1 << 20) + 1]).expect("a file");
    for (path, said) in [
        ("ssh://box/nowhere", "Cannot read ssh://box/nowhere"),
        ("ssh://other/x", "Unknown host \"other\""),
        ("ssh://box", "Invalid URL"),
        ("ssh://box/~/big", "larger than 1 MiB"),
    ] {
        let error = bench.call(&read, json!({"path": path})).await.expect_err("an error");
        assert!(error.contains(said), "{path}: {error}");
    }
    let missing = bench.call(&write, json!({"path": "ssh://box/nowhere/x", "content": ""})).await;
    assert!(missing.is_err(), "{missing:?}");
}
