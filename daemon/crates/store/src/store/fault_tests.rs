//! A session's whole life on a disk with one failing call: every call, with every error.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    Durability, Entry, FileCreation, NewEntry, NewSession, OpenSession, Store, StoreError, StoreOptions,
    copy_branch,
    testing::nth_call::{ERRORS, Fault, NthCall},
};

const OLD: &str = "{\"type\":\"session\",\"id\":\"old\",\"timestamp\":\"t\",\"cwd\":\"/w\"}\n\
    {\"type\":\"message\",\"timestamp\":\"t\",\"message\":{\"role\":\"user\",\"content\":\"old one\"}}\n\
    {\"type\":\"message\",\"timestamp\":\"t\",\"message\":{\"role\":\"user\",\"content\":\"old two\"}}\n";

fn new() -> NewSession {
    NewSession::new("/w", 0)
}

/// A session, and what it was told to be saved.
struct Told {
    session: OpenSession,
    /// The texts of the entries that count as saved, in order.
    saved: Vec<String>,
}

impl Told {
    fn of(session: OpenSession) -> Self {
        let saved = texts(session.tree.entries());
        Self { session, saved }
    }

    fn say(&mut self, text: &str) -> Result<(), StoreError> {
        let message = serde_json::json!({"role": "user", "content": text}).to_string();
        let new = NewEntry::message(serde_json::from_str(&message).unwrap());
        let entry = self.session.tree.prepare(new, 0);
        self.session.writer.append(&entry)?;
        self.session.tree.push(entry);
        self.saved.push(text.to_owned());
        Ok(())
    }

    fn path(&self) -> PathBuf {
        self.session.writer.path().unwrap().to_owned()
    }
}

fn texts(entries: &[Entry]) -> Vec<String> {
    let text = |entry: &Entry| {
        let message: serde_json::Value = serde_json::from_str(entry.message()?.text()).ok()?;
        Some(message["content"].as_str()?.to_owned())
    };
    entries.iter().filter_map(text).collect()
}

/// The lines of a file, read from a disk that works.
fn on_disk(path: &Path) -> Vec<String> {
    let (tree, report) = Store::new(StoreOptions::default()).read(path).unwrap();
    // A torn line at the end may be left; it was never told to be there.
    assert!(report.total() <= 1, "{report:?}");
    texts(tree.entries())
}

/// Saved lines are there, in order; behind them at most the one that was being written.
#[track_caller]
fn assert_kept(told: &Told, what: &str) {
    let path = told.path();
    if told.saved.is_empty() {
        return;
    }
    let there = on_disk(&path);
    assert!(there.len() <= told.saved.len() + 1, "{what}: {there:?} {:?}", told.saved);
    assert_eq!(there[..told.saved.len()], told.saved, "{what}");
}

/// Ends a session, opens it again, forks it.
fn go_on(store: &Store, folder: &Path, told: Told, what: &str) -> Vec<Told> {
    let mut all = Vec::new();
    let path = told.path();
    let Told { session, saved } = told;
    let fork = copy_branch(&session.tree, session.tree.leaf_id(), new()).unwrap();
    drop(session);
    if let Ok(session) = store.open(&path, new()) {
        let mut told = Told::of(session);
        assert_eq!(told.saved[..saved.len()], saved, "{what}");
        let _ = told.say("four");
        all.push(told);
    } else {
        assert_eq!(on_disk(&path)[..saved.len()], saved, "{what}");
    }
    if let Ok(session) = store.adopt(fork, Some(folder), FileCreation::AtOnce) {
        assert_eq!(texts(session.tree.entries()), saved, "{what}");
        all.push(Told::of(session));
    }
    all
}

/// Begins a session, talks, ends it, opens it again, forks it, opens an old one. Failures are gone on from.
fn live(store: &Store, dir: &Path, disk: &NthCall, what: &str) {
    let folder = dir.join("sessions");
    let old = dir.join("old.jsonl");
    fs::write(&old, OLD).unwrap();
    let mut all = Vec::new();
    if let Ok(session) = store.create(&folder, new()) {
        let mut told = Told::of(session);
        for text in ["one", "two", "three"] {
            let _ = told.say(text);
            assert_kept(&told, what);
        }
        if told.saved.is_empty() {
            all.push(told);
        } else {
            all.extend(go_on(store, &folder, told, what));
        }
    }
    match store.open(&old, new()) {
        Ok(session) => {
            let original = session.report.original.clone().unwrap();
            assert_eq!(fs::read_to_string(original).unwrap(), OLD, "{what}");
            let mut told = Told::of(session);
            let _ = told.say("new");
            all.push(told);
        }
        // Not opened, not touched; or the new one is there whole, and only its folder could not be synced.
        Err(_) if fs::read_to_string(&old).unwrap() != OLD => {
            assert_eq!(on_disk(&old), ["old one", "old two"], "{what}");
            assert_eq!(fs::read_to_string(dir.join("old.jsonl.v1.bak")).unwrap(), OLD, "{what}");
        }
        Err(_) => {}
    }
    // Whatever happened: when the disk works again, so does every session, and nothing is between its lines.
    disk.heal();
    for told in &mut all {
        assert_kept(told, what);
        told.say("healed").unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(on_disk(&told.path()), told.saved, "{what}");
    }
    drop(all);
    if let Ok(files) = fs::read_dir(&folder) {
        for file in files {
            let path = file.unwrap().path();
            let session = store.open(&path, new()).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(session.tree.branch().len(), session.tree.entries().len(), "{what}");
        }
    }
}

fn run(fault: Option<Fault>, durability: Durability, what: &str) -> NthCall {
    let (dir, disk) = (tempfile::tempdir().unwrap(), NthCall::new(fault));
    let options = StoreOptions { durability, ..StoreOptions::default() };
    let store = Store::with_io(options, Arc::new(disk.clone()));
    live(&store, dir.path(), &disk, what);
    disk
}

#[test]
fn whichever_call_fails_nothing_that_was_saved_is_lost_and_work_goes_on() {
    let mut injected = Vec::new();
    for (name, errno) in ERRORS {
        let mut count = 0;
        for durability in [Durability::Os, Durability::Fsync] {
            let calls = run(None, durability, "no fault").calls();
            assert!(calls > 40, "{calls}");
            for at in 0..calls {
                // All ways with the error that is usual; what the others do differently is their number alone.
                let ways = [(false, false), (true, true), (true, false), (false, true)];
                for (stays, half) in ways.into_iter().take(if name == "ENOSPC" { 4 } else { 2 }) {
                    let fault = Fault { at, errno, stays, half };
                    count +=
                        run(Some(fault), durability, &format!("{name} {durability:?} {fault:?}")).injected();
                }
            }
        }
        injected.push((name, count));
    }
    assert!(injected.iter().all(|(_, count)| *count > 300), "{injected:?}");
    // For the record: `cargo test -p agentd-store whichever_call -- --nocapture`.
    let _ = writeln!(std::io::stderr(), "calls that failed: {injected:?}");
}
