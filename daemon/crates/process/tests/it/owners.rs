//! Daemons that are killed with all that would have cleaned up after them.

use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

use agentd_process::{GuardCommand, Launcher};
use rustix::process::{Pid, Signal, kill_process};

use crate::fixture::{HELPER, escape_artists, is_alive, read_all, script, soon, until, until_dead};

fn launcher(owners: &Path) -> Launcher {
    Launcher::with_owners(GuardCommand { program: HELPER.into(), args: vec!["guard".into()] }, owners.into())
}

/// A daemon that runs a script, and the processes that the script named until it wrote `ready`.
struct Daemon {
    process: Child,
    named: BTreeSet<i32>,
}

fn daemon(script: &str, owners: &Path) -> Daemon {
    #[expect(clippy::zombie_processes, reason = "its killer waits for it, or the test has failed")]
    let mut process = Command::new(HELPER)
        .args(["daemon", script])
        .arg(owners)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a daemon");
    let mut lines = BufReader::new(process.stdout.take().expect("its output")).lines();
    let mut named = BTreeSet::new();
    loop {
        let line = lines.next().expect("a line more").expect("a line");
        if line == "ready" {
            return Daemon { process, named };
        }
        named.extend(line.trim().parse::<i32>());
    }
}

impl Daemon {
    /// Kills it with its guard and its scopes, none of which gets to do anything more.
    fn kill_all(mut self) -> BTreeSet<i32> {
        let daemon = i32::try_from(self.process.id()).expect("an id");
        let guards = children(daemon);
        let scopes: Vec<i32> = guards.iter().copied().flat_map(children).collect();
        let all = [vec![daemon], guards, scopes].concat();
        assert!(all.len() >= 3, "{all:?}");
        for signal in [Signal::STOP, Signal::KILL] {
            for pid in &all {
                kill_process(Pid::from_raw(*pid).expect("an id"), signal).expect("a signal");
            }
        }
        self.process.wait().expect("its end");
        self.named
    }
}

fn children(parent: i32) -> Vec<i32> {
    let of = |pid: i32| -> Option<i32> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
    };
    let all = fs::read_dir("/proc")
        .expect("/proc")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    all.filter(|pid| of(*pid) == Some(parent)).collect()
}

fn notes(owners: &Path) -> usize {
    fs::read_dir(owners).map_or(0, Iterator::count)
}

#[tokio::test]
async fn the_next_one_ends_what_a_killed_one_left() {
    let dir = tempfile::tempdir().expect("a folder");
    let owners = dir.path().join("owners");
    // Without their environment, too: in sessions of their own, without a parent, and ignoring what can be ignored.
    let nameless = format!(
        "for i in 1 2 3 4 5 6 7 8; do
            (env -i setsid sh -c '
                (trap \"\" TERM HUP INT; sh -c \"echo \\$PPID\" >> {0}/pids; while :; do sleep 1000; done) &
            ' > /dev/null 2>&1 < /dev/null &)
        done
        until [ \"$(wc -l < {0}/pids)\" = 8 ]; do sleep 0.01; done 2> /dev/null
        cat {0}/pids
        ",
        dir.path().display()
    );
    let daemon = daemon(&(nameless + &escape_artists(dir.path()) + "wait"), &owners);
    let left = daemon.kill_all();
    assert!(left.len() >= 13, "{left:?}");
    assert!(left.iter().all(|pid| is_alive(*pid)), "nobody ended them");
    assert_eq!(notes(&owners), 1);

    let next = launcher(&owners);
    soon(next.sweep()).await;
    assert!(left.iter().all(|pid| !is_alive(*pid)), "gone when `sweep` returns");
    assert_eq!(notes(&owners), 0);
}

#[tokio::test]
async fn the_first_command_waits_for_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let owners = dir.path().join("owners");
    let left = daemon(&(escape_artists(dir.path()) + "wait"), &owners).kill_all();
    let group = launcher(&owners).group();
    let mut process = soon(group.spawn(script("echo ready"))).await.expect("a process");
    assert!(left.iter().all(|pid| !is_alive(*pid)));
    assert_eq!(read_all(&mut process.output).await, "ready\n");
    assert_eq!(notes(&owners), 1, "its own");
    drop((process, group));
    until("its note goes with it", || notes(&owners) == 0).await;
}

#[tokio::test]
async fn those_that_live_are_left_alone() {
    let dir = tempfile::tempdir().expect("a folder");
    let owners = dir.path().join("owners");
    let mut living = daemon(&(escape_artists(dir.path()) + "wait"), &owners);
    let more = tempfile::tempdir().expect("a folder");
    let left = daemon(&(escape_artists(more.path()) + "wait"), &owners).kill_all();
    assert_eq!(notes(&owners), 2);
    let (one, other) = (launcher(&owners), launcher(&owners));
    soon(async { tokio::join!(one.sweep(), other.sweep()) }).await;
    until_dead(&left).await;
    assert!(living.named.iter().all(|pid| is_alive(*pid)));
    assert_eq!(notes(&owners), 1);
    living.process.kill().expect("killing it");
    living.process.wait().expect("its end");
    until_dead(&living.named).await;
}

#[tokio::test]
async fn nothing_is_noted_before_there_is_a_command() {
    let dir = tempfile::tempdir().expect("a folder");
    let owners = dir.path().join("owners");
    let launcher = launcher(&owners);
    soon(launcher.sweep()).await;
    assert!(!owners.exists());
}

#[tokio::test]
async fn a_folder_that_cannot_be_made_hinders_no_command() {
    let group = launcher(Path::new("/proc/nowhere/owners")).group();
    let mut process = soon(group.spawn(script("echo ready"))).await.expect("a process");
    assert_eq!(read_all(&mut process.output).await, "ready\n");
}
