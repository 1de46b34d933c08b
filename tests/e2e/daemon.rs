//! The daemon in the background: how it starts, its status, its logs.

use std::{
    fs,
    io::Write,
    os::unix::{fs::PermissionsExt, net::UnixListener},
    path::{Path, PathBuf},
    time::Duration,
};

use agentd_e2e::{Ctl, Home, Service, binaries, ctl, processes};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::assert_says;

/// A daemon that `agentctl up` started. Dropping it stops the daemon.
pub(crate) struct InBackground<'a> {
    pub(crate) home: &'a Home,
    pub(crate) status: Value,
}

impl<'a> InBackground<'a> {
    pub(crate) fn up(home: &'a Home) -> Self {
        let up = ctl::run(home, &["up"]);
        assert_eq!((up.code, up.stderr.as_str()), (0, ""), "{up:?}");
        let this = Self { home, status: status(home).expect("it runs") };
        let told = format!("agentd is running (pid {}, socket {})\n", this.id(), this.socket().display());
        assert_eq!(up.stdout, told);
        this
    }

    pub(crate) fn id(&self) -> i32 {
        self.status["daemon"]["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok()).expect("a pid")
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.status["socket"].as_str().expect("a path").into()
    }
}

impl Drop for InBackground<'_> {
    fn drop(&mut self) {
        // The socket belongs to this home alone. A daemon that does not run is fine.
        if status(self.home).is_some() {
            let _ = ctl::run(self.home, &["down", "--abort"]);
        }
    }
}

/// The status of a running daemon by `agentctl status --json`; `None` while none runs.
pub(crate) fn status(home: &Home) -> Option<Value> {
    let said = ctl::run(home, &["status", "--json"]);
    let status: Value = serde_json::from_str(&said.stdout).expect("one line of JSON");
    assert_eq!(said.code, if status["running"] == json!(false) { 3 } else { 0 }, "{said:?}");
    (status["running"] == json!(true)).then_some(status)
}

pub(crate) fn mode(path: &Path) -> u32 {
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
fn the_daemon_outlives_its_starter_and_keeps_no_folder_busy() {
    let home = Home::new();
    let daemon = InBackground::up(&home);
    let stat = fs::read_to_string(format!("/proc/{}/stat", daemon.id())).unwrap();
    // The fields after the name in brackets: state, parent, group, session, terminal.
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    let own = daemon.id().to_string();
    assert_eq!(&fields[2..5], [&own, &own, "0"], "{stat}");
    assert_eq!(fs::read_link(format!("/proc/{}/cwd", daemon.id())).unwrap(), Path::new("/"));
}

#[test]
fn a_second_daemon_learns_of_the_first() {
    let home = Home::new();
    let first = Service::start(&home, &[]);
    for args in [&[][..], &["--socket", first.socket().to_str().unwrap()]] {
        let Err(second) = Service::try_start(&home, args, |_| {}) else { panic!("two daemons") };
        assert_eq!(second.status.code(), Some(4), "{second:?}");
        let (pid, socket) = (first.id(), first.socket().display());
        assert_eq!(second.stderr, format!("Error: agentd is already running (pid {pid}, socket {socket})\n"));
    }
    // The first daemon is unaffected.
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
fn many_starts_at_once_make_one_daemon() {
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
fn what_a_killed_daemon_left_is_taken_over() {
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

/// The system accepts connections for a moment after a daemon was killed.
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
    // SIGINT would not work: a shell's background jobs, such as a whole test run, ignore it.
    following.signal(Signal::TERM);
    assert_eq!(following.finish().stdout, "one\ntwo\nthree\nfour\nfive\n");
}

/// Verbs that need a daemon name the socket that they tried.
#[test]
fn without_a_daemon_verbs_that_need_one_exit_with_3() {
    let home = Home::new();
    for verb in [&["attach", "0198"][..], &["steer", "0198", "x"], &["ps"], &["status"]] {
        let said = ctl::run(&home, verb);
        assert_eq!(said.code, 3, "{verb:?}: {said:?}");
        assert_says(&format!("{}{}", said.stdout, said.stderr), &["agentd is not running", "agentd.sock"]);
    }
}
