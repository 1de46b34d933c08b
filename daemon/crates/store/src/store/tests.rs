use std::{fs, process::Command};

use agentd_protocol::message::Message;
use tempfile::TempDir;

use super::*;
use crate::{
    Context, Entry, EntryKind, ForkPoint, NewEntry, Role, StatsCounter, copy_all, copy_branch,
    testing::{Fault, FaultyDisk},
};

fn sample(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/data/sessions").join(name);
    fs::read_to_string(path).unwrap()
}

fn new() -> NewSession {
    NewSession::new("/new", 1_000)
}

fn store() -> Store {
    Store::new(StoreOptions::default())
}

/// A folder with one file in it.
fn file(content: impl AsRef<[u8]>) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    fs::write(&path, content).unwrap();
    (dir, path)
}

fn lines(tree: &SessionTree) -> Vec<String> {
    tree.entries().iter().map(Entry::line).collect()
}

fn append(session: &mut OpenSession, new: NewEntry) -> Entry {
    let entry = session.tree.prepare(new, 2_000);
    session.writer.append(&entry).unwrap();
    session.tree.push(entry.clone());
    entry
}

fn user(text: &str) -> NewEntry {
    let message = serde_json::json!({"role": "user", "content": text}).to_string();
    NewEntry::message(serde_json::from_str(&message).unwrap())
}

/// Role and source of each message.
fn roles(tree: &SessionTree, context: &Context) -> Vec<String> {
    let one = |(message, at): (&agentd_protocol::Json<Message>, &u32)| {
        let id = tree.entries()[*at as usize].id();
        format!("{} {}", message.get().unwrap().role(), &id[id.len() - 2..])
    };
    context.messages().iter().zip(context.sources()).map(one).collect()
}

#[test]
fn current_files_are_kept_byte_for_byte() {
    for name in ["v3-0.73.jsonl", "v3-1.5.jsonl"] {
        let text = sample(name);
        let (_dir, path) = file(&text);
        let mut session = store().open(&path, new()).unwrap();
        assert_eq!(session.report, LoadReport::default());
        assert_eq!(session.tree.entries().len(), text.lines().count() - 1);
        let entry = append(&mut session, user("more"));
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{text}{}\n", entry.line()));
        // And so they go to clients.
        for (entry, line) in session.tree.entries().iter().zip(text.lines().skip(1)) {
            assert_eq!(entry.json().unwrap().text(), line);
        }
    }
}

#[test]
fn the_context_of_the_samples() {
    let (_dir, path) = file(sample("v3-1.5.jsonl"));
    let (tree, _) = store().read(&path).unwrap();
    let mut context = Context::new(&tree);
    assert_eq!(
        roles(&tree, &context),
        [
            "system 12",
            "compactionSummary 12",
            "assistant 0b",
            "custom 0d",
            "branchSummary 10",
            "bashExecution 13",
            "user 14"
        ]
    );
    assert_eq!(context.thinking_level(), Some("high"));
    assert_eq!(context.model().unwrap().model_id, "qwen");
    assert_eq!(
        (tree.name(), tree.label("5e00000b").unwrap().text.as_str()),
        (Some("Cart totals"), "found it")
    );

    // Before the compaction, on the branch that was left: the failed attempt is edited away.
    let mut tree = tree;
    tree.set_leaf(Some("5e00000f")).unwrap();
    context.follow(&tree);
    let expected =
        ["system 04", "user 05", "assistant 08", "toolResult 09", "assistant 0b", "custom 0d", "user 0f"];
    assert_eq!(roles(&tree, &context), expected);

    let totals = StatsCounter::default().totals(&tree).clone();
    assert_eq!((totals.total_messages, totals.assistant_messages, totals.tool_calls), (9, 3, 1));
    assert_eq!(totals.tokens.input, 5505);
    assert!((totals.cost - 0.750_001).abs() < 1e-9, "{}", totals.cost);

    let (_dir, path) = file(sample("v3-0.73.jsonl"));
    let (tree, _) = store().read(&path).unwrap();
    assert_eq!(
        roles(&tree, &Context::new(&tree)),
        ["compactionSummary 08", "assistant 07", "bashExecution 09"]
    );
}

#[test]
fn version_1_becomes_current() {
    let text = sample("v1.jsonl");
    let (dir, path) = file(&text);
    let session = store().open(&path, new()).unwrap();
    assert_eq!(session.report.migrated_from, Some(1));
    let tree = &session.tree;
    assert_eq!((tree.header().version(), tree.info().cwd.as_str()), (3, "/home/user/shop"));
    assert!(tree.header().line().contains(r#""modelId":"claude-sonnet-4-5""#));
    assert_eq!(tree.branch().len(), 7);
    let context = Context::new(tree);
    let texts: Vec<&str> = context.messages().iter().map(|message| message.get().unwrap().role()).collect();
    assert_eq!(texts, ["compactionSummary", "assistant", "user"]);
    assert_eq!(context.thinking_level(), Some("low"));

    // The file is the tree, the messages are as they were, and nothing else is left.
    let written = fs::read_to_string(&path).unwrap();
    let mut expected = Vec::new();
    tree.write_to(&mut expected);
    assert_eq!(written.as_bytes(), expected);
    for (entry, line) in tree.entries().iter().zip(text.lines().skip(1)) {
        let message = entry.message().map_or("", |message| message.text());
        assert!(line.contains(message), "{line}");
    }
    // The original is beside it, and nothing else.
    let original = dir.path().join("s.jsonl.v1.bak");
    assert_eq!(session.report.original.as_deref(), Some(&*original));
    assert_eq!(fs::read_to_string(original).unwrap(), text);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);

    // The lock is on the new file.
    assert!(matches!(store().open(&path, new()).unwrap_err(), StoreError::Locked { .. }));
    drop(session);
    assert_eq!(store().open(&path, new()).unwrap().report, LoadReport::default());
}

#[test]
fn version_2_becomes_current() {
    let text = sample("v2.jsonl");
    let (_dir, path) = file(&text);
    let mut session = store().open(&path, new()).unwrap();
    assert_eq!(session.report.migrated_from, Some(2));
    let entry = append(&mut session, user("more"));
    let expected = text
        .replace("\"version\":2", "\"version\":3")
        .replace("\"role\":\"hookMessage\"", "\"role\":\"custom\"");
    assert_eq!(fs::read_to_string(&path).unwrap(), format!("{expected}{}\n", entry.line()));
    let context = Context::new(&session.tree);
    assert_eq!(roles(&session.tree, &context)[1], "custom 03");
}

#[test]
fn entries_of_unknown_kinds_are_kept_when_a_file_is_rewritten() {
    let unknown = r#"{"type":"todo_artifact","id":"f00d0001","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z","phases":[{"a":1.0}]}"#;
    let (_dir, path) = file(format!("{}{unknown}\n", sample("v2.jsonl")));
    let session = store().open(&path, new()).unwrap();
    assert_eq!(session.report.migrated_from, Some(2));
    assert!(fs::read_to_string(&path).unwrap().lines().any(|line| line == unknown));
    assert_eq!(session.tree.get("f00d0001").unwrap().line().trim_end(), unknown);
}

#[cfg(unix)]
#[test]
fn a_migration_keeps_the_links_and_permissions() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let (dir, path) = file(sample("v2.jsonl"));
    fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
    let link = dir.path().join("link.jsonl");
    symlink(&path, &link).unwrap();
    let session = store().open(&link, new()).unwrap();
    assert_eq!(session.writer.path(), Some(&*link));
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(fs::read_to_string(&path).unwrap().contains("\"version\":3"));
}

#[test]
fn a_migration_that_fails_changes_nothing() {
    let text = sample("v1.jsonl");
    // Two appends (the second is never reached), a sync, and a kill in the middle.
    for fault in 0..3 {
        let (dir, path) = file(&text);
        let disk = FaultyDisk::default();
        match fault {
            0 => {
                disk.plan()
                    .appends
                    .extend([Fault::Short(300), Fault::Error(std::io::ErrorKind::StorageFull)]);
            }
            1 => disk.plan().failing_syncs = 1,
            _ => disk.plan().bytes_to_live = Some(500),
        }
        let faulty = Store::with_io(StoreOptions::default(), Arc::new(disk.clone()));
        let error = faulty.open(&path, new()).unwrap_err();
        assert!(error.to_string().starts_with("cannot rewrite in the current format"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        // A kill leaves the temporary file; the next attempt does not mind.
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), if fault == 2 { 2 } else { 1 });
        let session = store().open(&path, new()).unwrap();
        assert_eq!(session.report.migrated_from, Some(1));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }
}

#[test]
fn an_original_takes_no_name_that_is_taken() {
    let text = sample("v2.jsonl");
    let (dir, path) = file(&text);
    let bak = |end: &str| dir.path().join(format!("s.jsonl.{end}"));
    fs::write(bak("v2.bak"), "theirs").unwrap();
    drop(store().open(&path, new()).unwrap());
    assert_eq!(fs::read_to_string(bak("v2.bak")).unwrap(), "theirs");
    assert_eq!(fs::read_to_string(bak("v2.2.bak")).unwrap(), text);
    assert_eq!(crate::kept_originals(&path), [bak("v2.bak"), bak("v2.2.bak")]);

    // A crash left the second name and not the new file: the name is used.
    let (dir, path) = file(&text);
    let bak = dir.path().join("s.jsonl.v2.bak");
    fs::hard_link(&path, &bak).unwrap();
    let session = store().open(&path, new()).unwrap();
    assert_eq!((session.report.original, fs::read_dir(dir.path()).unwrap().count()), (Some(bak), 2));
}

#[test]
fn where_files_have_one_name_the_original_is_copied() {
    let text = sample("v2.jsonl");
    let (dir, path) = file(&text);
    let disk = FaultyDisk::default();
    disk.plan().no_links = true;
    let faulty = Store::with_io(StoreOptions::default(), Arc::new(disk.clone()));
    drop(faulty.open(&path, new()).unwrap());
    assert_eq!(fs::read_to_string(dir.path().join("s.jsonl.v2.bak")).unwrap(), text);
    // A copy that fails is no original, and the session stays as it was.
    fs::write(&path, &text).unwrap();
    disk.plan().appends.extend([Fault::Short(1 << 20), Fault::Error(std::io::ErrorKind::StorageFull)]);
    faulty.open(&path, new()).unwrap_err();
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
}

#[test]
fn a_file_cut_anywhere_opens_with_what_was_before() {
    let text = sample("v3-1.5.jsonl");
    let header_end = text.find('\n').unwrap();
    let whole: Vec<&str> = text.lines().skip(1).collect();
    // Every cut is tried in memory, in the tests of reading. Here: around each end of a line, and some between.
    let near_end =
        |cut: usize| text.as_bytes()[cut.saturating_sub(2)..text.len().min(cut + 2)].contains(&b'\n');
    for cut in (0..=text.len()).filter(|cut| near_end(*cut) || cut % 97 == 0) {
        let bytes = &text.as_bytes()[..cut];
        let (_dir, path) = file(bytes);
        let opened = store().open(&path, new());
        if (1..header_end).contains(&cut) {
            let error = opened.unwrap_err().to_string();
            assert_eq!(error, format!("Session file is not a valid pi session: {}", path.display()), "{cut}");
            assert_eq!(fs::read(&path).unwrap(), bytes, "left alone");
            continue;
        }
        let mut session = opened.unwrap();
        let complete = bytes
            .split(|byte| *byte == b'\n')
            .skip(1)
            .filter(|line| Entry::parse(&String::from_utf8_lossy(line)).is_some())
            .count();
        assert_eq!(lines(&session.tree), whole[..complete], "{cut}");
        let parent = session.tree.leaf_id().map(str::to_owned);
        // The next entry is whole, whatever precedes it.
        let entry = append(&mut session, user("next"));
        assert_eq!(entry.parent_id(), parent.as_deref());
        if cut == 0 {
            assert_eq!(session.tree.info().cwd, "/new");
        }
        drop(session);
        let (tree, report) = store().read(&path).unwrap();
        assert_eq!(tree.entries().len(), complete + 1, "{cut}");
        assert_eq!(tree.leaf_id(), Some(entry.id()));
        assert!(report.total() <= 1 && report.total() == report.count(crate::OddityKind::Broken));
    }
}

#[test]
fn files_that_are_no_sessions() {
    let (dir, path) = file("hello\n");
    let error = store().open(&path, new()).unwrap_err();
    assert_eq!(error.to_string(), format!("Session file is not a valid pi session: {}", path.display()));
    assert!(matches!(store().read(&path).unwrap_err(), StoreError::NotASession { .. }));
    let error = store().open(dir.path(), new()).unwrap_err();
    assert!(matches!(error, StoreError::NotAFile { .. }), "{error}");
    assert!(matches!(store().read(dir.path()).unwrap_err(), StoreError::NotAFile { .. }));
    let error = store().open(&path.join("below"), new());
    // Not a folder: neither there nor to be made.
    assert!(matches!(error.unwrap_err(), StoreError::Io { .. }));
    fs::write(&path, r#"{"type":"session","version":9,"id":"s"}"#).unwrap();
    let error = store().open(&path, new()).unwrap_err();
    assert!(error.to_string().contains("has format version 9, newer than 3: upgrade agentd"), "{error}");
}

#[cfg(unix)]
#[test]
fn a_file_that_may_not_be_read_is_reported() {
    use std::os::unix::fs::PermissionsExt;
    let (_dir, path) = file(sample("v2.jsonl"));
    fs::set_permissions(&path, PermissionsExt::from_mode(0o000)).unwrap();
    // Root may read everything: then there is nothing to see.
    if fs::File::open(&path).is_ok() {
        assert!(store().open(&path, new()).is_ok());
        return;
    }
    let error = store().open(&path, new()).unwrap_err();
    assert!(error.to_string().starts_with("cannot open the session file"), "{error}");
}

#[cfg(unix)]
#[test]
fn a_pipe_is_refused_without_waiting() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pipe.jsonl");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    assert!(matches!(store().open(&path, new()).unwrap_err(), StoreError::NotAFile { .. }));
}

#[test]
fn an_empty_file_becomes_a_session_at_once() {
    let (_dir, path) = file("");
    let session = store().open(&path, new()).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), format!("{}\n", session.tree.header().line()));
    assert_eq!(session.tree.info().cwd, "/new");
    drop(session);
    assert_eq!(store().open(&path, new()).unwrap().report, LoadReport::default());
}

#[test]
fn a_file_that_is_not_there_comes_with_the_first_message() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("deep/er/mine.jsonl");
    let mut session = store().open(&path, NewSession { id: Some("my-id".into()), ..new() }).unwrap();
    assert_eq!(session.writer.path(), Some(&*path));
    assert!(!path.exists());
    append(&mut session, user("hi"));
    drop(session);
    let session = store().open(&path, new()).unwrap();
    assert_eq!((session.tree.header().id(), session.tree.info().cwd.as_str()), ("my-id", "/new"));
    assert_eq!(session.tree.info().timestamp, "1970-01-01T00:00:01.000Z");
}

#[test]
fn bad_ids_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let bad = || NewSession { id: Some("../x".into()), ..new() };
    assert!(matches!(store().create(dir.path(), bad()).unwrap_err(), StoreError::InvalidSessionId));
    assert!(matches!(store().in_memory(bad()).unwrap_err(), StoreError::InvalidSessionId));
}

#[test]
fn a_new_file_is_locked_too() {
    let dir = tempfile::tempdir().unwrap();
    let mut session = store().create(dir.path(), new()).unwrap();
    append(&mut session, user("hi"));
    let path = session.writer.path().unwrap().to_owned();
    assert!(matches!(store().open(&path, new()).unwrap_err(), StoreError::Locked { .. }));
    // Reading needs no lock.
    assert_eq!(store().read(&path).unwrap().0.entries().len(), 1);
    drop(session);
    assert!(store().open(&path, new()).is_ok());
}

/// The child of [`two_processes_do_not_share_a_session`]: opens the file that the environment names, and writes the outcome to
/// another file.
#[test]
fn child_process() {
    let Some(path) = std::env::var_os("STORE_TEST_LOCKED") else { return };
    let path = PathBuf::from(path);
    let options =
        StoreOptions { run_dir: path.parent().map(|dir| dir.join("run")), ..StoreOptions::default() };
    let outcome = match Store::new(options).open(&path, new()) {
        Ok(_) => "opened".to_owned(),
        Err(error) => error.to_string(),
    };
    fs::write(path.with_extension("outcome"), outcome).unwrap();
}

#[test]
fn two_processes_do_not_share_a_session() {
    let (dir, path) = file(sample("v2.jsonl"));
    let run_dir = Some(dir.path().join("run"));
    let store = Store::new(StoreOptions { run_dir, epoch: "e".into(), ..StoreOptions::default() });
    let child = || {
        // Its own words are captured, not mixed into the output of this test.
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "store::tests::child_process"])
            .env("STORE_TEST_LOCKED", &path)
            .output()
            .unwrap();
        assert!(output.status.success());
        fs::read_to_string(path.with_extension("outcome")).unwrap()
    };
    let session = store.open(&path, new()).unwrap();
    let expected = format!(
        "session file {} is in use by process {}: close the session there, or fork it",
        path.display(),
        std::process::id()
    );
    assert_eq!(child(), expected);
    drop(session);
    assert_eq!(child(), "opened");
}

#[test]
fn forks_are_sessions_of_their_own() {
    let (dir, path) = file(sample("v3-1.5.jsonl"));
    let session = store().open(&path, new()).unwrap();
    let parent = NewSession { parent_session: Some(path.display().to_string()), ..new() };

    // A fork before a message of the user.
    let point = ForkPoint::before(&session.tree, "5e00000f").unwrap();
    assert_eq!(point.text, "Try without tax.");
    let tree = copy_branch(&session.tree, point.leaf.as_deref(), parent.clone()).unwrap();
    let mut fork = store().adopt(tree, Some(dir.path()), FileCreation::WithMessage).unwrap();
    assert!(fork.writer.is_on_disk());
    append(&mut fork, user("again"));
    let fork_path = fork.writer.path().unwrap().to_owned();
    drop(fork);
    let fork = store().open(&fork_path, new()).unwrap();
    assert_eq!(fork.tree.info().parent_session.as_deref(), path.to_str());
    // Its label is at the end, before what was said since.
    let kinds: Vec<EntryKind> = fork.tree.entries().iter().rev().take(3).map(Entry::kind).collect();
    assert_eq!(kinds, [EntryKind::Message(Role::User), EntryKind::Label, EntryKind::CustomMessage]);
    assert_eq!(fork.tree.label("5e00000b").unwrap().text, "found it");

    // A fork before the first message has no file yet.
    let tree = copy_branch(&session.tree, Some("5e000003"), parent.clone()).unwrap();
    let mut fork = store().adopt(tree, Some(dir.path()), FileCreation::WithMessage).unwrap();
    assert!(!fork.writer.is_on_disk());
    append(&mut fork, user("first"));
    assert_eq!(store().read(fork.writer.path().unwrap()).unwrap().0.entries().len(), 4);

    // All of it, at once, verbatim.
    let tree = copy_all(&session.tree, parent.clone()).unwrap();
    let copy = store().adopt(tree, Some(dir.path()), FileCreation::AtOnce).unwrap();
    let text = fs::read_to_string(copy.writer.path().unwrap()).unwrap();
    assert_eq!(text.split_once('\n').unwrap().1, sample("v3-1.5.jsonl").split_once('\n').unwrap().1);
    // Even of nothing.
    let nothing = copy_branch(&session.tree, None, parent.clone()).unwrap();
    let copy = store().adopt(nothing, Some(dir.path()), FileCreation::AtOnce).unwrap();
    assert!(copy.writer.is_on_disk());

    // In memory.
    let tree = copy_branch(&session.tree, session.tree.leaf_id(), parent).unwrap();
    let clone = store().adopt(tree, None, FileCreation::AtOnce).unwrap();
    assert_eq!((clone.writer.path(), clone.writer.is_on_disk()), (None, false));
}
