//! Joining at any point: the snapshot is what every event up to its number adds up to, and the rest follows.

use std::io::Write;

use agentd_ai::{
    BlockKind, BlockSeal, Delta,
    failure::{Failure, FailureKind},
};
use agentd_protocol::message::StopReason;
use agentd_session::Attached;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{
    fixture::{Fixture, Subscription, soon},
    fold::Folded,
};

/// One thing that happens to a run.
#[derive(Debug, Clone)]
enum Move {
    Say(Delta),
    Report(String, String),
    End(String),
}

/// One answer of the model: blocks of text and thinking, then calls; all in pieces.
#[derive(Debug, Clone)]
struct DialogAnswer {
    blocks: Vec<(bool, Vec<String>)>,
    /// What each call reports before it ends.
    calls: Vec<Vec<String>>,
}

fn extend(index: usize, delta: &str) -> Move {
    Move::Say(Delta::Extend { index, delta: delta.into() })
}

fn seal(index: usize) -> Move {
    Move::Say(Delta::Seal { index, seal: BlockSeal::default() })
}

/// What happens, in order, in a run of these answers; a last one without calls ends it.
fn moves(answers: &[DialogAnswer]) -> Vec<Move> {
    let mut moves = Vec::new();
    let last = DialogAnswer { blocks: vec![(false, vec!["done".into()])], calls: Vec::new() };
    let with_calls = answers.iter().filter(|answer| !answer.calls.is_empty());
    for (turn, answer) in with_calls.chain([&last]).enumerate() {
        moves.push(Move::Say(Delta::Started));
        for (index, (thinks, pieces)) in answer.blocks.iter().enumerate() {
            let kind = if *thinks { BlockKind::Thinking } else { BlockKind::Text };
            moves.push(Move::Say(Delta::Open { index, kind }));
            moves.extend(pieces.iter().map(|piece| extend(index, piece)));
            moves.push(seal(index));
        }
        let id = |call: usize| format!("call_{turn}_{call}");
        for call in 0..answer.calls.len() {
            let index = answer.blocks.len() + call;
            let kind = BlockKind::ToolCall { id: id(call), name: "bash".into() };
            moves.push(Move::Say(Delta::Open { index, kind }));
            moves.extend(["{\"command\": \"ec", "ho hi\", \"n\":", " 1}"].map(|piece| extend(index, piece)));
            moves.push(seal(index));
        }
        let stop_reason = if answer.calls.is_empty() { StopReason::Stop } else { StopReason::ToolUse };
        moves.push(Move::Say(Delta::Done { stop_reason, raw_stop_reason: None }));
        for (call, reports) in answer.calls.iter().enumerate() {
            moves.extend(reports.iter().map(|text| Move::Report(id(call), text.clone())));
        }
        // The last call ends first.
        moves.extend((0..answer.calls.len()).rev().map(|call| Move::End(id(call))));
    }
    moves
}

impl Move {
    /// Whether this event tells of it.
    fn is_told_by(&self, event: &Value) -> bool {
        let kind = match self {
            Self::Say(Delta::Started) => return event["message"]["stopReason"] == "pending",
            Self::Say(Delta::Done { .. }) => "message_end",
            Self::Say(_) => "message_update",
            Self::Report(..) => "tool_execution_update",
            Self::End(_) => "tool_execution_end",
        };
        event["type"] == kind
    }
}

/// Who joins after a move.
#[derive(Debug, Clone, Copy)]
enum Joining {
    /// One, once everyone has been told of the move.
    Told,
    /// So many at once, whatever has happened by then; the next move waits for them or does not.
    AtOnce { count: usize, waits: bool },
}

impl Fixture {
    fn play(&self, next: &Move) {
        match next {
            Move::Say(delta) => self.say(delta.clone()),
            Move::Report(call, text) => self.report(call, text),
            Move::End(call) => self.end_call(call, "ended"),
        }
    }
}

/// What someone saw who joined.
struct Joined {
    seq: usize,
    snapshot: Folded,
    is_streaming: bool,
    message_count: u64,
    events: Vec<Value>,
}

async fn read(joined: Vec<Attached>) -> Vec<Joined> {
    let mut read = Vec::new();
    for Attached { subscriber, seq, replayed, state, in_flight, .. } in joined {
        assert!(!replayed);
        let events = Subscription::new(subscriber).read_out().await;
        read.push(Joined {
            seq: usize::try_from(seq).unwrap(),
            snapshot: Folded::joined(in_flight.as_ref()),
            is_streaming: state.is_streaming,
            message_count: state.message_count,
            events,
        });
    }
    read
}

/// The law: at its number, a snapshot is the sum of all events so far, and every later event follows.
fn check(all: &[Value], joined: &Joined) {
    let (before, after) = all.split_at(joined.seq);
    let mut folded = Folded::of(before);
    assert_eq!(joined.snapshot.answer, folded.answer, "the answer at {}", joined.seq);
    assert_eq!(joined.snapshot.tools, folded.tools, "the calls at {}", joined.seq);
    assert_eq!(joined.message_count, folded.messages.len() as u64, "the messages at {}", joined.seq);
    assert_eq!(joined.events, after, "the events after {}", joined.seq);
    let kind = |event: &Value| event["type"].as_str().unwrap().to_owned();
    let last = before.iter().map(kind).rfind(|kind| kind == "agent_start" || kind == "agent_settled");
    if let Some(last) = last {
        assert_eq!(joined.is_streaming, last == "agent_start", "at work at {}", joined.seq);
    }
    // A client that joined there ends up with what a client has that was there from the start.
    let mut mine = joined.snapshot.clone();
    mine.messages.clone_from(&folded.messages);
    // Arguments are whole at the end of a call; a later piece of their text is useless without its beginning.
    let tells = |event: &&Value| event["assistantMessageEvent"]["type"] != "toolcall_delta";
    for event in after.iter().filter(tells) {
        mine.add(event);
        folded.add(event);
        assert_eq!((&mine.tools, &mine.answer), (&folded.tools, &folded.answer));
    }
    assert_eq!(mine.messages, folded.messages);
}

/// Plays a run; after each move others join as the schedule says.
async fn play(answers: &[DialogAnswer], schedule: impl Fn(usize) -> Joining) -> (Vec<Value>, Vec<Joined>) {
    let mut fixture = Fixture::new().await;
    let mut joined = vec![fixture.attach().await];
    let mut waiting = Vec::new();
    fixture.prompt("go").await;
    joined.push(fixture.attach().await);
    for (at, next) in moves(answers).iter().enumerate() {
        fixture.play(next);
        let (count, waits) = match schedule(at) {
            Joining::AtOnce { count, waits } => (count, waits),
            Joining::Told => {
                fixture.first.until(|event| next.is_told_by(event)).await;
                (1, true)
            }
        };
        for _ in 0..count {
            let session = fixture.session.clone();
            let attaching = tokio::spawn(async move { session.attach(None).await });
            if waits {
                joined.push(soon("a snapshot", attaching).await.unwrap().unwrap());
            } else {
                waiting.push(attaching);
            }
        }
    }
    fixture.first.until_event("agent_settled").await;
    joined.push(fixture.attach().await);
    for attaching in waiting {
        joined.push(soon("a snapshot", attaching).await.unwrap().unwrap());
    }
    // Everyone reads while the session ends.
    let session = fixture.session.clone();
    soon("the end", session.close()).await;
    let read = read(joined).await;
    (fixture.first.read_out().await, read)
}

fn text(pieces: &[&str]) -> (bool, Vec<String>) {
    (false, pieces.iter().map(|piece| (*piece).to_owned()).collect())
}

#[tokio::test]
async fn joining_after_every_step_of_a_run() {
    let calls = vec![vec!["a".into(), "ab".into()], vec!["c".into()]];
    let thought = (true, vec!["hm".to_owned(), "m".to_owned()]);
    let answers = [
        DialogAnswer { blocks: vec![thought, text(&["Let ", "me ", "look"])], calls },
        DialogAnswer { blocks: Vec::new(), calls: vec![Vec::new()] },
    ];
    let (all, joined) = play(&answers, |_| Joining::Told).await;
    joined.iter().for_each(|joined| check(&all, joined));
    // The snapshots are of all kinds, or the law would say little.
    let some = |what: &str, wanted: &dyn Fn(&Joined) -> bool| assert!(joined.iter().any(wanted), "{what}");
    some("nothing before the first event", &|joined| joined.seq == 0);
    some("half a text", &|joined| {
        joined
            .snapshot
            .answer
            .as_ref()
            .is_some_and(|blocks| blocks.iter().any(|block| block["text"] == "Let me "))
    });
    some("half the arguments of a call", &|joined| {
        let call = |block: &Value| block["arguments"] == json!({"command": "ec"});
        joined.snapshot.answer.as_ref().is_some_and(|blocks| blocks.iter().any(call))
    });
    some("a call that shows something", &|joined| {
        joined.snapshot.tools.iter().any(|tool| tool["partialResult"]["content"][0]["text"] == "ab")
    });
    some("one call of two", &|joined| joined.snapshot.tools.len() == 1 && joined.seq > 10);
    some("the settled session", &|joined| joined.seq == all.len() && !joined.is_streaming);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn joining_at_any_time(
        answers in prop::collection::vec(answer(), 0..3),
        schedule in prop::collection::vec(joining(), 1..12),
    ) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let (all, joined) = runtime.block_on(play(&answers, |at| schedule[at % schedule.len()]));
        joined.iter().for_each(|joined| check(&all, joined));
    }
}

fn joining() -> impl Strategy<Value = Joining> {
    (0..3_usize, any::<bool>()).prop_map(|(count, waits)| Joining::AtOnce { count, waits })
}

fn answer() -> impl Strategy<Value = DialogAnswer> {
    let pieces = || prop::collection::vec("[a-c\"é ]{0,4}", 0..4);
    let blocks = prop::collection::vec((any::<bool>(), pieces()), 0..3);
    let calls = prop::collection::vec(pieces(), 1..4);
    (blocks, calls).prop_map(|(blocks, calls)| DialogAnswer { blocks, calls })
}

#[tokio::test]
async fn missed_events_are_sent_again() {
    let mut fixture = Fixture::new().await;
    fixture.prompt("go").await;
    fixture.say(Delta::Started);
    fixture.say(Delta::Open { index: 0, kind: BlockKind::Text });
    fixture.first.until_event("message_update").await;
    let seen = fixture.first.events.len() as u64;
    let again = soon("a subscriber", fixture.session.attach(Some(2))).await.unwrap();
    assert_eq!((again.seq, again.replayed, again.in_flight.is_none()), (2, true, true));
    let current = soon("a subscriber", fixture.session.attach(Some(seen))).await.unwrap();
    assert_eq!((current.seq, current.replayed), (seen, true));
    // There is no such event: a snapshot instead.
    let odd = soon("a snapshot", fixture.session.attach(Some(seen + 1000))).await.unwrap();
    assert_eq!((odd.seq, odd.replayed, odd.in_flight.is_some()), (seen, false, true));
    soon("the end", fixture.session.close()).await;
    let all = fixture.first.read_out().await;
    for (attached, from) in [(again, 2), (current, seen), (odd, seen)] {
        let events = Subscription::new(attached.subscriber).read_out().await;
        assert_eq!(events, all[usize::try_from(from).unwrap()..]);
    }
    assert!(fixture.session.attach(None).await.is_none(), "the session has ended");
}

#[tokio::test]
async fn a_pause_before_a_retry_keeps_nobody_waiting() {
    let settings = json!({"retry": {"baseDelayMs": 3_600_000, "maxAgentDelayMs": 3_600_000}});
    let mut fixture = Fixture::with("test-key", settings).await;
    fixture.prompt("go").await;
    let failure = Failure::new(FailureKind::Retryable, "529: overloaded");
    fixture.say(Delta::Failed { failure, raw_stop_reason: None });
    fixture.first.until_event("auto_retry_start").await;
    let attached = fixture.attach().await;
    assert!(attached.state.is_streaming);
    assert_eq!(attached.in_flight, None);
    fixture.call("stop", json!({"type": "abort"})).await;
    assert!(!fixture.attach().await.state.is_streaming);
}

#[tokio::test]
async fn the_checks_of_a_prompt_keep_nobody_waiting() {
    // The key comes from a command that waits until someone writes to a pipe.
    let mut fixture = Fixture::with("!read key <\"$HOME/gate\"; echo \"$key\"", json!({})).await;
    let gate = fixture.path("gate");
    assert!(std::process::Command::new("mkfifo").arg(&gate).status().unwrap().success());
    fixture.send("prompt", json!({"type": "prompt", "message": "go"})).await;
    let attached = fixture.attach().await;
    assert_eq!((attached.seq, attached.in_flight), (0, None));
    assert!(attached.state.is_streaming, "the prompt is being checked");
    // Opened for both, it waits for no other end.
    let mut pipe = std::fs::OpenOptions::new().read(true).write(true).open(&gate).unwrap();
    pipe.write_all(b"key\n").unwrap();
    let answer = fixture.first.until(|line| line["id"] == "prompt").await;
    assert_eq!(answer["success"], true, "{answer}");
    soon("the end", fixture.session.close()).await;
    let all = fixture.first.read_out().await;
    assert_eq!(Subscription::new(attached.subscriber).read_out().await, all);
}

#[tokio::test]
async fn a_client_that_joins_a_run_that_breaks_off_is_answered() {
    for _ in 0..20 {
        let mut fixture = Fixture::new().await;
        fixture.prompt("go").await;
        fixture.say(Delta::Started);
        let session = fixture.session.clone();
        let joining = tokio::spawn(async move { session.attach(None).await });
        fixture.send("stop", json!({"type": "abort"})).await;
        let attached = soon("a snapshot", joining).await.unwrap().expect("a session that lives");
        fixture.first.until(|line| line["id"] == "stop").await;
        soon("the end", fixture.session.close()).await;
        let read = read(vec![attached]).await;
        check(&fixture.first.read_out().await, &read[0]);
    }
}

#[tokio::test]
async fn a_listener_that_takes_nothing_keeps_nobody_from_joining() {
    let fixture = Fixture::new().await;
    let mut other = Subscription::new(fixture.session.feed().attach());
    // Its answers too are not read, so the prompt is not waited for.
    fixture.send("prompt", json!({"type": "prompt", "message": "go"})).await;
    fixture.say(Delta::Started);
    fixture.say(Delta::Open { index: 0, kind: BlockKind::Text });
    let piece = "x".repeat(64 << 10);
    for _ in 0..40 {
        fixture.say(Delta::Extend { index: 0, delta: piece.clone() });
    }
    // Someone else takes more than may wait for a subscriber, and leaves: the session stands still now, or soon.
    for _ in 0..20 {
        other.until_event("message_update").await;
    }
    drop(other);
    let attached = fixture.attach().await;
    let said = attached.in_flight.as_ref().map_or(0, |shown| shown.message.as_ref().unwrap().text().len());
    let mut joined = Subscription::new(attached.subscriber);
    let missing = 40 * piece.len() - said.min(40 * piece.len());
    let mut came = 0;
    while came < missing.saturating_sub(1024) {
        let update = joined.until_event("message_update").await;
        came += update["assistantMessageEvent"]["delta"].as_str().map_or(0, str::len);
    }
    soon("the end", fixture.session.close()).await;
}
