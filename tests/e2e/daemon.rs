//! The daemon on its socket: how it starts, who may come in, how it ends.

use std::{
    fs::{self, DirBuilder, Permissions},
    io::{self, Read, Write},
    os::unix::{
        fs::{DirBuilderExt, PermissionsExt, chown},
        net::{UnixDatagram, UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
    time::Duration,
};

use agentd_e2e::{
    Ctl, DEADLINE, Home, MockServer, Reply, Service, binaries, ctl, processes, socket::SocketClient, sse,
};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{assert_says, records, text};

/// A daemon that `agentctl up` started. It is killed when the test forgets it.
struct InBackground<'a> {
    home: &'a Home,
    status: Value,
}

impl<'a> InBackground<'a> {
    fn up(home: &'a Home) -> Self {
        let up = ctl::run(home, &["up"]);
        assert_eq!((up.code, up.stderr.as_str()), (0, ""), "{up:?}");
        let this = Self { home, status: status(home).expect("it runs") };
        let told = format!("agentd is running (pid {}, socket {})\n", this.id(), this.socket().display());
        assert_eq!(up.stdout, told);
        this
    }

    fn id(&self) -> i32 {
        self.status["daemon"]["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok()).expect("a pid")
    }

    fn socket(&self) -> PathBuf {
        self.status["socket"].as_str().expect("a path").into()
    }
}

impl Drop for InBackground<'_> {
    fn drop(&mut self) {
        // Ours by its socket, which nobody else has; not running is as good.
        if status(self.home).is_some() {
            let _ = ctl::run(self.home, &["down", "--abort"]);
        }
    }
}

/// What `agentctl status --json` says of a daemon that runs.
fn status(home: &Home) -> Option<Value> {
    let said = ctl::run(home, &["status", "--json"]);
    let status: Value = serde_json::from_str(&said.stdout).expect("one line of JSON");
    assert_eq!(said.code, if status["running"] == json!(false) { 3 } else { 0 }, "{said:?}");
    (status["running"] == json!(true)).then_some(status)
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn up_status_and_down() {
    let home = Home::new();
    let none = ctl::run(&home, &["status"]);
    assert_eq!(none.code, 3, "{none:?}");
    assert_says(&none.stdout, &["agentd is not running", "agent/run/agentd.sock"]);
    let down = ctl::run(&home, &["down"]);
    assert_eq!((down.code, down.stdout.as_str()), (0, "agentd is not running\n"));

    let daemon = InBackground::up(&home);
    let (id, socket) = (daemon.id(), daemon.socket());
    assert_eq!(socket, home.agent_dir().join("run/agentd.sock"));
    assert_eq!(daemon.status["agentDir"], json!(home.agent_dir()));
    assert_eq!((mode(&socket), mode(socket.parent().unwrap())), (0o600, 0o700));
    let log = home.agent_dir().join("logs/agentd.log");
    assert_eq!((mode(&log), mode(log.parent().unwrap())), (0o600, 0o700));
    let said = ctl::run(&home, &["status"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_says(&said.stdout, &["is running (pid ", "0 in memory, 0 at work", "clients    1"]);

    let again = ctl::run(&home, &["up"]);
    assert_eq!(again.code, 0, "{again:?}");
    assert_says(&again.stdout, &["is running already", &format!("pid {id}")]);

    let process = processes::watch(&[id]);
    let down = ctl::run(&home, &["down"]);
    assert_eq!((down.code, down.stdout), (0, format!("agentd has ended (pid {id})\n")), "{}", down.stderr);
    process.assert_gone_within(Duration::ZERO);
    assert!(!socket.exists());
    assert_eq!(status(&home), None);
}

#[test]
fn it_outlives_who_started_it_and_keeps_no_folder_busy() {
    let home = Home::new();
    let daemon = InBackground::up(&home);
    let stat = fs::read_to_string(format!("/proc/{}/stat", daemon.id())).unwrap();
    // After the name in brackets: state, parent, group, session, terminal.
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    let own = daemon.id().to_string();
    assert_eq!(&fields[2..5], [&own, &own, "0"], "{stat}");
    assert_eq!(fs::read_link(format!("/proc/{}/cwd", daemon.id())).unwrap(), Path::new("/"));
}

#[test]
fn the_second_is_told_of_the_first() {
    let home = Home::new();
    let first = Service::start(&home, &[]);
    for args in [&[][..], &["--socket", first.socket().to_str().unwrap()]] {
        let Err(second) = Service::try_start(&home, args, |_| {}) else { panic!("two daemons") };
        assert_eq!(second.status.code(), Some(4), "{second:?}");
        let (pid, socket) = (first.id(), first.socket().display());
        assert_eq!(second.stderr, format!("Error: agentd is already running (pid {pid}, socket {socket})\n"));
    }
    // The first never noticed.
    assert_eq!(first.client().done(json!({"type": "daemon_status"}))["daemon"]["pid"], first.id());
}

#[test]
fn plain_agentd_is_the_daemon_too() {
    let home = Home::new();
    let service = Service::start_command(home.command(binaries::agentd())).expect("it starts");
    let status = service.client().done(json!({"type": "daemon_status"}));
    assert_eq!(status["socket"], json!(home.agent_dir().join("run/agentd.sock")));
}

#[test]
fn many_that_start_at_once_make_one() {
    let home = Home::new();
    let starting: Vec<Ctl> = (0..4).map(|_| Ctl::start(&home, &["up"])).collect();
    let ends: Vec<_> = starting.into_iter().map(Ctl::finish).collect();
    let status = status(&home);
    let _down = status.clone().map(|status| InBackground { home: &home, status });
    let pid = status.expect("it runs")["daemon"]["pid"].clone();
    for end in &ends {
        assert_eq!(end.code, 0, "{ends:?}");
        assert_says(&end.stdout, &[&format!("pid {pid}")]);
    }
}

#[test]
fn what_a_killed_one_left_is_taken_over() {
    let home = Home::new();
    let first = Service::start(&home, &[]);
    let socket = first.socket().to_owned();
    first.signal(Signal::KILL);
    assert!(!first.wait().status.success());
    assert!(socket.exists(), "a killed daemon leaves its socket");
    assert_eq!(status(&home), None);
    let second = Service::start(&home, &[]);
    assert_eq!(second.socket(), socket);
    assert_eq!(second.client().done(json!({"type": "daemon_status"}))["daemon"]["pid"], second.id());
}

/// The system takes connections for a daemon for a moment after it was killed.
#[test]
fn up_comes_back_to_a_daemon_that_ends_as_it_comes() {
    let home = Home::new();
    let first = Service::start(&home, &[]);
    let socket = first.socket().to_owned();
    first.signal(Signal::KILL);
    assert!(!first.wait().status.success());
    fs::remove_file(&socket).unwrap();
    let dying = UnixListener::bind(&socket).unwrap();
    let meeting = std::thread::spawn(move || drop(dying.accept().unwrap()));
    let daemon = InBackground::up(&home);
    meeting.join().unwrap();
    assert_eq!(daemon.socket(), socket);
}

#[test]
fn a_path_that_is_too_long_gives_way_to_a_short_one() {
    let home = Home::new();
    let deep = home.root().join("a".repeat(120));
    let service = Service::start_with(&home, &[], |command| {
        command.env("AGENTD_DIR", &deep);
    });
    assert!(service.socket().starts_with(home.root().join("tmp")), "{}", service.socket().display());
    assert_eq!(mode(service.socket().parent().unwrap()), 0o700);
    // The client goes the same way.
    let mut command = ctl::command(&home, &["status", "--json"]);
    command.env("AGENTD_DIR", &deep);
    let said = Ctl::start_with(command, std::process::Stdio::null()).finish();
    assert_eq!(said.code, 0, "{said:?}");
    assert_says(&said.stdout, &[service.socket().to_str().unwrap(), &service.id().to_string()]);
    // One that was named is not replaced by another.
    let named = home.root().join("b".repeat(120));
    let Err(refused) = Service::try_start(&home, &["--socket", named.to_str().unwrap()], |_| {}) else {
        panic!("it listens")
    };
    assert_eq!(refused.status.code(), Some(1));
    assert_says(&refused.stderr, &["the system takes 107", "--socket"]);
}

#[test]
fn a_folder_that_others_may_enter_is_refused() {
    let home = Home::new();
    let open = home.root().join("open");
    DirBuilder::new().mode(0o700).create(&open).unwrap();
    fs::set_permissions(&open, Permissions::from_mode(0o750)).unwrap();
    let socket = open.join("agentd.sock");
    let Err(refused) = Service::try_start(&home, &["--socket", socket.to_str().unwrap()], |_| {}) else {
        panic!("it listens where others can get in")
    };
    assert_eq!(refused.status.code(), Some(1));
    assert_says(&refused.stderr, &["has the mode 750", "chmod 700", open.to_str().unwrap()]);
    assert_eq!(fs::read_dir(&open).unwrap().count(), 0);
    // `up` says so too, and does not hang.
    let mut command = ctl::command(&home, &["up"]);
    command.env("AGENTD_SOCKET", &socket);
    let up = Ctl::start_with(command, std::process::Stdio::null()).finish();
    assert_eq!(up.code, 3, "{up:?}");
    assert_says(&up.stderr, &["has the mode 750", "did not start", "logs/agentd.log"]);
}

#[test]
fn signals_end_it_with_zero_and_the_socket_vanishes() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let home = Home::new();
        let service = Service::start(&home, &[]);
        let socket = service.socket().to_owned();
        let client = service.client();
        service.signal(signal);
        assert_eq!(client.closed(), Vec::<Value>::new());
        let ended = service.wait();
        assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
        assert!(!socket.exists());
    }
}

/// A client with a session at work: the model has begun to answer.
fn at_work(service: &Service, home: &Home) -> SocketClient {
    let mut client = service.client();
    client.done(json!({"type": "open_session", "cwd": home.project()}));
    client.send(&json!({"type": "prompt", "message": "Go."}));
    client.event("message_update");
    client
}

fn last_message(home: &Home) -> Value {
    records(&home.session_files()[0]).pop().expect("a last entry")["message"].clone()
}

#[test]
fn work_is_finished_first() {
    let gate = agentd_e2e::Gate::new();
    let server =
        MockServer::start([Reply::stream(sse::text("Half")).gate(&gate).then(sse::answer(" done."))]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let client = at_work(&service, &home);
    service.signal(Signal::TERM);
    // It takes no new work, and finishes what runs.
    gate.open();
    let rest = client.closed();
    assert!(rest.iter().any(|line| line["type"] == "agent_settled"), "{rest:?}");
    let ended = service.wait();
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert_eq!(last_message(&home)["stopReason"], "stop");
}

#[test]
fn a_daemon_that_ends_takes_no_new_work() {
    let gate = agentd_e2e::Gate::new();
    let server =
        MockServer::start([Reply::stream(sse::text("Half")).gate(&gate).then(sse::answer(" done."))]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut client = at_work(&service, &home);
    client.done(json!({"type": "shutdown"}));
    for kind in ["prompt", "steer", "bash", "open_session"] {
        let command = json!({"type": kind, "message": "x", "command": "true", "cwd": home.project()});
        assert_eq!(client.refused(command)["code"], "shutting_down", "{kind}");
    }
    client.done(json!({"type": "get_state"}));
    gate.open();
    assert!(client.closed().iter().any(|line| line["type"] == "agent_settled"));
    assert_eq!(service.wait().status.code(), Some(0));
}

#[test]
fn what_is_not_done_at_the_deadline_is_stopped_and_kept() {
    let server = MockServer::start([Reply::stream(sse::text("Part")).hang()]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut client = at_work(&service, &home);
    client.done(json!({"type": "shutdown", "deadlineMs": 50}));
    let ended = service.wait();
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let last = last_message(&home);
    assert_eq!((text(&last).as_str(), &last["stopReason"]), ("Part", &json!("aborted")));
}

#[test]
fn down_can_stop_work_at_once() {
    let server = MockServer::start([Reply::stream(sse::text("Part")).hang()]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let client = at_work(&service, &home);
    let down = ctl::run(&home, &["down", "--abort"]);
    assert_eq!(down.code, 0, "{down:?}");
    let rest = client.closed();
    assert!(rest.iter().any(|line| line["type"] == "agent_settled"), "{rest:?}");
    assert_eq!(service.wait().status.code(), Some(0));
    assert_eq!(last_message(&home)["stopReason"], "aborted");
}

#[test]
fn a_second_signal_means_now() {
    let server = MockServer::start([Reply::stream(sse::text("Part")).hang()]);
    let home = Home::with_model(&server);
    let manager = Manager::new(&home);
    let service = manager.start(&home);
    let _client = at_work(&service, &home);
    service.signal(Signal::TERM);
    // It has taken the first one when it says that it stops.
    assert_eq!((manager.told(), manager.told()), ("READY=1\n".into(), "STOPPING=1\n".into()));
    service.signal(Signal::TERM);
    let socket = service.socket().to_owned();
    assert_eq!(service.wait().status.code(), Some(143));
    assert!(!socket.exists());
}

#[test]
fn a_client_that_takes_nothing_holds_nobody_up() {
    let home = Home::new();
    let service = Service::start(&home, &[]);
    let mut silent = service.client();
    // An answer longer than the system holds: once it has begun, the daemon waits with this client alone.
    silent.send(&json!({"type": "daemon_status", "id": "x".repeat(4 << 20)}));
    silent.wait_until_readable();
    let mut other = service.client();
    assert_eq!(other.done(json!({"type": "daemon_status"}))["clients"], 2);
    service.signal(Signal::TERM);
    let ended = service.wait();
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert_says(&ended.stderr, &["clients did not take their last lines in time"]);
}

/// A service manager that listens to its service.
struct Manager(UnixDatagram, PathBuf);

impl Manager {
    fn new(home: &Home) -> Self {
        let path = home.root().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_read_timeout(Some(DEADLINE)).unwrap();
        Self(socket, path)
    }

    fn start(&self, home: &Home) -> Service {
        Service::start_with(home, &[], |command| {
            command.env("NOTIFY_SOCKET", &self.1);
        })
    }

    fn told(&self) -> String {
        let mut buffer = [0; 256];
        let count = self.0.recv(&mut buffer).expect("news");
        String::from_utf8_lossy(&buffer[..count]).into_owned()
    }
}

#[test]
fn a_service_manager_is_told_and_sessions_are_not() {
    let home = Home::new();
    let manager = Manager::new(&home);
    let service = manager.start(&home);
    assert_eq!(manager.told(), "READY=1\n");
    let mut client = service.client();
    client.done(json!({"type": "open_session", "cwd": home.project(), "ephemeral": true}));
    let printed = client.done(json!({"type": "bash", "command": "echo ${NOTIFY_SOCKET-none}"}));
    assert_eq!(printed["output"], "none\n");
    service.signal(Signal::TERM);
    assert_eq!(manager.told(), "STOPPING=1\n");
    assert_eq!(service.wait().status.code(), Some(0));
}

#[test]
fn a_socket_that_was_passed_on_is_served_and_left() {
    let home = Home::new();
    let path = home.root().join("passed.sock");
    let listener = UnixListener::bind(&path).unwrap();
    // A shell puts it where service managers do: at descriptor 3.
    let mut command = home.command("bash");
    command.args(["-c", "exec 3<&0 0</dev/null; LISTEN_FDS=1 LISTEN_PID=$$ exec \"$0\" serve"]);
    command.arg(binaries::agentd());
    let service = {
        let stdin = std::os::fd::OwnedFd::from(listener.try_clone().unwrap());
        Service::start_passing(command, stdin).expect("it starts")
    };
    assert_eq!(service.socket(), path);
    let status = service.client().done(json!({"type": "daemon_status"}));
    assert_eq!((&status["socket"], &status["daemon"]["pid"]), (&json!(path), &json!(service.id())));
    service.signal(Signal::TERM);
    assert_eq!(service.wait().status.code(), Some(0));
    assert!(path.exists(), "it belongs to who made it");
    assert!(!home.agent_dir().join("run/agentd.sock").exists());
}

#[test]
fn another_user_is_refused() {
    const NOBODY: u32 = 65_534;
    if !rustix::process::geteuid().is_root() {
        // Only root can be two users. The check itself has no other way in.
        let _ = writeln!(io::stderr(), "skipped: only root can run the daemon as another user");
        return;
    }
    let home = Home::new();
    for folder in ["", "home", "agent", "project", "tmp"] {
        chown(home.root().join(folder), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let program = home.root().join("agentd");
    fs::copy(binaries::agentd(), &program).unwrap();
    let mut command = home.command("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program).arg("serve");
    let service = Service::start_command(command).expect("it starts");
    // Root may open the socket whatever its mode says, and is another user all the same.
    let mut stream = UnixStream::connect(service.socket()).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    // It may be closed before that is written, or with it unread.
    let _ = stream.write_all(b"{\"type\":\"daemon_status\"}\n");
    let mut said = Vec::new();
    match stream.read_to_end(&mut said) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), io::ErrorKind::ConnectionReset),
    }
    assert_eq!(String::from_utf8_lossy(&said), "");
    // Nor are the settings and sessions of another user taken for its own.
    let status = ctl::run(&home, &["status"]);
    assert_eq!(status.code, 1, "{status:?}");
    assert_says(&status.stderr, &["belongs to another user (uid 65534; this program runs as uid 0)"]);
    service.signal(Signal::TERM);
    let ended = service.wait();
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert_says(&ended.stderr, &["refused a client of another user", "uid=0"]);
}

#[test]
fn logs_are_shown_and_followed() {
    let home = Home::new();
    let none = ctl::run(&home, &["logs"]);
    assert_eq!(none.code, 1);
    assert_says(&none.stderr, &["there is no log", "agentctl up"]);
    let log = home.agent_dir().join("logs/agentd.log");
    home.write_agent("logs/agentd.log", "one\ntwo\nthree\n");
    assert_eq!(ctl::run(&home, &["logs", "-n", "2"]).stdout, "two\nthree\n");
    let mut following = Ctl::start(&home, &["logs", "--follow"]);
    following.wait_for_stdout("three\n");
    let append = |text: &str| {
        fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(&log)
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
    };
    append("four\n");
    following.wait_for_stdout("four\n");
    fs::rename(&log, log.with_extension("log.1")).unwrap();
    append("five\n");
    following.wait_for_stdout("five\n");
    // Not SIGINT: what a shell starts in the background, such as a whole test run, ignores that.
    following.signal(Signal::TERM);
    assert_eq!(following.finish().stdout, "one\ntwo\nthree\nfour\nfive\n");
}

/// A daemon that finishes work before it ends: it says so, takes no new work, and can be told to hurry.
#[test]
fn a_daemon_that_is_ending_says_so_and_can_be_hurried() {
    let server = MockServer::start([Reply::stream(sse::text("Half")).hang()]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut client = at_work(&service, &home);
    client.done(json!({"type": "shutdown", "deadlineMs": 600_000}));

    let said = ctl::run(&home, &["status"]);
    assert_eq!(said.code, 9, "{said:?}");
    assert_says(&said.stdout, &["is ending once its work is done, in ", "1 at work"]);
    let said = ctl::run(&home, &["status", "--json"]);
    let status: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(
        (said.code, &status["running"], &status["ending"]["mode"]),
        (9, &json!(true), &json!("drain"))
    );
    assert!(status["ending"]["remainingMs"].as_u64().unwrap() <= 600_000, "{status}");

    // Who comes now can look, and begins nothing.
    let mut late = service.client();
    let open = json!({"type": "open_session", "cwd": home.project()});
    assert_eq!(late.refused(open)["code"], "shutting_down");
    let sessions = late.done(json!({"type": "list_sessions"}));
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), 1, "{sessions}");
    let prompt = ctl::run(&home, &["prompt", "Hi"]);
    assert_eq!(prompt.code, 9, "{prompt:?}");
    assert_says(&prompt.stderr, &["is ending", "agentctl up"]);
    // A later deadline changes nothing, an earlier one does.
    late.done(json!({"type": "shutdown", "deadlineMs": 900_000}));
    let remaining = |client: &mut SocketClient| {
        client.done(json!({"type": "daemon_status"}))["ending"]["remainingMs"].as_u64().unwrap()
    };
    assert!(remaining(&mut late) <= 600_000);
    late.done(json!({"type": "shutdown", "deadlineMs": 300_000}));
    assert!(remaining(&mut late) <= 300_000);

    // The next daemon is started when this one has ended, which somebody else brings about.
    let mut up = Ctl::start(&home, &["up"]);
    up.wait_for_stderr("is ending: waiting for 1 session(s) to finish");
    let down = ctl::run(&home, &["down", "--abort"]);
    assert_eq!(down.code, 0, "{down:?}");
    assert_eq!(last_message(&home)["stopReason"], "aborted");
    assert_eq!(service.wait().status.code(), Some(0));
    let up = up.finish();
    assert_eq!(up.code, 0, "{up:?}");
    let next = status_of(&home);
    let _next = InBackground { home: &home, status: next.clone() };
    assert!(next["ending"].is_null() && next["running"] == json!(true), "{next}");
}

fn status_of(home: &Home) -> Value {
    status(home).expect("a daemon")
}

#[test]
fn a_deadline_hurries_a_daemon_that_is_ending() {
    let server = MockServer::start([Reply::stream(sse::text("Half")).hang()]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut client = at_work(&service, &home);
    client.done(json!({"type": "shutdown", "deadlineMs": 600_000}));
    let down = ctl::run(&home, &["down", "--deadline", "0"]);
    assert_eq!(down.code, 0, "{down:?}");
    assert_eq!(service.wait().status.code(), Some(0));
    assert_eq!(last_message(&home)["stopReason"], "aborted");
}

/// Verbs that need a daemon say where they looked for it.
#[test]
fn without_a_daemon_verbs_that_need_one_exit_with_3() {
    let home = Home::new();
    for verb in [&["attach", "0198"][..], &["steer", "0198", "x"], &["ps"], &["status"]] {
        let said = ctl::run(&home, verb);
        assert_eq!(said.code, 3, "{verb:?}: {said:?}");
        assert_says(&format!("{}{}", said.stdout, said.stderr), &["agentd is not running", "agentd.sock"]);
    }
}
