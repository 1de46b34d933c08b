use std::{
    fs::{self, OpenOptions},
    io::Write as _,
};

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::{
    NewEntry, NewSession, OpenSession, Store, StoreOptions,
    testing::{Fault, FaultyDisk},
};

const FULL: io::ErrorKind = io::ErrorKind::StorageFull;

struct Bench {
    dir: TempDir,
    disk: FaultyDisk,
    store: Store,
    session: OpenSession,
}

impl Bench {
    fn new(durability: Durability) -> Self {
        let (dir, disk) = (tempfile::tempdir().unwrap(), FaultyDisk::default());
        let options = StoreOptions { durability, max_line_bytes: 4096, ..StoreOptions::default() };
        let store = Store::with_io(options, Arc::new(disk.clone()));
        let session = store.create(&dir.path().join("sessions"), NewSession::new("/w", 0)).unwrap();
        Self { dir, disk, store, session }
    }

    /// With a file that holds one message.
    fn started() -> Self {
        let mut bench = Self::new(Durability::Os);
        bench.say("user", "first").unwrap();
        bench
    }

    fn add(&mut self, new: NewEntry) -> Result<(), StoreError> {
        let entry = self.session.tree.prepare(new, 0);
        self.session.writer.append(&entry)?;
        self.session.tree.push(entry);
        Ok(())
    }

    fn say(&mut self, role: &str, text: &str) -> Result<(), StoreError> {
        let message = format!(r#"{{"role":"{role}","content":"{text}"}}"#);
        self.add(NewEntry::message(serde_json::from_str(&message).unwrap()))
    }

    fn name(&mut self, name: &str) -> Result<(), StoreError> {
        self.add(NewEntry::session_info(name))
    }

    fn path(&self) -> &Path {
        self.session.writer.path().unwrap()
    }

    fn content(&self) -> String {
        fs::read_to_string(self.path()).unwrap()
    }

    /// The session as a file.
    fn expected(&self) -> String {
        let mut text = Vec::new();
        self.session.tree.write_to(&mut text);
        String::from_utf8(text).unwrap()
    }

    fn foreign(&self, text: &str) {
        OpenOptions::new().append(true).open(self.path()).unwrap().write_all(text.as_bytes()).unwrap();
    }
}

#[test]
fn there_is_no_file_before_there_is_a_message() {
    let mut bench = Bench::new(Durability::Os);
    bench.name("n").unwrap();
    for role in ["system", "bashExecution", "toolResult"] {
        bench.say(role, "x").unwrap();
        assert!(!bench.path().exists() && !bench.session.writer.is_on_disk(), "{role}");
    }
    bench.say("user", "hi").unwrap();
    assert!(bench.session.writer.is_on_disk());
    assert_eq!(bench.content(), bench.expected());
    assert_eq!(bench.disk.plan().append_calls, 1, "the whole file at once");
    bench.say("assistant", "hello").unwrap();
    bench.name("m").unwrap();
    assert_eq!(bench.content(), bench.expected());
    assert_eq!(bench.disk.plan().append_calls, 3, "one write for an entry");
    let name = bench.path().file_name().unwrap().to_str().unwrap().to_owned();
    assert_eq!(name, format!("1970-01-01T00-00-00-000Z_{}.jsonl", bench.session.tree.header().id()));
}

#[test]
fn an_answer_starts_the_file_too() {
    let mut bench = Bench::new(Durability::Os);
    bench.say("assistant", "hi").unwrap();
    assert_eq!(bench.content(), bench.expected());
}

#[cfg(unix)]
#[test]
fn files_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::started();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(bench.path()), mode(bench.path().parent().unwrap())), (0o600, 0o700));
}

#[test]
fn memory_stays_memory() {
    let mut bench = Bench::new(Durability::Os);
    bench.session = bench.store.in_memory(NewSession::new("/w", 0)).unwrap();
    bench.say("user", "hi").unwrap();
    assert_eq!((bench.session.writer.path(), bench.session.writer.is_on_disk()), (None, false));
    assert_eq!(fs::read_dir(bench.dir.path().join("sessions")).unwrap().count(), 0);
}

#[test]
fn a_file_that_is_there_is_not_overwritten() {
    let mut bench = Bench::new(Durability::Os);
    fs::write(bench.path(), "theirs").unwrap();
    let error = bench.say("user", "hi").unwrap_err();
    assert!(matches!(error, StoreError::Exists { .. }), "{error}");
    assert_eq!(bench.content(), "theirs");
    assert_eq!(bench.session.tree.entries().len(), 0);
}

#[test]
fn of_two_that_make_a_file_one_wins() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let barrier = Arc::new(std::sync::Barrier::new(4));
    let racers: Vec<_> = (0..4)
        .map(|racer| {
            let (path, barrier) = (path.clone(), Arc::clone(&barrier));
            std::thread::spawn(move || {
                let store = Store::new(StoreOptions::default());
                let mut session = store.open(&path, NewSession::new("/w", 0)).unwrap();
                let message =
                    serde_json::from_str(&format!(r#"{{"role":"user","content":"{racer}"}}"#)).unwrap();
                let entry = session.tree.prepare(NewEntry::message(message), 0);
                barrier.wait();
                let result = session.writer.append(&entry);
                barrier.wait();
                (result.is_ok(), entry.line())
            })
        })
        .collect();
    let results: Vec<_> = racers.into_iter().map(|racer| racer.join().unwrap()).collect();
    let winners: Vec<_> = results.iter().filter(|(won, _)| *won).collect();
    assert_eq!(winners.len(), 1);
    let content = fs::read_to_string(path).unwrap();
    assert_eq!(content.lines().count(), 2);
    assert_eq!(content.lines().last().unwrap(), winners[0].1);
}

#[test]
fn a_failed_creation_leaves_nothing_and_may_be_tried_again() {
    let mut bench = Bench::new(Durability::Os);
    bench.name("n").unwrap();
    for faults in [vec![Fault::Error(FULL)], vec![Fault::Short(9), Fault::Error(FULL)], vec![Fault::Short(0)]]
    {
        bench.disk.plan().appends.extend(faults);
        assert!(matches!(bench.say("user", "no").unwrap_err(), StoreError::Io { .. }));
        assert!(!bench.path().exists());
    }
    bench.say("user", "yes").unwrap();
    assert_eq!(bench.content(), bench.expected());
    assert!(!bench.content().contains("\"no\""));
}

#[test]
fn a_failed_append_leaves_the_file_as_it_was() {
    let mut bench = Bench::started();
    for kind in [FULL, io::ErrorKind::Other, io::ErrorKind::PermissionDenied] {
        for written in [0, 1, 20] {
            let faults = [Fault::Short(written), Fault::Error(kind)];
            bench.disk.plan().appends.extend(faults.into_iter().skip(usize::from(written == 0)));
            let error = bench.say("user", "no").unwrap_err();
            assert!(error.to_string().starts_with("cannot write to the session file "), "{error}");
            assert_eq!(bench.content(), bench.expected());
            bench.say("user", "yes").unwrap();
            assert_eq!(bench.content(), bench.expected());
        }
    }
}

#[test]
fn a_split_write_is_one_write() {
    let mut bench = Bench::started();
    let faults = [Fault::Short(1), Fault::Error(io::ErrorKind::Interrupted), Fault::Short(10)];
    bench.disk.plan().appends.extend(faults);
    bench.say("user", "yes").unwrap();
    assert_eq!(bench.content(), bench.expected());
}

#[test]
fn what_could_not_be_cut_off_is_cut_off_later() {
    let mut bench = Bench::started();
    bench.disk.plan().appends.extend([Fault::Short(20), Fault::Error(FULL)]);
    bench.disk.plan().failing_cuts = 2;
    bench.say("user", "no").unwrap_err();
    assert_eq!(bench.content().len(), bench.expected().len() + 20);
    // The file is still not whole: nothing goes behind the torn line.
    let error = bench.say("user", "no").unwrap_err();
    assert!(error.to_string().starts_with("cannot repair the end of "), "{error}");
    bench.say("user", "yes").unwrap();
    assert_eq!(bench.content(), bench.expected());
}

#[test]
fn lines_of_others_are_not_cut_off() {
    let mut bench = Bench::started();
    bench.disk.plan().appends.extend([Fault::Short(20), Fault::Error(FULL)]);
    bench.disk.plan().failing_cuts = 1;
    bench.say("user", "no").unwrap_err();
    bench.foreign("foreign");
    bench.say("user", "yes").unwrap();
    let content = bench.content();
    let lines: Vec<&str> = content.lines().collect();
    assert_eq!(lines.len(), 4);
    assert!(lines[2].ends_with("foreign") && lines[3].contains("yes"), "{content}");
}

#[test]
fn a_last_line_of_others_is_ended() {
    let bench = Bench::started();
    let path = bench.path().to_owned();
    bench.foreign(r#"{"type":"label","id":"x"}"#);
    let Bench { dir, disk, store, session } = bench;
    drop(session);
    // The disk is full when the session is opened: the line break comes with the next entry.
    disk.plan().appends.push_back(Fault::Error(FULL));
    let session = store.open(&path, NewSession::new("/w", 0)).unwrap();
    let mut bench = Bench { dir, disk, store, session };
    assert!(!bench.content().ends_with('\n'));
    bench.disk.plan().appends.extend([Fault::Short(10), Fault::Error(FULL)]);
    bench.say("user", "no").unwrap_err();
    assert!(bench.content().ends_with(r#""id":"x"}"#));
    bench.disk.plan().appends.extend([Fault::Short(10), Fault::Error(FULL)]);
    bench.disk.plan().failing_cuts = 1;
    bench.say("user", "no").unwrap_err();
    bench.say("user", "yes").unwrap();
    assert_eq!(bench.content(), bench.expected());
}

#[test]
fn syncing_is_a_choice() {
    let mut bench = Bench::started();
    bench.say("user", "x").unwrap();
    assert_eq!(bench.disk.plan().syncs, 0);

    let mut bench = Bench::new(Durability::Fsync);
    bench.name("n").unwrap();
    assert_eq!(bench.disk.plan().syncs, 0);
    bench.say("user", "x").unwrap();
    let made = bench.disk.plan().syncs;
    assert_eq!(made, 4, "the file, its name, and those of the folders that may be new");
    bench.say("user", "y").unwrap();
    assert_eq!(bench.disk.plan().syncs, made + 1);
    // Bytes that did not reach the disk are not in the file.
    bench.disk.plan().failing_syncs = 1;
    bench.say("user", "no").unwrap_err();
    assert_eq!(bench.content(), bench.expected());
}

#[test]
fn a_removed_file_is_noticed() {
    let mut bench = Bench::started();
    fs::remove_file(bench.path()).unwrap();
    let error = bench.say("user", "x").unwrap_err();
    assert!(matches!(error, StoreError::Removed { .. }), "{error}");
    assert!(!bench.path().exists());
}

#[test]
fn nothing_is_appended_to_a_file_that_was_cut() {
    for left in [0, 1, 20, 150] {
        let mut bench = Bench::started();
        bench.say("user", "second").unwrap();
        OpenOptions::new().write(true).open(bench.path()).unwrap().set_len(left).unwrap();
        let before = fs::read(bench.path()).unwrap();
        for _ in 0..2 {
            let error = bench.say("user", "x").unwrap_err();
            assert!(matches!(error, StoreError::Cut { found, .. } if found == left), "{error}");
        }
        assert_eq!(fs::read(bench.path()).unwrap(), before);
    }
}

#[test]
fn a_session_whose_file_was_emptied_is_none() {
    let mut bench = Bench::started();
    bench.say("user", "second").unwrap();
    let path = bench.path().to_owned();
    let Bench { store, session, dir: _dir, .. } = bench;
    drop(session);
    assert_eq!(store.reopen(&path).unwrap().tree.entries().len(), 2);
    fs::write(&path, "").unwrap();
    assert!(matches!(store.reopen(&path), Err(StoreError::NotASession { .. })));
    assert_eq!(fs::read(&path).unwrap(), b"");
}

#[test]
fn an_entry_that_could_not_be_read_again_is_refused() {
    let mut bench = Bench::started();
    let error = bench.say("user", &"x".repeat(4096)).unwrap_err();
    assert!(matches!(error, StoreError::EntryTooLarge { limit: 4096, .. }), "{error}");
    assert_eq!(bench.content(), bench.expected());
}

proptest! {
    /// The process dies after any number of bytes: everything that was acknowledged is there, and what comes after the
    /// restart is readable.
    #[test]
    fn a_kill_loses_nothing_that_was_acknowledged(bytes in 0usize..1500, texts in proptest::collection::vec("[a-zé\\n\"]{0,40}", 1..8)) {
        let mut bench = Bench::new(Durability::Os);
        bench.disk.plan().bytes_to_live = Some(bytes);
        let path = bench.path().to_owned();
        for text in &texts {
            let message = serde_json::json!({"role": "user", "content": text});
            let new = NewEntry::message(serde_json::from_str(&message.to_string()).unwrap());
            // A failed creation would remove the file; a killed process cannot.
            if bench.add(new).is_err() {
                break;
            }
        }
        let saved = bench.session.tree.entries().len();
        let Bench { dir, session, .. } = bench;
        let lines: Vec<String> = session.tree.entries().iter().map(Entry::line).collect();
        drop(session);
        if saved > 0 {
            let store = Store::new(StoreOptions::default());
            let mut session = store.open(&path, NewSession::new("/w", 0)).unwrap();
            let loaded: Vec<String> = session.tree.entries().iter().map(Entry::line).collect();
            // A line whose last byte, the LF, is missing is whole, though it was not acknowledged.
            prop_assert!(loaded.len() == saved || loaded.len() == saved + 1);
            prop_assert_eq!(&loaded[..saved], &lines[..]);
            let entry = session.tree.prepare(NewEntry::session_info("after"), 0);
            session.writer.append(&entry).unwrap();
            drop(session);
            let (tree, _) = store.read(&path).unwrap();
            prop_assert_eq!(tree.leaf_id(), Some(entry.id()));
            prop_assert_eq!(tree.entries().len(), loaded.len() + 1);
        }
        drop(dir);
    }
}
