use agentd_protocol::entry::EntryBody;
use proptest::prelude::*;

use super::*;
use crate::{
    NewEntry, NewSession,
    testing::{entry, tree},
};

/// A short form of each message: its role and text, or its source for what has no text.
fn shown(tree: &SessionTree, context: &Context) -> Vec<String> {
    assert_eq!(context.messages.len(), context.sources.len());
    let one = |(message, at): (&Json<Message>, &u32)| {
        let text = match message.get().unwrap() {
            Message::System(system) => format!("system:{}", system.content.text()),
            Message::User(user) => user.content.text(),
            Message::Assistant(answer) => format!("answer:{}", answer.text()),
            Message::ToolResult(result) => format!("result:{}", result.text()),
            Message::BashExecution(bash) => format!("bash:{}", bash.command),
            Message::Custom(custom) => format!("custom:{}", custom.content.text()),
            Message::BranchSummary(summary) => format!("branch:{}<{}", summary.summary, summary.from_id),
            Message::CompactionSummary(summary) => {
                format!("summary:{}/{}", summary.summary, summary.tokens_before)
            }
        };
        format!("{}={text}", tree.entry(*at).id())
    };
    context.messages.iter().zip(&context.sources).map(one).collect()
}

fn check(entries: &[&str], expected: &[&str]) {
    let tree = tree(entries);
    let context = Context::new(&tree);
    assert_eq!(shown(&tree, &context), expected, "{entries:#?}");
    check_followed(entries);
}

/// Following the tree entry by entry ends where building at once does.
fn check_followed(entries: &[&str]) {
    let mut growing = tree(&[]);
    let mut context = Context::new(&growing);
    for (at, text) in entries.iter().enumerate() {
        growing.push(entry(text, at));
        context.follow(&growing);
        let fresh = Context::new(&growing);
        assert_eq!(shown(&growing, &context), shown(&growing, &fresh), "after {text}");
        assert_eq!(context.sources, fresh.sources);
        assert_eq!((context.thinking_level(), context.model()), (fresh.thinking_level(), fresh.model()));
        assert_eq!(context.leaf, fresh.leaf);
    }
}

fn compaction_entry(id: &str, parent: &str, kept: &str) -> String {
    format!(
        r#"{{"type":"compaction","id":"{id}","parentId":"{parent}","timestamp":"1970-01-01T00:00:09.000Z","summary":"S{id}","firstKeptEntryId":"{kept}","tokensBefore":7.0}}"#
    )
}

fn edit_entry(id: &str, parent: &str, target: &str, replacement: &str) -> String {
    format!(
        r#"{{"type":"context_edit","id":"{id}","parentId":"{parent}","targetId":"{target}","replacement":{replacement}}}"#
    )
}

fn message_entry(id: &str, parent: &str, message: &str) -> String {
    format!(r#"{{"type":"message","id":"{id}","parentId":"{parent}","message":{message}}}"#)
}

#[test]
fn nothing_and_plain_messages() {
    check(&[], &[]);
    check(&["a -", "b a"], &["a=a", "b=b"]);
    // Branches: the leaf is the last entry of the file.
    check(&["a -", "b a", "c a"], &["a=a", "c=c"]);
    // Another root; a parent whose line was lost.
    check(&["a -", "b -"], &["b=b"]);
    check(&["a -", "b x", "c b"], &["a=a", "b=b", "c=c"]);
}

#[test]
fn a_leaf_before_the_first_entry_has_no_context() {
    let mut tree =
        tree(&["a -", r#"{"type":"thinking_level_change","id":"b","parentId":"a","thinkingLevel":"low"}"#]);
    let mut context = Context::new(&tree);
    tree.set_leaf(None).unwrap();
    context.follow(&tree);
    assert_eq!((context.messages().len(), context.thinking_level()), (0, None));
    tree.push(entry("c -", 3));
    context.follow(&tree);
    assert_eq!(shown(&tree, &context), ["c=c"]);
    tree.set_leaf(Some("b")).unwrap();
    context.follow(&tree);
    assert_eq!((shown(&tree, &context), context.thinking_level()), (vec!["a=a".to_owned()], Some("low")));
}

#[test]
fn entries_without_a_say_add_nothing() {
    check(
        &[
            "a -",
            r#"{"type":"usage","id":"b","parentId":"a","kind":"cache_warm","usage":{}}"#,
            r#"{"type":"custom","customType":"x","data":1,"id":"c","parentId":"b"}"#,
            r#"{"type":"label","id":"d","parentId":"c","targetId":"a","label":"L"}"#,
            r#"{"type":"session_info","id":"e","parentId":"d","name":"N"}"#,
            r#"{"type":"from_the_future","id":"f","parentId":"e","message":{"role":"user","content":"no"}}"#,
            r#"{"type":"message","id":"g","parentId":"f","message":7}"#,
            r#"{"type":"branch_summary","id":"h","parentId":"g","fromId":"root","summary":""}"#,
            "z h",
        ],
        &["a=a", "z=z"],
    );
}

#[test]
fn derived_messages() {
    let entries = [
        r#"{"type":"custom_message","customType":"ext","content":[{"type":"text","text":"hi"}],"display":true,"details":{"n":1.0},"id":"a","parentId":null,"timestamp":"1970-01-01T00:00:01.500Z"}"#,
        r#"{"type":"branch_summary","id":"b","parentId":"a","timestamp":"1970-01-01T00:00:02.000Z","fromId":"x","summary":"went there"}"#,
    ];
    check(&entries, &["a=custom:hi", "b=branch:went there<x"]);
    let context = Context::new(&tree(&entries));
    assert_eq!(
        context.messages()[0].text(),
        r#"{"role":"custom","customType":"ext","content":[{"type":"text","text":"hi"}],"display":true,"details":{"n":1.0},"timestamp":1500}"#
    );
    assert_eq!(
        context.messages()[1].text(),
        r#"{"role":"branchSummary","summary":"went there","fromId":"x","timestamp":2000}"#
    );
}

#[test]
fn choices_come_from_the_whole_path() {
    let answer = message_entry(
        "c",
        "b",
        r#"{"role":"assistant","content":[],"provider":"p2","model":"m2","stopReason":"stop"}"#,
    );
    let entries = [
        r#"{"type":"model_change","id":"a","parentId":null,"provider":"p1","modelId":"m1"}"#,
        r#"{"type":"thinking_level_change","id":"b","parentId":"a","thinkingLevel":"high"}"#,
        &answer,
        &compaction_entry("d", "c", "d"),
        "e d",
    ];
    check_followed(&entries);
    let context = Context::new(&tree(&entries));
    assert_eq!(context.thinking_level(), Some("high"));
    assert_eq!(context.model(), Some(&ModelRef { provider: "p2".into(), model_id: "m2".into() }));
    let context = Context::new(&tree(&entries[..2]));
    assert_eq!(context.model(), Some(&ModelRef { provider: "p1".into(), model_id: "m1".into() }));
    assert_eq!(Context::new(&tree(&["a -"])).thinking_level(), None);
}

#[test]
fn a_compaction_keeps_what_it_says() {
    let system = message_entry("s", "a", r#"{"role":"system","content":"old state"}"#);
    let entries = |kept: &str| {
        [
            "a -".to_owned(),
            system.clone(),
            "b s".into(),
            "c b".into(),
            compaction_entry("k", "c", kept),
            "d k".into(),
        ]
    };
    let check = |kept: &str, expected: &[&str]| {
        let entries = entries(kept);
        check(&entries.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    };
    // System messages before the compaction are part of its own system state.
    check("a", &["k=summary:Sk/7", "a=a", "b=b", "c=c", "d=d"]);
    check("s", &["k=summary:Sk/7", "b=b", "c=c", "d=d"]);
    check("c", &["k=summary:Sk/7", "c=c", "d=d"]);
    // Its own id, and one that is not there: nothing before it.
    check("k", &["k=summary:Sk/7", "d=d"]);
    check("x", &["k=summary:Sk/7", "d=d"]);
}

#[test]
fn an_older_compaction_is_part_of_the_later_summary() {
    check(
        &["a -", &compaction_entry("j", "a", "a"), "b j", &compaction_entry("k", "b", "a"), "c k"],
        &["k=summary:Sk/7", "a=a", "b=b", "c=c"],
    );
}

#[test]
fn a_compaction_brings_its_system_state() {
    let entries = [
        "a -",
        r#"{"type":"compaction","id":"k","parentId":"a","timestamp":"1970-01-01T00:00:01.000Z","summary":"S","firstKeptEntryId":"k","tokensBefore":5,"systemMessage":{"role":"system","content":"state","timestamp":1.0}}"#,
    ];
    check(&entries, &["k=system:state", "k=summary:S/5"]);
    let context = Context::new(&tree(&entries));
    assert_eq!(context.messages()[0].text(), r#"{"role":"system","content":"state","timestamp":1.0}"#);
    assert_eq!(
        context.messages()[1].text(),
        r#"{"role":"compactionSummary","summary":"S","tokensBefore":5,"timestamp":1000}"#
    );
}

#[test]
fn edits_leave_out_and_replace() {
    let answer = message_entry(
        "b",
        "a",
        r#"{"role":"assistant","content":[{"type":"text","text":"no"}],"n":1.0,"stopReason":"stop"}"#,
    );
    let check_edit = |target: &str, replacement: &str, expected: &[&str]| {
        check(&["a -", &answer, "c b", &edit_entry("e", "c", target, replacement), "d e"], expected);
    };
    check_edit("b", "null", &["a=a", "c=c", "d=d"]);
    check_edit("b", r#"{"content":"yes"}"#, &["a=a", "b=answer:yes", "c=c", "d=d"]);
    check_edit("a", r#"{"content":"yes"}"#, &["a=yes", "b=answer:no", "c=c", "d=d"]);
    check_edit(
        "a",
        r#"{"content":[{"type":"text","text":"1"},{"type":"text","text":"2"}]}"#,
        &["a=1\n2", "b=answer:no", "c=c", "d=d"],
    );
    check_edit("x", "null", &["a=a", "b=answer:no", "c=c", "d=d"]);
    // A malformed edit changes nothing.
    check_edit("a", "{}", &["a=a", "b=answer:no", "c=c", "d=d"]);
}

#[test]
fn an_edited_message_keeps_its_other_fields() {
    let answer = message_entry("b", "a", r#"{"role":"assistant","content":[],"n":1.0,"stopReason":"stop"}"#);
    let tree = tree(&["a -", &answer, &edit_entry("e", "b", "b", r#"{"content":"yes"}"#)]);
    assert_eq!(
        Context::new(&tree).messages()[1].text(),
        r#"{"role":"assistant","content":[{"type":"text","text":"yes"}],"n":1.0,"stopReason":"stop"}"#
    );
}

#[test]
fn the_last_edit_on_the_branch_counts() {
    check(
        &[
            "a -",
            &edit_entry("e", "a", "a", "null"),
            &edit_entry("f", "e", "a", r#"{"content":"yes"}"#),
            "b f",
        ],
        &["a=yes", "b=b"],
    );
    // An edit on another branch.
    check(&["a -", &edit_entry("e", "a", "a", "null"), "b a"], &["a=a", "b=b"]);
    // An edit that was summarised away with its target's surroundings: the target is kept, the edit too.
    check(
        &["a -", "b a", &edit_entry("e", "b", "b", "null"), &compaction_entry("k", "e", "b"), "c k"],
        &["k=summary:Sk/7", "c=c"],
    );
    // System messages and summaries have no content to replace.
    let system = message_entry("s", "a", r#"{"role":"system","content":"state"}"#);
    check(&["a -", &system, &edit_entry("e", "s", "s", r#"{"content":"x"}"#)], &["a=a", "s=system:state"]);
}

#[test]
fn following_the_usual_case_builds_nothing_anew() {
    let mut tree = tree(&["a -"]);
    let mut context = Context::new(&tree);
    let first = context.messages()[0].text().as_ptr();
    for _ in 0..3 {
        let message = serde_json::from_str(r#"{"role":"user","content":"x"}"#).unwrap();
        let new = tree.prepare(NewEntry::message(message), 0);
        let text = new.message().unwrap().text().as_ptr();
        tree.push(new);
        context.follow(&tree);
        assert_eq!(context.messages().last().unwrap().text().as_ptr(), text, "the text is shared");
    }
    assert_eq!(context.messages()[0].text().as_ptr(), first);
    let body = EntryBody::ThinkingLevelChange { thinking_level: "low".into() };
    let new = tree.prepare(NewEntry::from_body(&body).unwrap(), 0);
    tree.push(new);
    context.follow(&tree);
    assert_eq!((context.messages().len(), context.thinking_level()), (4, Some("low")));
}

/// Any entry, its parent and targets among the entries before it.
fn any_entry() -> impl Strategy<Value = (u8, usize, usize)> {
    (0u8..10, 0usize..20, 0usize..20)
}

fn line((kind, parent, target): (u8, usize, usize), at: usize) -> String {
    let parent = match parent % (at + 2) {
        0 => "null".to_owned(),
        // Most entries follow the one before.
        near if near > at / 2 => format!("\"e{}\"", at.saturating_sub(1)),
        other => format!("\"e{}\"", other - 1),
    };
    let target = format!("e{}", target % (at + 1));
    let rest = match kind {
        0..=2 => format!(r#""type":"message","message":{{"role":"user","content":"{at}"}}"#),
        3 => r#""type":"message","message":{"role":"assistant","content":[],"provider":"p","model":"m"}"#
            .into(),
        4 => format!(r#""type":"compaction","summary":"{at}","firstKeptEntryId":"{target}""#),
        5 => format!(r#""type":"context_edit","targetId":"{target}","replacement":null"#),
        6 => format!(r#""type":"context_edit","targetId":"{target}","replacement":{{"content":"new"}}"#),
        7 => format!(r#""type":"thinking_level_change","thinkingLevel":"{at}""#),
        8 => format!(r#""type":"label","targetId":"{target}","label":"{at}""#),
        _ => r#""type":"custom_message","content":"x""#.into(),
    };
    format!(r#"{{"id":"e{at}","parentId":{parent},{rest}}}"#)
}

proptest! {
    #[test]
    fn following_is_building(entries in proptest::collection::vec(any_entry(), 1..20), moves in proptest::collection::vec(0usize..20, 0..20)) {
        let mut growing = tree(&[]);
        let mut context = Context::new(&growing);
        for (at, parts) in entries.into_iter().enumerate() {
            growing.push(entry(&line(parts, at), at));
            // Several entries at once, and moves of the leaf.
            if let Some(target) = moves.get(at) {
                match target % 4 {
                    0 => continue,
                    1 => growing.set_leaf(Some(&format!("e{}", target % (at + 1)))).unwrap(),
                    _ => {}
                }
            }
            context.follow(&growing);
            let fresh = Context::new(&growing);
            let texts = |context: &Context| context.messages.iter().map(|m| m.text().to_owned()).collect::<Vec<_>>();
            prop_assert_eq!(texts(&context), texts(&fresh));
            prop_assert_eq!(&context.sources, &fresh.sources);
            prop_assert_eq!((context.thinking_level(), context.model()), (fresh.thinking_level(), fresh.model()));
        }
    }

    #[test]
    fn a_copied_branch_has_the_context_of_its_original(entries in proptest::collection::vec(any_entry(), 1..20), leaf in 0usize..20) {
        let mut original = tree(&[]);
        let count = entries.len();
        for (at, parts) in entries.into_iter().enumerate() {
            original.push(entry(&line(parts, at), at));
        }
        let leaf = format!("e{}", leaf % count);
        let copy = crate::copy_branch(&original, Some(&leaf), NewSession::new("/w", 0)).unwrap();
        original.set_leaf(Some(&leaf)).unwrap();
        let (there, here) = (Context::new(&original), Context::new(&copy));
        let texts = |context: &Context| context.messages.iter().map(|m| m.text().to_owned()).collect::<Vec<_>>();
        prop_assert_eq!(texts(&here), texts(&there));
        let sources = |tree: &SessionTree, context: &Context| {
            context.sources.iter().map(|at| tree.entry(*at).id().to_owned()).collect::<Vec<_>>()
        };
        prop_assert_eq!(sources(&copy, &here), sources(&original, &there));
        prop_assert_eq!((here.thinking_level(), here.model()), (there.thinking_level(), there.model()));
    }
}
