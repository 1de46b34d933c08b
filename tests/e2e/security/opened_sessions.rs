//! Session files and their companions: unexpected objects in their place, and files that cannot be written.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, chown, symlink},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use agentd_e2e::{Ctl, Daemon, Home, MockServer, Reply, Service, binaries, ctl, sse};
use serde_json::{Value, json};

use super::opened_files::{make_endless, make_pipe};
use crate::support::assert_says;

/// A home with a closed session, and its file.
fn with_session(server: &MockServer) -> (Home, PathBuf) {
    let home = Home::with_model(server);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.prompt("Hello.");
    daemon.close();
    let file = home.session_files()[0].clone();
    (home, file)
}

/// The messages of user and model.
fn said(daemon: &mut Daemon) -> Vec<Value> {
    let mut messages = daemon.done(json!({"type": "get_messages"}))["messages"].as_array().unwrap().clone();
    messages.retain(|message| message["role"] != "system");
    messages
}

fn answering() -> MockServer {
    MockServer::always(Reply::stream(sse::answer("Ok.")))
}

fn id_of(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap();
    let header: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    header["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_session_file_without_end_is_refused_at_once() {
    let server = answering();
    let (home, file) = with_session(&server);
    let good = home.agent_dir().join("good.jsonl");
    fs::copy(&file, &good).unwrap();
    // The header is valid; zeros follow the last line.
    fs::OpenOptions::new().write(true).open(&file).unwrap().set_len(5 << 40).unwrap();
    let named = file.to_str().unwrap();
    let sessions = ctl::run(&home, &["sessions"]);
    assert_says(&sessions.stderr, &["No session fits", named, "is 5497558138880 bytes long"]);
    let page = home.root().join("page");
    for args in [
        &["tree", named][..],
        &["export", named, "--format", "md"],
        &["export", named, "--format", "jsonl"],
        &["export", named, "--format", "html", "-o", page.to_str().unwrap()],
    ] {
        let refused = ctl::run(&home, args);
        assert_eq!(refused.code, 1, "{args:?} {refused:?}");
        assert_says(&refused.stderr, &["is 5497558138880 bytes long"]);
    }
    let checked = ctl::run(&home, &["fsck", named]);
    assert_eq!(checked.code, 1, "{checked:?}");
    assert_says(&checked.stdout, &["is 5497558138880 bytes long"]);
    let command = ctl::agentd(&home, &["--stdio", "--session", named]);
    let refused = Ctl::start_with(command, Stdio::null()).finish();
    assert_ne!(refused.code, 0, "{refused:?}");
    assert_says(&refused.stderr, &[named]);
    // An endless intent log is not read either.
    fs::rename(&good, &file).unwrap();
    make_endless(&file.with_extension("ledger"));
    let mut daemon = Daemon::start(&home, &["--session", named]);
    assert_eq!(said(&mut daemon).len(), 2);
}

#[test]
fn a_pipe_as_intent_log_or_session_hangs_nobody() {
    let server = answering();
    let (home, file) = with_session(&server);
    let intent_log = file.with_extension("ledger");
    let named = file.to_str().unwrap();
    for make in [&make_pipe as &dyn Fn(&Path), &|path: &Path| symlink("/dev/zero", path).unwrap()] {
        make(&intent_log);
        let mut daemon = Daemon::start(&home, &["--session", named]);
        assert_eq!(said(&mut daemon).len(), 2);
        let told = daemon.done(json!({"type": "get_diagnostics"})).to_string();
        assert_says(&told, &[".ledger", "whether a crash interrupted this session is not known"]);
        let before = server.requests().len();
        let refused = daemon.call(json!({"type": "prompt", "message": "More."}));
        assert_eq!(
            (refused["success"].as_bool(), server.requests().len()),
            (Some(false), before),
            "{refused}"
        );
        daemon.close();
        for args in [&["sessions"][..], &["tree", named], &["export", named, "--format", "md"]] {
            let done = ctl::run(&home, args);
            assert_eq!(done.code, 0, "{args:?} {done:?}");
        }
        let checked = ctl::run(&home, &["fsck", named]);
        assert_says(&checked.stdout, &[".ledger", "is not a regular file"]);
        fs::remove_file(&intent_log).unwrap();
    }
    let mut daemon = Daemon::start(&home, &["--session", named]);
    daemon.prompt("More.");
}

#[test]
fn a_session_may_be_named_by_a_link_and_is_listed_when_it_is_ours() {
    let server = answering();
    let (home, file) = with_session(&server);
    let kept = home.root().join("home/kept.jsonl");
    fs::rename(&file, &kept).unwrap();
    symlink(&kept, &file).unwrap();
    assert_says(&ctl::run(&home, &["sessions"]).stdout, &["Hello."]);
    let mut daemon = Daemon::start(&home, &["--session", file.to_str().unwrap()]);
    daemon.prompt("More.");
    daemon.close();
    assert!(fs::read_to_string(&kept).unwrap().contains("More."));
    if rustix::process::getuid().is_root() {
        chown(&kept, Some(65534), None).unwrap();
        assert_says(&ctl::run(&home, &["sessions"]).stderr, &["No session fits"]);
        // A named link is followed.
        let mut daemon = Daemon::start(&home, &["--session", kept.to_str().unwrap()]);
        daemon.done(json!({"type": "get_messages"}));
    }
}

#[test]
fn deleting_a_session_reaches_nothing_behind_a_link() {
    let server = answering();
    let (home, file) = with_session(&server);
    let elsewhere = home.root().join("home/elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let output = elsewhere.join("deadbeef.bash.log");
    fs::write(&output, "precious").unwrap();
    let outputs = file.with_extension("");
    symlink(&elsewhere, &outputs).unwrap();
    let id = id_of(&file);
    let service = Service::start(&home, &[]);
    let mut client = service.client();
    // The session is neither read nor written through the link.
    client.done(json!({"type": "attach_session", "sessionId": id}));
    let listed = client.done(json!({"type": "list_artifacts"}));
    assert!(!listed.to_string().contains("deadbeef"), "{listed}");
    client.done(json!({"type": "bash", "command": "seq 1 9000"}));
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 1);
    client.done(json!({"type": "close_session", "sessionId": id}));
    client.done(json!({"type": "delete_session", "sessionId": id}));
    assert_eq!(fs::read_to_string(&output).unwrap(), "precious");
    assert!(!file.exists() && !outputs.is_symlink());
}

/// Runs the programs as a user who is bound by file modes: another user, where the test runs as root.
struct Bound<'a> {
    home: &'a Home,
    is_root: bool,
}

impl<'a> Bound<'a> {
    fn new(home: &'a Home) -> Self {
        let is_root = rustix::process::getuid().is_root();
        if is_root {
            let folder = home.root().join("programs");
            fs::create_dir(&folder).unwrap();
            for program in [ctl::agentd(home, &[]), ctl::command(home, &[])] {
                let path = Path::new(program.get_program());
                binaries::copy(path, &folder.join(path.file_name().unwrap()));
            }
        }
        let it = Self { home, is_root };
        it.hand_over();
        it
    }

    /// Gives everything to that user.
    fn hand_over(&self) {
        if self.is_root {
            let done = Command::new("chown").args(["-R", "65534:65534"]).arg(self.home.root()).status();
            assert!(done.unwrap().success());
        }
    }

    fn command(&self, program: &str, args: &[&str]) -> Command {
        if !self.is_root {
            return if program == "agentd" {
                ctl::agentd(self.home, args)
            } else {
                ctl::command(self.home, args)
            };
        }
        let mut command = self.home.command("/usr/bin/env");
        command.args(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--"]);
        command.arg(self.home.root().join("programs").join(program)).args(args);
        command
    }
}

#[test]
fn a_session_file_that_may_only_be_read_is_read() {
    let server = answering();
    let (home, file) = with_session(&server);
    let bound = Bound::new(&home);
    let named = file.to_str().unwrap();
    let folder = file.parent().unwrap();
    let before = fs::read(&file).unwrap();
    for folder_mode in [0o700, 0o500] {
        fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).unwrap();
        fs::set_permissions(folder, fs::Permissions::from_mode(folder_mode)).unwrap();
        for args in
            [&["sessions"][..], &["tree", named], &["export", named, "--format", "md"], &["fsck", named]]
        {
            let done = Ctl::start_with(bound.command("agentctl", args), Stdio::null()).finish();
            assert_eq!(done.code, 0, "{args:?} {done:?}");
        }
        let asked = server.requests().len();
        let mut daemon = Daemon::start_command(bound.command("agentd", &["--stdio", "--session", named]));
        let messages = said(&mut daemon);
        assert_eq!(messages.len(), 2, "{messages:?}");
        let told = daemon.done(json!({"type": "get_diagnostics"})).to_string();
        assert_says(&told, &[named, "can be read and not written to"]);
        for command in [
            json!({"type": "prompt", "message": "More."}),
            json!({"type": "follow_up", "message": "More."}),
            json!({"type": "set_session_name", "name": "Named"}),
        ] {
            let refused = daemon.refused(command);
            assert_says(&refused.to_string(), &[named, "can be read and not written to"]);
        }
        assert_eq!(said(&mut daemon), messages);
        daemon.close();
        assert_eq!((server.requests().len(), fs::read(&file).unwrap()), (asked, before.clone()));
    }
    // The session continues once its file can be written.
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let mut daemon = Daemon::start_command(bound.command("agentd", &["--stdio", "--session", named]));
    daemon.prompt("More.");
    daemon.close();
    assert!(fs::read(&file).unwrap().len() > before.len());
}
