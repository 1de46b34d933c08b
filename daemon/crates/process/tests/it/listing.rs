//! Seeing what a group runs.

use std::collections::BTreeSet;

use agentd_process::{ProcessGroup, ProcessTable, ProcessView, RunningProcess};
use agentd_protocol::command::{Work, WorkKind};

use crate::fixture::{escape_artists, launcher, read_pids, script, soon, until_dead};

fn list(view: &ProcessView) -> Vec<RunningProcess> {
    view.list(&ProcessTable::read().expect("/proc"))
}

fn pids(list: &[RunningProcess]) -> BTreeSet<i32> {
    list.iter().map(|process| i32::try_from(process.pid).expect("a process id")).collect()
}

fn call(id: &str) -> Work {
    Work { kind: WorkKind::Tool, id: Some(id.into()), name: Some("bash".into()) }
}

async fn started(group: &ProcessGroup, text: &str) -> (agentd_process::Process, BTreeSet<i32>) {
    let mut process = soon(group.spawn(script(text))).await.expect("a process");
    let pids = read_pids(&mut process.output).await;
    (process, pids)
}

#[tokio::test]
async fn whatever_got_away_from_its_command_is_listed_with_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let group = launcher().group();
    let (process, expected) =
        started(&group.working_for(call("c1")), &(escape_artists(dir.path()) + "wait")).await;
    let view = group.view();
    let seen = list(&view);
    // One of those that got away keeps starting processes of its own, which print no id.
    assert!(pids(&seen).is_superset(&expected), "{seen:?} {expected:?}");
    assert!(seen.iter().all(|process| process.work == Some(call("c1")) && !process.background), "{seen:?}");
    let shell =
        seen.iter().find(|seen| Some(seen.pid) == process.pid().map(i32::unsigned_abs)).expect("the shell");
    assert!(shell.command.starts_with("/bin/sh -c sleep 1000 & echo $!"), "{}", shell.command);
    assert_eq!(shell.parent, None, "what watches the command is not shown");
    let child = seen.iter().find(|seen| seen.parent == Some(shell.pid)).expect("a child of the shell");
    assert!(child.started_ms >= shell.started_ms);
    assert!(
        shell.started_ms.is_some() && shell.cpu_time.is_some() && shell.memory_bytes > Some(0),
        "{shell:?}"
    );
    let orphan = seen.iter().filter(|seen| seen.parent.is_none() && seen.pid != shell.pid).count();
    assert!(orphan > 0, "the double fork has no parent in the list: {seen:?}");

    soon(process.kill()).await;
    assert_eq!(list(&view), []);
}

#[tokio::test]
async fn what_a_finished_command_left_is_in_the_background() {
    let dir = tempfile::tempdir().expect("a folder");
    let group = launcher().group();
    let (process, mut left) = started(&group.working_for(call("c1")), &escape_artists(dir.path())).await;
    assert!(left.remove(&process.pid().expect("its id")));
    soon(process.wait()).await;
    drop(process);
    let (running, shell) =
        started(&group.working_for(call("c2")), "echo $$; echo ready; exec sleep 1000").await;
    let seen = list(&group.view());
    let (background, foreground): (Vec<_>, Vec<_>) = seen.into_iter().partition(|process| process.background);
    assert!(pids(&background).is_superset(&left));
    assert!(background.iter().all(|process| process.work == Some(call("c1"))));
    assert_eq!((pids(&foreground), &foreground[0].work), (shell, &Some(call("c2"))));
    drop(running);
}

#[tokio::test]
async fn a_group_shows_its_own_and_is_not_kept_by_being_seen() {
    let launcher = launcher();
    let (one, other) = (launcher.group(), launcher.group());
    let (process, pids_of_one) = started(&one, "echo $$; echo ready; exec sleep 1000").await;
    let (view, empty) = (one.view(), other.view());
    assert_eq!((pids(&list(&view)), list(&empty)), (pids_of_one.clone(), Vec::new()));
    assert_eq!(list(&view)[0].work, None);
    drop((process, one));
    until_dead(&pids_of_one).await;
    assert_eq!(list(&view), []);
}
