use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::{Context, StoreOptions};

const HEADER: &str =
    r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}"#;

fn new() -> NewSession {
    NewSession::new("/here", 0)
}

fn store() -> Store {
    Store::new(StoreOptions::default())
}

fn file(text: &[u8]) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    fs::write(&path, text).unwrap();
    (dir, path)
}

fn said(id: &str, parent: &str, text: &str) -> String {
    let parent = if parent == "-" { "null".to_owned() } else { format!("\"{parent}\"") };
    format!(
        r#"{{"type":"message","id":"{id}","parentId":{parent},"timestamp":"2026-01-01T00:00:01.000Z","message":{{"role":"user","content":"{text}"}}}}"#
    )
}

/// The texts of the context at the leaf.
fn texts(tree: &SessionTree) -> Vec<String> {
    Context::new(tree).messages().iter().map(|message| message.text().to_owned()).collect()
}

fn names(dir: &TempDir) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir.path()).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_damaged_session_gets_a_copy_of_what_can_be_read() {
    let lines = [
        HEADER.to_owned(),
        said("a", "-", "one"),
        "{\"torn".to_owned(),
        said("c", "lost", "two"),
        said("a", "c", "three"),
        r#"{"type":"compaction","id":"k","parentId":"a","timestamp":"t","summary":"s","firstKeptEntryId":"a","tokensBefore":1}"#.to_owned(),
        said("d", "k", "four"),
    ];
    let text = lines.join("\n");
    let (dir, path) = file(text.as_bytes());
    let (tree, _) = store().read(&path).unwrap();
    let repaired = store().repair(&path, new()).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), text, "the original stays");
    assert_eq!(names(&dir), ["s.jsonl", "s.repaired.jsonl"]);
    assert_eq!(repaired.path, dir.path().join("s.repaired.jsonl"));
    assert_eq!((repaired.entries, repaired.renamed, repaired.relinked, repaired.dropped), (5, 1, 1, 1));
    let (copy, report) = store().read(&repaired.path).unwrap();
    assert_eq!(report, LoadReport::default());
    assert_eq!(copy.parents(), tree.parents());
    assert_eq!(texts(&copy), texts(&tree));
    assert_eq!(copy.header().id(), repaired.id);
    assert_ne!(copy.header().id(), "s");
    assert_eq!((copy.info().cwd.as_str(), copy.info().parent_session.as_deref()), ("/w", path.to_str()));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&repaired.path).unwrap().permissions().mode() & 0o777, 0o600);
    }
    // Never over one that is there.
    let error = store().repair(&path, new()).unwrap_err();
    assert!(matches!(error, StoreError::Exists { .. }), "{error}");
}

#[test]
fn a_session_that_is_open_is_checked_and_not_repaired() {
    let (dir, path) = file(format!("{HEADER}\n{}\nbroken\n", said("a", "-", "x")).as_bytes());
    let run = dir.path().join("run");
    let store = Store::new(StoreOptions { run_dir: Some(run), ..StoreOptions::default() });
    let session = store.open(&path, NewSession::new("/w", 0)).unwrap();
    let checked = store.check(&path).unwrap();
    assert_eq!((checked.id.as_deref(), checked.entries, checked.report.total()), (Some("s"), 1, 1));
    assert!(store.is_open(&path).unwrap());
    let error = store.repair(&path, new()).unwrap_err();
    assert!(matches!(&error, StoreError::Locked { holder: Some(_), .. }), "{error}");
    drop(session);
    assert!(!store.is_open(&path).unwrap());
    assert_eq!(store.repair(&path, new()).unwrap().entries, 1);
}

#[test]
fn without_its_header_a_session_can_be_repaired_though_not_opened() {
    let entries = format!("{}\n{}\n", said("a", "-", "one"), said("b", "a", "two"));
    let (dir, path) = file(format!("\0\0\0\0\n{entries}").as_bytes());
    fs::write(dir.path().join("other.jsonl"), HEADER).unwrap();
    assert!(matches!(store().read(&path).unwrap_err(), StoreError::NotASession { .. }));
    let checked = store().check(&path).unwrap();
    assert_eq!((checked.id, checked.entries), (None, 2));
    assert_eq!(checked.report.count(OddityKind::MissingHeader), 1);
    let (copy, report) = store().read(&store().repair(&path, new()).unwrap().path).unwrap();
    assert!(report.is_clean());
    assert_eq!(
        (copy.info().cwd.as_str(), copy.info().timestamp.as_str()),
        ("/w", "2026-01-01T00:00:01.000Z")
    );

    // A header that comes late is as good.
    let (_dir, path) =
        file(format!("{}\n{HEADER}\n{}\n", said("a", "-", "1"), said("b", "a", "2")).as_bytes());
    assert_eq!(store().check(&path).unwrap().id.as_deref(), Some("s"));
    let copy = store().read(&store().repair(&path, new()).unwrap().path).unwrap().0;
    assert_eq!((copy.info().cwd.as_str(), copy.entries().len()), ("/w", 2));

    for nothing in ["", "text\n", "{}\n", "{\"id\":\"x\"}\n"] {
        let (_dir, path) = file(nothing.as_bytes());
        assert!(matches!(store().check(&path).unwrap_err(), StoreError::NotASession { .. }), "{nothing}");
    }
}

#[test]
fn a_later_version_is_looked_at_and_left_alone() {
    let (dir, path) = file(
        format!("{}\n{}\nbroken\n", HEADER.replace("\"version\":3", "\"version\":4"), said("a", "-", "x"))
            .as_bytes(),
    );
    let checked = store().check(&path).unwrap();
    assert_eq!((checked.too_new, checked.entries, checked.report.total()), (Some(4), 1, 1));
    assert!(matches!(store().repair(&path, new()).unwrap_err(), StoreError::TooNew { found: 4, .. }));
    assert_eq!(names(&dir), ["s.jsonl"]);
}

#[test]
fn a_copy_that_cannot_be_written_leaves_nothing() {
    use crate::testing::{Fault, FaultyDisk};
    let (dir, path) = file(format!("{HEADER}\n{}\nbroken\n", said("a", "-", "x")).as_bytes());
    let disk = FaultyDisk::default();
    let faulty = Store::with_io(StoreOptions::default(), std::sync::Arc::new(disk.clone()));
    disk.plan().appends.extend([Fault::Short(9), Fault::Error(io::ErrorKind::StorageFull)]);
    faulty.repair(&path, new()).unwrap_err();
    disk.plan().failing_syncs = 1;
    faulty.repair(&path, new()).unwrap_err();
    assert_eq!(names(&dir), ["s.jsonl"]);
    disk.plan().no_links = true;
    faulty.repair(&path, new()).unwrap();
    assert_eq!(names(&dir), ["s.jsonl", "s.repaired.jsonl"]);
}

#[test]
fn lines_of_a_intent_log_that_cannot_be_read_are_named() {
    let (_dir, path) = file(b"{\"a\":1}\n\n{\"torn\n\0\0{\"b\":2}\n{\"end");
    let (places, count) = unreadable_lines(&path, 100).unwrap();
    assert_eq!(count, 3);
    let places: Vec<(OddityKind, u64, u64)> =
        places.iter().map(|(kind, place)| (*kind, place.line, place.byte)).collect();
    assert_eq!(places, [(OddityKind::Broken, 3, 9), (OddityKind::Zeros, 4, 16), (OddityKind::Broken, 5, 26)]);
}

proptest! {
    /// Whatever became of a file, its copy says the same, and nothing about it is odd.
    #[test]
    fn copies_say_what_their_originals_say(
        links in proptest::collection::vec((0u8..8, 0u8..10), 1..20),
        damage in proptest::collection::vec((any::<proptest::sample::Index>(), prop_oneof![Just(0u8), Just(b'\n'), any::<u8>()]), 0..6),
        cut in any::<proptest::sample::Index>(),
    ) {
        let lines: Vec<String> = links.iter().enumerate().map(|(at, (id, parent))| {
            let parent = if *parent == 9 { "-".to_owned() } else { parent.to_string() };
            said(&id.to_string(), &parent, &format!("text {at}"))
        }).collect();
        let head = HEADER.len() + 1;
        let mut text = format!("{HEADER}\n{}\n", lines.join("\n")).into_bytes();
        for (at, byte) in damage {
            let at = head + at.index(text.len() - head);
            text[at] = byte;
        }
        text.truncate(head + cut.index(text.len() - head + 1));
        let (_dir, path) = file(&text);
        let (tree, _) = store().read(&path).unwrap();
        let repaired = store().repair(&path, new()).unwrap();
        let (copy, report) = store().read(&repaired.path).unwrap();
        prop_assert!(report.is_clean());
        prop_assert_eq!(copy.parents(), tree.parents());
        prop_assert_eq!(texts(&copy), texts(&tree));
        prop_assert_eq!(fs::read(&path).unwrap(), text);
    }
}
