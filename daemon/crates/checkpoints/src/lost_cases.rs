//! Tests of checkpoints that cannot be stored, and of the ids of those that are gone.

use std::{
    fs,
    os::unix::fs::symlink,
    path::PathBuf,
    sync::{Arc, Mutex},
};

use agentd_protocol::checkpoints::{Checkpoint, DiffCheckpointParams, RestoreCheckpointParams, RestoreStep};

use crate::{
    SessionCheckpoints, UndoServices,
    retention::noise,
    tests::{World, run, step},
};

/// The file of the session's checkpoints.
fn records(session: &SessionCheckpoints) -> PathBuf {
    session.with_records(|records| Ok(records.path.clone())).unwrap()
}

/// Puts a device that is always full in the place of the session's file.
fn fill_disk(session: &SessionCheckpoints) -> PathBuf {
    let path = records(session);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    if path.exists() {
        fs::rename(&path, path.with_extension("aside")).unwrap();
    }
    symlink("/dev/full", &path).unwrap();
    path
}

fn free_disk(path: &PathBuf) {
    fs::remove_file(path).unwrap();
    if path.with_extension("aside").exists() {
        fs::rename(path.with_extension("aside"), path).unwrap();
    }
}

#[test]
fn a_checkpoint_that_cannot_be_stored_is_told_of_and_the_call_goes_on() {
    let mut world = World::new();
    world.write("a", "0");
    let session = world.session();
    let told: Arc<Mutex<Vec<Checkpoint>>> = Arc::default();
    let sink = Arc::clone(&told);
    session.set_sink(Box::new(move |checkpoint| sink.lock().unwrap().push(checkpoint)));
    session.set_prompt(Some("p1".into()));
    run(&session, || world.write("a", "1"));
    session.set_prompt(Some("p2".into()));
    let file = fill_disk(&session);
    let command = session.begin_command(Some("call".into()), "bash", true);
    world.write("a", "2");
    world.write("b", "new");
    let gap = command.end().expect("a gap").to_string();
    assert!(gap.contains("cannot be undone") && gap.contains("No space left"), "{gap}");
    let (done, gap) =
        session.change_file(Some("call 2"), "write", &world.root.join("c"), || world.write("c", "x"));
    assert_eq!((done, gap.is_some()), ((), true));
    // Each of the two is told of and listed, with the paths and the reason.
    let told: Vec<Checkpoint> = std::mem::take(&mut *told.lock().unwrap());
    let list = session.list().unwrap().checkpoints;
    assert_eq!(told[1..], list[1..]);
    assert_eq!((list.len(), list[1].call_id.as_deref()), (3, Some("call")));
    let names: Vec<_> = list[1].skipped.iter().map(|it| it.path.rsplit('/').next().unwrap()).collect();
    assert_eq!(names, ["a", "b"]);
    assert!(list[1].skipped[0].why.contains("No space left"), "{list:?}");
    assert_eq!(session.diff(&DiffCheckpointParams::default()).unwrap().skipped.len(), 3);
    // There is room again: the next checkpoint takes the lines of the lost ones along, and another daemon knows them.
    free_disk(&file);
    run(&session, || world.write("d", "x"));
    let before: Vec<String> = session.list().unwrap().checkpoints.into_iter().map(|it| it.id).collect();
    drop(session);
    world.services = UndoServices::default();
    let session = world.session();
    let after: Vec<String> = session.list().unwrap().checkpoints.into_iter().map(|it| it.id).collect();
    assert_eq!(before, after);
    assert_eq!((after[0].as_str(), after[3].as_str()), ("c1", "c2"));
    assert!(after[1] != after[2] && after[1].starts_with("lost-"), "{after:?}");
    // Undoing says what stays, and does not take the prompt before along.
    let undone = step(&session, RestoreStep::Undo);
    assert_eq!((undone.restored.len(), undone.skipped.len()), (1, 3), "{undone:?}");
    assert_eq!(world.read("a"), "2");
    let undone = step(&session, RestoreStep::Undo);
    assert!(undone.conflicts[0].why.contains("a call whose changes are not kept"), "{undone:?}");
}

#[test]
fn a_prompt_of_which_nothing_is_kept_is_not_passed_over_in_silence() {
    let mut world = World::new();
    world.limits.max_file_bytes = 10;
    world.write("a", "0");
    let session = world.session();
    session.set_prompt(Some("p1".into()));
    run(&session, || world.write("a", "1"));
    session.set_prompt(Some("p2".into()));
    run(&session, || world.write("long", "longer than ten bytes"));
    let undone = step(&session, RestoreStep::Undo);
    assert_eq!((undone.restored.len(), undone.skipped.len()), (0, 1), "{undone:?}");
    assert_eq!(world.read("a"), "1");
    let undone = step(&session, RestoreStep::Undo);
    assert_eq!((undone.restored.len(), undone.skipped.len()), (1, 0), "{undone:?}");
    assert_eq!(world.read("a"), "0");
}

#[test]
fn contents_that_there_is_no_room_for_are_a_gap() {
    let mut world = World::new();
    world.limits.max_total_bytes = 20_000;
    let session = world.session();
    session.prepare();
    // Another process uses the store, so that nothing is removed.
    let own = std::mem::take(&mut world.services);
    let _other = world.named("other");
    let command = session.begin_command(None, "bash", true);
    world.write("long", &noise(1, 50_000));
    let gap = command.end().expect("a gap").to_string();
    assert!(gap.contains("undo.maxTotalBytes"), "{gap}");
    let path = world.root.join("more");
    let (_, gap) = session.change_file(None, "write", &path, || world.write("more", &noise(2, 50_000)));
    assert!(gap.is_some_and(|gap| gap.to_string().contains("undo.maxTotalBytes")));
    // What there is room for has none.
    let path = world.root.join("small");
    let (_, gap) = session.change_file(None, "write", &path, || world.write("small", "x"));
    assert_eq!(gap, None);
    drop(own);
}

#[test]
fn an_id_names_one_checkpoint_alone_after_all_were_pruned_and_the_daemon_restarted() {
    let mut world = World::new();
    world.write("a", "0");
    let session = world.session();
    for content in ["1", "2", "3"] {
        run(&session, || world.write("a", content));
    }
    let file = records(&session);
    let made = session.list().unwrap().checkpoints[2].time;
    drop(session);
    while crate::records::now_ms() <= made {
        std::thread::yield_now();
    }
    // Twice: the file that has nothing but the last id stays.
    for _ in 0..2 {
        world.services = UndoServices::default();
        world.limits.max_age = std::time::Duration::ZERO;
        drop(world.session());
    }
    assert!(fs::metadata(&file).unwrap().len() <= crate::records::MAX_PRUNED_LINE);
    world.limits.max_age = std::time::Duration::from_secs(3600);
    world.services = UndoServices::default();
    let session = world.session();
    assert_eq!(session.list().unwrap().checkpoints, []);
    run(&session, || world.write("a", "4"));
    let list = session.list().unwrap().checkpoints;
    assert_eq!(list.iter().map(|it| it.id.as_str()).collect::<Vec<_>>(), ["c4"]);
    let old = RestoreCheckpointParams { checkpoint_id: Some("c1".into()), ..Default::default() };
    assert!(session.restore(&old).unwrap_err().to_string().contains("no checkpoint c1"));
}

#[test]
fn an_id_that_the_session_file_names_is_not_used_again() {
    let world = World::new();
    let session = world.session();
    // As after a power failure, which took the store's own lines.
    for id in ["c7", "c3", "lost-1", "other"] {
        session.continue_after(id);
    }
    run(&session, || world.write("a", "1"));
    assert_eq!(session.list().unwrap().checkpoints[0].id, "c8");
}

#[test]
fn a_folder_that_is_not_covered_is_said_with_each_prompt_once() {
    let mut world = World::new();
    world.limits.max_files = 3;
    for name in ["a", "b", "c", "d"] {
        world.write(name, "0");
    }
    let session = world.session();
    for prompt in ["p1", "p2"] {
        session.set_prompt(Some(prompt.into()));
        run(&session, || world.write("a", prompt));
        run(&session, || world.write("b", prompt));
    }
    let list = session.list().unwrap().checkpoints;
    assert_eq!(list.len(), 2, "{list:?}");
    assert!(list[0].skipped[0].why.contains("undo.maxFiles"), "{list:?}");
    let undone = step(&session, RestoreStep::Undo);
    assert_eq!((undone.restored.len(), undone.skipped.len()), (0, 1), "{undone:?}");
}
