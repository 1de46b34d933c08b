use agentd_protocol::{
    Json,
    error::ErrorCode,
    message::{AssistantMessage, Message, StopReason},
    model::Model,
};
use serde_json::{Value, json};

use super::*;
use crate::Accumulator;

struct Stage {
    folder: tempfile::TempDir,
    provider: Scripted,
}

impl Stage {
    fn new(script: Value) -> Self {
        let stage = Self { folder: tempfile::tempdir().unwrap(), provider: Scripted::default() };
        std::fs::write(stage.folder.path().join("script.json"), script.to_string()).unwrap();
        stage
    }

    fn request(&self, messages: Value) -> Request {
        let messages: Vec<Json<Message>> = serde_json::from_value(messages).unwrap();
        let base_url = self.folder.path().join("script.json").display().to_string();
        let model = Model { base_url, api: "scripted".into(), id: "m".into(), ..Model::placeholder() };
        Request::new(Arc::new(model), messages)
    }

    fn stream(&self, messages: Value, cancel: &CancellationToken) -> DeltaStream {
        self.provider.stream(self.request(messages), cancel.clone())
    }

    async fn ask(&self, messages: Value) -> AssistantMessage {
        fold(self.stream(messages, &CancellationToken::new())).await
    }

    /// The answer's text, or its error.
    async fn says(&self, messages: Value) -> String {
        let answer = self.ask(messages).await;
        answer.error_message.clone().unwrap_or_else(|| answer.text())
    }
}

async fn fold(mut deltas: DeltaStream) -> AssistantMessage {
    let mut accumulator = Accumulator::new(Arc::new(Model::placeholder()), 0);
    while let Some(delta) = deltas.next().await {
        accumulator.fold(delta);
    }
    assert!(accumulator.is_finished());
    accumulator.into_message()
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

#[tokio::test]
async fn steps_come_in_order_and_then_run_out() {
    let stage = Stage::new(json!({"steps": [
        {"emit": [
            {"thinking": "hm"},
            {"text": ["Look", "ing."]},
            {"toolCall": {"name": "bash", "arguments": {"command": "ls"}}},
            {"toolCall": {"name": "bash", "id": "x", "argumentsText": ["{\"comm", "and\":1}"]}},
            {"usage": {"input": 10, "output": 2}},
            {"responseId": "r1"},
        ]},
        {"emit": [{"text": "cut"}, {"stop": "length"}, {"text": "never"}]},
    ]}));
    let answer = stage.ask(json!([user("q")])).await;
    assert_eq!((answer.text().as_str(), answer.stop_reason), ("Looking.", StopReason::ToolUse));
    let calls: Vec<_> = answer.tool_calls().map(|call| (call.id.as_str(), json!(call.arguments))).collect();
    assert_eq!(calls, [("call_1", json!({"command": "ls"})), ("x", json!({"command": 1}))]);
    assert_eq!((answer.usage.total_tokens, answer.response_id.as_deref()), (12, Some("r1")));
    let answer = stage.ask(json!([user("q")])).await;
    assert_eq!((answer.text().as_str(), answer.stop_reason), ("cut", StopReason::Length));
    let error = stage.says(json!([user("q")])).await;
    assert!(error.contains("it has 2 steps in order, and this is request 3"), "{error}");
}

#[tokio::test]
async fn steps_with_conditions_go_first_and_survive_a_restart() {
    let script = json!({"steps": [
        {"emit": [{"text": "in order"}]},
        {"when": {"answers": 1}, "emit": [{"text": "second answer"}]},
        {"when": {"promptContains": "again"}, "emit": [{"text": "as often as asked"}]},
    ]});
    let stage = Stage::new(script.clone());
    assert_eq!(stage.says(json!([user("again")])).await, "as often as asked");
    assert_eq!(stage.says(json!([user("q")])).await, "in order");
    let answer = json!({"role": "assistant", "content": [], "stopReason": "stop"});
    assert_eq!(stage.says(json!([user("q"), answer, user("w")])).await, "second answer");
    assert_eq!(Stage::new(script).says(json!([user("q"), answer, user("w")])).await, "second answer");
}

#[tokio::test]
async fn unfulfilled_expectations_and_illegal_requests_fail() {
    let expect =
        |expect: Value| Stage::new(json!({"steps": [{"expect": expect, "emit": [{"text": "fine"}]}]}));
    let system =
        json!({"role": "system", "content": "Be kind.", "toolsAdded": [{"name": "bash"}, {"name": "read"}]});
    let call = json!({"role": "assistant", "content": [{"type": "toolCall", "id": "1", "name": "bash"}], "stopReason": "toolUse"});
    let result = json!({"role": "toolResult", "toolCallId": "1", "toolName": "bash", "content": [{"type": "text", "text": "out"}], "isError": true});
    let messages = json!([system, user("do it"), call, result]);
    let all = json!({"prompt": "do it", "promptContains": "do", "systemContains": "kind", "tools": ["bash", "read"],
        "hasTool": "read", "messages": 4, "answers": 1, "results": 1, "resultContains": "out", "resultIsError": true,
        "images": 0, "thinkingLevel": "off", "model": "m"});
    assert_eq!(expect(all).says(messages.clone()).await, "fine");
    for (wrong, said) in [
        (json!({"prompt": "x"}), "the prompt is \"do it\", not \"x\""),
        (json!({"tools": ["bash"]}), "the list of tools is"),
        (json!({"hasTool": "edit"}), "the tool edit is not on offer"),
        (json!({"messages": 3}), "the number of messages is 4, not 3"),
        (json!({"resultContains": "in"}), "the last result does not contain \"in\": \"out\""),
        (json!({"resultIsError": false}), "whether the last result is an error"),
    ] {
        let error = expect(wrong).says(messages.clone()).await;
        assert!(error.starts_with("The request is not what the script") && error.contains(said), "{error}");
    }
    let error = expect(json!({})).says(json!([user("q"), call])).await;
    assert_eq!(error, "The request is not legal: message 3: the call 1 of bash has no result before it.");
    let lenient = Stage::new(json!({"allowOpenCalls": true, "steps": [{"emit": [{"text": "fine"}]}]}));
    assert_eq!(lenient.says(json!([user("q"), call, user("go on")])).await, "fine");
}

#[tokio::test]
async fn failures_are_as_written() {
    let stage = Stage::new(json!({"steps": [
        {"emit": [{"text": "half"}, {"fail": {"message": "503: busy"}}]},
        {"emit": [{"fail": {"message": "odd", "kind": "overflow"}}]},
        {"emit": [{"fail": {"message": "odd", "kind": "refused"}}]},
        {"emit": [{"fail": {"message": "odd", "kind": "invalidRequest"}}]},
        {"emit": [{"fail": {"message": "odd", "kind": "modelRefusal"}}]},
    ]}));
    let kinds = |deltas: Vec<Delta>| match deltas.into_iter().last() {
        Some(Delta::Failed { failure, .. }) => failure.kind,
        other => panic!("{other:?}"),
    };
    let token = CancellationToken::new();
    use FailureKind::{ContextOverflow, InvalidRequest, ModelRefusal, Retryable};
    for kind in [Retryable, ContextOverflow, InvalidRequest, InvalidRequest, ModelRefusal] {
        assert_eq!(kinds(stage.stream(json!([user("q")]), &token).collect().await), kind);
    }
}

#[tokio::test]
async fn a_refusal_keeps_its_words() {
    let stage = Stage::new(json!({"steps": [
        {"emit": [{"refusal": ["I can't ", "do that."]}, {"usage": {"input": 3, "output": 5}}]},
        {"emit": [{"refusal": "No."}, {"stop": "length"}, {"text": "never"}]},
    ]}));
    let answer = stage.ask(json!([user("q")])).await;
    assert_eq!((answer.text().as_str(), answer.usage.total_tokens), ("I can't do that.", 8));
    assert_eq!((answer.stop_reason, answer.code), (StopReason::Error, Some(ErrorCode::ModelRefused)));
    assert_eq!(answer.error_message.as_deref(), Some("The model refused: I can't do that."));
    let answer = stage.ask(json!([user("q")])).await;
    assert_eq!((answer.text().as_str(), answer.raw_stop_reason.as_deref()), ("No.", Some("length")));
}

#[tokio::test]
async fn a_bad_script_is_named() {
    let stage = Stage::new(json!({"steps": [{"emit": [{"shout": "x"}]}]}));
    let error = stage.says(json!([user("q")])).await;
    assert!(error.contains("script.json is wrong: unknown variant `shout`"), "{error}");
    std::fs::remove_file(stage.folder.path().join("script.json")).unwrap();
    let error = stage.says(json!([user("q")])).await;
    assert!(error.contains("script.json cannot be read"), "{error}");
}

#[tokio::test]
async fn a_hang_ends_with_the_abort() {
    let stage = Stage::new(json!({"steps": [{"emit": [{"text": "x"}, {"hang": true}, {"text": "never"}]}]}));
    let cancel = CancellationToken::new();
    let mut deltas = stage.stream(json!([user("q")]), &cancel);
    let mut accumulator = Accumulator::new(Arc::new(Model::placeholder()), 0);
    while let Some(delta) = deltas.next().await {
        if matches!(delta, Delta::Seal { .. }) {
            cancel.cancel();
        }
        accumulator.fold(delta);
    }
    let answer = accumulator.into_message();
    assert_eq!((answer.text().as_str(), answer.stop_reason), ("x", StopReason::Aborted));
}

#[cfg(unix)]
#[tokio::test]
async fn a_pause_waits_for_a_named_pipe() {
    let stage = Stage::new(json!({"steps": [
        {"emit": [{"text": "a"}, {"waitForFile": "go"}, {"text": "b"}]},
        {"emit": [{"waitForFile": "go"}]},
        {"emit": [{"waitForFile": "absent"}]},
    ]}));
    let pipe = stage.folder.path().join("go");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let cancel = CancellationToken::new();
    let mut deltas = stage.stream(json!([user("q")]), &cancel);
    let mut seen = Vec::new();
    while !matches!(seen.last(), Some(Delta::Seal { .. })) {
        seen.push(deltas.next().await.unwrap());
    }
    // Nothing comes before a process opens the pipe.
    assert!(futures::poll!(deltas.next()).is_pending());
    let opened = tokio::task::spawn_blocking({
        let pipe = pipe.clone();
        move || std::fs::write(pipe, "x").unwrap()
    });
    assert!(matches!(deltas.next().await, Some(Delta::Open { index: 1, .. })));
    opened.await.unwrap();
    // The wait can be aborted.
    let mut deltas = stage.stream(json!([user("q")]), &cancel);
    assert_eq!(deltas.next().await, Some(Delta::Started));
    let (last, ()) = tokio::join!(deltas.next(), async { cancel.cancel() });
    assert!(matches!(last, Some(Delta::Failed { failure, .. }) if failure == Failure::aborted()));
    let error = stage.says(json!([user("q")])).await;
    assert!(error.contains("absent") && error.contains("mkfifo"), "{error}");
}

#[tokio::test]
async fn without_a_script_the_demo_answers() {
    let stage = Stage::new(json!({"steps": []}));
    let mut request = stage.request(json!([user("hello")]));
    request.model = Arc::new(Model::placeholder());
    let answer = fold(stage.provider.stream(request, CancellationToken::new())).await;
    assert!(answer.text().contains("demo model") && answer.text().contains("hello"), "{}", answer.text());
}

#[tokio::test]
async fn texts_are_cut_at_random_and_lists_are_left_alone() {
    let text = "A text that is long enough to be cut. ".repeat(4);
    let stage = Stage::new(json!({"chunks": {"min": 1, "max": 3, "seed": 7}, "steps": [
        {"when": {"prompt": "q"}, "emit": [
            {"text": text},
            {"thinking": ["as ", "written, whatever its length may be"]},
            {"toolCall": {"name": "bash", "arguments": {"command": "echo one two three four five"}}},
        ]},
    ]}));
    let token = CancellationToken::new();
    let deltas: Vec<Delta> = stage.stream(json!([user("q")]), &token).collect().await;
    let pieces = |block: usize| -> Vec<&str> {
        let of = |delta: &'_ Delta| matches!(delta, Delta::Extend { index, .. } if *index == block);
        deltas.iter().filter(|delta| of(delta)).map(text_of).collect()
    };
    assert_eq!(pieces(0).concat(), text);
    assert!(pieces(0).len() > 12, "{:?}", pieces(0));
    assert_eq!(pieces(1), ["as ", "written, whatever its length may be"]);
    assert!(pieces(2).len() > 3, "{:?}", pieces(2));
    let again: Vec<Delta> = stage.stream(json!([user("q")]), &token).collect().await;
    assert_eq!(deltas, again);
}

fn text_of(delta: &Delta) -> &str {
    match delta {
        Delta::Extend { delta, .. } => delta,
        other => panic!("no piece: {other:?}"),
    }
}

/// Forty tokens at ten per second, by a clock that is paused while tasks are ready.
#[tokio::test(start_paused = true)]
async fn a_speed_is_kept_and_an_abort_does_not_wait_for_it() {
    let text = "x".repeat(160);
    let stage = Stage::new(json!({"chunks": {"seed": 1}, "tokensPerSecond": 10,
        "steps": [{"when": {"prompt": "q"}, "emit": [{"text": text}]}]}));
    let began = tokio::time::Instant::now();
    let answer = stage.ask(json!([user("q")])).await;
    assert_eq!((answer.text(), answer.stop_reason), (text, StopReason::Stop));
    let took = began.elapsed().as_millis();
    assert!((4000..4100).contains(&took), "{took} ms");

    let cancel = CancellationToken::new();
    let mut deltas = stage.stream(json!([user("q")]), &cancel);
    let mut accumulator = Accumulator::new(Arc::new(Model::placeholder()), 0);
    let mut aborted = None;
    while let Some(delta) = deltas.next().await {
        if aborted.is_none() && matches!(delta, Delta::Extend { .. }) {
            cancel.cancel();
            aborted = Some(tokio::time::Instant::now());
        }
        accumulator.fold(delta);
    }
    assert_eq!(aborted.unwrap().elapsed().as_millis(), 0, "at once");
    let answer = accumulator.into_message();
    assert_eq!(answer.stop_reason, StopReason::Aborted);
    assert!((12..=20).contains(&answer.text().len()), "what came is kept: {}", answer.text());
}

#[tokio::test]
async fn tokens_are_counted_as_with_a_prompt_cache() {
    let stage = Stage::new(json!({"promptCache": true, "steps": [
        {"when": {"prompt": "12345678"}, "emit": [{"text": "12345"}]},
        {"when": {"prompt": "1234"}, "emit": [{"text": "12345"}]},
        {"when": {"prompt": "told"}, "emit": [{"usage": {"input": 7}}]},
        {"when": {"prompt": "fails"}, "emit": [{"text": "123"}, {"fail": {"message": "503: busy"}}]},
    ]}));
    let ask = async |session: &str, messages: Value| {
        let request = Request { session_id: session.into(), ..stage.request(messages) };
        let usage = fold(stage.provider.stream(request, CancellationToken::new())).await.usage;
        [usage.input, usage.cache_read, usage.cache_write, usage.output, usage.total_tokens]
    };
    let answer =
        json!({"role": "assistant", "content": [{"type": "text", "text": "12345"}], "stopReason": "stop"});
    assert_eq!(ask("s", json!([user("12345678")])).await, [0, 0, 2, 2, 4]);
    assert_eq!(ask("s", json!([user("12345678"), answer, user("1234")])).await, [0, 2, 3, 2, 7]);
    assert_eq!(ask("", json!([user("12345678")])).await, [2, 0, 0, 2, 4]);
    assert_eq!(ask("s", json!([user("told")])).await, [7, 0, 0, 0, 7], "what the step says comes first");
    assert_eq!(ask("t", json!([user("fails")])).await, [0, 0, 2, 1, 3]);
}
