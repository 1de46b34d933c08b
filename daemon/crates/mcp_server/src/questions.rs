//! Pure. Questions about calls as forms of the client, and what its answers mean.

use agentd_protocol::permissions::{PermissionAnswer, PermissionOption, PermissionQuestion};
use serde_json::{Value, json};

use crate::{
    requests::{ElicitAction, ElicitResult},
    versions::has_titled_options,
};

/// The name of the form's one field.
const DECISION: &str = "decision";

/// The longest part of a diff or of arguments in a question, in bytes.
const MAX_SHOWN: usize = 4 << 10;

/// What a client can answer. A rule for every session of the user is none of it: that is decided by the user's own clients.
fn offered(question: &PermissionQuestion) -> impl Iterator<Item = &PermissionOption> {
    question.options.iter().filter(|option| option.decision != PermissionAnswer::Always)
}

/// The parameters of `elicitation/create` for a question, in a revision of the protocol.
pub(crate) fn form(question: &PermissionQuestion, version: &str) -> Value {
    let mut message = question.title.clone();
    if let Some(diff) = &question.diff {
        message.push_str("\n\n");
        message.push_str(cut(diff));
    }
    if let Some(arguments) = &question.arguments {
        message.push_str("\n\n");
        message.push_str(cut(&arguments.to_string()));
    }
    let mut field =
        json!({"type": "string", "title": "Decision", "default": PermissionAnswer::Deny.as_str()});
    if has_titled_options(version) {
        let options =
            offered(question).map(|option| json!({"const": option.decision.as_str(), "title": option.text}));
        field["oneOf"] = options.collect();
    } else {
        field["enum"] = offered(question).map(|option| option.decision.as_str()).collect();
        field["enumNames"] = offered(question).map(|option| option.text.as_str()).collect();
    }
    let schema = json!({"type": "object", "properties": {DECISION: field}, "required": [DECISION]});
    let mut form = json!({"message": message, "requestedSchema": schema});
    if has_titled_options(version) {
        form["mode"] = "form".into();
    }
    form
}

/// The beginning of a text that may be long.
fn cut(text: &str) -> &str {
    let mut end = text.len().min(MAX_SHOWN);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The decision of an answer.
///
/// # Errors
/// What is wrong with an answer that is none: it has to count as a no, or to be asked for again.
pub(crate) fn decision(
    question: &PermissionQuestion,
    answer: &ElicitResult,
) -> Result<PermissionAnswer, String> {
    if answer.action != ElicitAction::Accept {
        return Ok(PermissionAnswer::Deny);
    }
    let given = answer.content.as_ref().and_then(|content| content.get(DECISION));
    let Some(Value::String(given)) = given else {
        return Err(format!("content.{DECISION}: expected one of the options"));
    };
    let found = offered(question).find(|option| option.decision.as_str() == given);
    found
        .map(|option| option.decision)
        .ok_or_else(|| format!("content.{DECISION}: it is none of the options"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question() -> PermissionQuestion {
        serde_json::from_value(
            json!({"title": "Allow this?\n$ cargo build", "toolCallId": "c", "tool": "bash",
            "command": "cargo build", "reason": "the preset asks", "diff": "d".repeat(5000),
            "options": [{"decision": "once", "text": "Yes"}, {"decision": "session", "text": "Always here"},
                {"decision": "always", "text": "Always"}, {"decision": "deny", "text": "No"}],
            "timeout": 1, "deadline": 1}),
        )
        .unwrap()
    }

    #[test]
    fn a_form_has_the_options_but_for_rules_for_good() {
        let form = form(&question(), "2025-11-25");
        assert_eq!(form["mode"], "form");
        let field = &form["requestedSchema"]["properties"]["decision"];
        let options: Vec<&str> =
            field["oneOf"].as_array().unwrap().iter().map(|it| it["const"].as_str().unwrap()).collect();
        assert_eq!(options, ["once", "session", "deny"]);
        let message = form["message"].as_str().unwrap();
        assert!(message.starts_with("Allow this?\n$ cargo build\n\nddd") && message.len() < 4200);
    }

    #[test]
    fn older_revisions_have_plain_options() {
        let form = form(&question(), "2025-06-18");
        assert_eq!(form.get("mode"), None);
        let field = &form["requestedSchema"]["properties"]["decision"];
        assert_eq!(field["enum"], json!(["once", "session", "deny"]));
        assert_eq!(field["enumNames"], json!(["Yes", "Always here", "No"]));
    }

    #[test]
    fn what_was_not_offered_is_no_answer() {
        let decide = |answer: Value| decision(&question(), &serde_json::from_value(answer).unwrap());
        let accept = |decision: Value| json!({"action": "accept", "content": {"decision": decision}});
        assert_eq!(decide(accept(json!("once"))), Ok(PermissionAnswer::Once));
        assert_eq!(decide(accept(json!("session"))), Ok(PermissionAnswer::Session));
        assert_eq!(decide(accept(json!("deny"))), Ok(PermissionAnswer::Deny));
        assert_eq!(decide(json!({"action": "decline"})), Ok(PermissionAnswer::Deny));
        assert_eq!(
            decide(json!({"action": "cancel", "content": {"decision": "once"}})),
            Ok(PermissionAnswer::Deny)
        );
        for none in [accept(json!("always")), accept(json!(true)), json!({"action": "accept"})] {
            assert!(decide(none.clone()).is_err(), "{none}");
        }
    }
}
