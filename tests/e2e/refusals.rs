//! Refusals of a model over each API: one stop reason, one code, one exit code, no second request, and fallback models.

use std::collections::HashSet;

use agentd_e2e::{
    Daemon, Home, MockServer, Reply,
    apis::ProviderApi,
    ctl::{self, Finished, agentd},
    sse,
};
use serde_json::{Value, json};

use crate::{
    every_api::{APIS, frames, stream},
    support::{answers, kinds, records, text},
};

fn refusal() -> Reply {
    Reply::stream(sse::delta(json!({"refusal": "I can't help with that."})) + &sse::end("stop", (10, 4, 5)))
}

const TOLD: &str = "The model refused: I can't help with that.";

fn run(home: &Home, args: &[&str]) -> Finished {
    ctl::Ctl::start_with(agentd(home, args), std::process::Stdio::null()).finish()
}

#[test]
fn a_refusal_has_an_exit_code_of_its_own() {
    let server = MockServer::always(refusal());
    let home = Home::with_model(&server);
    let done = ctl::run(&home, &["prompt", "Hello?"]);
    assert_eq!((done.code, done.stdout.as_str()), (4, ""), "{done:?}");
    assert!(done.stderr.ends_with(&format!("Error: {TOLD}\n")), "{done:?}");
    let done = run(&home, &["-p", "Hello?"]);
    assert_eq!(done, Finished { code: 4, stdout: String::new(), stderr: format!("{TOLD}\n") });
    let done = run(&home, &["--mode", "json", "Hello?"]);
    assert_eq!((done.code, done.stderr.as_str()), (4, ""), "{done:?}");
    let events: Vec<Value> = done.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers(&events)[0]["code"], "model_refused");
    assert_eq!(server.requests().len(), 3, "nobody asked twice");
}

#[test]
fn the_last_answer_decides_about_the_exit_code() {
    let server = MockServer::start([refusal(), Reply::stream(sse::answer("Fine.")), refusal()]);
    let home = Home::with_model(&server);
    let done = run(&home, &["-p", "One?", "Two?"]);
    assert_eq!((done.code, done.stdout.as_str()), (0, "Fine.\n"), "{done:?}");
    // The text of the refusal is not part of the next request.
    let second = server.requests()[1].body.to_string();
    assert!(
        second.contains("One?") && second.contains("Two?") && !second.contains("help with that"),
        "{second}"
    );
    server.push(Reply::status(
        400,
        "application/json",
        r#"{"error":{"message":"bad","type":"invalid_request_error"}}"#,
    ));
    let done = run(&home, &["--mode", "json", "One?", "Two?"]);
    assert_eq!(done.code, 0, "an invalid request is no refusal, and events report it: {done:?}");
}

#[test]
fn another_model_may_take_over() {
    let chat = MockServer::start([refusal()]);
    let messages = MockServer::start([Reply::stream(ProviderApi::Messages.answer("Gladly."))]);
    let home = Home::new();
    home.configure(&json!({"providers": {"chat": ProviderApi::Chat.provider(&chat), "messages": ProviderApi::Messages.provider(&messages)}}));
    home.settings(
        &json!({"defaultProvider": "chat", "defaultModel": "chat", "fallbackModels": ["messages/messages"]}),
    );
    let mut daemon = Daemon::start(&home, &[]);
    daemon.done(json!({"type": "hello", "protocol": 1}));
    let events = daemon.prompt("Hello?");
    let change = events.iter().find(|event| event["type"] == "model_fallback").expect("another model");
    assert_eq!((&change["reason"], &change["errorMessage"]), (&json!("model_refused"), &json!(TOLD)));
    assert!(!kinds(&events).contains(&"auto_retry_start"), "{:?}", kinds(&events));
    let last = *answers(&events).last().unwrap();
    assert_eq!((text(last), last.get("code")), ("Gladly.".into(), None));
    assert!(!messages.requests()[0].body.to_string().contains("help with that"));
}

#[test]
fn a_summary_that_is_refused_says_so() {
    let server = MockServer::start(["one", "two"].map(|text| Reply::stream(sse::answer(text))));
    server.push(refusal());
    let home = Home::with_model(&server);
    home.settings(&json!({"compaction": {"keepRecentTokens": 1}}));
    let mut daemon = Daemon::start(&home, &[]);
    daemon.prompt(&"a long story ".repeat(40));
    daemon.prompt("And then?");
    daemon.send(&json!({"id": "co", "type": "compact"}));
    let response = daemon.until("the response", |line| line["type"] == "response" && line["id"] == "co");
    assert_eq!(response["code"], "model_refused", "{response}");
    assert_eq!(response["error"], format!("Summarization failed: {TOLD}"));
}

/// An answer that is a refusal.
struct Refusal {
    api: &'static str,
    body: Vec<u8>,
    /// The text of the model, and the error for the user.
    said: &'static str,
    told: &'static str,
}

fn chat(delta: Value, reason: &str) -> Vec<u8> {
    let chunk = |delta: Value, reason: Value| json!({"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]});
    stream(&[chunk(delta, Value::Null), chunk(json!({}), json!(reason))])
}

fn responses(delta: &str, item: Option<Value>, end: (&str, Value)) -> Vec<u8> {
    let piece =
        json!({"type": delta, "item_id": "i", "output_index": 0, "content_index": 0, "delta": "No, thanks."});
    let mut events = vec![
        json!({"type": "response.created", "response": {"id": "r", "status": "in_progress"}}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "id": "i"}}),
        piece,
    ];
    events.extend(
        item.map(|item| json!({"type": "response.output_item.done", "output_index": 0, "item": item})),
    );
    let (kind, mut response) = end;
    response["id"] = json!("r");
    events.push(json!({"type": kind, "response": response}));
    stream(&events)
}

/// A refusal as text of the model.
fn spoken() -> Vec<u8> {
    let item =
        json!({"type": "message", "id": "i", "content": [{"type": "refusal", "refusal": "No, thanks."}]});
    responses("response.refusal.delta", Some(item), ("response.completed", json!({"status": "completed"})))
}

/// A filter cuts the answer off.
fn filtered() -> Vec<u8> {
    let response = json!({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}});
    responses("response.output_text.delta", None, ("response.incomplete", response))
}

fn google(finish: &str) -> Vec<u8> {
    let parts = json!([{"text": "No, thanks."}]);
    stream(&[
        json!({"candidates": [{"content": {"role": "model", "parts": parts}}]}),
        json!({"candidates": [{"finishReason": finish}]}),
    ])
}

fn bedrock(reason: &str) -> Vec<u8> {
    frames(&[
        ("messageStart", json!({"role": "assistant"})),
        ("contentBlockDelta", json!({"contentBlockIndex": 0, "delta": {"text": "No, thanks."}})),
        ("contentBlockStop", json!({"contentBlockIndex": 0})),
        ("messageStop", json!({"stopReason": reason})),
    ])
}

fn anthropic() -> Vec<u8> {
    let details = json!({"type": "refusal", "explanation": "This breaks the rules; try again never."});
    stream(&[
        json!({"type": "message_start", "message": {"id": "m", "role": "assistant", "content": [], "usage": {}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "No, thanks."}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "refusal", "stop_details": details}, "usage": {}}),
        json!({"type": "message_stop"}),
    ])
}

fn pi() -> Vec<u8> {
    stream(&[
        json!({"type": "text_start", "contentIndex": 0}),
        json!({"type": "text_delta", "contentIndex": 0, "delta": "No, thanks."}),
        json!({"type": "error", "reason": "error", "errorMessage": "Busy with better things.", "code": "model_refused"}),
    ])
}

fn table() -> Vec<Refusal> {
    let row = |api, body, said, told| Refusal { api, body, said, told };
    let said = "No, thanks.";
    let spoken_told = "The model refused: No, thanks.";
    let filtered_told = "Response incomplete: content_filter";
    let safety = "Provider stopped with: SAFETY (the provider's safety filter)";
    let recited = "Provider stopped with: RECITATION (the answer repeats a text of others too closely for the provider's \
                   content policy)";
    let blocked = || stream(&[json!({"promptFeedback": {"blockReason": "OTHER"}})]);
    vec![
        row("anthropic-messages", anthropic(), said, "This breaks the rules; try again never."),
        row("openai-completions", chat(json!({"refusal": said}), "stop"), said, spoken_told),
        row(
            "openai-completions",
            chat(json!({"content": said}), "content_filter"),
            said,
            "Provider finish_reason: content_filter",
        ),
        row("openai-responses", spoken(), said, spoken_told),
        row("openai-responses", filtered(), said, filtered_told),
        row("azure-openai-responses", spoken(), said, spoken_told),
        row("azure-openai-responses", filtered(), said, filtered_told),
        row("openai-codex-responses", spoken(), said, spoken_told),
        row("openai-codex-responses", filtered(), said, filtered_told),
        row("google-generative-ai", google("SAFETY"), said, safety),
        row("google-generative-ai", blocked(), "", "The provider blocked the prompt: OTHER"),
        row("google-vertex", google("RECITATION"), said, recited),
        row("google-vertex", blocked(), "", "The provider blocked the prompt: OTHER"),
        row(
            "bedrock-converse-stream",
            bedrock("guardrail_intervened"),
            said,
            "Provider stopped with: guardrail_intervened",
        ),
        row(
            "bedrock-converse-stream",
            bedrock("content_filtered"),
            said,
            "Provider stopped with: content_filtered",
        ),
        row(
            "mistral-conversations",
            chat(json!({"content": said}), "content_filter"),
            said,
            "Provider stopped with: content_filter",
        ),
        row("pi-messages", pi(), said, "Busy with better things."),
    ]
}

#[test]
fn a_refusal_is_the_same_over_every_api() {
    let mut left: HashSet<&str> = APIS.iter().map(|api| api.name).collect();
    for Refusal { api, body, said, told } in table() {
        left.remove(api);
        let api = APIS.iter().find(|known| known.name == api).expect("a known API");
        let server = MockServer::start([api.reply(&body), api.here()]);
        let home = api.home(&server);
        let done = ctl::run(&home, &["prompt", "--json", "Hello?"]);
        assert_eq!((done.code, server.requests().len()), (4, 1), "{}, {told}: {done:?}", api.name);
        assert!(done.stderr.ends_with(&format!("Error: {told}\n")), "{}: {done:?}", api.name);
        let events: Vec<Value> =
            done.stdout.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
        let stored = records(&home.session_files()[0]).pop().expect("a record");
        for answer in [*answers(&events).last().expect("an answer"), &stored["message"]] {
            assert_eq!(text(answer), said, "{}: {answer}", api.name);
            let end = [&answer["stopReason"], &answer["code"], &answer["errorMessage"]];
            assert_eq!(end, [&json!("error"), &json!("model_refused"), &json!(told)], "{}", api.name);
        }
    }
    assert!(left.is_empty(), "no refusal of {left:?}: add one to the table");
}
