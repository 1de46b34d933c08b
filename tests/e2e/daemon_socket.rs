//! The daemon's socket: where it lies, who may connect, sockets of a service manager, and a socket that somebody removes.

use std::{
    fs::{self, DirBuilder, Permissions},
    io::{self, ErrorKind, Read, Write},
    os::unix::{
        fs::{DirBuilderExt, PermissionsExt, chown},
        net::{UnixDatagram, UnixListener, UnixStream},
    },
    path::PathBuf,
    time::Instant,
};

use agentd_e2e::{Ctl, DEADLINE, Gate, Home, MockServer, Reply, Service, SocketClient, binaries, ctl, sse};
use rustix::process::Signal;
use serde_json::json;

use crate::{
    daemon::mode,
    support::{answers, assert_says, text},
};

#[test]
fn a_path_that_is_too_long_gives_way_to_a_short_one() {
    let home = Home::new();
    let deep = home.root().join("a".repeat(120));
    let service = Service::start_with(&home, &[], |command| {
        command.env("AGENTD_DIR", &deep);
    });
    assert!(service.socket().starts_with(home.root().join("tmp")), "{}", service.socket().display());
    assert_eq!(mode(service.socket().parent().unwrap()), 0o700);
    // The client finds the same path.
    let mut command = ctl::command(&home, &["status", "--json"]);
    command.env("AGENTD_DIR", &deep);
    let said = Ctl::start_with(command, std::process::Stdio::null()).finish();
    assert_eq!(said.code, 0, "{said:?}");
    assert_says(&said.stdout, &[service.socket().to_str().unwrap(), &service.id().to_string()]);
    // An explicit path that is too long is refused, not replaced.
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
        panic!("it listens in a folder that is open to others")
    };
    assert_eq!(refused.status.code(), Some(1));
    assert_says(&refused.stderr, &["has the mode 750", "chmod 700", open.to_str().unwrap()]);
    assert_eq!(fs::read_dir(&open).unwrap().count(), 0);
    // `up` reports it, too, and does not hang.
    let mut command = ctl::command(&home, &["up"]);
    command.env("AGENTD_SOCKET", &socket);
    let up = Ctl::start_with(command, std::process::Stdio::null()).finish();
    assert_eq!(up.code, 3, "{up:?}");
    assert_says(&up.stderr, &["has the mode 750", "did not start", "logs/agentd.log"]);
}

/// A service manager that receives the notifications of its service.
pub(crate) struct Manager(UnixDatagram, PathBuf);

impl Manager {
    pub(crate) fn new(home: &Home) -> Self {
        let path = home.root().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_read_timeout(Some(DEADLINE)).unwrap();
        Self(socket, path)
    }

    pub(crate) fn start(&self, home: &Home) -> Service {
        Service::start_with(home, &[], |command| {
            command.env("NOTIFY_SOCKET", &self.1);
        })
    }

    pub(crate) fn told(&self) -> String {
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
    // A shell passes the socket at descriptor 3, as service managers do.
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
    assert!(path.exists(), "the socket belongs to its creator");
    assert!(!home.agent_dir().join("run/agentd.sock").exists());
}

#[test]
fn another_user_is_refused() {
    const NOBODY: u32 = 65_534;
    if !rustix::process::geteuid().is_root() {
        // Only root can act as two users, and the check has no other entry point.
        let _ = writeln!(io::stderr(), "skipped: only root can run the daemon as another user");
        return;
    }
    let home = Home::new();
    for folder in ["", "home", "agent", "project", "tmp"] {
        chown(home.root().join(folder), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let program = home.root().join("agentd");
    binaries::copy(&binaries::agentd(), &program);
    let mut command = home.command("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program).arg("serve");
    let service = Service::start_command(command).expect("it starts");
    // Root may open the socket despite its mode, and counts as another user.
    let mut stream = UnixStream::connect(service.socket()).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    // The connection may be closed before the write, or with the line unread.
    let _ = stream.write_all(b"{\"type\":\"daemon_status\"}\n");
    let mut said = Vec::new();
    match stream.read_to_end(&mut said) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), io::ErrorKind::ConnectionReset),
    }
    assert_eq!(String::from_utf8_lossy(&said), "");
    // The settings and sessions of another user are not used either.
    let status = ctl::run(&home, &["status"]);
    assert_eq!(status.code, 1, "{status:?}");
    assert_says(&status.stderr, &["belongs to another user (uid 65534; this program runs as uid 0)"]);
    service.signal(Signal::TERM);
    let ended = service.wait();
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert_says(&ended.stderr, &["refused a client of another user", "uid=0"]);
}

/// Asks the daemon over an earlier connection until its socket is back.
fn wait_until_back(service: &Service, client: &mut SocketClient) {
    let end = Instant::now() + DEADLINE;
    while !service.socket().exists() {
        assert!(Instant::now() < end, "the socket does not come back");
        client.done(json!({"type": "daemon_status"}));
    }
}

#[test]
fn a_socket_that_was_removed_comes_back_and_work_goes_on() {
    let gate = Gate::new();
    let server =
        MockServer::start([Reply::stream(sse::text("Half ")).gate(&gate).then(sse::answer("and half."))]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut client = service.client();
    client.done(json!({"type": "open_session", "cwd": home.project()}));
    client.send(&json!({"type": "prompt", "message": "Go."}));
    client.event("message_update");
    let folder = service.socket().parent().unwrap().to_owned();
    // The daemon may put the first file back before the last one is gone.
    while let Err(error) = fs::remove_dir_all(&folder) {
        assert_eq!(error.kind(), ErrorKind::DirectoryNotEmpty, "{error}");
    }
    wait_until_back(&service, &mut client);

    // Clients find the daemon, and no second one starts.
    let status = ctl::run(&home, &["status"]);
    assert_eq!(status.code, 0, "{status:?}");
    assert_says(&status.stdout, &[&format!("pid {}", service.id()), "1 in memory, 1 at work"]);
    let up = ctl::run(&home, &["up"]);
    assert_eq!(up.code, 0, "{up:?}");
    assert_says(&up.stdout, &["is running already", &format!("pid {}", service.id())]);
    let Err(second) = Service::try_start(&home, &[], |_| {}) else { panic!("two daemons") };
    assert_eq!(second.status.code(), Some(4), "{second:?}");
    assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);

    gate.open();
    assert_eq!(text(answers(&client.settled())[0]), "Half and half.");
    let down = ctl::run(&home, &["down"]);
    assert_eq!(down.code, 0, "{down:?}");
    let socket = service.socket().to_owned();
    let ended = service.wait();
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert_says(&ended.stderr, &["someone removed the socket"]);
    assert!(!socket.exists());
}

#[test]
fn a_daemon_whose_socket_was_taken_over_finishes_its_work_and_ends() {
    let gate = Gate::new();
    let server =
        MockServer::start([Reply::stream(sse::text("Half ")).gate(&gate).then(sse::answer("and half."))]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut client = service.client();
    client.done(json!({"type": "open_session", "cwd": home.project()}));
    client.send(&json!({"type": "prompt", "message": "Go."}));
    client.event("message_update");
    // The new socket is renamed into place: there is no moment without a socket.
    let mut asking = service.client();
    asking.done(json!({"type": "daemon_status"}));
    let other = home.root().join("other.sock");
    let theirs = UnixListener::bind(&other).unwrap();
    fs::rename(&other, service.socket()).unwrap();
    // The daemon has noticed once it refuses new work.
    let end = Instant::now() + DEADLINE;
    loop {
        let answer = asking.call(json!({"type": "open_session", "cwd": home.project(), "attach": false}));
        if answer["code"] == "shutting_down" {
            break;
        }
        assert!(Instant::now() < end, "{answer}");
    }
    gate.open();
    let rest = client.closed();
    assert_eq!(text(answers(&rest)[0]), "Half and half.");
    let socket = service.socket().to_owned();
    let ended = service.wait();
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    assert_says(
        &ended.stderr,
        &["the socket was taken away", "cannot be put back", socket.to_str().unwrap()],
    );
    assert!(socket.exists(), "the new socket belongs to its creator");
    drop(theirs);
}

#[test]
fn a_daemon_that_lost_its_socket_still_ends_by_a_signal() {
    let home = Home::new();
    let service = Service::start(&home, &[]);
    let mut client = service.client();
    fs::remove_file(service.socket()).unwrap();
    wait_until_back(&service, &mut client);
    service.signal(Signal::TERM);
    let socket = service.socket().to_owned();
    assert_eq!(service.wait().status.code(), Some(0));
    assert!(!socket.exists());
}
