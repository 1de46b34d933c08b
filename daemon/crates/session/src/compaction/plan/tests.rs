use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::compaction::testing::{say, tree};

fn compaction(id: &str, parent: &str, kept: &str, summary: &str) -> String {
    json!({"type": "compaction", "id": id, "parentId": parent, "timestamp": "2026-01-01T00:00:00.000Z",
        "summary": summary, "firstKeptEntryId": kept, "tokensBefore": 5, "fromHook": false,
        "details": {"readFiles": ["r"], "modifiedFiles": ["m"]}})
    .to_string()
}

fn planned(tree: &SessionTree, keep: u64, left_out: &[&str]) -> Result<Plan, CompactionError> {
    let left_out: Vec<String> = left_out.iter().map(|id| (*id).to_owned()).collect();
    plan_compaction(tree, &Context::new(tree), 77, keep, &left_out)
}

fn texts(messages: &[Json<Message>]) -> Vec<String> {
    let text = |message: &Json<Message>| match message.get().unwrap() {
        Message::User(user) => user.content.text(),
        Message::Assistant(answer) => answer.text(),
        Message::ToolResult(result) => result.content[0].as_text().unwrap().to_owned(),
        other => panic!("{other:?}"),
    };
    messages.iter().map(text).collect()
}

#[test]
fn the_older_part_is_summarised() {
    let tree = tree(&[
        say("s", "", "system", "prompt"),
        say("a", "s", "user", "one"),
        say("b", "a", "assistant", "1111"),
        say("c", "b", "user", "two"),
        say("d", "c", "assistant", "2222"),
    ]);
    let plan = planned(&tree, 2, &[]).unwrap();
    assert_eq!((plan.first_kept.as_str(), plan.tokens_before, plan.previous), ("c", 77, None));
    assert_eq!((texts(&plan.history), plan.turn_prefix.len()), (vec!["one".into(), "1111".into()], 0));
    let system = plan.system.unwrap();
    assert_eq!((system.content.text().as_str(), system.timestamp), ("prompt", 1));
    assert_eq!(planned(&tree, 100, &[]).unwrap_err(), CompactionError::NothingToCompact);
}

#[test]
fn a_turn_that_is_cut_gives_its_beginning() {
    let tree = tree(&[
        say("a", "", "user", "one"),
        say("b", "a", "assistant", "1111"),
        say("c", "b", "toolResult", "rrrr"),
        say("d", "c", "assistant", "2222"),
    ]);
    let plan = planned(&tree, 1, &[]).unwrap();
    assert_eq!((plan.first_kept.as_str(), plan.history.len()), ("d", 0));
    assert_eq!(texts(&plan.turn_prefix), ["one", "1111", "rrrr"]);
}

#[test]
fn the_last_compaction_is_gone_on_from() {
    let lists = "\n\n<read-files>\nr\n</read-files>\n\n<modified-files>\nm\n</modified-files>";
    let lines = [
        say("a", "", "user", "gone"),
        say("b", "a", "user", "kept"),
        compaction("k", "b", "b", &format!("Before.{lists}")),
    ];
    assert_eq!(planned(&tree(&lines), 0, &[]).unwrap_err(), CompactionError::AlreadyCompacted);
    let more = [&lines[..], &[say("c", "k", "user", "new"), say("d", "c", "assistant", "2222")]].concat();
    let plan = planned(&tree(&more), 2, &[]).unwrap();
    assert_eq!((plan.first_kept.as_str(), texts(&plan.history)), ("c", vec!["kept".into()]));
    assert_eq!(plan.previous.as_deref(), Some("Before."));
    assert_eq!(plan.files.details().modified_files, ["m"]);
    assert_eq!(planned(&tree(&more), 1000, &[]).unwrap_err(), CompactionError::NothingToCompact);
}

#[test]
fn a_failed_answer_does_not_count_before_it_is_left_out() {
    let tree = tree(&[
        say("a", "", "user", "12345678"),
        say("b", "a", "assistant", "much longer than the prompt was"),
    ]);
    let plan = planned(&tree, 2, &["b"]).unwrap();
    assert_eq!((plan.first_kept.as_str(), plan.tokens_before), ("b", 2));
    assert_eq!((plan.history.len(), texts(&plan.turn_prefix)), (0, vec!["12345678".to_owned()]));
}

/// A conversation that is as a session of ours can be: `u`ser, answer with two `c`alls and their results, `a`nswer, com`k`paction
/// (of what a plan says), model `m`.
fn grow(letters: &str, keep: u64) -> (SessionTree, Vec<Plan>) {
    let mut tree = tree(&[]);
    let mut plans = Vec::new();
    for letter in letters.chars() {
        let at = tree.entries().len();
        let parent = tree.leaf_id().unwrap_or_default().to_owned();
        let (id, next) = (format!("n{at}"), |step: usize| format!("n{}", at + step));
        let lines = match letter {
            'u' => vec![say(&id, &parent, "user", &format!("user {at}"))],
            'a' => vec![say(&id, &parent, "assistant", &format!("answer {at}"))],
            'c' => vec![
                json!({"type": "message", "id": id, "parentId": parent, "message": {"role": "assistant", "stopReason": "toolUse",
                    "content": [{"type": "toolCall", "id": format!("c{at}"), "name": "read", "arguments": {"path": id}},
                        {"type": "toolCall", "id": format!("d{at}"), "name": "read", "arguments": {}}]}})
                .to_string(),
                say(&next(1), &id, "toolResult", "r").replace(r#""toolCallId":"c""#, &format!(r#""toolCallId":"c{at}""#)),
                say(&next(2), &next(1), "toolResult", "r")
                    .replace(r#""toolCallId":"c""#, &format!(r#""toolCallId":"d{at}""#)),
            ],
            'm' => vec![
                json!({"type": "model_change", "id": id, "parentId": parent, "provider": "p", "modelId": "m"}).to_string(),
            ],
            _ => match planned(&tree, keep, &[]) {
                Ok(plan) => {
                    let line = compaction(&id, &parent, &plan.first_kept, "Summary.");
                    plans.push(plan);
                    vec![line]
                }
                Err(_) => vec![],
            },
        };
        for line in lines {
            tree.push(agentd_store::Entry::parse(&line).unwrap());
        }
    }
    (tree, plans)
}

proptest! {
    /// After any number of compactions, every result in the context has its call before it and every call its results; the
    /// newest message is there; and a plan summarises nothing twice and leaves nothing out.
    #[test]
    fn contexts_stay_legal(letters in "u[ucamk]{0,30}", keep in 0..60_u64) {
        let (tree, plans) = grow(&letters, keep);
        let context = Context::new(&tree);
        let mut open: Vec<String> = Vec::new();
        for message in context.messages() {
            match message.get().unwrap() {
                Message::Assistant(answer) => {
                    prop_assert!(open.is_empty(), "{:?}", open);
                    open = answer.tool_calls().map(|call| call.id.clone()).collect();
                }
                Message::ToolResult(result) => {
                    let at = open.iter().position(|id| *id == result.tool_call_id);
                    prop_assert!(at.is_some(), "a result without its call: {:?}", result.tool_call_id);
                    open.remove(at.unwrap_or_default());
                }
                _ => prop_assert!(open.is_empty(), "{:?}", open),
            }
        }
        prop_assert!(open.is_empty());
        for plan in plans {
            let kept_from = tree.branch().iter().position(|entry| entry.id() == plan.first_kept).unwrap();
            let before: Vec<String> = tree.branch()[..kept_from]
                .iter()
                .filter_map(|entry| entry.message())
                .map(|message| message.text().to_owned())
                .collect();
            let summarised: Vec<String> =
                plan.history.iter().chain(&plan.turn_prefix).map(|message| message.text().to_owned()).collect();
            prop_assert!(!summarised.is_empty() && before.ends_with(&summarised));
            prop_assert!(plan.previous.is_some() || before.len() == summarised.len());
        }
    }
}
