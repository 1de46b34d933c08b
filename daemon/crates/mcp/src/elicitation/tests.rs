//! Forms and pages with a user whose answers are known.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use super::*;

/// Gives its answers one after the other, and keeps what it was asked.
struct Script {
    answers: Mutex<VecDeque<Option<&'static str>>>,
    asked: Mutex<Vec<String>>,
}

impl Script {
    fn new(answers: &[Option<&'static str>]) -> Self {
        Self { answers: Mutex::new(answers.iter().copied().collect()), asked: Mutex::default() }
    }

    fn answer(&self, question: String) -> UserAnswer<'_> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(question);
        let answer = self.answers.lock().unwrap().pop_front().expect("no further question was expected");
        Box::pin(async move { answer.map(str::to_owned) })
    }
}

impl UserInput for Script {
    fn is_there(&self) -> bool {
        true
    }

    fn select(&self, title: String, options: Vec<String>) -> UserAnswer<'_> {
        self.answer(format!("{title} [{}]", options.join("|")))
    }

    fn input(&self, title: String, placeholder: Option<String>) -> UserAnswer<'_> {
        self.answer(format!("{title} <{}>", placeholder.unwrap_or_default()))
    }
}

async fn asked(params: &Value, answers: &[Option<&'static str>]) -> (Value, Vec<String>) {
    let user = Script::new(answers);
    let result = elicit("s", params, Some(&user)).await.unwrap();
    assert!(user.answers.lock().unwrap().is_empty(), "asked for all answers");
    (result, user.asked.into_inner().unwrap())
}

fn form() -> Value {
    json!({
        "message": "Who are you?",
        "requestedSchema": {"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string", "title": "Name", "description": "your first"},
            "age": {"type": "integer", "default": 30},
            "fast": {"type": "boolean"}
        }}
    })
}

#[tokio::test]
async fn a_form_is_asked_field_by_field() {
    let answers = [Some("Answer"), Some(""), Some("Ada"), Some("x"), Some(""), Some("(leave out)")];
    let (result, asked) = asked(&form(), &answers).await;
    assert_eq!(result, json!({"action": "accept", "content": {"name": "Ada", "age": 30}}));
    assert_eq!(
        asked,
        [
            "The MCP server \"s\" asks: Who are you? [Answer|Decline]",
            "Name: your first <>",
            "Name: your first (an answer is needed) <>",
            "age <30>",
            "age (a whole number) <30>",
            "fast [Yes|No|(leave out)]",
        ]
    );
}

#[tokio::test]
async fn a_user_declines_or_gives_up() {
    assert_eq!(asked(&form(), &[Some("Decline")]).await.0, json!({"action": "decline"}));
    assert_eq!(asked(&form(), &[None]).await.0, json!({"action": "cancel"}));
    assert_eq!(asked(&form(), &[Some("Answer"), None]).await.0, json!({"action": "cancel"}));
    let never = [Some("Answer"), Some(""), Some(""), Some("")];
    assert_eq!(asked(&form(), &never).await.0, json!({"action": "cancel"}));
}

#[tokio::test]
async fn defaults_are_accepted_at_once() {
    let schema = json!({"type": "object", "properties": {
        "name": {"type": "string", "default": "Ada"},
        "age": {"type": "integer", "default": 3},
        "note": {"type": "string"}
    }});
    let params = json!({"mode": "form", "message": "m", "requestedSchema": schema});
    let (result, asked_first) = asked(&params, &[Some("Accept: name = Ada, age = 3")]).await;
    assert_eq!(result, json!({"action": "accept", "content": {"name": "Ada", "age": 3}}));
    assert_eq!(asked_first, ["The MCP server \"s\" asks: m [Accept: name = Ada, age = 3|Answer|Decline]"]);
    let empty = json!({"message": "Go on?", "requestedSchema": {"type": "object", "properties": {}}});
    assert_eq!(asked(&empty, &[Some("Yes")]).await.0, json!({"action": "accept", "content": {}}));
}

#[tokio::test]
async fn a_page_is_named_and_not_opened() {
    let params =
        json!({"mode": "url", "message": "Sign in", "url": "https://a.example/x?y=1", "elicitationId": "1"});
    let (result, shown) = asked(&params, &[Some("I open it")]).await;
    assert_eq!(result, json!({"action": "accept"}));
    assert!(shown[0].contains("a.example yourself: Sign in\nhttps://a.example/x?y=1"), "{shown:?}");
    assert_eq!(asked(&params, &[Some("Decline")]).await.0, json!({"action": "decline"}));
    assert_eq!(asked(&params, &[None]).await.0, json!({"action": "cancel"}));
}

#[tokio::test]
async fn nobody_there_means_cancel_and_a_wrong_question_is_an_error() {
    assert_eq!(elicit("s", &form(), None).await, Ok(json!({"action": "cancel"})));
    for params in [
        json!({"message": "m"}),
        json!({"message": "m", "requestedSchema": {"properties": {"x": {"type": "object"}}}}),
        json!({"mode": "url", "url": "file:///etc/passwd"}),
        json!({"mode": "other"}),
    ] {
        let error = elicit("s", &params, None).await.unwrap_err();
        assert_eq!(error.0, INVALID_PARAMS, "{params}");
    }
}

#[test]
fn pages_of_an_error_are_read() {
    let data = json!({"elicitations": [
        {"mode": "url", "message": "m", "url": "https://a.example/"},
        {"mode": "url", "url": "javascript:x"},
        3
    ]});
    let pages = required_pages(&data);
    assert_eq!(pages.len(), 1);
    assert_eq!((pages[0].0.as_str(), pages[0].1.as_str()), ("m", "https://a.example/"));
    assert!(required_pages(&Value::Null).is_empty());
}
