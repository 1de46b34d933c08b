//! Tests of what goes wrong around undo: sessions that share a folder, folders that go away, races, limits.

use std::{
    ffi::OsStr,
    fs,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{PermissionsExt as _, symlink},
    },
};

use agentd_protocol::checkpoints::{DiffCheckpointParams, RestoreCheckpointParams, RestoreStep};

use crate::tests::{World, run, step};

#[test]
fn a_restoring_takes_nothing_from_a_command_of_another_session() {
    let world = World::new();
    world.write("a", "0");
    let (one, other) = (world.named("one"), world.named("other"));
    run(&one, || world.write("a", "1"));
    let running = other.begin_command(None, "bash", true);
    world.write("b", "of the other");
    step(&one, RestoreStep::Undo);
    world.write("c", "of the other");
    running.end();
    let list = other.list().unwrap().checkpoints;
    let paths: Vec<_> = list[0].paths.iter().map(|path| path.rsplit('/').next().unwrap()).collect();
    assert_eq!(paths, ["b", "c"]);
}

#[test]
fn what_is_as_it_was_does_not_stop_undo() {
    let world = World::new();
    world.write("a", "0");
    world.write("b", "0");
    let session = world.session();
    session.set_prompt(Some("p1".into()));
    run(&session, || world.write("a", "1"));
    session.set_prompt(Some("p2".into()));
    run(&session, || world.write("b", "1"));
    // The user undid the second prompt by hand.
    world.write("b", "0");
    let undone = step(&session, RestoreStep::Undo);
    assert_eq!((undone.restored.len(), undone.conflicts.len()), (1, 0), "{undone:?}");
    assert_eq!(world.read("a"), "0");
    assert_eq!(session.list().unwrap().undo, None);
    // Both prompts are undone now, and redone one after the other.
    step(&session, RestoreStep::Redo);
    assert_eq!(world.read("a"), "1");
}

#[test]
fn files_that_were_not_chosen_can_be_undone_later() {
    let world = World::new();
    world.write("a", "0");
    world.write("b", "0");
    let session = world.session();
    session.set_prompt(Some("p1".into()));
    run(&session, || {
        world.write("a", "1");
        world.write("b", "1");
    });
    let of_a = RestoreCheckpointParams {
        step: Some(RestoreStep::Undo),
        files: Some(vec!["a".into()]),
        ..Default::default()
    };
    session.restore(&of_a).unwrap();
    assert_eq!((world.read("a"), world.read("b")), ("0".into(), "1".into()));
    let undone = step(&session, RestoreStep::Undo);
    assert_eq!((undone.restored.len(), undone.conflicts.len()), (1, 0), "{undone:?}");
    assert_eq!(world.read("b"), "0");
    assert_eq!(session.list().unwrap().undo, None);
    step(&session, RestoreStep::Redo);
    assert_eq!((world.read("a"), world.read("b")), ("0".into(), "1".into()));
}

#[test]
fn diffs_have_a_bound_and_say_what_they_leave_out() {
    let world = World::new();
    let session = world.session();
    run(&session, || {
        for number in 0..40 {
            world.write(&format!("f{number:02}"), &"a line of text\n".repeat(60_000));
        }
    });
    let all = session.diff(&DiffCheckpointParams::default()).unwrap();
    assert_eq!(all.files.len(), 40);
    assert_eq!(all.files[39].added, 0);
    assert_eq!(
        all.files[39].diff,
        "f39: left out, since the diffs before it are long; ask for it by its name\n"
    );
    let bytes: usize = all.files.iter().map(|file| file.diff.len()).sum();
    assert!(bytes < 20 << 20, "{bytes}");
    let one = DiffCheckpointParams { files: Some(vec!["f39".into()]), ..Default::default() };
    assert_eq!(session.diff(&one).unwrap().files[0].added, 60_000);
}

#[test]
fn a_folder_that_was_removed_whole_comes_back() {
    let world = World::new();
    world.write("a", "0");
    world.write("sub/b", "0");
    let session = world.session();
    let before = world.picture();
    run(&session, || fs::remove_dir_all(&world.root).unwrap());
    let undone = step(&session, RestoreStep::Undo);
    assert_eq!(undone.conflicts, []);
    assert_eq!(world.picture(), before);
    run(&session, || world.write("sub/b", "1"));
    assert_eq!(step(&session, RestoreStep::Undo).restored.len(), 1);
    // Another folder in its place.
    run(&session, || {
        fs::rename(&world.root, world.agent_dir.join("moved")).unwrap();
        world.write("other", "x");
    });
    assert_eq!(step(&session, RestoreStep::Undo).conflicts, []);
    assert_eq!(world.picture(), before);
}

#[test]
fn the_mode_of_the_folder_itself_comes_back() {
    let world = World::new();
    fs::set_permissions(&world.root, fs::Permissions::from_mode(0o755)).unwrap();
    let session = world.session();
    run(&session, || fs::set_permissions(&world.root, fs::Permissions::from_mode(0o700)).unwrap());
    assert_eq!(step(&session, RestoreStep::Undo).restored.len(), 1);
    assert_eq!(fs::metadata(&world.root).unwrap().permissions().mode() & 0o777, 0o755);
}

#[test]
fn a_repository_that_is_gone_is_said() {
    let world = World::new();
    world.write("nested/.git/HEAD", "ref");
    world.write("nested/a", "0");
    let session = world.session();
    run(&session, || fs::remove_dir_all(world.root.join("nested")).unwrap());
    let checkpoint = session.list().unwrap().checkpoints.remove(0);
    assert_eq!(checkpoint.skipped[0].path, world.root.join("nested/.git").display().to_string());
    assert!(checkpoint.skipped[0].why.contains("git"), "{checkpoint:?}");
    step(&session, RestoreStep::Undo);
    assert_eq!(world.read("nested/a"), "0");
    assert!(!world.root.join("nested/.git").exists());
}

#[test]
fn a_long_file_of_the_user_is_a_conflict_that_costs_nothing() {
    let world = World::new();
    world.write("a", "0");
    let session = world.session();
    run(&session, || world.write("a", "1"));
    let file = fs::File::options().write(true).open(world.root.join("a")).unwrap();
    file.set_len(1 << 36).unwrap();
    let undone = step(&session, RestoreStep::Undo);
    assert_eq!(undone.conflicts.len(), 1);
    assert_eq!(fs::metadata(world.root.join("a")).unwrap().len(), 1 << 36);
}

#[test]
fn a_full_store_still_gives_back() {
    let mut world = World::new();
    let long: String = (0..3_000_000_u64).map(|n| char::from(b'a' + (n * n / 7 % 26) as u8)).collect();
    world.write("a", &long);
    let session = world.session();
    run(&session, || world.write("a", &long.to_uppercase()));
    drop(session);
    world.services = crate::UndoServices::default();
    let store = crate::Store::open(&world.agent_dir.join("undo"), u64::MAX).unwrap();
    world.limits.max_total_bytes = store.bytes().max(6_100_000);
    drop(store);
    let session = world.session();
    let undone = step(&session, RestoreStep::Undo);
    assert_eq!((undone.restored.len(), undone.conflicts), (1, vec![]));
    assert_eq!(world.read("a"), long);
    assert_eq!(step(&session, RestoreStep::Redo).conflicts, []);
}

#[test]
fn names_that_are_no_text_come_back() {
    let world = World::new();
    let path = world.root.join(OsStr::from_bytes(b"caf\xe9\n\xff"));
    fs::create_dir(&path).unwrap();
    fs::write(path.join(OsStr::from_bytes(b"\xfe")), "0").unwrap();
    symlink(OsStr::from_bytes(b"\xfd"), path.join("link")).unwrap();
    let session = world.session();
    let before = world.picture();
    run(&session, || fs::remove_dir_all(&path).unwrap());
    assert_eq!(step(&session, RestoreStep::Undo).conflicts, []);
    assert_eq!(world.picture(), before);
}

#[test]
fn no_folder_that_became_a_link_gets_a_mode() {
    let world = World::new();
    world.write("sub/a", "0");
    let session = world.session();
    run(&session, || fs::set_permissions(world.root.join("sub"), fs::Permissions::from_mode(0o777)).unwrap());
    let outside = world.agent_dir.join("outside");
    fs::create_dir(&outside).unwrap();
    fs::set_permissions(&outside, fs::Permissions::from_mode(0o700)).unwrap();
    fs::remove_dir_all(world.root.join("sub")).unwrap();
    symlink(&outside, world.root.join("sub")).unwrap();
    assert_eq!(step(&session, RestoreStep::Undo).conflicts.len(), 1);
    assert_eq!(fs::metadata(&outside).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn many_starts_of_daemons_leave_few_open_files() {
    let mut world = World::new();
    world.write("a", "0");
    for round in 0..12_u64 {
        world.services = crate::UndoServices::default();
        let session = world.session();
        for number in 0..6_u64 {
            // Contents that do not compress, so that a file of contents is too long to be merged.
            let mut state = round * 100 + number + 1;
            let noise: Vec<u8> = std::iter::repeat_with(|| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state as u8
            })
            .take(900_000)
            .collect();
            run(&session, || fs::write(world.root.join("a"), &noise).unwrap());
        }
    }
    let packs = world.agent_dir.join("undo/packs");
    world.services = crate::UndoServices::default();
    let session = world.session();
    assert!(fs::read_dir(&packs).unwrap().count() > 10);
    let open = fs::read_dir("/proc/self/fd").unwrap().flatten();
    let open = open.filter(|fd| fs::read_link(fd.path()).is_ok_and(|to| to.starts_with(&packs))).count();
    assert!(open <= 1, "{open}");
    let first = session.list().unwrap().checkpoints.remove(0);
    let back = RestoreCheckpointParams { checkpoint_id: Some(first.id), ..Default::default() };
    assert_eq!(session.restore(&back).unwrap().conflicts, []);
    assert_eq!(world.read("a"), "0");
}
