//! Tests of what is named instead of done, and of what a restored file passes on.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
};

use agentd_protocol::checkpoints::{DiffCheckpointParams, RestoreCheckpointParams, RestoreStep};

use crate::tests::{World, run, step};

#[test]
fn what_the_agent_left_read_only_can_be_undone() {
    let world = World::new();
    world.write("a", "0");
    let before = world.picture();
    let session = world.session();
    run(&session, || {
        world.write("cache/of/packages", "x");
        for path in ["cache/of/packages", "cache/of", "cache"] {
            fs::set_permissions(world.root.join(path), fs::Permissions::from_mode(0o555)).unwrap();
        }
    });
    let after = world.picture();
    assert_eq!(step(&session, RestoreStep::Undo).conflicts, []);
    assert_eq!(world.picture(), before);
    assert_eq!(step(&session, RestoreStep::Redo).conflicts, []);
    assert_eq!(world.picture(), after);
    // With a file of the user in it, the folder stays, with its mode.
    fs::set_permissions(world.root.join("cache"), fs::Permissions::from_mode(0o755)).unwrap();
    world.write("cache/mine", "user");
    fs::set_permissions(world.root.join("cache"), fs::Permissions::from_mode(0o555)).unwrap();
    let undone = step(&session, RestoreStep::Undo);
    assert_eq!(undone.conflicts.len(), 1, "{undone:?}");
    assert_eq!(fs::metadata(world.root.join("cache")).unwrap().permissions().mode() & 0o777, 0o555);
    assert!(!world.root.join("cache/of").exists());
}

#[test]
fn a_preview_says_what_a_restoring_does() {
    let world = World::new();
    world.write("gone/z", "z");
    let session = world.session();
    run(&session, || {
        fs::remove_dir_all(world.root.join("gone")).unwrap();
        world.write("made/deep/agents", "x");
    });
    world.write("made/mine", "user");
    symlink("/", world.root.join("gone")).unwrap();
    let preview =
        RestoreCheckpointParams { step: Some(RestoreStep::Undo), preview: true, ..Default::default() };
    let preview = session.restore(&preview).unwrap();
    let done = step(&session, RestoreStep::Undo);
    assert_eq!((preview.restored, &preview.conflicts), (done.restored, &done.conflicts));
    let names: Vec<_> = done.conflicts.iter().map(|it| it.path.rsplit('/').next().unwrap()).collect();
    assert_eq!(names, ["gone", "z", "made"]);
    assert!(world.root.join("made/mine").exists() && !world.root.join("made/deep").exists());
}

#[test]
fn files_that_nobody_changed_are_an_error() {
    let world = World::new();
    world.write("a", "0");
    let session = world.session();
    run(&session, || world.write("a", "1"));
    for name in ["b", "../a", "/etc/passwd", ""] {
        let params = RestoreCheckpointParams {
            step: Some(RestoreStep::Undo),
            files: Some(vec![name.into()]),
            ..Default::default()
        };
        let restored = session.restore(&params);
        // No name at all is the folder itself, with everything in it.
        assert_eq!(restored.is_ok(), name.is_empty(), "{name}: {restored:?}");
    }
    assert_eq!(world.read("a"), "0");
}

#[test]
fn a_restored_file_keeps_owner_and_attributes() {
    let world = World::new();
    world.write("a", "0");
    let path = world.root.join("a");
    let is_root = rustix::process::geteuid().is_root();
    let owner = if is_root { 1234 } else { rustix::process::geteuid().as_raw() };
    std::os::unix::fs::chown(&path, Some(owner), None).unwrap();
    let noted = rustix::fs::setxattr(&path, "user.note", b"x", rustix::fs::XattrFlags::empty()).is_ok();
    let session = world.session();
    run(&session, || fs::write(&path, "1").unwrap());
    step(&session, RestoreStep::Undo);
    assert_eq!(world.read("a"), "0");
    assert_eq!(std::os::unix::fs::MetadataExt::uid(&fs::metadata(&path).unwrap()), owner);
    let mut value = [0; 8];
    let found = rustix::fs::getxattr(&path, "user.note", &mut value[..]).ok();
    assert_eq!(found, noted.then_some(1));
}

#[test]
fn a_command_that_makes_too_many_files_says_that_they_are_not_all_kept() {
    let mut world = World::new();
    world.limits.max_files = 20;
    world.write("a", "0");
    let session = world.session();
    run(&session, || {
        world.write("a", "1");
        for number in 0..40 {
            world.write(&format!("many/{number}"), "x");
        }
    });
    let list = session.list().unwrap().checkpoints;
    assert!(list[0].skipped[0].why.contains("undo.maxFiles"), "{list:?}");
    assert!(session.state().uncovered.is_some_and(|why| why.contains("undo.maxFiles")));
    // What was seen is given back, and file tools are covered as before.
    step(&session, RestoreStep::Undo);
    assert_eq!(world.read("a"), "0");
    session.change_file(None, "write", &world.root.join("a"), || world.write("a", "2"));
    step(&session, RestoreStep::Undo);
    assert_eq!(world.read("a"), "0");
}

#[test]
fn long_files_do_not_count_for_what_a_folder_has() {
    let mut world = World::new();
    world.limits.max_file_bytes = 10;
    world.limits.max_total_bytes = 100;
    for number in 0..50 {
        world.write(&number.to_string(), "longer than ten bytes");
    }
    let session = world.session();
    session.prepare();
    assert_eq!(session.state().uncovered, None);
}

#[test]
fn gaps_beyond_the_first_are_counted() {
    let mut world = World::new();
    world.limits.max_file_bytes = 10;
    let session = world.session();
    run(&session, || (0..50).for_each(|number| world.write(&number.to_string(), "longer than ten bytes")));
    let skipped = session.list().unwrap().checkpoints.remove(0).skipped;
    assert_eq!(skipped.len(), 20);
    assert_eq!(skipped[19].why, "and 31 more paths, for reasons as these");
}

#[test]
fn diffs_name_what_came_and_went_and_stay_in_their_lines() {
    let world = World::new();
    fs::write(world.root.join("bin"), [0, 1]).unwrap();
    let session = world.session();
    run(&session, || {
        fs::remove_file(world.root.join("bin")).unwrap();
        world.write("new\n+++ b/x", "1");
        fs::create_dir(world.root.join("sub")).unwrap();
    });
    run(&session, || fs::set_permissions(world.root.join("sub"), fs::Permissions::from_mode(0o700)).unwrap());
    let diff = |id: &str| {
        let params = DiffCheckpointParams { checkpoint_id: Some(id.into()), ..Default::default() };
        let files = session.diff(&params).unwrap().files;
        files.into_iter().map(|file| file.diff).collect::<String>()
    };
    let first = diff("c1");
    assert!(
        first.contains("bin: binary file deleted\n") && first.contains("sub: folder created\n"),
        "{first}"
    );
    // The folder of the odd name is listed, too.
    assert!(!first.lines().any(|line| line == "+++ b/x/x" || line == "+++ b/x"), "{first}");
    let second = diff("c2");
    assert!(second.starts_with("mode of sub: 0") && second.ends_with("-> 0700\n"), "{second}");
}
