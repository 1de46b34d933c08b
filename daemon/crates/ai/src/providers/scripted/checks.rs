//! Checks that every request of a scripted model has to pass, whatever the script, so that any test finds a daemon that sends illegal
//! transcripts; and the choice of a step by conditions.

use std::collections::VecDeque;

use agentd_protocol::message::{Message, StopReason};

use super::{
    facts::{Facts, result_text},
    script::{Conditions, Script, ScriptStep},
};
use crate::Request;

/// Fails with the reason why a transcript is illegal. `open_calls`: calls may lack results.
pub(super) fn transcript(messages: &[&Message], open_calls: bool) -> Result<(), String> {
    let mut waiting: VecDeque<(&str, &str)> = VecDeque::new();
    // Calls of a failed answer need no results, but may have them.
    let mut excused: Vec<&str> = Vec::new();
    let mut begun = false;
    let mut last = None;
    for (index, message) in messages.iter().enumerate() {
        let place = index + 1;
        match message {
            Message::System(_) => continue,
            Message::ToolResult(result) => {
                let id = result.tool_call_id.as_str();
                match waiting.iter().position(|(waiting, _)| *waiting == id) {
                    Some(position) => {
                        let (_, name) = waiting.remove(position).unwrap_or_default();
                        if result.tool_name != name {
                            let found = &result.tool_name;
                            return Err(format!(
                                "message {place}: the result of call {id} names the tool {found}, not {name}"
                            ));
                        }
                    }
                    None if excused.contains(&id) => excused.retain(|excused| *excused != id),
                    None => {
                        return Err(format!(
                            "message {place}: a result for {id}, which is no call that waits for one"
                        ));
                    }
                }
            }
            Message::Assistant(answer) => {
                if !begun {
                    return Err(format!("message {place}: an answer before any prompt"));
                }
                all_answered(&waiting, place, open_calls)?;
                waiting.clear();
                if matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted) {
                    excused.extend(answer.tool_calls().map(|call| call.id.as_str()));
                    continue;
                }
                if answer.stop_reason == StopReason::Pending {
                    return Err(format!("message {place}: an answer that has not ended"));
                }
                waiting.extend(answer.tool_calls().map(|call| (call.id.as_str(), call.name.as_str())));
            }
            Message::User(_)
            | Message::BashExecution(_)
            | Message::Custom(_)
            | Message::BranchSummary(_)
            | Message::CompactionSummary(_) => {
                begun = true;
                all_answered(&waiting, place, open_calls)?;
                waiting.clear();
            }
        }
        last = Some(*message);
    }
    all_answered(&waiting, messages.len() + 1, open_calls)?;
    match last {
        None => Err("the request holds no prompt".into()),
        Some(Message::Assistant(_)) if waiting.is_empty() => {
            Err("the last message is an answer: there is nothing to reply to".into())
        }
        Some(_) => Ok(()),
    }
}

fn all_answered(waiting: &VecDeque<(&str, &str)>, place: usize, open_calls: bool) -> Result<(), String> {
    match waiting.front() {
        Some((id, name)) if !open_calls => {
            Err(format!("message {place}: the call {id} of {name} has no result before it"))
        }
        _ => Ok(()),
    }
}

/// Fails with the first condition that a request does not fulfil.
pub(super) fn conditions(
    conditions: &Conditions,
    request: &Request,
    facts: &Facts<'_>,
) -> Result<(), String> {
    let Conditions {
        prompt,
        prompt_contains,
        system_contains,
        tools,
        has_tool,
        messages,
        answers,
        results,
        result_contains,
        result_is_error,
        images,
        thinking_level,
        model,
    } = conditions;
    let last_result = facts.results().last();
    let last_text = last_result.map(result_text).unwrap_or_default();
    same("the prompt", prompt.as_ref(), &facts.prompt())?;
    contains("the prompt", prompt_contains.as_ref(), &facts.prompt())?;
    contains("the system prompt", system_contains.as_ref(), &facts.system.prompt())?;
    same("the list of tools", tools.as_ref(), &facts.tool_names().map(str::to_owned).collect())?;
    if let Some(name) = has_tool.as_ref().filter(|name| !facts.offers(name)) {
        return Err(format!("the tool {name} is not on offer"));
    }
    same("the number of messages", messages.as_ref(), &facts.messages.len())?;
    same("the number of answers", answers.as_ref(), &facts.answers())?;
    same("the number of results since the prompt", results.as_ref(), &facts.results().count())?;
    contains("the last result", result_contains.as_ref(), &last_text)?;
    if let Some(expected) = result_is_error {
        let found = last_result.map(|result| result.is_error);
        same("whether the last result is an error", Some(&Some(*expected)), &found)?;
    }
    same("the number of images", images.as_ref(), &count_images(facts))?;
    same("the thinking level", thinking_level.as_deref(), request.thinking_level.as_str())?;
    same("the model", model.as_ref(), &request.model.id)
}

fn same<T: PartialEq + std::fmt::Debug + ?Sized>(
    what: &str,
    expected: Option<&T>,
    found: &T,
) -> Result<(), String> {
    match expected {
        Some(expected) if expected != found => Err(format!("{what} is {found:?}, not {expected:?}")),
        _ => Ok(()),
    }
}

fn contains(what: &str, expected: Option<&String>, found: &str) -> Result<(), String> {
    match expected {
        Some(expected) if !found.contains(expected.as_str()) => {
            Err(format!("{what} does not contain {expected:?}: {found:?}"))
        }
        _ => Ok(()),
    }
}

fn count_images(facts: &Facts<'_>) -> usize {
    use agentd_protocol::message::ContentBlock;
    let images = |blocks: &[ContentBlock]| {
        blocks.iter().filter(|block| matches!(block, ContentBlock::Image(_))).count()
    };
    let counts = facts.messages.iter().map(|message| match message {
        Message::User(user) => images(&user.content.blocks()),
        Message::Custom(custom) => images(&custom.content.blocks()),
        Message::ToolResult(result) => images(&result.content),
        _ => 0,
    });
    counts.sum()
}

/// The step for a request, and whether it uses up its position. A step whose `when` fits comes first, as often as it fits; else the step at
/// `position` (from 0) among those without `when`.
pub(super) fn choose_step<'s>(
    script: &'s Script,
    position: usize,
    request: &Request,
    facts: &Facts<'_>,
) -> Result<(&'s ScriptStep, bool), String> {
    let fits =
        |step: &&ScriptStep| step.when.as_ref().is_some_and(|when| conditions(when, request, facts).is_ok());
    if let Some(step) = script.steps.iter().find(fits) {
        return Ok((step, false));
    }
    let mut in_order = script.steps.iter().filter(|step| step.when.is_none());
    match in_order.nth(position) {
        Some(step) => Ok((step, true)),
        None => {
            let steps = script.steps.iter().filter(|step| step.when.is_none()).count();
            Err(format!(
                "it has {steps} steps in order, and this is request {} of this process; no step's `when` fits",
                position + 1
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(messages: Value, expected: Result<(), &str>) {
        let messages: Vec<Message> = serde_json::from_value(messages).unwrap();
        let messages: Vec<&Message> = messages.iter().collect();
        match (transcript(&messages, false), expected) {
            (Ok(()), Ok(())) => {}
            (Err(found), Err(expected)) => assert!(found.contains(expected), "{found}"),
            (found, _) => panic!("{found:?} for {messages:?}"),
        }
    }

    fn answer(ids: &[&str], stop: &str) -> Value {
        let calls = ids.iter().map(|id| json!({"type": "toolCall", "id": id, "name": "bash"}));
        json!({"role": "assistant", "content": calls.collect::<Vec<_>>(), "stopReason": stop})
    }

    fn result(id: &str) -> Value {
        json!({"role": "toolResult", "toolCallId": id, "toolName": "bash", "content": []})
    }

    #[test]
    fn legal_transcripts_pass() {
        let user = json!({"role": "user", "content": "q"});
        let system = json!({"role": "system", "content": "s"});
        check(json!([system, user]), Ok(()));
        check(json!([user, answer(&["1", "2"], "toolUse"), result("2"), system, result("1")]), Ok(()));
        check(json!([user, answer(&["1"], "aborted"), result("1"), user]), Ok(()));
        check(json!([user, answer(&["1"], "aborted"), user]), Ok(()));
        check(
            json!([user, answer(&["1"], "stop"), result("1"), answer(&["1"], "stop"), result("1")]),
            Ok(()),
        );
    }

    #[test]
    fn illegal_transcripts_are_found_out() {
        let user = json!({"role": "user", "content": "q"});
        check(json!([]), Err("no prompt"));
        check(json!([answer(&[], "stop")]), Err("an answer before any prompt"));
        check(json!([user, answer(&[], "stop")]), Err("the last message is an answer"));
        check(json!([user, answer(&["1"], "toolUse")]), Err("the call 1 of bash has no result"));
        check(
            json!([user, answer(&["1"], "toolUse"), user]),
            Err("message 3: the call 1 of bash has no result"),
        );
        check(json!([user, result("1")]), Err("message 2: a result for 1"));
        check(
            json!([user, answer(&["1"], "stop"), result("1"), result("1")]),
            Err("message 4: a result for 1"),
        );
        check(json!([user, answer(&[], "pending"), user]), Err("has not ended"));
        let other = json!({"role": "toolResult", "toolCallId": "1", "toolName": "read", "content": []});
        check(json!([user, answer(&["1"], "stop"), other]), Err("names the tool read, not bash"));
    }

    #[test]
    fn open_calls_pass_where_they_are_expected() {
        let messages: Vec<Message> = serde_json::from_value(
            json!([{"role": "user", "content": "q"}, answer(&["1"], "toolUse"), {"role": "user", "content": "again"}]),
        )
        .unwrap();
        let messages: Vec<&Message> = messages.iter().collect();
        assert_eq!(transcript(&messages, true), Ok(()));
    }
}
