//! A relay: a command of a session that connects to the daemon on behalf of the test.

use std::{
    env, fs,
    io::{self, Read, Write},
    net::Shutdown,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
};

use agentd_e2e::{DEADLINE, Home, Service, SocketClient};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{PidfdFlags, getppid, pidfd_open},
};
use serde_json::{Value, json};

/// Holds the daemon's socket, the test's socket and the way to connect, one per line.
const PLACES: &str = "AGENTD_E2E_RELAY";

/// Set if stdin is the connection to the daemon.
const HANDED_ON: &str = "AGENTD_E2E_RELAY_HANDED_ON";

/// The socket at which commands of sessions reach the test.
pub(super) struct Inside {
    listener: UnixListener,
    path: PathBuf,
    socket: PathBuf,
}

impl Inside {
    pub(super) fn new(home: &Home, service: &Service) -> Self {
        let path = home.root().join("relay.sock");
        // A test may have several.
        let _ = fs::remove_file(&path);
        let listener = UnixListener::bind(&path).unwrap();
        Self { listener, path, socket: service.socket().to_owned() }
    }

    /// The shell command that connects to the daemon and relays to the test.
    pub(super) fn command(&self) -> String {
        self.script("connect")
    }

    /// The same, but the command passes the connection to a child and ends when it receives a byte from the test.
    pub(super) fn handing_on(&self) -> String {
        self.script("hand on")
    }

    fn script(&self, how: &str) -> String {
        format!(
            "{PLACES}='{}\n{}\n{how}' '{}' --exact security::relay::talks_for_the_tests --nocapture </dev/null >/dev/null 2>&1",
            self.socket.display(),
            self.path.display(),
            env::current_exe().unwrap().display(),
        )
    }

    pub(super) fn arrival(&self) -> UnixStream {
        let timeout = Timespec { tv_sec: DEADLINE.as_secs().cast_signed(), tv_nsec: 0 };
        let ready = poll(&mut [PollFd::new(&self.listener, PollFlags::IN)], Some(&timeout));
        assert_eq!(ready, Ok(1), "no command has reported");
        self.listener.accept().unwrap().0
    }

    /// Runs a command in a session of the user, and returns it as a client.
    pub(super) fn run(&self, user: &mut SocketClient, session: &Value, command: &str) -> SocketClient {
        user.send(&json!({"type": "bash", "sessionId": session, "command": command}));
        SocketClient::over_stream(self.arrival())
    }
}

/// Not a test: the program of [`Inside::command`]. It ends with the session.
#[test]
fn talks_for_the_tests() {
    let Ok(places) = env::var(PLACES) else { return };
    let places: Vec<&str> = places.lines().collect();
    let [daemon, test, how] = places[..] else { panic!("{places:?}") };
    if env::var_os(HANDED_ON).is_some() {
        let daemon = UnixStream::from(io::stdin().as_fd().try_clone_to_owned().unwrap());
        // Waits until no parent is left that the system could find by its number.
        if let Some(parent) = getppid()
            && env::var(HANDED_ON).is_ok_and(|id| id == parent.as_raw_nonzero().to_string())
            && let Ok(parent) = pidfd_open(parent, PidfdFlags::empty())
        {
            poll(&mut [PollFd::new(&parent, PollFlags::IN)], None).unwrap();
        }
        return talk(daemon, UnixStream::connect(test).unwrap());
    }
    if how == "connect" {
        return talk(UnixStream::connect(daemon).unwrap(), UnixStream::connect(test).unwrap());
    }
    let mut test = UnixStream::connect(test).unwrap();
    test.read_exact(&mut [0]).unwrap();
    let daemon = UnixStream::connect(Path::new(daemon)).unwrap();
    let mut next = Command::new(env::current_exe().unwrap());
    next.args(["--exact", "security::relay::talks_for_the_tests", "--nocapture"])
        .env(HANDED_ON, std::process::id().to_string())
        .stdin(Stdio::from(OwnedFd::from(daemon)));
    next.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // The session ends the child.
    std::process::exit(0);
}

fn talk(daemon: UnixStream, test: UnixStream) {
    let (input, output) = (test.try_clone().unwrap(), daemon.try_clone().unwrap());
    thread::spawn(move || pass(input, output));
    pass(daemon, test);
}

fn pass(mut from: UnixStream, mut to: UnixStream) {
    let mut buffer = [0; 4096];
    // Either side may end at any time.
    while let Ok(count @ 1..) = from.read(&mut buffer)
        && to.write_all(&buffer[..count]).is_ok()
    {}
    let _ = to.shutdown(Shutdown::Write);
}
