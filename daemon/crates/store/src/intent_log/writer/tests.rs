use std::fs;

use agentd_protocol::command::StreamingBehavior;

use super::*;
use crate::{
    intent_log::{
        AskRecord, BashDoneRecord, BashRecord, DeliveredRecord, QueuedRecord, RunRecord, SaidRecord, Streamed,
    },
    testing::{Fault, FaultyDisk},
};

fn run() -> IntentRecord {
    IntentRecord::Run(RunRecord { at: 1, entry: Some("u".into()), resumes: 0 })
}

fn ask() -> IntentRecord {
    IntentRecord::Ask(AskRecord {
        at: 1,
        after: Some("u".into()),
        api: String::new(),
        provider: String::new(),
        model: "m".into(),
        level: String::new(),
    })
}

fn said(text: &str) -> IntentRecord {
    let part = Streamed { block: 0, text: Some(text.into()), ..Streamed::default() };
    IntentRecord::Said(SaidRecord { parts: vec![part] })
}

fn bash(number: u64) -> IntentRecord {
    let command = "make".into();
    IntentRecord::Bash(BashRecord { number, at: 1, command, exclude_from_context: false, request_key: None })
}

fn stored(number: u64) -> IntentRecord {
    IntentRecord::BashDone(BashDoneRecord { number, message: None, stored: true })
}

fn queued(number: u64, text: &str) -> IntentRecord {
    let to = StreamingBehavior::Steer;
    IntentRecord::Queued(QueuedRecord {
        number,
        to,
        text: text.into(),
        images: Vec::new(),
        request_key: None,
    })
}

fn delivered(number: u64) -> IntentRecord {
    IntentRecord::Delivered(DeliveredRecord { number, after: Some("u".into()) })
}

struct LogFixture {
    _dir: tempfile::TempDir,
    disk: FaultyDisk,
    path: PathBuf,
}

impl LogFixture {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.ledger");
        Self { _dir: dir, disk: FaultyDisk::default(), path }
    }

    fn intent_log(&self, durability: Durability) -> IntentLog {
        IntentLog::new(Arc::new(self.disk.clone()), durability, Some(self.path.clone()), true)
    }

    fn is_empty(&self) -> bool {
        fs::metadata(&self.path).unwrap().len() == 0
    }

    fn left(&self) -> UnfinishedWork {
        self.intent_log(Durability::Os).left().unwrap().unwrap_or_default()
    }
}

#[test]
fn the_file_is_there_while_something_is_under_way() {
    let fixture = LogFixture::new();
    let mut log = fixture.intent_log(Durability::Os);
    assert_eq!(log.left().unwrap(), None);
    log.intend(&[run(), ask()]).unwrap();
    log.note(&said("Hel"));
    log.note(&said("lo"));
    let left = fixture.left();
    assert_eq!(left.answer.unwrap().content[0].as_text(), Some("Hello"));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&fixture.path).unwrap().permissions().mode() & 0o777, 0o600);
    }
    log.settle();
    assert!(fixture.is_empty());
    // The next run.
    log.intend(&[run()]).unwrap();
    assert!(fixture.left().run.is_some() && fixture.left().answer.is_none());
    log.settle();
    drop(log);
    assert!(!fixture.path.exists(), "a session that has left leaves nothing");
}

#[test]
fn an_emptied_file_is_used_again() {
    let fixture = LogFixture::new();
    let mut log = fixture.intent_log(Durability::Os);
    log.intend(&[run(), ask()]).unwrap();
    let first = fs::File::open(&fixture.path).unwrap();
    log.settle();
    assert_eq!(log.left().unwrap(), None, "nothing is under way");
    log.intend(&[run()]).unwrap();
    let mut text = String::new();
    (&first).read_to_string(&mut text).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    log.close();
    assert!(fixture.left().run.is_some(), "what is under way stays");
}

/// Whatever took the place of an emptied file is treated as what an earlier process left.
#[test]
fn another_file_in_the_place_of_an_emptied_one_is_not_used() {
    let fixture = LogFixture::new();
    let mut log = fixture.intent_log(Durability::Os);
    let empty_again = |log: &mut IntentLog| {
        log.intend(&[run(), ask()]).unwrap();
        log.settle();
    };
    // Gone; written to; another file; a link.
    empty_again(&mut log);
    fs::remove_file(&fixture.path).unwrap();
    empty_again(&mut log);
    fs::write(&fixture.path, "not ours\n").unwrap();
    empty_again(&mut log);
    let other = fixture.path.with_extension("other");
    fs::write(&other, "").unwrap();
    fs::rename(&other, &fixture.path).unwrap();
    empty_again(&mut log);
    #[cfg(unix)]
    {
        fs::write(&other, "precious").unwrap();
        fs::remove_file(&fixture.path).unwrap();
        std::os::unix::fs::symlink(&other, &fixture.path).unwrap();
        empty_again(&mut log);
        assert_eq!(fs::read_to_string(&other).unwrap(), "precious");
    }
    log.intend(&[run()]).unwrap();
    let left = fixture.left();
    assert!(left.run.is_some() && left.answer.is_none());
    log.settle();
    // Not removed where it is not ours any more.
    fs::write(&fixture.path, "theirs").unwrap();
    log.close();
    assert_eq!(fs::read_to_string(&fixture.path).unwrap(), "theirs");
}

#[test]
fn a_file_that_cannot_be_emptied_is_removed() {
    let fixture = LogFixture::new();
    let mut log = fixture.intent_log(Durability::Os);
    log.intend(&[run()]).unwrap();
    fixture.disk.plan().failing_cuts = 1;
    log.settle();
    assert!(!fixture.path.exists());
    log.intend(&[run()]).unwrap();
    assert!(fixture.left().run.is_some());
}

#[test]
fn commands_of_the_user_outlast_the_run() {
    let fixture = LogFixture::new();
    let mut log = fixture.intent_log(Durability::Os);
    log.intend(&[bash(1)]).unwrap();
    log.intend(&[run(), ask()]).unwrap();
    log.settle();
    let left = fixture.left();
    assert_eq!((left.run, left.commands.len()), (None, 1));
    log.note(&stored(1));
    assert!(fixture.is_empty());
}

#[test]
fn messages_that_wait_outlast_the_run() {
    let fixture = LogFixture::new();
    let mut log = fixture.intent_log(Durability::Os);
    let numbers =
        |fixture: &LogFixture| fixture.left().messages.iter().map(|it| it.queued.number).collect::<Vec<_>>();
    log.intend(&[run(), ask()]).unwrap();
    log.intend(&[queued(1, &"long".repeat(RENEWED_BYTES as usize))]).unwrap();
    log.intend(&[queued(2, "two")]).unwrap();
    log.note(&delivered(2));
    assert_eq!(numbers(&fixture), [1, 2], "which of them are entries, the session knows");
    // The file is begun anew, and not with every question for as long as the first one waits.
    for _ in 0..3 {
        log.intend(&[ask()]).unwrap();
        assert_eq!(numbers(&fixture), [1]);
    }
    let creations = fixture.disk.plan().append_calls;
    log.intend(&[ask()]).unwrap();
    assert_eq!(fixture.disk.plan().append_calls, creations + 1);
    log.settle();
    assert_eq!((fixture.left().run, numbers(&fixture)), (None, vec![1]));
    log.note(&IntentRecord::Unqueued);
    assert!(fixture.is_empty());
}

#[test]
fn messages_that_came_before_the_file_go_first_into_it() {
    let fixture = LogFixture::new();
    let new =
        || IntentLog::new(Arc::new(fixture.disk.clone()), Durability::Os, Some(fixture.path.clone()), false);
    let mut log = new();
    log.intend(&[queued(1, "one")]).unwrap();
    log.note(&IntentRecord::Unqueued);
    log.intend(&[queued(2, "two")]).unwrap();
    assert!(!fixture.path.exists());
    log.arm();
    log.intend(&[]).unwrap();
    let left = fixture.left();
    assert_eq!(left.messages.iter().map(|it| &*it.queued.text).collect::<Vec<_>>(), ["two"]);
}

/// The sender was told that the message is not taken.
#[test]
fn a_message_that_could_not_be_noted_is_not_found() {
    let fixture = LogFixture::new();
    let mut log = fixture.intent_log(Durability::Os);
    log.intend(&[run()]).unwrap();
    let (mut line, message) = (Vec::new(), queued(1, "one"));
    message.write_line(&mut line).unwrap();
    // All of it but the line feed.
    fixture
        .disk
        .plan()
        .appends
        .extend([Fault::Short(line.len() - 1), Fault::Error(io::ErrorKind::StorageFull)]);
    log.intend(&[message]).unwrap_err();
    log.intend(&[ask()]).unwrap();
    assert_eq!(fixture.left().messages, []);
}

#[test]
fn a_session_without_a_file_has_no_intent_log() {
    let fixture = LogFixture::new();
    let mut unarmed =
        IntentLog::new(Arc::new(fixture.disk.clone()), Durability::Os, Some(fixture.path.clone()), false);
    unarmed.intend(&[run()]).unwrap();
    assert!(!fixture.path.exists());
    unarmed.arm();
    unarmed.intend(&[run()]).unwrap();
    assert!(fixture.path.exists());
    let mut memory = IntentLog::new(Arc::new(fixture.disk), Durability::Os, None, true);
    memory.intend(&[run()]).unwrap();
    memory.note(&said("x"));
    memory.settle();
}

#[test]
fn an_intent_that_cannot_be_written_is_an_error_and_an_outcome_is_not() {
    let fixture = LogFixture::new();
    let mut log = fixture.intent_log(Durability::Os);
    fixture.disk.plan().appends.push_back(Fault::Error(io::ErrorKind::StorageFull));
    assert!(log.intend(&[run()]).unwrap_err().to_string().contains("s.ledger"));
    log.intend(&[run(), ask()]).unwrap();
    fixture.disk.plan().appends.extend([Fault::Short(20), Fault::Error(io::ErrorKind::StorageFull)]);
    log.note(&said("lost"));
    // A record after a torn line begins on a line of its own.
    log.note(&said("kept"));
    assert_eq!(fixture.left().answer.unwrap().content[0].as_text(), Some("kept"));
}

#[test]
fn intents_are_synced_where_the_user_wants_that() {
    for (durability, synced) in [(Durability::Os, false), (Durability::Fsync, true)] {
        let fixture = LogFixture::new();
        let mut log = fixture.intent_log(durability);
        log.intend(&[run()]).unwrap();
        let syncs = fixture.disk.plan().syncs;
        assert_eq!(syncs > 0, synced);
        log.note(&said("x"));
        assert_eq!(fixture.disk.plan().syncs, syncs, "what came of it need not be synced");
    }
}

#[test]
fn a_long_run_has_a_short_intent_log() {
    let fixture = LogFixture::new();
    let mut log = fixture.intent_log(Durability::Os);
    log.intend(&[bash(1), run(), ask()]).unwrap();
    for _ in 0..20 {
        log.note(&said(&"x".repeat(100 << 10)));
        log.intend(&[ask()]).unwrap();
        assert!(fs::metadata(&fixture.path).unwrap().len() < RENEWED_BYTES + (200 << 10));
    }
    let left = fixture.left();
    assert!(left.run.is_some(), "the run is still known");
    assert_eq!(left.commands.len(), 1);
    log.settle();
    log.note(&stored(1));
    assert!(fixture.is_empty());
}

#[test]
fn what_an_earlier_process_left_does_not_stay() {
    let fixture = LogFixture::new();
    fixture.intent_log(Durability::Os).intend(&[run(), ask()]).unwrap();
    let mut next = fixture.intent_log(Durability::Os);
    next.intend(&[bash(1)]).unwrap();
    let left = fixture.left();
    assert_eq!((left.run, left.commands.len()), (None, 1));
}

#[test]
fn an_intent_log_is_replaced_in_one_step() {
    let fixture = LogFixture::new();
    let mut log = fixture.intent_log(Durability::Os);
    log.intend(&[run(), ask()]).unwrap();
    fixture.disk.plan().appends.push_back(Fault::Error(io::ErrorKind::StorageFull));
    log.replace(&[bash(1)]).unwrap_err();
    assert!(fixture.left().answer.is_some(), "the old one is as it was");
    log.replace(&[bash(1)]).unwrap();
    let left = fixture.left();
    assert_eq!((left.run, left.commands.len()), (None, 1));
    log.replace(&[]).unwrap();
    assert!(!fixture.path.exists());
    log.replace(&[]).unwrap();
}

/// A symbolic link in the place of the file is not followed.
#[cfg(unix)]
#[test]
fn a_link_in_its_place_leads_nowhere() {
    let fixture = LogFixture::new();
    let other = fixture.path.with_extension("other");
    fs::write(&other, "precious").unwrap();
    std::os::unix::fs::symlink(&other, &fixture.path).unwrap();
    fixture.intent_log(Durability::Os).intend(&[run()]).unwrap();
    assert_eq!(fs::read_to_string(&other).unwrap(), "precious");
}
