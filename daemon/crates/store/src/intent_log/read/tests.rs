use super::*;

const RUN: &str = r#"{"type":"run","at":1,"entry":"u1","resumes":0}"#;
const ASK: &str = r#"{"type":"ask","at":1,"after":"u1","api":"a","provider":"p","model":"m","level":"off"}"#;
const CALLS: &str =
    r#"{"type":"calls","entry":"a1","calls":[{"id":"c1","name":"bash"},{"id":"c2","name":"read"}]}"#;
const DONE: &str = r#"{"type":"done","entry":"a1","call":"c2","message":{"role":"toolResult","toolCallId":"c2","toolName":"read","content":[],"isError":false,"timestamp":1}}"#;

fn read(lines: &[&str]) -> UnfinishedWork {
    UnfinishedWork::read(lines.join("\n").as_bytes())
}

#[test]
fn what_streamed_is_put_together() {
    let found = read(&[
        RUN,
        ASK,
        r#"{"type":"said","parts":[{"block":0,"thinking":"Hm","signature":"s"},{"block":1,"text":"On"}]}"#,
        r#"{"type":"said","parts":[{"block":1,"text":"e."}]}"#,
    ]);
    let answer = found.answer.unwrap();
    assert_eq!(answer.ask.after.as_deref(), Some("u1"));
    assert_eq!(
        answer.content,
        [
            ContentBlock::Thinking {
                thinking: "Hm".into(),
                thinking_signature: Some("s".into()),
                redacted: None
            },
            ContentBlock::text("One.")
        ]
    );
}

#[test]
fn a_new_question_forgets_what_was_said_before() {
    let found = read(&[RUN, ASK, r#"{"type":"said","parts":[{"block":0,"text":"Old"}]}"#, ASK]);
    assert_eq!(found.answer.unwrap().content, []);
}

#[test]
fn calls_begin_and_end() {
    let found = read(&[RUN, ASK, CALLS, DONE]);
    let calls = found.calls.unwrap();
    assert_eq!(calls.begun.iter().map(|call| &*call.id).collect::<Vec<_>>(), ["c1", "c2"]);
    assert!(calls.done["c2"].is_some());
    assert!(!calls.done.contains_key("c1"));
}

#[test]
fn a_settled_run_leaves_commands_of_the_user() {
    let bash = r#"{"type":"bash","number":1,"at":1,"command":"make"}"#;
    let stored = r#"{"type":"bashDone","number":1,"stored":true}"#;
    let found = read(&[bash, RUN, ASK, r#"{"type":"settled"}"#]);
    assert_eq!((found.run, found.answer, found.commands.len()), (None, None, 1));
    assert!(read(&[bash, RUN, r#"{"type":"settled"}"#, stored]).is_empty());
}

/// The session decides whether a delivered message is an entry, whatever else it holds.
#[test]
fn messages_wait_until_they_are_entries() {
    let queued = |number: u64, text: &str| {
        format!(r#"{{"type":"queued","number":{number},"to":"followUp","text":"{text}","requestKey":"k"}}"#)
    };
    let delivered =
        |number: u64, after: &str| format!(r#"{{"type":"delivered","number":{number},"after":"{after}"}}"#);
    let lines = [
        queued(2, "yes"),
        queued(1, "yes"),
        queued(3, "b"),
        delivered(1, "a"),
        delivered(3, "c"),
        delivered(9, "a"),
    ];
    let found = read(&lines.iter().map(String::as_str).collect::<Vec<_>>());
    let waiting = |entries: &[&str]| -> Vec<u64> {
        found.waiting(&crate::testing::tree(entries)).iter().map(|it| it.number).collect()
    };
    assert_eq!(waiting(&["a -"]), [1, 2, 3]);
    let yes = r#"{"type":"message","id":"y","parentId":"a","timestamp":"t","requestKey":"k","message":{"role":"user","content":[{"type":"text","text":"yes\n\nAn image was made smaller."}]}}"#;
    assert_eq!(waiting(&["a -", yes]), [2, 3]);
    let of_another = yes.replace("\"k\"", "\"l\"");
    assert_eq!(waiting(&["a -", &of_another]), [1, 2, 3], "another command said the same there");
    let b = r#"{"type":"message","id":"b","parentId":"c","timestamp":"t","requestKey":"k","message":{"role":"user","content":"b"}}"#;
    assert_eq!(waiting(&["a -", b]), [1, 2]);
    assert_eq!(waiting(&["a -", "b a", "x c"]), [1, 2, 3], "something else was said there");
    let again = read(&[&queued(1, "yes"), &delivered(1, "a"), &queued(1, "yes")]);
    assert_eq!(
        again.waiting(&crate::testing::tree(&["a -", yes])).len(),
        1,
        "the disk did not take that one"
    );
    assert!(read(&[&queued(1, "yes"), r#"{"type":"unqueued"}"#]).is_empty());
}

#[test]
fn garbage_counts_for_nothing() {
    let clean = read(&[RUN, ASK, CALLS, DONE]);
    let zeros = "\0".repeat(600);
    for odd in ["", "{", "{\"type\":\"future\",\"x\":1}", "null", &zeros, "\u{feff}", "\r"] {
        assert_eq!(read(&[odd, RUN, odd, ASK, CALLS, odd, DONE, odd]), clean, "{odd:?}");
    }
    let mut torn = [RUN, ASK, CALLS, DONE].join("\n").into_bytes();
    torn.truncate(torn.len() - 10);
    let without = UnfinishedWork::read(&torn);
    assert!(without.calls.unwrap().done.is_empty(), "a torn outcome is none");
    assert!(UnfinishedWork::read(b"\xff\xfe\n\x00").is_empty());
}
