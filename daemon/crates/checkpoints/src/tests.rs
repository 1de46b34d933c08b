use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    sync::Arc,
};

use agentd_protocol::checkpoints::{
    ChangeKind, DiffCheckpointParams, DiffSince, RestoreCheckpointParams, RestoreStep, RestoredCheckpoint,
};
use proptest::prelude::*;

use super::*;
use crate::{capture::capture_now, restore::count, retention::noise};

pub(crate) struct World {
    _dir: tempfile::TempDir,
    pub(crate) root: PathBuf,
    pub(crate) agent_dir: PathBuf,
    pub(crate) services: UndoServices,
    pub(crate) limits: UndoLimits,
}

impl World {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let (root, agent_dir) = (base.join("work"), base.join("agent"));
        fs::create_dir_all(&root).unwrap();
        fs::create_dir_all(&agent_dir).unwrap();
        let limits = UndoLimits::of(&Default::default());
        Self { _dir: dir, root, agent_dir, services: UndoServices::default(), limits }
    }

    pub(crate) fn session(&self) -> Arc<SessionCheckpoints> {
        self.named("s")
    }

    pub(crate) fn named(&self, id: &str) -> Arc<SessionCheckpoints> {
        let facts = SessionFacts { id: id.into(), cwd: self.root.clone(), agent_dir: self.agent_dir.clone() };
        SessionCheckpoints::open(&self.services, facts, self.limits).unwrap()
    }

    pub(crate) fn write(&self, path: &str, content: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root.join(path)).unwrap()
    }

    /// Everything below the root: path, kind, mode, content, and of files the time.
    pub(crate) fn picture(&self) -> Vec<(PathBuf, FileState)> {
        let store = Store::open(&self.agent_dir.join("picture"), u64::MAX).unwrap();
        let mut all = Vec::new();
        let mut folders = vec![self.root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let state = capture_now(&path, &store, u64::MAX);
                if matches!(state, FileState::Folder { .. }) {
                    folders.push(path.clone());
                }
                all.push((path, state));
            }
        }
        all.sort_by(|one, other| one.0.cmp(&other.0));
        all
    }
}

pub(crate) fn run(session: &Arc<SessionCheckpoints>, work: impl FnOnce()) {
    let guard = session.begin_command(Some("call".into()), "bash", true);
    work();
    guard.end();
}

pub(crate) fn step(session: &SessionCheckpoints, step: RestoreStep) -> RestoredCheckpoint {
    session.restore(&RestoreCheckpointParams { step: Some(step), ..Default::default() }).unwrap()
}

#[test]
fn a_command_is_undone_and_redone_to_the_byte() {
    let world = World::new();
    for (path, content) in [("a", "1\n"), ("sub/b", "2\n"), ("sub/deep/c", "3\n"), ("x.sh", "#!\n")] {
        world.write(path, content);
    }
    fs::create_dir(world.root.join("sub/empty")).unwrap();
    symlink("a", world.root.join("link")).unwrap();
    let before = world.picture();
    let session = world.session();
    session.set_prompt(Some("p1".into()));
    let root = world.root.clone();
    run(&session, || {
        fs::write(root.join("a"), "changed\n").unwrap();
        fs::remove_dir_all(root.join("sub")).unwrap();
        fs::write(root.join("sub"), "a file now").unwrap();
        fs::remove_file(root.join("link")).unwrap();
        symlink("x.sh", root.join("link")).unwrap();
        fs::set_permissions(root.join("x.sh"), PermissionsExt::from_mode(0o755)).unwrap();
        fs::create_dir_all(root.join("new/er")).unwrap();
        fs::write(root.join("new/er/file"), "x").unwrap();
    });
    let after = world.picture();
    let list = session.list().unwrap();
    assert_eq!(list.checkpoints.len(), 1);
    assert_eq!(list.undo.as_deref(), Some("c1"));
    assert_eq!(list.checkpoints[0].prompt.as_deref(), Some("p1"));
    let undone = step(&session, RestoreStep::Undo);
    assert_eq!(undone.conflicts, []);
    assert_eq!(world.picture(), before);
    assert_eq!(count(&undone, ChangeKind::Deleted), 3);
    let redone = step(&session, RestoreStep::Redo);
    assert_eq!(redone.conflicts, []);
    assert_eq!(world.picture(), after);
    // A session that is opened again can still undo.
    drop(session);
    let session = world.session();
    step(&session, RestoreStep::Undo);
    assert_eq!(world.picture(), before);
    assert!(
        session
            .restore(&RestoreCheckpointParams { step: Some(RestoreStep::Undo), ..Default::default() })
            .is_err()
    );
}

#[test]
fn nothing_changed_is_no_checkpoint_and_changes_in_between_are_the_users() {
    let world = World::new();
    world.write("a", "1");
    world.write("b", "1");
    let session = world.session();
    run(&session, || {});
    world.write("a", "user");
    run(&session, || world.write("b", "agent"));
    let list = session.list().unwrap();
    assert_eq!(list.checkpoints.len(), 1);
    assert_eq!(list.checkpoints[0].paths, [world.root.join("b").display().to_string()]);
    world.write("c", "user's own");
    step(&session, RestoreStep::Undo);
    assert_eq!(
        (world.read("a"), world.read("b"), world.read("c")),
        ("user".into(), "1".into(), "user's own".into())
    );
}

#[test]
fn what_the_user_changed_since_is_left_and_named() {
    let world = World::new();
    world.write("a", "1");
    world.write("b", "1");
    let session = world.session();
    let root = world.root.clone();
    run(&session, || {
        world.write("a", "agent");
        world.write("b", "agent");
        world.write("new/mine", "agent");
    });
    world.write("a", "user");
    world.write("new/yours", "user");
    let preview = session
        .restore(&RestoreCheckpointParams {
            step: Some(RestoreStep::Undo),
            preview: true,
            ..Default::default()
        })
        .unwrap();
    assert_eq!(world.read("b"), "agent");
    // A folder with files of the user is seen before it is tried.
    assert_eq!(preview.conflicts.len(), 2);
    let undone = step(&session, RestoreStep::Undo);
    let named: Vec<_> = undone.conflicts.iter().map(|it| it.path.clone()).collect();
    let path = |name: &str| root.join(name).display().to_string();
    assert_eq!(named, [path("a"), path("new")]);
    assert_eq!((world.read("a"), world.read("b")), ("user".into(), "1".into()));
    assert!(!root.join("new/mine").exists() && root.join("new/yours").exists());
}

#[test]
fn prompts_are_undone_one_after_the_other() {
    let world = World::new();
    world.write("a", "0");
    let session = world.session();
    for prompt in ["p1", "p2", "p3"] {
        session.set_prompt(Some(prompt.into()));
        run(&session, || world.write("a", &format!("{prompt} first")));
        run(&session, || world.write("a", prompt));
    }
    for expected in ["p2", "p1", "0"] {
        step(&session, RestoreStep::Undo);
        assert_eq!(world.read("a"), expected);
    }
    for expected in ["p1", "p2"] {
        step(&session, RestoreStep::Redo);
        assert_eq!(world.read("a"), expected);
    }
    step(&session, RestoreStep::Undo);
    assert_eq!(world.read("a"), "p1");
    session.set_prompt(Some("p4".into()));
    run(&session, || world.write("a", "p4"));
    assert!(session.list().unwrap().redo.is_none());
    let to = RestoreCheckpointParams { checkpoint_id: Some("c1".into()), ..Default::default() };
    assert_eq!(session.restore(&to).unwrap().conflicts, []);
    assert_eq!(world.read("a"), "0");
}

#[test]
fn file_tools_are_told_apart_from_a_command_beside_them() {
    let world = World::new();
    world.write("a", "0");
    world.write("b", "0");
    let outside = world.agent_dir.parent().unwrap().join("outside/file");
    let session = world.session();
    let command = session.begin_command(Some("1".into()), "bash", true);
    world.write("a", "command");
    session.change_file(Some("2"), "write", &world.root.join("b"), || world.write("b", "tool"));
    session.change_file(Some("3"), "write", &outside, || {
        fs::create_dir_all(outside.parent().unwrap()).unwrap();
        fs::write(&outside, "x").unwrap();
    });
    command.end();
    let list = session.list().unwrap().checkpoints;
    let calls: Vec<_> =
        list.iter().map(|it| (it.call_id.clone().unwrap(), it.paths.len(), it.shared)).collect();
    assert_eq!(calls, [("2".into(), 1, false), ("3".into(), 2, false), ("1".into(), 1, false)]);
    step(&session, RestoreStep::Undo);
    assert!(!outside.parent().unwrap().exists());
    assert_eq!((world.read("a"), world.read("b")), ("0".into(), "0".into()));
}

#[test]
fn commands_side_by_side_are_said_to_be_shared() {
    let world = World::new();
    let (one, other) = (world.named("one"), world.named("other"));
    let first = one.begin_command(None, "bash", true);
    world.write("of-first", "x");
    // Until here only the first ran.
    let second = other.begin_command(None, "bash", true);
    world.write("of-either", "x");
    second.end();
    first.end();
    let of = |session: &SessionCheckpoints| {
        let list = session.list().unwrap().checkpoints;
        list.into_iter()
            .map(|it| (it.paths[0].rsplit('/').next().unwrap().to_owned(), it.shared))
            .collect::<Vec<_>>()
    };
    assert_eq!(of(&one), [("of-first".to_owned(), true)]);
    assert_eq!(of(&other), [("of-either".to_owned(), true)]);
    // A command of the user changes nothing that could be undone.
    let user = one.begin_command(None, "bash", false);
    world.write("of-user", "x");
    user.end();
    assert_eq!(one.list().unwrap().checkpoints.len(), 1);
}

#[test]
fn ignored_files_come_into_sight_without_being_the_agents() {
    let world = World::new();
    world.write(".gitignore", "secret\ntarget/\n");
    world.write("secret", "s");
    world.write("target/out", "o");
    world.write(".git/config", "g");
    let session = world.session();
    run(&session, || {
        world.write("target/more", "x");
        world.write(".git/index", "x");
    });
    assert!(session.list().unwrap().checkpoints.is_empty());
    run(&session, || world.write(".gitignore", "target/\n"));
    let undone = step(&session, RestoreStep::Undo);
    assert_eq!(undone.restored.len(), 1);
    assert_eq!(world.read("secret"), "s");
    // Ignored from now on is not deleted.
    run(&session, || world.write(".gitignore", "*\n"));
    let undone = step(&session, RestoreStep::Undo);
    assert_eq!((undone.restored.len(), undone.conflicts), (1, vec![]));
}

#[test]
fn long_files_are_skipped_and_said() {
    let mut world = World::new();
    world.limits.max_file_bytes = 1000;
    world.write("small", "0");
    let session = world.session();
    run(&session, || {
        fs::File::create(world.root.join("large")).unwrap().set_len(5 << 30).unwrap();
        world.write("small", "1");
    });
    let checkpoint = session.list().unwrap().checkpoints.remove(0);
    assert_eq!(checkpoint.skipped[0].path, world.root.join("large").display().to_string());
    assert!(checkpoint.skipped[0].why.contains("undo.maxFileBytes"));
    step(&session, RestoreStep::Undo);
    assert!(world.root.join("large").exists());
    assert_eq!(world.read("small"), "0");
}

#[test]
fn no_link_leads_a_restoring_elsewhere() {
    let world = World::new();
    world.write("sub/a", "1");
    let session = world.session();
    run(&session, || world.write("sub/a", "2"));
    let elsewhere = world.agent_dir.parent().unwrap().join("elsewhere");
    fs::rename(world.root.join("sub"), &elsewhere).unwrap();
    symlink(&elsewhere, world.root.join("sub")).unwrap();
    let undone = step(&session, RestoreStep::Undo);
    assert_eq!(undone.conflicts.len(), 1, "{undone:?}");
    assert_eq!(fs::read_to_string(elsewhere.join("a")).unwrap(), "2");
}

#[test]
fn diffs_are_unified() {
    let world = World::new();
    world.write("a", "1\n2\n3\n");
    let session = world.session();
    run(&session, || {
        world.write("a", "1\ntwo\n3\n");
        world.write("new", "x\n");
        fs::write(world.root.join("bin"), [0, 1, 255]).unwrap();
    });
    let diff = session
        .diff(&DiffCheckpointParams { since: Some(DiffSince::Session), ..Default::default() })
        .unwrap();
    let texts: Vec<_> =
        diff.files.iter().map(|file| (file.diff.as_str(), file.added, file.removed)).collect();
    assert_eq!(
        texts,
        [
            ("--- a/a\n+++ b/a\n@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n", 1, 1),
            ("bin: binary file created\n", 0, 0),
            ("--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+x\n", 1, 0),
        ]
    );
}

#[test]
fn pruning_keeps_what_the_kept_checkpoints_need() {
    let mut world = World::new();
    world.write("a", "0");
    let session = world.session();
    for round in 0..20 {
        run(&session, || world.write("a", &noise(round, 60_000)));
    }
    assert_eq!(session.list().unwrap().checkpoints.len(), 20);
    drop(session);
    fs::remove_dir_all(world.agent_dir.join("undo/folders")).unwrap();
    world.limits.max_total_bytes = 400_000;
    let session = world.session();
    let kept = session.list().unwrap().checkpoints;
    assert!((2..10).contains(&kept.len()), "{}", kept.len());
    world.limits.max_total_bytes = 1 << 30;
    let back = RestoreCheckpointParams { checkpoint_id: Some(kept[0].id.clone()), ..Default::default() };
    assert_eq!(session.restore(&back).unwrap().conflicts, []);
}

#[test]
fn a_damaged_content_is_never_restored() {
    let world = World::new();
    world.write("a", "precious content that is long enough to matter");
    let session = world.session();
    run(&session, || world.write("a", "x"));
    drop(session);
    let pack = fs::read_dir(world.agent_dir.join("undo/packs")).unwrap().next().unwrap().unwrap().path();
    let mut bytes = fs::read(&pack).unwrap();
    let at = bytes.windows(8).position(|window| window == b"precious").unwrap();
    bytes[at] = b'P';
    fs::write(&pack, bytes).unwrap();
    // The index still has the good hash, and the file has its last content.
    let session = world.session();
    let undone = step(&session, RestoreStep::Undo);
    assert_eq!(undone.conflicts.len(), 1, "{undone:?}");
    assert_eq!(world.read("a"), "x");
}

/// A change of a tree with a few names.
#[derive(Debug, Clone)]
enum Act {
    Write(u8, u8),
    Remove(u8),
    Folder(u8),
    Link(u8, u8),
    Mode(u8, bool),
    Move(u8, u8),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        (0..12_u8, 0..4_u8).prop_map(|(path, content)| Act::Write(path, content)),
        (0..12_u8).prop_map(Act::Remove),
        (0..12_u8).prop_map(Act::Folder),
        (0..12_u8, 0..12_u8).prop_map(|(path, to)| Act::Link(path, to)),
        (0..12_u8, any::<bool>()).prop_map(|(path, on)| Act::Mode(path, on)),
        (0..12_u8, 0..12_u8).prop_map(|(from, to)| Act::Move(from, to)),
    ];
    prop::collection::vec(act, 0..12)
}

fn place(root: &Path, number: u8) -> PathBuf {
    const PATHS: [&str; 12] =
        ["a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "d/e/f", "d/e/f/a", "g", "g/a", "g/h"];
    root.join(PATHS[usize::from(number)])
}

/// Failures are part of it: a folder that is missing, a name that is taken.
fn act(root: &Path, act: &Act) {
    match *act {
        Act::Write(path, content) => {
            let path = place(root, path);
            if !path.is_symlink() {
                let _ = fs::write(path, format!("content {content}"));
            }
        }
        Act::Remove(path) => {
            let path = place(root, path);
            let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
        }
        Act::Folder(path) => drop(fs::create_dir(place(root, path))),
        Act::Link(path, to) => drop(symlink(place(Path::new("/nowhere"), to), place(root, path))),
        Act::Mode(path, on) => {
            let path = place(root, path);
            if !path.is_symlink() {
                let mode = if on { 0o755 } else { 0o700 };
                let _ = fs::set_permissions(path, PermissionsExt::from_mode(mode));
            }
        }
        Act::Move(from, to) => drop(fs::rename(place(root, from), place(root, to))),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_changes_are_undone_to_the_byte(start in acts(), calls in prop::collection::vec(acts(), 1..4)) {
        let world = World::new();
        start.iter().for_each(|it| act(&world.root, it));
        let session = world.session();
        session.prepare();
        let mut pictures = vec![world.picture()];
        for (number, call) in calls.iter().enumerate() {
            session.set_prompt(Some(number.to_string()));
            run(&session, || call.iter().for_each(|it| act(&world.root, it)));
            let now = world.picture();
            let same = |one: &[(PathBuf, FileState)], other: &[(PathBuf, FileState)]| {
                one.len() == other.len()
                    && one.iter().zip(other).all(|(one, other)| one.0 == other.0 && one.1.is_same(&other.1))
            };
            if !same(pictures.last().unwrap(), &now) {
                pictures.push(now);
            }
        }
        let count = session.list().unwrap().checkpoints.len();
        prop_assert_eq!(count + 1, pictures.len());
        let plain = |picture: Vec<(PathBuf, FileState)>| -> Vec<_> {
            picture.into_iter().map(|(path, state)| match state {
                FileState::File { id, mode, len, .. } => (path, FileState::File { id, mode, len, mtime: 0 }),
                other => (path, other),
            }).collect()
        };
        let pictures: Vec<_> = pictures.into_iter().map(plain).collect();
        for expected in pictures.iter().rev().skip(1) {
            let undone = step(&session, RestoreStep::Undo);
            prop_assert_eq!(&undone.conflicts, &vec![]);
            prop_assert_eq!(&plain(world.picture()), expected);
        }
        for expected in pictures.iter().skip(1) {
            let redone = step(&session, RestoreStep::Redo);
            prop_assert_eq!(&redone.conflicts, &vec![]);
            prop_assert_eq!(&plain(world.picture()), expected);
        }
    }

    #[test]
    fn contents_come_back(contents in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..5000), 1..8)) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), u64::MAX).unwrap();
        let ids: Vec<_> = contents.iter().map(|content| store.put(content).unwrap()).collect();
        drop(store);
        let store = Store::open(dir.path(), u64::MAX).unwrap();
        for (id, content) in ids.iter().zip(&contents) {
            prop_assert_eq!(&store.get(*id).unwrap(), content);
        }
        store.sweep(&|id| id == ids[0]).unwrap();
        prop_assert_eq!(&store.get(ids[0]).unwrap(), &contents[0]);
        for (id, content) in ids.iter().zip(&contents) {
            prop_assert_eq!(store.has(*id), content == &contents[0]);
        }
    }
}
