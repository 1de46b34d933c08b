use agentd_protocol::message::{Message, StopReason};
use agentd_store::{NewSession, Store, StoreOptions, intent_log::intent_log_path};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::recovery::plan::{DID_NOT_RUN, MAY_HAVE_RUN, RESULT_IS_LOST, plan_recovery};
use crate::requests::KEY_FIELD;

/// A session file, and an intent log beside it.
struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new(lines: &[Value], intent_log: &[Value]) -> Self {
        let place = Self { dir: tempfile::tempdir().unwrap() };
        place.write(&text(lines), &text(intent_log));
        place
    }

    fn write(&self, session: &str, intent_log: &str) {
        let header = json!({"type": "session", "version": 3, "id": "s", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/"});
        std::fs::write(self.file(), format!("{header}\n{session}")).unwrap();
        std::fs::write(intent_log_path(&self.file()), intent_log).unwrap();
    }

    fn file(&self) -> std::path::PathBuf {
        self.dir.path().join("s.jsonl")
    }

    fn open(&self) -> OpenSession {
        Store::new(StoreOptions::default()).open(&self.file(), NewSession::new("/", 0)).unwrap()
    }

    /// Recovers, and gives what the entries that were added say.
    fn recover(&self, way: CrashRecovery) -> (Recovered, Vec<Message>) {
        let mut session = self.open();
        let before = session.tree.entries().len();
        let recovered = recover(&mut session, &[], way, Origin::User, None);
        let added = session.tree.entries()[before..].iter().map(|entry| {
            assert!(entry.line().contains("\"recovered\":"), "{}", entry.line());
            entry.message().unwrap().get().unwrap().clone()
        });
        let added = added.collect();
        (recovered, added)
    }
}

fn text(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn entry(id: &str, parent: Option<&str>, message: &Value) -> Value {
    json!({"type": "message", "id": id, "parentId": parent, "timestamp": "2026-01-01T00:00:01.000Z", "message": message})
}

fn user(id: &str, parent: Option<&str>) -> Value {
    entry(id, parent, &json!({"role": "user", "content": "Go.", "timestamp": 1}))
}

/// An answer that calls tools `c1`, `c2`, …
fn answer(id: &str, parent: &str, calls: usize) -> Value {
    let content: Vec<Value> = (1..=calls)
        .map(|n| json!({"type": "toolCall", "id": format!("c{n}"), "name": format!("tool{n}"), "arguments": {}}))
        .collect();
    let stop = if calls > 0 { "toolUse" } else { "stop" };
    entry(
        id,
        Some(parent),
        &json!({"role": "assistant", "content": content, "api": "a", "provider": "p", "model": "m", "usage": {}, "stopReason": stop, "timestamp": 1}),
    )
}

fn tool_result(call: &str, said: &str) -> Value {
    json!({"role": "toolResult", "toolCallId": call, "toolName": "t", "content": [{"type": "text", "text": said}], "isError": false, "timestamp": 1})
}

fn run(entry: &str) -> Value {
    json!({"type": "run", "at": 1, "entry": entry, "resumes": 0})
}

fn ask(after: &str) -> Value {
    json!({"type": "ask", "at": 1, "after": after, "api": "a", "provider": "p", "model": "m", "level": "high"})
}

fn calls(entry: &str, count: usize) -> Value {
    let calls: Vec<Value> = (1..=count).map(|n| json!({"id": format!("c{n}"), "name": "t"})).collect();
    json!({"type": "calls", "entry": entry, "calls": calls})
}

fn said(result: &Message) -> (String, bool) {
    match result {
        Message::ToolResult(result) => (result.text(), result.is_error),
        other => panic!("no result: {other:?}"),
    }
}

#[test]
fn nothing_happens_without_an_intent_log() {
    let place = Place::new(&[user("u", None), answer("a", "u", 1)], &[]);
    for _ in 0..2 {
        let (recovered, added) = place.recover(CrashRecovery::Resume);
        assert_eq!(
            (added, recovered.next, recovered.diagnostics.len()),
            (Vec::new(), AfterCrash::Nothing, 0)
        );
        let _ = std::fs::remove_file(intent_log_path(&place.file()));
    }
}

#[test]
fn every_call_gets_a_truthful_result() {
    let done = json!({"type": "done", "entry": "a", "call": "c2", "message": tool_result("c2", "fine")});
    let lost = json!({"type": "done", "entry": "a", "call": "c4"});
    let mut begun = calls("a", 2);
    begun["calls"].as_array_mut().unwrap().push(json!({"id": "c4"}));
    let place = Place::new(&[user("u", None), answer("a", "u", 4)], &[run("u"), ask("u"), begun, done, lost]);
    let (recovered, added) = place.recover(CrashRecovery::Close);
    let said: Vec<_> = added.iter().map(said).collect();
    assert_eq!(
        said,
        [
            (MAY_HAVE_RUN.to_owned(), true),
            ("fine".to_owned(), false),
            (DID_NOT_RUN.to_owned(), true),
            (RESULT_IS_LOST.to_owned(), true),
        ]
    );
    let [told] = &recovered.diagnostics[..] else { panic!("{:?}", recovered.diagnostics) };
    for part in
        ["crash", "tool1 may have run", "tool2 ran to its end", "tool3 did not run", "its result is lost"]
    {
        assert!(told.message.contains(part), "{}", told.message);
    }
    assert!(!intent_log_path(&place.file()).exists());
}

#[test]
fn results_that_are_there_are_not_added_again() {
    let place = Place::new(
        &[user("u", None), answer("a", "u", 2), entry("r", Some("a"), &tool_result("c1", "x"))],
        &[run("u"), calls("a", 2)],
    );
    let (_, added) = place.recover(CrashRecovery::Close);
    assert_eq!(added.iter().map(said).collect::<Vec<_>>(), [(MAY_HAVE_RUN.to_owned(), true)]);
}

/// Who went back to an answer with calls has their results on another branch: a crash of the next run is none of theirs.
#[test]
fn calls_of_an_earlier_run_are_none_of_this_one() {
    let system = json!({"role": "system", "content": "", "timestamp": 2});
    let place = Place::new(
        &[
            user("u", None),
            answer("a", "u", 1),
            entry("r", Some("a"), &tool_result("c1", "x")),
            entry("s", Some("a"), &system),
        ],
        &[run("s")],
    );
    let (_, added) = place.recover(CrashRecovery::Close);
    assert_eq!(added, []);
}

#[test]
fn text_that_streamed_is_kept() {
    let streamed = json!({"type": "said", "parts": [{"block": 0, "text": "Half an"}]});
    let place = Place::new(&[user("u", None)], &[run("u"), ask("u"), streamed]);
    let (recovered, added) = place.recover(CrashRecovery::Close);
    let [Message::Assistant(answer)] = &added[..] else { panic!("{added:?}") };
    assert_eq!((answer.text().as_str(), answer.stop_reason), ("Half an", StopReason::Aborted));
    assert_eq!(answer.error_message.as_deref(), Some("Interrupted by a crash"));
    assert_eq!((&*answer.model, answer.thinking_level.as_deref()), ("m", Some("high")));
    assert!(recovered.diagnostics[0].message.contains("7 characters"), "{:?}", recovered.diagnostics);
}

#[test]
fn an_answer_that_is_there_is_no_crash() {
    let place = Place::new(
        &[user("u", None), answer("a", "u", 0)],
        &[run("u"), ask("u"), json!({"type": "said", "parts": [{"block": 0, "text": "Half"}]})],
    );
    let (recovered, added) = place.recover(CrashRecovery::Resume);
    assert_eq!((added, recovered.next, recovered.diagnostics.len()), (Vec::new(), AfterCrash::Nothing, 0));
}

#[test]
fn a_intent_log_of_another_time_says_nothing() {
    // Somebody went on with another program.
    let went_on = [user("u", None), answer("a", "u", 1), user("v", Some("a"))];
    let place = Place::new(&went_on, &[run("gone"), ask("gone"), calls("a", 1)]);
    let (recovered, added) = place.recover(CrashRecovery::Resume);
    assert_eq!((added, recovered.next), (Vec::new(), AfterCrash::Nothing));
}

#[test]
fn the_turn_goes_on_as_the_setting_says_and_not_for_ever() {
    let lines = [user("u", None), answer("a", "u", 1)];
    let intent_log = [run("u"), ask("u"), calls("a", 1)];
    let (recovered, _) = Place::new(&lines, &intent_log).recover(CrashRecovery::Ask);
    assert_eq!(recovered.next, AfterCrash::Asks);
    let place = Place::new(&lines, &intent_log);
    for (expected, added_entries) in
        [(AfterCrash::GoesOn, 1), (AfterCrash::GoesOn, 0), (AfterCrash::Nothing, 0), (AfterCrash::Nothing, 0)]
    {
        // Each time the daemon dies before anything came of it.
        let (recovered, added) = place.recover(CrashRecovery::Resume);
        assert_eq!((recovered.next, added.len()), (expected, added_entries));
    }
    assert!(!intent_log_path(&place.file()).exists());
}

#[test]
fn a_turn_that_was_cut_off_while_nothing_was_said_goes_on() {
    for lines in [
        vec![user("u", None)],
        vec![user("u", None), answer("a", "u", 1), entry("r", Some("a"), &tool_result("c1", "x"))],
    ] {
        let last = lines.last().unwrap()["id"].as_str().unwrap().to_owned();
        let place = Place::new(&lines, &[run("u"), ask(&last)]);
        let (recovered, added) = place.recover(CrashRecovery::Resume);
        assert_eq!((recovered.next, added.len()), (AfterCrash::GoesOn, 1));
        // The answer that says so does not end it: the daemon dies again at once.
        let (recovered, added) = place.recover(CrashRecovery::Resume);
        assert_eq!((recovered.next, added.len()), (AfterCrash::GoesOn, 0));
    }
}

#[test]
fn text_of_a_turn_that_went_on_is_kept_as_well() {
    let said = |text: &str| json!({"type": "said", "parts": [{"block": 0, "text": text}]});
    let place = Place::new(&[user("u", None)], &[run("u"), ask("u"), said("One")]);
    assert_eq!(place.recover(CrashRecovery::Resume).1.len(), 1);
    let last = place.open().tree.leaf_id().unwrap().to_owned();
    let mut intent_log = std::fs::read_to_string(intent_log_path(&place.file())).unwrap();
    intent_log.push_str(&text(&[ask(&last), said("Two")]));
    std::fs::write(intent_log_path(&place.file()), &intent_log).unwrap();
    for expected in [1, 0] {
        let (_, added) = place.recover(CrashRecovery::Close);
        assert_eq!(added.len(), expected);
        std::fs::write(intent_log_path(&place.file()), &intent_log).unwrap();
    }
    let session = place.open();
    let Some(Message::Assistant(answer)) = session.tree.leaf().and_then(|leaf| leaf.message()?.get()) else {
        panic!("no answer at the end")
    };
    assert_eq!(answer.text(), "Two");
}

#[test]
fn commands_of_the_user_are_there_once() {
    let begun = |number: u64, key: Value| json!({"type": "bash", "number": number, "at": 5, "command": "make", "requestKey": key});
    let message = json!({"role": "bashExecution", "command": "make", "output": "ok", "cancelled": false, "truncated": false, "timestamp": 9});
    let intent_log = [
        begun(1, json!("k1")),
        begun(2, Value::Null),
        json!({"type": "bashDone", "number": 2, "message": message}),
    ];
    let place = Place::new(&[user("u", None), answer("a", "u", 0)], &intent_log);
    let (recovered, added) = place.recover(CrashRecovery::Resume);
    let outputs: Vec<_> = added
        .iter()
        .map(|message| match message {
            Message::BashExecution(it) => (it.output.as_str(), it.cancelled),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(outputs, [(MAY_HAVE_RUN, true), ("ok", false)]);
    assert_eq!(recovered.next, AfterCrash::Nothing);
    let written = std::fs::read_to_string(place.file()).unwrap();
    assert!(written.contains("\"requestKey\":\"k1\""));
    // The same intent log again: a crash before it was removed.
    std::fs::write(intent_log_path(&place.file()), text(&intent_log)).unwrap();
    assert_eq!(place.recover(CrashRecovery::Close).1, Vec::new());
}

/// Of two commands of one line, one is in the file and the intent log was not told; the other one, which came before it, is not.
/// Which is which, their keys say.
#[test]
fn commands_of_one_line_are_told_apart_by_their_keys() {
    let begun = |number: u64, key: Option<&str>| json!({"type": "bash", "number": number, "at": 5, "command": "make", "requestKey": key});
    let message = json!({"role": "bashExecution", "command": "make", "output": "ok", "cancelled": false, "truncated": false, "timestamp": 9});
    let ended = |key: Option<&str>| {
        let mut entry = entry("m", Some("u"), &message);
        if let Some(key) = key {
            entry["requestKey"] = json!(key);
        }
        entry
    };
    let (one, other) = (Some("k1"), Some("k2"));
    for (open, in_file) in [(one, other), (None, other), (one, None)] {
        let place = Place::new(&[user("u", None), ended(in_file)], &[begun(1, open), begun(2, in_file)]);
        let mut session = place.open();
        recover(&mut session, &[], CrashRecovery::Close, Origin::User, None);
        let keys: Vec<_> = session.tree.entries()[1..].iter().map(|entry| entry.extra(KEY_FIELD)).collect();
        assert_eq!(keys, [in_file.map(str::to_owned), open.map(str::to_owned)]);
    }
    // Without keys the one that is known to have ended has the entry.
    let over = json!({"type": "bashDone", "number": 2});
    let place = Place::new(&[user("u", None), ended(None)], &[begun(1, None), begun(2, None), over]);
    let (_, added) = place.recover(CrashRecovery::Close);
    assert!(matches!(&added[..], [Message::BashExecution(it)] if it.output == MAY_HAVE_RUN), "{added:?}");
}

/// What a run of two turns with two tools leaves in both files, in the order in which it is written; `true` is the session
/// file.
fn history() -> Vec<(bool, Value)> {
    vec![
        (true, user("u", None)),
        (false, run("u")),
        (false, ask("u")),
        (false, json!({"type": "said", "parts": [{"block": 0, "text": "Let me "}]})),
        (true, answer("a", "u", 2)),
        (false, calls("a", 2)),
        (false, json!({"type": "done", "entry": "a", "call": "c2", "message": tool_result("c2", "two")})),
        (false, json!({"type": "done", "entry": "a", "call": "c1", "message": tool_result("c1", "one")})),
        (true, entry("r1", Some("a"), &tool_result("c1", "one"))),
        (true, entry("r2", Some("r1"), &tool_result("c2", "two"))),
        (false, ask("r2")),
        (false, json!({"type": "said", "parts": [{"block": 0, "text": "It is "}]})),
        (false, json!({"type": "said", "parts": [{"block": 0, "text": "done."}]})),
        (true, answer("b", "r2", 0)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever of both files reached the disk, each call has exactly one result afterwards, and doing it again adds nothing.
    #[test]
    fn any_beginning_of_both_files_becomes_legal(
        upto in 0usize..=14,
        // A crash of the machine may keep more of one file than of the other.
        log_less in 0usize..3,
        torn in 0usize..60,
        interrupted_after in 0usize..4,
    ) {
        let history = history();
        let of = |is_session: bool, upto: usize| -> Vec<Value> {
            history[..upto].iter().filter(|(kind, _)| *kind == is_session).map(|(_, line)| line.clone()).collect()
        };
        let place = Place::new(&[], &[]);
        let session = text(&of(true, upto));
        let mut intent_log = text(&of(false, upto.saturating_sub(log_less)));
        intent_log.truncate(intent_log.len().saturating_sub(torn));
        place.write(&session, &intent_log);
        // A first recovery that is killed after some of its entries.
        {
            let mut session = place.open();
            let left = session.writer.intent_log().left().unwrap().unwrap_or_default();
            let plan = plan_recovery(&session.tree, &left, 1).unwrap();
            for entry in plan.entries.into_iter().take(interrupted_after) {
                append(&mut session, entry).unwrap();
            }
        }
        drop(place.recover(CrashRecovery::Close));
        let session = place.open();
        let had_run = intent_log.contains("\"type\":\"run\"") && intent_log.find('\n').is_some();
        let mut open: Vec<String> = Vec::new();
        for message in session.tree.branch().iter().filter_map(|entry| entry.message()?.get()) {
            match message {
                Message::Assistant(answer) => {
                    prop_assert!(open.is_empty());
                    open = answer.tool_calls().map(|call| call.id.clone()).collect();
                }
                Message::ToolResult(result) => {
                    let at = open.iter().position(|id| *id == result.tool_call_id);
                    prop_assert!(at.is_some(), "a result too many");
                    open.remove(at.unwrap());
                }
                _ => prop_assert!(open.is_empty()),
            }
        }
        prop_assert!(open.is_empty() || !had_run, "{open:?} have no results");
        drop(session);
        let (again, added) = place.recover(CrashRecovery::Close);
        prop_assert!(added.is_empty() && again.diagnostics.is_empty());
    }
}
