//! Model fallback: when a model fails for good, another one answers the failed request again.

use agentd_e2e::{
    Daemon, Gate, Home, MockServer, Reply,
    apis::{Block, ProviderApi},
};
use serde_json::{Value, json};

use crate::support::{answers, kinds, prompt, records, text};

/// A home with a model for each API: the first is the chosen one, the others are its fallbacks in order.
fn home(servers: &[(ProviderApi, &MockServer)]) -> Home {
    let home = Home::new();
    let providers: serde_json::Map<String, Value> =
        servers.iter().map(|(api, server)| (api.model().to_owned(), api.provider(server))).collect();
    home.configure(&json!({ "providers": providers }));
    settings(&home, servers, 1);
    home
}

fn settings(home: &Home, servers: &[(ProviderApi, &MockServer)], retries: u64) {
    let names: Vec<String> = servers.iter().skip(1).map(|(api, _)| name(*api)).collect();
    let first = servers[0].0.model();
    home.settings(&json!({"retry": {"baseDelayMs": 1, "maxRetries": retries}, "defaultProvider": first,
        "defaultModel": first, "defaultThinkingLevel": "high", "fallbackModels": names}));
}

fn name(api: ProviderApi) -> String {
    format!("{0}/{0}", api.model())
}

fn id(api: ProviderApi) -> Value {
    json!({"provider": api.model(), "id": api.model()})
}

fn introduced(home: &Home, args: &[&str]) -> Daemon {
    let mut daemon = Daemon::start(home, args);
    daemon.done(json!({"type": "hello", "protocol": 1}));
    daemon
}

fn refused() -> Reply {
    Reply::status(401, "application/json", r#"{"error":{"message":"Incorrect API key provided"}}"#)
}

fn overloaded() -> Reply {
    Reply::status(503, "application/json", r#"{"error":{"message":"overloaded"}}"#)
}

fn says(api: ProviderApi, text: &str) -> Reply {
    Reply::stream(api.answer(text))
}

fn of_kind<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

/// `from`, `to` and `reason` of each change.
fn changes(events: &[Value]) -> Vec<(Value, Value, Value)> {
    let one = |event: &&Value| (event["from"].clone(), event["to"].clone(), event["reason"].clone());
    of_kind(events, "model_fallback").iter().map(one).collect()
}

#[test]
fn a_model_that_is_refused_gives_way_to_the_next() {
    let (chat, messages) = (
        MockServer::start([refused(), refused()]),
        MockServer::start([says(ProviderApi::Messages, "Here I am.")]),
    );
    let home = home(&[(ProviderApi::Chat, &chat), (ProviderApi::Messages, &messages)]);
    let mut daemon = introduced(&home, &[]);
    let state = daemon.done(json!({"type": "get_state"}));
    assert_eq!(
        (&state["fallbackModels"], &state["fallbackModel"]),
        (&json!(["messages/messages"]), &Value::Null)
    );
    let events = daemon.prompt("Hello?");
    let tail: Vec<&str> = kinds(&events).into_iter().skip_while(|kind| *kind != "turn_end").collect();
    let after = ["turn_end", "agent_end", "entry_appended", "model_fallback", "agent_start", "turn_start"];
    assert_eq!(tail[..6], after);
    assert_eq!(
        of_kind(&events, "model_fallback"),
        [
            &json!({"type": "model_fallback", "from": id(ProviderApi::Chat), "to": id(ProviderApi::Messages), "thinkingLevel": "high",
            "purpose": "answer", "reason": "auth",
            "errorMessage": "401: {\"message\":\"Incorrect API key provided\"}"})
        ]
    );
    let ends: Vec<&Value> = of_kind(&events, "agent_end").iter().map(|end| &end["willRetry"]).collect();
    assert_eq!(ends, [&json!(true), &json!(false)]);
    let last = *answers(&events).last().unwrap();
    assert_eq!((text(last), &last["provider"]), ("Here I am.".into(), &json!("messages")));
    // The request holds the prompt once, and nothing of the failure.
    let request = &messages.requests()[0].body;
    ProviderApi::Messages.assert_legal(request);
    assert_eq!(request.to_string().matches("Hello?").count(), 1);
    assert!(!request.to_string().contains("Incorrect"));

    // The chosen model stays chosen, now and for the next prompt.
    let state = daemon.done(json!({"type": "get_state"}));
    assert_eq!((&state["model"]["provider"], state.get("fallbackModel")), (&json!("chat"), None));
    messages.push(says(ProviderApi::Messages, "Again."));
    let events = daemon.prompt("And now?");
    assert_eq!(changes(&events).len(), 1);
    assert_eq!((chat.requests().len(), messages.requests().len()), (2, 2));
    assert!(daemon.close().status.success());

    // The file records which model answered, and that the chosen model came back; a session opened from it does the same.
    let file = &home.session_files()[0];
    let chosen: Vec<Value> = records(file)
        .iter()
        .filter(|record| record["type"] == "model_change")
        .map(|record| record["provider"].clone())
        .collect();
    assert_eq!(chosen, ["chat", "messages", "chat", "messages", "chat"]);
    let mut daemon = introduced(&home, &["--continue"]);
    assert_eq!(daemon.done(json!({"type": "get_state"}))["model"]["provider"], "chat");
    chat.push(says(ProviderApi::Chat, "I am back."));
    let events = daemon.prompt("Are you there?");
    assert_eq!((text(answers(&events)[0]), changes(&events)), ("I am back.".into(), vec![]));
}

#[test]
fn retries_come_first_and_the_chain_has_an_end() {
    let servers =
        [MockServer::always(overloaded()), MockServer::always(refused()), MockServer::always(overloaded())];
    let chain = [
        (ProviderApi::Chat, &servers[0]),
        (ProviderApi::Messages, &servers[1]),
        (ProviderApi::Responses, &servers[2]),
    ];
    let home = home(&chain);
    let mut daemon = introduced(&home, &[]);
    let events = daemon.prompt("Hello?");
    let asked: Vec<usize> = servers.iter().map(|server| server.requests().len()).collect();
    assert_eq!(asked, [2, 1, 2], "a retry where it may help, and otherwise each model is asked once");
    assert_eq!(
        changes(&events),
        [
            (id(ProviderApi::Chat), id(ProviderApi::Messages), json!("unavailable")),
            (id(ProviderApi::Messages), id(ProviderApi::Responses), json!("auth")),
        ]
    );
    let order = |kind: &&str| {
        ["agent_end", "auto_retry_start", "auto_retry_end", "model_fallback", "agent_settled"].contains(kind)
    };
    let order: Vec<&str> = kinds(&events).into_iter().filter(order).collect();
    assert_eq!(
        order,
        [
            "agent_end",
            "auto_retry_start",
            "agent_end",
            "auto_retry_end",
            "model_fallback", // chat
            "agent_end",
            "model_fallback", // messages
            "agent_end",
            "auto_retry_start",
            "agent_end",
            "auto_retry_end",
            "agent_settled", // responses
        ]
    );
    assert!(of_kind(&events, "auto_retry_end").iter().all(|end| end["success"] == false));
    assert_eq!(answers(&events).last().unwrap()["provider"], "responses");
    assert_eq!(of_kind(&events, "agent_end").last().unwrap()["willRetry"], false);
}

#[test]
fn an_answer_that_breaks_off_is_left_out_and_tools_are_not_called_again() {
    let call = ProviderApi::Chat.stream(&[Block::Call(
        "call_1",
        "bash",
        json!({"command": "echo ran >> log; cat log"}),
    )]);
    let begun = Reply::stream(ProviderApi::Chat.begun("Half an ans")).cut();
    let (chat, messages) = (
        MockServer::start([Reply::stream(call), begun.clone(), begun]),
        MockServer::start([says(ProviderApi::Messages, "It ran.")]),
    );
    let home = home(&[(ProviderApi::Chat, &chat), (ProviderApi::Messages, &messages)]);
    let mut daemon = introduced(&home, &[]);
    let events = daemon.prompt("Run it.");
    assert_eq!(text(answers(&events).last().unwrap()), "It ran.");
    assert_eq!(changes(&events), [(id(ProviderApi::Chat), id(ProviderApi::Messages), json!("unavailable"))]);
    assert_eq!(of_kind(&events, "tool_execution_start").len(), 1);
    assert_eq!(home.read("log"), "ran\n");
    let request = &messages.requests()[0].body;
    ProviderApi::Messages.assert_legal(request);
    let request = request.to_string();
    assert!(request.contains("ran\\n") && !request.contains("Half an ans"), "{request}");
}

#[test]
fn a_fallback_keeps_the_turn_until_the_session_settles() {
    let call = ProviderApi::Messages.stream(&[Block::Call("toolu_1", "bash", json!({"command": "true"}))]);
    let (chat, messages) = (
        MockServer::start([refused()]),
        MockServer::start([Reply::stream(call), says(ProviderApi::Messages, "Done.")]),
    );
    let home = home(&[(ProviderApi::Chat, &chat), (ProviderApi::Messages, &messages)]);
    let mut daemon = introduced(&home, &[]);
    let events = daemon.prompt("Run it.");
    assert_eq!((changes(&events).len(), chat.requests().len(), messages.requests().len()), (1, 1, 2));
}

#[test]
fn an_account_at_its_limit_is_left_alone_for_a_while() {
    let limit = r#"{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}"#;
    let (chat, messages) = (
        MockServer::start([Reply::status(429, "application/json", limit)]),
        MockServer::always(says(ProviderApi::Messages, "I can.")),
    );
    let home = home(&[(ProviderApi::Chat, &chat), (ProviderApi::Messages, &messages)]);
    let mut daemon = introduced(&home, &[]);
    for _ in 0..2 {
        let events = daemon.prompt("Hello?");
        assert_eq!(
            changes(&events),
            [(id(ProviderApi::Chat), id(ProviderApi::Messages), json!("account_limit"))]
        );
        assert!(of_kind(&events, "model_fallback")[0]["errorMessage"].as_str().unwrap().contains("quota"));
    }
    assert_eq!(chat.requests().len(), 1);
    // Choosing the model again makes it available at once.
    chat.push(says(ProviderApi::Chat, "Paid."));
    daemon.done(json!({"type": "set_model", "provider": "chat", "modelId": "chat"}));
    assert_eq!(text(answers(&daemon.prompt("Hello?"))[0]), "Paid.");
}

#[test]
fn a_model_without_a_key_is_passed_over() {
    let (chat, messages, responses) = (
        MockServer::start([]),
        MockServer::start([]),
        MockServer::start([says(ProviderApi::Responses, "I have one.")]),
    );
    let home = home(&[
        (ProviderApi::Chat, &chat),
        (ProviderApi::Messages, &messages),
        (ProviderApi::Responses, &responses),
    ]);
    let without = |api: ProviderApi, server, key: &str| {
        let mut provider = api.provider(server);
        provider["apiKey"] = json!(key);
        provider
    };
    home.configure(&json!({"providers": {
        "chat": without(ProviderApi::Chat, &chat, "!exit 1"),
        "messages": without(ProviderApi::Messages, &messages, "$NOT_SET_ANYWHERE"),
        "responses": ProviderApi::Responses.provider(&responses)}}));
    let mut daemon = introduced(&home, &[]);
    let found = daemon.done(json!({"type": "get_diagnostics"})).to_string();
    assert!(
        found.contains("fallback models: no model with credentials matches \\\"messages/messages\\\""),
        "{found}"
    );
    let events = daemon.prompt("Hello?");
    assert_eq!(text(answers(&events)[0]), "I have one.");
    assert_eq!(
        changes(&events),
        [(id(ProviderApi::Chat), id(ProviderApi::Responses), json!("no_credentials"))]
    );
    assert_eq!((chat.requests().len(), messages.requests().len()), (0, 0));
}

#[test]
fn a_larger_window_takes_what_is_too_long() {
    let too_long = r#"{"error":{"message":"This model's maximum context length is 100 tokens"}}"#;
    let run = |window: u64| {
        let (chat, messages) = (
            MockServer::always(Reply::status(400, "application/json", too_long)),
            MockServer::always(says(ProviderApi::Messages, "I have room.")),
        );
        let home = home(&[(ProviderApi::Chat, &chat), (ProviderApi::Messages, &messages)]);
        let mut larger = ProviderApi::Messages.provider(&messages);
        larger["models"][0]["contextWindow"] = json!(window);
        home.configure(
            &json!({"providers": {"chat": ProviderApi::Chat.provider(&chat), "messages": larger}}),
        );
        changes(&introduced(&home, &[]).prompt("Hello?"))
    };
    assert_eq!(run(300_000), [(id(ProviderApi::Chat), id(ProviderApi::Messages), json!("context_overflow"))]);
    assert_eq!(run(200_000), []);
}

#[test]
fn an_abort_asks_nobody_else() {
    let gate = Gate::new();
    let (chat, messages) = (
        MockServer::start([Reply::stream(ProviderApi::Chat.begun("Let me")).gate(&gate)]),
        MockServer::start([]),
    );
    let home = home(&[(ProviderApi::Chat, &chat), (ProviderApi::Messages, &messages)]);
    let mut daemon = introduced(&home, &[]);
    daemon.send(&prompt("Hello?"));
    daemon.event("message_update");
    daemon.done(json!({"type": "abort"}));
    gate.open();
    let events = daemon.settled();
    assert_eq!((changes(&events).len(), messages.requests().len()), (0, 0));
    // An abort during the fallback's answer tries no third model.
    let gate = Gate::new();
    chat.push(refused());
    messages.push(Reply::stream(ProviderApi::Messages.begun("Let me")).gate(&gate));
    daemon.send(&prompt("Hello?"));
    daemon.event("model_fallback");
    daemon.event("message_update");
    let state = daemon.done(json!({"type": "get_state"}));
    assert_eq!(
        (&state["model"]["provider"], &state["fallbackModel"]),
        (&json!("chat"), &id(ProviderApi::Messages))
    );
    daemon.done(json!({"type": "abort"}));
    gate.open();
    daemon.settled();
    assert_eq!(daemon.done(json!({"type": "get_state"})).get("fallbackModel"), None);
}

#[test]
fn the_chain_is_chosen_by_flag_and_by_command() {
    let (chat, messages, responses) = (
        MockServer::always(refused()),
        MockServer::always(says(ProviderApi::Messages, "Messages.")),
        MockServer::always(says(ProviderApi::Responses, "Responses.")),
    );
    let home = home(&[
        (ProviderApi::Chat, &chat),
        (ProviderApi::Messages, &messages),
        (ProviderApi::Responses, &responses),
    ]);
    let mut daemon = introduced(&home, &["--fallback-models", "responses:low"]);
    let found = daemon.done(json!({"type": "get_fallback_models"}));
    let resolved = json!([{"provider": "responses", "id": "responses", "thinkingLevel": "low"}]);
    assert_eq!(found, json!({"models": ["responses:low"], "resolved": resolved, "warnings": []}));
    let events = daemon.prompt("Who?");
    let last = *answers(&events).last().unwrap();
    assert_eq!((text(last), &last["thinkingLevel"]), ("Responses.".into(), &json!("low")));

    let found = daemon.done(json!({"type": "set_fallback_models", "models": ["nobody", "messages"]}));
    assert_eq!(found["resolved"], json!([{"provider": "messages", "id": "messages"}]));
    assert!(found["warnings"][0].as_str().unwrap().contains("\"nobody\""), "{found}");
    assert_eq!(text(answers(&daemon.prompt("Who?")).last().unwrap()), "Messages.");

    let failure = daemon.refused(json!({"type": "set_fallback_models", "models": [""]}));
    assert_eq!(failure["error"], "models: a name is empty");
    daemon.done(json!({"type": "set_fallback_models", "models": []}));
    assert_eq!(daemon.done(json!({"type": "get_state"})).get("fallbackModels"), None);
    assert!(changes(&daemon.prompt("Who?")).is_empty());
}

#[test]
fn a_plain_client_sees_no_event_that_it_does_not_know() {
    let (chat, messages) =
        (MockServer::start([refused()]), MockServer::start([says(ProviderApi::Messages, "Here I am.")]));
    let home = home(&[(ProviderApi::Chat, &chat), (ProviderApi::Messages, &messages)]);
    let mut daemon = Daemon::start(&home, &[]);
    let events = daemon.prompt("Hello?");
    assert!(of_kind(&events, "model_fallback").is_empty());
    assert_eq!(text(answers(&events).last().unwrap()), "Here I am.");
}

#[test]
fn a_summary_is_written_by_another_model_too() {
    let (chat, messages) = (
        MockServer::start([says(ProviderApi::Chat, &"Long words. ".repeat(40)), refused()]),
        MockServer::always(says(ProviderApi::Messages, "A summary of it.")),
    );
    let home = home(&[(ProviderApi::Chat, &chat), (ProviderApi::Messages, &messages)]);
    home.settings(&json!({"defaultProvider": "chat", "defaultModel": "chat", "fallbackModels": ["messages"],
        "compaction": {"keepRecentTokens": 1}}));
    let mut daemon = introduced(&home, &[]);
    daemon.prompt("Tell me a story.");
    daemon.send(&json!({"id": "c", "type": "compact"}));
    let event = daemon.event("model_fallback");
    assert_eq!((&event["purpose"], &event["reason"]), (&json!("summary"), &json!("auth")));
    let response = daemon.until("the compaction", |line| line["id"] == "c");
    let summary = response["data"]["summary"].as_str().unwrap();
    assert!(summary.ends_with("A summary of it."), "{response}");
    assert_eq!(daemon.done(json!({"type": "get_state"}))["model"]["provider"], "chat");
}
