//! Pure. Questions to the user: as requests for a permission, or as forms, and what the answers mean.

use agentd_protocol::{
    permissions::{PermissionAnswer, PermissionQuestion},
    ui::{UiMethod, UiResponse},
};
use serde::Serialize;
use serde_json::{Map, Value, json, value::RawValue};

use crate::{
    requests::{ElicitationAnswer, Outcome, PermissionOutcome},
    tool_calls::{Arguments, Folders, kind, locations, of_patch, shortened, title},
    updates::{Content, ToolCallFields, ToolContent, ToolKind, ToolStatus},
};

/// The option ids of a yes and a no.
const YES: &str = "yes";
const NO: &str = "no";

/// The name of the one field of a form.
const ANSWER: &str = "answer";

/// `session/request_permission`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PermissionRequest {
    pub(crate) session_id: String,
    pub(crate) tool_call: ToolCallFields,
    pub(crate) options: Vec<PermissionOption>,
}

/// An option of it.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PermissionOption {
    option_id: String,
    name: String,
    kind: &'static str,
}

impl PermissionOption {
    fn new(option_id: &str, name: &str, kind: &'static str) -> Self {
        Self { option_id: option_id.to_owned(), name: name.to_owned(), kind }
    }
}

/// A question about a call. `arguments` are those of the call, where it is known.
pub(crate) fn about_call(
    session: &str,
    id: &str,
    question: &PermissionQuestion,
    arguments: Option<&Arguments>,
    folders: &Folders,
) -> PermissionRequest {
    let tool = question.tool.as_str();
    let own;
    let arguments = match (arguments, &question.command) {
        (Some(arguments), _) => arguments,
        (None, command) => {
            own = given(question, command.as_deref());
            &own
        }
    };
    let mut content = match (&question.path, &question.diff) {
        (Some(path), Some(diff)) if !question.diff_cut => of_patch(path, diff),
        _ => Vec::new(),
    };
    content
        .push(ToolContent::Content { content: Content::text(format!("Asked, since {}.", question.reason)) });
    let options = question.options.iter().map(|option| {
        let kind = match option.decision {
            PermissionAnswer::Once => "allow_once",
            PermissionAnswer::Session | PermissionAnswer::Always => "allow_always",
            PermissionAnswer::Deny => "reject_once",
        };
        PermissionOption::new(option.decision.as_str(), &option.text, kind)
    });
    PermissionRequest {
        session_id: session.to_owned(),
        tool_call: ToolCallFields {
            // A command of the user is no tool call of the model.
            tool_call_id: question.tool_call_id.clone().unwrap_or_else(|| id.to_owned()),
            title: Some(title(tool, arguments, folders)),
            name: Some(tool.to_owned()),
            kind: Some(kind(tool)),
            status: Some(ToolStatus::Pending),
            content: Some(content),
            locations: Some(locations(tool, arguments, None, folders)),
            raw_input: Some(arguments.clone().into()),
            raw_output: None,
        },
        options: options.collect(),
    }
}

/// The arguments as the question has them.
fn given(question: &PermissionQuestion, command: Option<&str>) -> Arguments {
    if let Some(Value::Object(arguments)) = &question.arguments {
        return arguments.clone();
    }
    let mut arguments = Map::new();
    if let Some(command) = command {
        arguments.insert("command".into(), command.into());
    }
    if let Some(path) = &question.path {
        arguments.insert("path".into(), path.as_str().into());
    }
    arguments
}

/// The decision about a call: everything but the choice of an option that was offered is a no.
pub(crate) fn decision(
    answer: &Result<&RawValue, String>,
    options: &[agentd_protocol::permissions::PermissionOption],
) -> PermissionAnswer {
    let chosen = answer.as_ref().ok().and_then(|answer| chosen(answer));
    let chosen = chosen.and_then(|id| options.iter().find(|option| option.decision.as_str() == id));
    chosen.map_or(PermissionAnswer::Deny, |option| option.decision)
}

fn chosen(answer: &RawValue) -> Option<String> {
    match serde_json::from_str::<PermissionOutcome>(answer.get()).ok()?.outcome {
        Outcome::Selected { option_id } => Some(option_id),
        Outcome::Cancelled => None,
    }
}

/// A dialog in a form that the client knows.
#[derive(Debug)]
pub(crate) enum Dialog {
    /// `elicitation/create`.
    Form(Value),
    /// `session/request_permission`.
    Choice(Box<PermissionRequest>),
    /// The client has no way to ask it.
    Impossible,
}

/// A dialog for the client. `forms`: whether it shows forms.
pub(crate) fn dialog(session: &str, id: &str, method: &UiMethod, forms: bool) -> Dialog {
    let form = |message: &str, field: Value| {
        Dialog::Form(json!({
            "sessionId": session,
            "mode": "form",
            "message": message,
            "requestedSchema": {"type": "object", "properties": {ANSWER: field}, "required": [ANSWER]},
        }))
    };
    match method {
        UiMethod::Select { title, options, .. } if forms => {
            form(title, json!({"type": "string", "title": shortened(title), "enum": options}))
        }
        UiMethod::Confirm { title, message, .. } if forms => {
            let text = if message.is_empty() { title.clone() } else { format!("{title}\n{message}") };
            form(&text, json!({"type": "boolean", "title": shortened(title)}))
        }
        UiMethod::Input { title, placeholder, .. } if forms => {
            let mut field = json!({"type": "string", "title": shortened(title)});
            if let Some(example) = placeholder {
                field["description"] = example.as_str().into();
            }
            form(title, field)
        }
        UiMethod::Editor { title, prefill } if forms => {
            let mut field = json!({"type": "string", "title": shortened(title)});
            if let Some(text) = prefill {
                field["default"] = text.as_str().into();
            }
            form(title, field)
        }
        UiMethod::Select { title, options, .. } => {
            let options = options
                .iter()
                .enumerate()
                .map(|(place, text)| PermissionOption::new(&place.to_string(), text, "allow_once"));
            choice(session, id, title, "", options.collect())
        }
        UiMethod::Confirm { title, message, .. } => {
            let options = vec![
                PermissionOption::new(YES, "Yes", "allow_once"),
                PermissionOption::new(NO, "No", "reject_once"),
            ];
            choice(session, id, title, message, options)
        }
        _ => Dialog::Impossible,
    }
}

/// A choice on a tool call that stands for the question.
fn choice(session: &str, id: &str, heading: &str, message: &str, options: Vec<PermissionOption>) -> Dialog {
    let text = if message.is_empty() { heading.to_owned() } else { format!("{heading}\n\n{message}") };
    Dialog::Choice(Box::new(PermissionRequest {
        session_id: session.to_owned(),
        tool_call: ToolCallFields {
            tool_call_id: id.to_owned(),
            title: Some(shortened(heading)),
            kind: Some(ToolKind::Other),
            status: Some(ToolStatus::Pending),
            content: Some(vec![ToolContent::Content { content: Content::text(text) }]),
            ..ToolCallFields::default()
        },
        options,
    }))
}

/// The answer to a dialog, from that of the client. Whatever is no answer cancels it.
pub(crate) fn answer(
    session: &str,
    id: &str,
    method: &UiMethod,
    forms: bool,
    given: &Result<&RawValue, String>,
) -> UiResponse {
    let mut response =
        UiResponse { id: id.to_owned(), session_id: Some(session.to_owned()), ..UiResponse::default() };
    let given = given.as_ref().ok();
    let value = if forms { given.and_then(|given| filled_in(given)) } else { None };
    let option = if forms { None } else { given.and_then(|given| chosen(given)) };
    match (method, value, option) {
        (UiMethod::Confirm { .. }, Some(Value::Bool(yes)), _) => response.confirmed = Some(yes.into()),
        (UiMethod::Confirm { .. }, _, Some(id)) => response.confirmed = Some((id == YES).into()),
        (UiMethod::Select { options, .. }, Some(Value::String(text)), _) if options.contains(&text) => {
            response.value = Some(text.into());
        }
        (UiMethod::Select { options, .. }, _, Some(id)) => {
            match id.parse().ok().and_then(|place: usize| options.get(place)) {
                Some(text) => response.value = Some(text.as_str().into()),
                None => response.cancelled = Some(true.into()),
            }
        }
        (UiMethod::Input { .. } | UiMethod::Editor { .. }, Some(Value::String(text)), _) => {
            response.value = Some(text.into());
        }
        _ => response.cancelled = Some(true.into()),
    }
    response
}

/// The value of the form's one field.
fn filled_in(answer: &RawValue) -> Option<Value> {
    let ElicitationAnswer { action, content } = serde_json::from_str(answer.get()).ok()?;
    content.filter(|_| action == "accept")?.remove(ANSWER)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(value: Value) -> Box<RawValue> {
        serde_json::value::to_raw_value(&value).unwrap()
    }

    fn question() -> PermissionQuestion {
        serde_json::from_value(json!({"title":"t","toolCallId":"c","tool":"bash","command":"cargo build","reason":"the preset asks",
            "options":[{"decision":"once","text":"Yes"},{"decision":"session","text":"Always here"},{"decision":"deny","text":"No"}],
            "timeout":1,"deadline":1}))
        .unwrap()
    }

    #[test]
    fn a_question_about_a_call_names_it_and_its_options() {
        let request = about_call("s", "q", &question(), None, &Folders::default());
        assert_eq!(request.tool_call.tool_call_id, "c");
        assert_eq!(request.tool_call.title.as_deref(), Some("cargo build"));
        let kinds: Vec<_> = request.options.iter().map(|option| option.kind).collect();
        assert_eq!(kinds, ["allow_once", "allow_always", "reject_once"]);
    }

    #[test]
    fn everything_but_an_option_that_was_offered_is_a_no() {
        let options = question().options;
        let decide = |given: Value| decision(&Ok(&*raw(given)), &options);
        let selected = |id: &str| json!({"outcome":{"outcome":"selected","optionId":id}});
        assert_eq!(decide(selected("once")), PermissionAnswer::Once);
        assert_eq!(decide(selected("session")), PermissionAnswer::Session);
        for no in [
            selected("always"),
            selected("deny"),
            selected("x"),
            json!({"outcome":{"outcome":"cancelled"}}),
            json!({}),
            json!(null),
        ] {
            assert_eq!(decide(no.clone()), PermissionAnswer::Deny, "{no}");
        }
        assert_eq!(decision(&Err("no".into()), &options), PermissionAnswer::Deny);
    }

    #[test]
    fn dialogs_are_forms_where_the_client_shows_them() {
        let select =
            UiMethod::Select { title: "t".into(), options: vec!["a".into(), "b".into()], timeout: None };
        let confirm = UiMethod::Confirm { title: "t".into(), message: "m".into(), timeout: None };
        let input = UiMethod::Input { title: "t".into(), placeholder: None, timeout: None };
        assert!(matches!(dialog("s", "q", &select, true), Dialog::Form(_)));
        assert!(matches!(dialog("s", "q", &select, false), Dialog::Choice(_)));
        assert!(matches!(dialog("s", "q", &confirm, false), Dialog::Choice(_)));
        assert!(matches!(dialog("s", "q", &input, false), Dialog::Impossible));
        let accept = |value: Value| json!({"action":"accept","content":{"answer":value}});
        let chose = |id: &str| json!({"outcome":{"outcome":"selected","optionId":id}});
        let answered = |method: &UiMethod, forms: bool, given: Value| {
            let UiResponse { value, confirmed, cancelled, .. } =
                answer("s", "q", method, forms, &Ok(&*raw(given)));
            (value, confirmed, cancelled)
        };
        let none = (None, None, Some(true.into()));
        assert_eq!(answered(&select, true, accept(json!("b"))), (Some("b".into()), None, None));
        assert_eq!(answered(&select, true, accept(json!("c"))), none);
        assert_eq!(answered(&select, true, json!({"action":"decline"})), none);
        assert_eq!(answered(&select, false, chose("1")), (Some("b".into()), None, None));
        assert_eq!(answered(&select, false, chose("2")), none);
        assert_eq!(answered(&confirm, true, accept(json!(true))), (None, Some(true.into()), None));
        assert_eq!(answered(&confirm, false, chose("no")), (None, Some(false.into()), None));
        assert_eq!(answered(&input, true, accept(json!(""))), (Some("".into()), None, None));
    }
}
