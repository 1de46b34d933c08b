//! One daemon of a life: the plan of its death, its start, its end, and the processes and files that it leaves.

use std::{
    fs::{self, File, OpenOptions},
    io::{BufRead, BufReader, Read},
    os::unix::{net::UnixStream, process::ExitStatusExt as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Stdio},
    time::{Duration, Instant},
};

use agentd_e2e::{Home, Random, binaries, processes};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fd::OwnedFd,
    process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open},
};

use super::shared::{self, Points};

/// The start of a round's daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// `agentd serve`, with several clients.
    Serve,
    /// `agentd --stdio`, with its one host.
    Stdio,
}

/// The moment of its death.
#[derive(Debug, Clone)]
pub(crate) enum Moment {
    /// At a fail point, or when the load is over.
    Point {
        /// The point's name.
        name: String,
        /// The value of the variable.
        armed: String,
    },
    /// After so many lines to clients, and a pause.
    Lines(u64, Duration),
    /// In the middle of its start, before any client.
    Start(Duration),
}

/// A round.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) mode: Mode,
    pub(crate) moment: Moment,
    /// The guard and the supervisors are killed, too.
    pub(crate) with_guard: bool,
    /// The longest time of the load.
    pub(crate) load: Duration,
    /// The model streams long enough for some text to be stored.
    pub(crate) is_slow: bool,
    /// Seed of the round's own decisions.
    pub(crate) seed: u64,
}

/// Parts of the daemon that work once in its life, or seldom.
const SELDOM: &[&str] = &["socket", "owner", "guard", "trust", "copy", "delete", "export", "models", "auth"];

/// The value that arms a point for its `time`th passage.
fn armed(name: &str, time: u64, torn: bool) -> String {
    match name {
        // These points follow a failure: half a line is truncated, a file that could not be begun is removed.
        "store.cut" => return "store.append@4:short,store.append@5:enospc,store.cut".to_owned(),
        "store.remove" => return "store.append@1+:enospc,store.remove".to_owned(),
        _ => {}
    }
    let part = name.split('.').next().unwrap_or_default();
    let time = if SELDOM.contains(&part) || name.starts_with("store.rename") || name == "store.link" {
        1
    } else {
        time
    };
    let time = if name.starts_with("intent_log.flush") { 1 } else { time };
    // Only writes can be torn.
    let written = name.ends_with(".append") || name.ends_with(".write");
    format!("{name}@{time}{}", if torn && written { ":torn" } else { "" })
}

/// Decides a round.
pub(crate) fn plan(random: &mut Random, round: usize, points: &Points) -> Plan {
    // All values are drawn in every case, so that one decision does not affect the others.
    let (kind, time, lines, pause, seed) = (
        random.below(0..100),
        random.below(0..100),
        random.below(1..90),
        random.below(0..100),
        random.bits(),
    );
    let torn = random.chance(25);
    let with_guard = random.chance(20);
    let is_slow = random.chance(3);
    let pause = match pause {
        0..60 => Duration::from_micros(pause * 50),
        60..95 => Duration::from_millis(pause - 60),
        _ => Duration::from_millis((pause - 90) * 20),
    };
    let point = if kind < 50 { points.take() } else { None };
    let moment = match point {
        Some(name) => {
            let time = match time {
                0..60 => 1,
                60..80 => 2,
                80..90 => 3,
                _ => time - 80,
            };
            Moment::Point { name: name.to_owned(), armed: armed(name, time, torn) }
        }
        None if kind < 92 => Moment::Lines(lines, pause),
        None => Moment::Start(pause),
    };
    let of_socket = matches!(&moment, Moment::Point { name, .. } if name.starts_with("socket."));
    let mode = if round % 3 == 2 && !of_socket { Mode::Stdio } else { Mode::Serve };
    // Streamed text is stored once a second.
    let is_slow =
        is_slow || matches!(&moment, Moment::Point { name, .. } if name.starts_with("intent_log.flush"));
    let load = Duration::from_millis(if is_slow { 3_000 } else { 600 });
    Plan { mode, moment, with_guard, load, is_slow, seed }
}

/// A running daemon, and its connection.
pub(crate) struct Daemon {
    pub(crate) child: Child,
    pub(crate) socket: Option<PathBuf>,
    pub(crate) pipes: Option<(ChildStdin, ChildStdout)>,
}

/// The result of a start.
pub(crate) enum Started {
    Up(Daemon),
    /// It died of a signal during the start.
    Died(Daemon),
    /// It ended by itself, which is wrong: exit code and output.
    Refused(String),
}

impl Daemon {
    /// Starts the daemon without waiting.
    pub(crate) fn spawn(home: &Home, mode: Mode, armed: Option<&str>) -> Self {
        let mut command = home.command(binaries::agentd());
        match mode {
            Mode::Serve => command.arg("serve"),
            Mode::Stdio => command.arg("--stdio"),
        };
        let errors = OpenOptions::new().create(true).append(true).open(home.root().join("stderr"));
        command.stdout(Stdio::piped()).stderr(errors.expect("a file for stderr"));
        command.stdin(if mode == Mode::Stdio { Stdio::piped() } else { Stdio::null() });
        if let Some(armed) = armed {
            command.env(shared::VARIABLE, armed);
        }
        let mut child = command.spawn().expect("agentd starts");
        let pipes = child.stdin.take().zip(child.stdout.take_if(|_| mode == Mode::Stdio));
        Self { child, socket: None, pipes }
    }

    /// Waits until the daemon accepts clients.
    pub(crate) fn up(mut self, home: &Home) -> Started {
        if self.pipes.is_some() {
            return Started::Up(self);
        }
        let mut line = String::new();
        let mut stdout = BufReader::new(self.child.stdout.take().expect("a piped stdout"));
        let _ = stdout.read_line(&mut line);
        let words = line.split_once(" listens on ").and_then(|(_, rest)| rest.rsplit_once(" (pid "));
        if let Some((socket, _)) = words {
            self.socket = Some(socket.into());
            return Started::Up(self);
        }
        let status = self.child.wait().expect("the status of a child");
        if status.signal() == Some(9) {
            return Started::Died(self);
        }
        Started::Refused(format!("{status}: {line}{}", stderr(home)))
    }

    /// Connects to its socket; `None` if it is gone.
    pub(crate) fn connect(&self) -> Option<UnixStream> {
        let stream = UnixStream::connect(self.socket.as_ref()?).ok()?;
        // A daemon that reads nothing must not block the harness.
        let _ = stream.set_write_timeout(Some(Duration::from_secs(10)));
        Some(stream)
    }

    /// Returns `true` if it has ended by itself.
    pub(crate) fn is_dead(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Kills it as `kill -9` does, and waits for its end.
    pub(crate) fn kill(&mut self) {
        // Both fail only for a process that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The last lines on stderr of the daemons of this home.
pub(crate) fn stderr(home: &Home) -> String {
    let mut bytes = Vec::new();
    let _ = File::open(home.root().join("stderr")).and_then(|mut file| file.read_to_end(&mut bytes));
    let text = String::from_utf8_lossy(&bytes);
    text.lines().rev().take(5).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("\n")
}

/// A process, by a descriptor that survives the reuse of its id.
pub(crate) struct Held {
    id: i32,
    fd: OwnedFd,
    what: String,
}

/// All processes of a home: the daemon with its guard and supervisors, and the processes of commands. They have the home
/// in their environment, or `token` in their command line.
pub(crate) fn processes_of(home: &Home, token: &str) -> Vec<Held> {
    let root = home.root().as_os_str().as_encoded_bytes();
    let ids = fs::read_dir("/proc").expect("a list of processes").flatten();
    let ids = ids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    ids.filter_map(|id| {
        let read = |name: &str| fs::read(format!("/proc/{id}/{name}")).unwrap_or_default();
        let command = read("cmdline");
        if !holds(&command, token.as_bytes()) && !holds(&read("environ"), root) {
            return None;
        }
        let fd = pidfd_open(Pid::from_raw(id)?, PidfdFlags::empty()).ok()?;
        let what = String::from_utf8_lossy(&command).replace('\0', " ");
        Some(Held { id, fd, what: format!("{id} ({})", what.trim_end()) })
    })
    .filter(|held| !has_ended(held, Instant::now()))
    .collect()
}

fn holds(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

fn has_ended(held: &Held, by: Instant) -> bool {
    let left = by.saturating_duration_since(Instant::now());
    let timeout = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
    // An interrupted poll counts as a poll that was too early.
    poll(&mut [PollFd::new(&held.fd, PollFlags::IN)], Some(&timeout)).is_ok_and(|ready| ready > 0)
}

/// The processes that are still alive after `limit`.
pub(crate) fn still_there(held: &[Held], limit: Duration) -> Vec<String> {
    let end = Instant::now() + limit;
    held.iter().filter(|held| !has_ended(held, end)).map(|held| held.what.clone()).collect()
}

/// Waits until a home has no process; returns those that are left after `limit`.
pub(crate) fn wait_for_none(home: &Home, token: &str, limit: Duration) -> Vec<String> {
    let end = Instant::now() + limit;
    loop {
        let held = processes_of(home, token);
        let left = still_there(&held, end.saturating_duration_since(Instant::now()));
        // A process that was forked meanwhile is found by the next scan.
        if held.is_empty() || !left.is_empty() {
            return left;
        }
    }
}

/// Kills the daemon, its guard and the supervisors almost at once.
pub(crate) fn kill_with_guard(daemon: u32) {
    let mut all = Vec::new();
    for guard in processes::children(daemon) {
        all.extend(processes::children(guard.unsigned_abs()));
        all.push(guard);
    }
    all.push(daemon.cast_signed());
    for signal in [Signal::STOP, Signal::KILL] {
        for id in &all {
            // A process that has ended is fine.
            let _ = Pid::from_raw(*id).map(|pid| kill_process(pid, signal));
        }
    }
}

/// Ends the remains of a failed life, so that they do not disturb the next.
pub(crate) fn clean_up(home: &Home, token: &str) {
    for held in processes_of(home, token) {
        let _ = Pid::from_raw(held.id).map(|pid| kill_process(pid, Signal::KILL));
    }
}

/// Temporary files below a folder.
pub(crate) fn temporary_files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            if path.is_dir() && !path.is_symlink() {
                folders.push(path.clone());
            }
            let is_temporary =
                name.starts_with(".tmp") || name.ends_with(".tmp") || name.contains("migrating");
            if is_temporary {
                found.push(path.display().to_string());
            }
        }
    }
    found
}
