//! Tests of what is removed while a daemon lives for long.

use std::{fs, time::Duration};

use agentd_protocol::checkpoints::{RestoreCheckpointParams, RestoreStep};

use crate::{
    SessionCheckpoints, UndoServices,
    tests::{World, run, step},
};

/// Text that does not compress well, another for each number.
pub(crate) fn noise(number: u64, len: usize) -> String {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'!' + (state % 90) as u8)
    };
    std::iter::repeat_with(next).take(len).collect()
}

fn skipped(session: &SessionCheckpoints) -> Vec<String> {
    let checkpoints = session.list().unwrap().checkpoints;
    checkpoints.into_iter().flat_map(|checkpoint| checkpoint.skipped).map(|skipped| skipped.why).collect()
}

#[test]
fn a_store_that_fills_up_is_pruned_while_it_is_in_use() {
    let mut world = World::new();
    world.limits.max_total_bytes = 1_000_000;
    world.write("a", "0");
    world.write("b", "of the index alone");
    let session = world.session();
    for round in 0..60 {
        run(&session, || world.write("a", &noise(round, 50_000)));
        session.kept.finish_pruning();
    }
    assert_eq!(skipped(&session), Vec::<String>::new());
    assert!(session.kept.store.bytes() <= 1_000_000, "{}", session.kept.store.bytes());
    let kept = session.list().unwrap().checkpoints;
    assert!((10..60).contains(&kept.len()), "{}", kept.len());
    // Ids are not used again, and what is listed can be given back.
    assert_eq!(kept.last().map(|last| last.id.as_str()), Some("c60"));
    let back = RestoreCheckpointParams { checkpoint_id: Some(kept[0].id.clone()), ..Default::default() };
    assert_eq!(session.restore(&back).unwrap().conflicts, []);
    run(&session, || fs::remove_file(world.root.join("b")).unwrap());
    step(&session, RestoreStep::Undo);
    assert_eq!(world.read("b"), "of the index alone");
}

#[test]
fn what_a_running_command_changed_survives_a_pruning() {
    let world = World::new();
    world.write("a", "before");
    let (one, other) = (world.named("one"), world.named("other"));
    let running = one.begin_command(None, "bash", true);
    world.write("a", "after");
    // Another command starts: the change is noted, and in no checkpoint yet.
    run(&other, || {});
    one.kept.prune();
    running.end();
    assert_eq!(step(&one, RestoreStep::Undo).conflicts, []);
    assert_eq!(world.read("a"), "before");
    assert_eq!(step(&one, RestoreStep::Redo).conflicts, []);
    assert_eq!(world.read("a"), "after");
}

#[test]
fn old_checkpoints_go_while_the_session_is_open() {
    let mut world = World::new();
    world.limits.max_age = Duration::ZERO;
    world.write("a", "0");
    let session = world.session();
    run(&session, || world.write("a", "1"));
    // A checkpoint of this very millisecond is not too old.
    let made = session.list().unwrap().checkpoints[0].time;
    while crate::records::now_ms() <= made {
        std::thread::yield_now();
    }
    session.kept.prune();
    assert_eq!(session.list().unwrap().checkpoints.len(), 0);
    run(&session, || world.write("a", "2"));
    assert_eq!(session.list().unwrap().checkpoints[0].id, "c2");
}

#[test]
fn nothing_is_pruned_that_another_process_may_need() {
    let mut world = World::new();
    world.limits.max_age = Duration::ZERO;
    world.write("a", "0");
    let session = world.session();
    run(&session, || world.write("a", "1"));
    // As another daemon does.
    let own = std::mem::take(&mut world.services);
    let other = world.named("other");
    let made = session.list().unwrap().checkpoints[0].time;
    while crate::records::now_ms() <= made {
        std::thread::yield_now();
    }
    session.kept.prune();
    assert_eq!(session.list().unwrap().checkpoints.len(), 1);
    drop((other, own));
    session.kept.prune();
    assert_eq!(session.list().unwrap().checkpoints.len(), 0);
}

#[test]
fn a_file_that_there_was_no_room_for_is_kept_when_there_is_room() {
    let mut world = World::new();
    world.write("z", &noise(1, 150_000));
    let before = world.named("before");
    for round in 0..8 {
        run(&before, || world.write("a", &noise(100 + round, 50_000)));
    }
    drop(before);
    fs::remove_dir_all(world.agent_dir.join("undo/folders")).unwrap();
    // All contents are new to the store, which is nearly full of others.
    world.write("z", &noise(2, 150_000));
    world.limits.max_total_bytes = 560_000;
    let session = world.session();
    session.prepare();
    session.kept.finish_pruning();
    run(&session, || fs::remove_file(world.root.join("z")).unwrap());
    assert_eq!(skipped(&session), Vec::<String>::new());
    assert_eq!(step(&session, RestoreStep::Undo).conflicts, []);
    assert_eq!(world.read("z"), noise(2, 150_000));
}

#[test]
fn a_damaged_content_does_not_stop_pruning() {
    let mut world = World::new();
    world.write("a", &"compresses well ".repeat(500));
    let session = world.session();
    run(&session, || world.write("a", "x"));
    drop(session);
    let pack = fs::read_dir(world.agent_dir.join("undo/packs")).unwrap().next().unwrap().unwrap().path();
    let mut bytes = fs::read(&pack).unwrap();
    // Behind the header of the first content.
    bytes[40..60].fill(0xff);
    fs::write(&pack, bytes).unwrap();
    world.services = UndoServices::default();
    let session = world.session();
    let left: Vec<_> = fs::read_dir(world.agent_dir.join("undo/packs")).unwrap().collect();
    assert!(left.iter().all(|entry| entry.as_ref().unwrap().path() != pack), "{left:?}");
    assert_eq!(step(&session, RestoreStep::Undo).conflicts.len(), 1);
    // The same content is kept anew.
    run(&session, || world.write("b", &"compresses well ".repeat(500)));
    run(&session, || fs::remove_file(world.root.join("b")).unwrap());
    let last = session.list().unwrap().checkpoints.pop().unwrap();
    let back = RestoreCheckpointParams { checkpoint_id: Some(last.id), ..Default::default() };
    assert_eq!(session.restore(&back).unwrap().conflicts, []);
}

#[test]
fn what_a_killed_process_left_half_written_is_removed() {
    let mut world = World::new();
    drop(world.session());
    let undo = world.agent_dir.join("undo");
    let left = [undo.join("large/.1-2-3.tmp"), undo.join("sessions/abc.1-2-3")];
    fs::create_dir_all(undo.join("sessions")).unwrap();
    for path in &left {
        fs::write(path, "x").unwrap();
    }
    world.services = UndoServices::default();
    let _session = world.session();
    assert!(left.iter().all(|path| !path.exists()));
}
