use std::fs;

use agentd_protocol::command::StreamingBehavior;

use super::*;
use crate::{
    ledger::{
        AskRecord, BashDoneRecord, BashRecord, DeliveredRecord, QueuedRecord, RunRecord, SaidRecord, Streamed,
    },
    testing::{Fault, FaultyDisk},
};

fn run() -> Record {
    Record::Run(RunRecord { at: 1, entry: Some("u".into()), resumes: 0 })
}

fn ask() -> Record {
    Record::Ask(AskRecord {
        at: 1,
        after: Some("u".into()),
        api: String::new(),
        provider: String::new(),
        model: "m".into(),
        level: String::new(),
    })
}

fn said(text: &str) -> Record {
    let part = Streamed { block: 0, text: Some(text.into()), ..Streamed::default() };
    Record::Said(SaidRecord { parts: vec![part] })
}

fn bash(number: u64) -> Record {
    let command = "make".into();
    Record::Bash(BashRecord { number, at: 1, command, exclude_from_context: false, request_key: None })
}

fn stored(number: u64) -> Record {
    Record::BashDone(BashDoneRecord { number, message: None, stored: true })
}

fn queued(number: u64, text: &str) -> Record {
    let to = StreamingBehavior::Steer;
    Record::Queued(QueuedRecord { number, to, text: text.into(), images: Vec::new(), request_key: None })
}

fn delivered(number: u64) -> Record {
    Record::Delivered(DeliveredRecord { number, after: Some("u".into()) })
}

struct Place {
    _dir: tempfile::TempDir,
    disk: FaultyDisk,
    path: PathBuf,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.ledger");
        Self { _dir: dir, disk: FaultyDisk::default(), path }
    }

    fn ledger(&self, durability: Durability) -> Ledger {
        Ledger::new(Arc::new(self.disk.clone()), durability, Some(self.path.clone()), true)
    }

    fn left(&self) -> Unfinished {
        self.ledger(Durability::Os).left().unwrap().unwrap_or_default()
    }
}

#[test]
fn the_file_is_there_while_something_is_under_way() {
    let place = Place::new();
    let mut ledger = place.ledger(Durability::Os);
    assert_eq!(ledger.left().unwrap(), None);
    ledger.intend(&[run(), ask()]).unwrap();
    ledger.note(&said("Hel"));
    ledger.note(&said("lo"));
    let left = place.left();
    assert_eq!(left.answer.unwrap().content[0].as_text(), Some("Hello"));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&place.path).unwrap().permissions().mode() & 0o777, 0o600);
    }
    ledger.settle();
    assert!(!place.path.exists());
    // The next run.
    ledger.intend(&[run()]).unwrap();
    assert!(place.left().run.is_some() && place.left().answer.is_none());
}

#[test]
fn commands_of_the_user_outlast_the_run() {
    let place = Place::new();
    let mut ledger = place.ledger(Durability::Os);
    ledger.intend(&[bash(1)]).unwrap();
    ledger.intend(&[run(), ask()]).unwrap();
    ledger.settle();
    let left = place.left();
    assert_eq!((left.run, left.commands.len()), (None, 1));
    ledger.note(&stored(1));
    assert!(!place.path.exists());
}

#[test]
fn messages_that_wait_outlast_the_run() {
    let place = Place::new();
    let mut ledger = place.ledger(Durability::Os);
    let numbers = |place: &Place| place.left().messages.iter().map(|it| it.queued.number).collect::<Vec<_>>();
    ledger.intend(&[run(), ask()]).unwrap();
    ledger.intend(&[queued(1, &"long".repeat(RENEWED_BYTES as usize))]).unwrap();
    ledger.intend(&[queued(2, "two")]).unwrap();
    ledger.note(&delivered(2));
    assert_eq!(numbers(&place), [1, 2], "which of them are entries, the session knows");
    // The file is begun anew, and not with every question for as long as the first one waits.
    for _ in 0..3 {
        ledger.intend(&[ask()]).unwrap();
        assert_eq!(numbers(&place), [1]);
    }
    let creations = place.disk.plan().append_calls;
    ledger.intend(&[ask()]).unwrap();
    assert_eq!(place.disk.plan().append_calls, creations + 1);
    ledger.settle();
    assert_eq!((place.left().run, numbers(&place)), (None, vec![1]));
    ledger.note(&Record::Unqueued);
    assert!(!place.path.exists());
}

#[test]
fn messages_that_came_before_the_file_go_first_into_it() {
    let place = Place::new();
    let new = || Ledger::new(Arc::new(place.disk.clone()), Durability::Os, Some(place.path.clone()), false);
    let mut ledger = new();
    ledger.intend(&[queued(1, "one")]).unwrap();
    ledger.note(&Record::Unqueued);
    ledger.intend(&[queued(2, "two")]).unwrap();
    assert!(!place.path.exists());
    ledger.arm();
    ledger.intend(&[]).unwrap();
    let left = place.left();
    assert_eq!(left.messages.iter().map(|it| &*it.queued.text).collect::<Vec<_>>(), ["two"]);
}

/// Whoever sent it was told that it is not taken.
#[test]
fn a_message_that_could_not_be_noted_is_not_found() {
    let place = Place::new();
    let mut ledger = place.ledger(Durability::Os);
    ledger.intend(&[run()]).unwrap();
    let (mut line, message) = (Vec::new(), queued(1, "one"));
    message.write_line(&mut line).unwrap();
    // All of it but the line feed.
    place
        .disk
        .plan()
        .appends
        .extend([Fault::Short(line.len() - 1), Fault::Error(io::ErrorKind::StorageFull)]);
    ledger.intend(&[message]).unwrap_err();
    ledger.intend(&[ask()]).unwrap();
    assert_eq!(place.left().messages, []);
}

#[test]
fn a_session_without_a_file_has_no_ledger() {
    let place = Place::new();
    let mut unarmed =
        Ledger::new(Arc::new(place.disk.clone()), Durability::Os, Some(place.path.clone()), false);
    unarmed.intend(&[run()]).unwrap();
    assert!(!place.path.exists());
    unarmed.arm();
    unarmed.intend(&[run()]).unwrap();
    assert!(place.path.exists());
    let mut memory = Ledger::new(Arc::new(place.disk), Durability::Os, None, true);
    memory.intend(&[run()]).unwrap();
    memory.note(&said("x"));
    memory.settle();
}

#[test]
fn an_intent_that_cannot_be_written_is_an_error_and_an_outcome_is_not() {
    let place = Place::new();
    let mut ledger = place.ledger(Durability::Os);
    place.disk.plan().appends.push_back(Fault::Error(io::ErrorKind::StorageFull));
    assert!(ledger.intend(&[run()]).unwrap_err().to_string().contains("s.ledger"));
    ledger.intend(&[run(), ask()]).unwrap();
    place.disk.plan().appends.extend([Fault::Short(20), Fault::Error(io::ErrorKind::StorageFull)]);
    ledger.note(&said("lost"));
    // What follows a torn line stands on a line of its own.
    ledger.note(&said("kept"));
    assert_eq!(place.left().answer.unwrap().content[0].as_text(), Some("kept"));
}

#[test]
fn intents_are_synced_where_the_user_wants_that() {
    for (durability, synced) in [(Durability::Os, false), (Durability::Fsync, true)] {
        let place = Place::new();
        let mut ledger = place.ledger(durability);
        ledger.intend(&[run()]).unwrap();
        let syncs = place.disk.plan().syncs;
        assert_eq!(syncs > 0, synced);
        ledger.note(&said("x"));
        assert_eq!(place.disk.plan().syncs, syncs, "what came of it need not be synced");
    }
}

#[test]
fn a_long_run_has_a_short_ledger() {
    let place = Place::new();
    let mut ledger = place.ledger(Durability::Os);
    ledger.intend(&[bash(1), run(), ask()]).unwrap();
    for _ in 0..20 {
        ledger.note(&said(&"x".repeat(100 << 10)));
        ledger.intend(&[ask()]).unwrap();
        assert!(fs::metadata(&place.path).unwrap().len() < RENEWED_BYTES + (200 << 10));
    }
    let left = place.left();
    assert!(left.run.is_some(), "the run is still known");
    assert_eq!(left.commands.len(), 1);
    ledger.settle();
    ledger.note(&stored(1));
    assert!(!place.path.exists());
}

#[test]
fn what_an_earlier_process_left_does_not_stay() {
    let place = Place::new();
    place.ledger(Durability::Os).intend(&[run(), ask()]).unwrap();
    let mut next = place.ledger(Durability::Os);
    next.intend(&[bash(1)]).unwrap();
    let left = place.left();
    assert_eq!((left.run, left.commands.len()), (None, 1));
}

#[test]
fn a_ledger_is_replaced_in_one_step() {
    let place = Place::new();
    let mut ledger = place.ledger(Durability::Os);
    ledger.intend(&[run(), ask()]).unwrap();
    place.disk.plan().appends.push_back(Fault::Error(io::ErrorKind::StorageFull));
    ledger.replace(&[bash(1)]).unwrap_err();
    assert!(place.left().answer.is_some(), "the old one is as it was");
    ledger.replace(&[bash(1)]).unwrap();
    let left = place.left();
    assert_eq!((left.run, left.commands.len()), (None, 1));
    ledger.replace(&[]).unwrap();
    assert!(!place.path.exists());
    ledger.replace(&[]).unwrap();
}

/// A link that somebody put there is not followed.
#[cfg(unix)]
#[test]
fn a_link_in_its_place_leads_nowhere() {
    let place = Place::new();
    let other = place.path.with_extension("other");
    fs::write(&other, "precious").unwrap();
    std::os::unix::fs::symlink(&other, &place.path).unwrap();
    place.ledger(Durability::Os).intend(&[run()]).unwrap();
    assert_eq!(fs::read_to_string(&other).unwrap(), "precious");
}
