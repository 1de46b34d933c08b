//! Files, folders and the socket belong to the user alone, whatever the umask; an agent directory that others may change
//! is refused.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use agentd_e2e::{Ctl, Daemon, Home, MockServer, Reply, SocketClient, ctl, sse};
use serde_json::{Value, json};

use crate::support::assert_says;

/// The command under this umask.
pub(super) fn with_umask(home: &Home, umask: &str, command: &Command) -> Command {
    let mut shell = home.command("/bin/sh");
    shell.arg("-c").arg(format!("umask {umask}; exec \"$0\" \"$@\"")).arg(command.get_program());
    shell.args(command.get_args());
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            shell.env(name, value);
        }
    }
    shell
}

fn run(home: &Home, umask: &str, args: &[&str], input: &str) -> String {
    let command = with_umask(home, umask, &ctl::command(home, args));
    let done = ctl::feed(command, input);
    assert_eq!(done.code, 0, "umask {umask}: {args:?} {done:?}");
    done.stdout
}

/// Collects everything below a folder with its mode.
fn modes(folder: &Path, found: &mut BTreeMap<PathBuf, u32>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        // An intent log may disappear meanwhile.
        let Ok(about) = fs::symlink_metadata(&path) else { continue };
        if about.is_dir() {
            modes(&path, found);
        }
        if !about.is_symlink() {
            found.insert(path, about.mode() & 0o7777);
        }
    }
}

/// Creates a file of every kind in a home.
fn rich_life(home: &Home, server: &MockServer, umask: &str) {
    let long = json!({"command": "seq 1 9000"});
    let file = json!({"path": "made/new.txt", "content": "of the project"});
    let calls = sse::calls(&[("c1", "bash", long), ("c2", "write", file)]);
    let answers = || [Reply::stream(calls.clone()), Reply::stream(sse::answer("Done."))];
    let run = |args: &[&str], input: &str| run(home, umask, args, input);
    run(&["up"], "");
    let socket = run(&["status", "--json"], "");
    let socket: Value = serde_json::from_str(&socket).unwrap();
    let socket = socket["socket"].as_str().unwrap_or_else(|| panic!("{socket}")).to_owned();
    answers().into_iter().for_each(|answer| server.push(answer));
    run(&["prompt", "--model", "fake/fake", "Go on."], "");
    run(&["login", "openai"], "a-key-0123456789\n");
    let mut client = SocketClient::connect(Path::new(&socket));
    let opened = client.done(json!({"type": "open_session", "cwd": home.project(), "args": ["--continue"]}));
    let id = opened["sessionId"].as_str().unwrap().to_owned();
    client.done(json!({"type": "set_model", "provider": "fake", "modelId": "fake"}));
    client.done(json!({"type": "set_steering_mode", "mode": "all"}));
    client.done(json!({"type": "set_session_name", "name": "Rich"}));
    client.done(json!({"type": "bash", "command": "seq 1 9000"}));
    client.done(json!({"type": "clone"}));
    client.done(json!({"type": "export_html", "outputPath": home.root().join("home/page.html")}));
    drop(client);
    run(&["export", &id, "-o", home.root().join("home/page.md").to_str().unwrap()], "");
    run(&["bug-report", &id, "-o", home.root().join("home/report.jsonl").to_str().unwrap()], "");
    run(&["doctor"], "");
    run(&["down"], "");
    // A session that records and keeps no file.
    answers().into_iter().for_each(|answer| server.push(answer));
    let folder = home.root().join("home/recordings");
    let args = ["--stdio", "--no-session", "--model", "fake/fake", "--record", folder.to_str().unwrap()];
    let mut daemon = Daemon::start_command(with_umask(home, umask, &ctl::agentd(home, &args)));
    daemon.prompt("Again.");
    daemon.done(json!({"type": "bash", "command": "seq 1 9000"}));
    daemon.close();
}

#[test]
fn everything_is_private_under_the_most_open_umask() {
    let server = MockServer::start([]);
    let home = Home::with_model(&server);
    let mut before = BTreeMap::new();
    modes(home.root(), &mut before);
    rich_life(&home, &server, "000");
    let mut found = BTreeMap::new();
    modes(home.root(), &mut found);
    found.retain(|path, _| !before.contains_key(path));
    let of_project = |path: &Path| path.starts_with(home.project());
    let open: Vec<_> = found.iter().filter(|(path, mode)| !of_project(path) && *mode & 0o077 != 0).collect();
    assert!(open.is_empty(), "others can get at {open:#?}");
    let made = |end: &str| found.keys().any(|path| path.to_string_lossy().contains(end));
    for kind in
        ["auth.json", "agentd.log", ".jsonl", "page.html", "page.md", "report.jsonl", "/recordings/", "/tmp/"]
    {
        assert!(made(kind), "the test left no {kind}: {:?}", found.keys());
    }
    // Files that tools create for the user follow the user's umask.
    assert_eq!(found[&home.project().join("made/new.txt")], 0o666);
    assert_eq!(found[&home.project().join("made")], 0o777);
}

#[test]
fn everything_works_under_the_closest_umasks() {
    for umask in ["777", "277"] {
        let server = MockServer::start([]);
        let home = Home::with_model(&server);
        let mut before = BTreeMap::new();
        modes(home.root(), &mut before);
        rich_life(&home, &server, umask);
        let mut found = BTreeMap::new();
        modes(home.root(), &mut found);
        found.retain(|path, _| !before.contains_key(path));
        for (path, mode) in &found {
            let needed = if path.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(mode & 0o777, needed, "umask {umask}: {}", path.display());
        }
        assert!(found.contains_key(&home.project().join("made/new.txt")));
    }
}

/// A pipe in the place of a file blocks nobody.
#[test]
fn pipes_in_the_place_of_files_hang_nobody() {
    for name in ["settings.json", "models.json", "auth.json", "trust.json", "SYSTEM.md", "AGENTS.md"] {
        let server = MockServer::start([Reply::stream(sse::answer("Ok."))]);
        let home = Home::with_model(&server);
        let pipe = home.agent_dir().join(name);
        let _ = fs::remove_file(&pipe);
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let mut daemon = Daemon::start(&home, &[]);
        daemon.done(json!({"type": "get_state"}));
        daemon.done(json!({"type": "get_diagnostics"}));
        daemon.done(json!({"type": "list_models"}));
        daemon.call(json!({"type": "login", "provider": "openai", "key": "k-0123456789"}));
        daemon.call(json!({"type": "diagnose"}));
        daemon.close();
        assert!(fs::metadata(&pipe).is_ok(), "{name}");
    }
    let home = Home::new();
    let folder = home.agent_dir().join("sessions").join("p");
    fs::create_dir_all(&folder).unwrap();
    let pipe = folder.join("2026-01-01T00-00-00-000Z_00000000-0000-7000-8000-000000000000.jsonl");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
    let sessions = ctl::run(&home, &["sessions"]);
    // The pipe is skipped, and there is no other session.
    assert_eq!(sessions.code, 1, "{sessions:?}");
    assert!(sessions.stderr.contains("No session fits"), "{sessions:?}");
    let command = ctl::agentd(&home, &["--stdio", "--session", pipe.to_str().unwrap()]);
    let refused = Ctl::start_with(command, Stdio::null()).finish();
    assert_eq!(refused.code, 1, "{refused:?}");
}

#[test]
fn an_open_file_of_keys_is_reported() {
    let home = Home::new();
    home.write_agent("auth.json", r#"{"openai": {"type": "api_key", "key": "k"}}"#);
    fs::set_permissions(home.agent_dir().join("auth.json"), fs::Permissions::from_mode(0o644)).unwrap();
    let told = ctl::run(&home, &["doctor"]).stdout;
    assert!(told.contains("auth.json") && told.contains("chmod 600"), "{told}");
}

fn with_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Asserts that both programs refuse the agent directory with this error.
#[track_caller]
fn assert_refused(home: &Home, says: &[&str]) {
    for args in [&["-p", "--no-session", "Hi"][..], &["--stdio"], &["--list-models"], &["--fsck"], &[]] {
        let done = ctl::feed(ctl::agentd(home, args), "");
        assert_eq!(done.code, 1, "{args:?} {done:?}");
        assert_says(&done.stderr, says);
    }
    for args in [&["up"][..], &["status"], &["prompt", "Hi"], &["doctor"]] {
        let done = ctl::run(home, args);
        assert_ne!(done.code, 0, "{args:?} {done:?}");
        assert_says(&done.stderr, says);
    }
    let made: Vec<_> = fs::read_dir(home.agent_dir()).into_iter().flatten().flatten().collect();
    assert!(made.len() <= 1, "{made:?}");
    // Commands that do not need it work.
    assert_eq!(ctl::feed(ctl::agentd(home, &["--version"]), "").code, 0);
}

#[test]
fn an_agent_directory_that_others_can_change_is_refused() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    for mode in [0o777, 0o707, 0o1777] {
        with_mode(&home.agent_dir(), mode);
        let agent_dir = home.agent_dir().display().to_string();
        assert_refused(&home, &["other users can change", &agent_dir, "chmod go-w", "AGENTD_DIR"]);
    }
    // The suggested command fixes it.
    with_mode(&home.agent_dir(), 0o755);
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    daemon.prompt("Hi");
    daemon.close();
}

#[test]
fn an_agent_directory_of_another_user_is_refused() {
    if !rustix::process::getuid().is_root() {
        return;
    }
    let server = MockServer::start([]);
    let home = Home::with_model(&server);
    chown(home.agent_dir(), Some(65534), Some(65534)).unwrap();
    assert_refused(
        &home,
        &["belongs to another user (uid 65534; this program runs as uid 0)", "HOME", "AGENTD_DIR"],
    );
    chown(home.agent_dir(), Some(0), Some(0)).unwrap();
    // The home directory belongs to another user, who could replace this folder.
    chown(home.root(), Some(65534), Some(65534)).unwrap();
    assert_refused(&home, &["in a folder of another user", "uid 65534", "HOME"]);
    fs::remove_dir_all(home.agent_dir()).unwrap();
    assert_refused(&home, &["would be", "in a folder of another user", "uid 65534", "HOME"]);
    assert!(!home.agent_dir().exists());
}

/// A parent folder that everybody can change is reported.
#[test]
fn a_parent_of_the_agent_directory_that_is_open_to_all_is_reported() {
    let server = MockServer::start([]);
    let home = Home::with_model(&server);
    with_mode(home.root(), 0o777);
    let done = ctl::feed(ctl::agentd(&home, &["--stdio", "--no-session"]), "");
    assert_eq!(done.code, 0, "{done:?}");
    assert_says(&done.stderr, &["put another folder in the place of the agent directory", "chmod o-w"]);
    assert_says(&ctl::run(&home, &["doctor"]).stdout, &["put another folder in its place", "chmod o-w"]);
    // A sticky parent folder is not reported.
    with_mode(home.root(), 0o1777);
    let done = ctl::feed(ctl::agentd(&home, &["--stdio", "--no-session"]), "");
    assert!(!done.stderr.contains("another folder"), "{done:?}");
}

#[test]
fn a_new_agent_directory_is_the_users_alone() {
    let home = Home::new();
    fs::remove_dir_all(home.agent_dir()).unwrap();
    let up = with_umask(&home, "000", &ctl::command(&home, &["up"]));
    let done = ctl::feed(up, "");
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(home.agent_dir().metadata().unwrap().mode() & 0o7777, 0o700);
    assert_eq!(ctl::run(&home, &["down"]).code, 0);
}
