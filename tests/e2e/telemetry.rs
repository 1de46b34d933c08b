//! Telemetry: what a collector gets of a run, and that no collector changes anything of one.

use std::collections::BTreeMap;

use agentd_e2e::{Daemon, Home, MockServer, Reply, ctl, sse};
use serde_json::{Value, json};

use crate::support::kinds;

/// A span that a test's prompt belongs to.
const TRACEPARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// A collector that takes everything.
fn collector() -> MockServer {
    MockServer::always(Reply::status(200, "application/json", "{}"))
}

/// The base address of a collector. That of a model server ends with the version of its API.
fn address(collector: &MockServer) -> String {
    collector.base_url().trim_end_matches("/v1").to_owned()
}

/// A home whose model is at `model` and whose telemetry goes to `collector`.
fn home(model: &MockServer, collector: &MockServer, more: Value) -> Home {
    let home = Home::with_model(model);
    let mut telemetry = json!({"endpoint": address(collector), "protocol": "http/json"});
    for (key, value) in more.as_object().unwrap() {
        telemetry[key] = value.clone();
    }
    home.settings(&json!({"retry": {"baseDelayMs": 1}, "telemetry": telemetry}));
    home
}

/// A model that fails once, calls two tools, and answers.
fn model() -> MockServer {
    MockServer::start([
        Reply::status(503, "application/json", r#"{"error":{"message":"overloaded"}}"#),
        Reply::stream(sse::calls(&[
            ("call_1", "bash", json!({"command": "echo private-words"})),
            ("call_2", "read", json!({"path": "private-file.txt"})),
        ])),
        Reply::stream(sse::answer("private-answer")),
    ])
}

/// The objects that were sent to a path of the collector.
fn sent(collector: &MockServer, path: &str) -> Vec<Value> {
    let target = format!("POST {path}");
    let requests = collector.requests().into_iter().filter(|request| request.target.ends_with(&target));
    requests.map(|request| request.body).collect()
}

fn all<'a>(value: &'a Value, keys: &[&str]) -> Vec<&'a Value> {
    match keys {
        [] => vec![value],
        [key, rest @ ..] => {
            value[key].as_array().into_iter().flatten().flat_map(|it| all(it, rest)).collect()
        }
    }
}

fn spans(collector: &MockServer) -> Vec<Value> {
    let bodies = sent(collector, "/v1/traces");
    let spans = bodies.iter().flat_map(|body| all(body, &["resourceSpans", "scopeSpans", "spans"]));
    spans.cloned().collect()
}

/// The metrics of the last export, by their names.
fn metrics(collector: &MockServer) -> BTreeMap<String, Value> {
    let bodies = sent(collector, "/v1/metrics");
    let last = bodies.last().expect("metrics are sent at the end");
    let metrics = all(last, &["resourceMetrics", "scopeMetrics", "metrics"]);
    metrics.into_iter().map(|metric| (metric["name"].as_str().unwrap().to_owned(), metric.clone())).collect()
}

fn attribute<'a>(of: &'a Value, key: &str) -> &'a Value {
    let attributes = of["attributes"].as_array().unwrap();
    let value = attributes.iter().find(|attribute| attribute["key"] == key).map(|it| &it["value"]);
    value.and_then(|value| value.as_object()?.values().next()).unwrap_or(&Value::Null)
}

/// The tree below a parent, a line a span: its name, its error, its events.
fn tree(spans: &[Value], parent: &Value, depth: usize) -> Vec<String> {
    let mut below: Vec<&Value> = spans.iter().filter(|span| span["parentSpanId"] == *parent).collect();
    below.sort_by_key(|span| span["startTimeUnixNano"].as_str().unwrap().parse::<u64>().unwrap());
    let mut lines = Vec::new();
    for span in below {
        let error =
            attribute(span, "error.type").as_str().map(|error| format!(" !{error}")).unwrap_or_default();
        let events = span["events"].as_array().unwrap().iter().map(|event| event["name"].as_str().unwrap());
        let events: String = events.map(|event| format!(" +{event}")).collect();
        lines.push(format!("{}{}{error}{events}", "  ".repeat(depth), span["name"].as_str().unwrap()));
        lines.extend(tree(spans, &span["spanId"], depth + 1));
    }
    lines
}

#[test]
fn a_run_is_one_tree_of_spans() {
    let (model, collector) = (model(), collector());
    let home = home(&model, &collector, json!({}));
    home.write("private-file.txt", "private-content");
    let mut daemon = Daemon::start(&home, &[]);
    daemon.prompt("private-question");
    let id = daemon.done(json!({"type": "get_state"}))["sessionId"].clone();
    assert!(daemon.close().status.success());

    let spans = spans(&collector);
    assert_eq!(
        tree(&spans, &Value::Null, 0),
        [
            "invoke_agent agentd +agentd.retry",
            "  turn !unavailable",
            "    chat fake !unavailable",
            "  turn",
            "    chat fake",
            "    execute_tool bash",
            "    execute_tool read",
            "  turn",
            "    chat fake",
        ]
    );
    let named = |name: &str| spans.iter().filter(|span| span["name"] == name).collect::<Vec<_>>();
    let run = named("invoke_agent agentd")[0];
    for (key, expected) in [
        ("gen_ai.operation.name", json!("invoke_agent")),
        ("gen_ai.agent.name", json!("agentd")),
        ("gen_ai.provider.name", json!("fake")),
        ("gen_ai.request.model", json!("fake")),
        ("gen_ai.conversation.id", id.clone()),
        ("gen_ai.usage.input_tokens", json!("20")),
        ("gen_ai.usage.output_tokens", json!("7")),
        ("agentd.turns", json!("3")),
        ("agentd.tool_calls", json!("2")),
        ("agentd.outcome", json!("completed")),
    ] {
        assert_eq!(attribute(run, key), &expected, "{key}");
    }
    let chat = spans
        .iter()
        .find(|span| *attribute(span, "gen_ai.usage.output_tokens") == json!("5") && span["kind"] == 3)
        .expect("the call with the tools");
    for (key, expected) in [
        ("gen_ai.operation.name", json!("chat")),
        ("gen_ai.response.model", json!("fake")),
        ("gen_ai.response.finish_reasons", json!([{"stringValue": "tool_calls"}])),
        ("gen_ai.conversation.id", id),
        ("server.address", json!("127.0.0.1")),
    ] {
        let found = attribute(chat, key);
        assert_eq!(found.get("values").unwrap_or(found), &expected, "{key}");
    }
    assert!(attribute(chat, "gen_ai.response.time_to_first_chunk").is_number());
    let bash = named("execute_tool bash")[0];
    assert_eq!(attribute(bash, "gen_ai.tool.call.id"), "call_1");
    assert_eq!((&bash["kind"], &bash["status"]), (&json!(1), &json!({})));

    let metrics = metrics(&collector);
    let points = |name: &str| {
        let metric = &metrics[name];
        let kind = if metric["sum"].is_object() { "sum" } else { "histogram" };
        metric[kind]["dataPoints"].as_array().unwrap().clone()
    };
    let count = |name: &str, key: &str, value: &str| {
        let points = points(name);
        let point = points.iter().find(|point| attribute(point, key) == value);
        point.map(|point| point["count"].clone()).unwrap_or_default()
    };
    assert_eq!(count("gen_ai.client.token.usage", "gen_ai.token.type", "input"), "2");
    assert_eq!(count("gen_ai.client.operation.duration", "error.type", "unavailable"), "1");
    assert_eq!(count("gen_ai.client.operation.duration", "gen_ai.response.model", "fake"), "2");
    assert_eq!(count("gen_ai.client.operation.time_to_first_chunk", "gen_ai.request.model", "fake"), "2");
    assert_eq!(count("gen_ai.execute_tool.duration", "gen_ai.tool.name", "read"), "1");
    assert_eq!(count("gen_ai.invoke_agent.duration", "gen_ai.agent.name", "agentd"), "1");
    assert_eq!(points("agentd.retries")[0]["asInt"], "1");
    assert_eq!(points("agentd.runs.active")[0]["asInt"], "0");
    assert_eq!(points("agentd.telemetry.dropped_spans")[0]["asInt"], "0");
    assert!(metrics.contains_key("agentd.clients.lagged") && metrics.contains_key("agentd.sessions.loaded"));
}

#[test]
fn what_was_said_is_sent_only_when_asked_for_and_secrets_never() {
    let run = |more: Value| {
        let model = MockServer::start([
            Reply::stream(sse::calls(&[("call_1", "bash", json!({"command": "cat private-file.txt"}))])),
            Reply::stream(sse::answer("private-answer with test-key-1234")),
        ]);
        let collector = collector();
        let home = home(&model, &collector, more);
        home.write("private-file.txt", "private-content test-key-1234");
        let mut daemon = Daemon::start(&home, &[]);
        daemon.prompt("private-question about test-key-1234");
        assert!(daemon.close().status.success());
        collector.requests().iter().map(|request| request.body.to_string()).collect::<String>()
    };
    let without = run(json!({}));
    assert!(without.contains("execute_tool bash"));
    assert!(!without.contains("private-"), "{without}");
    assert!(!without.contains("test-key"), "{without}");
    let with = run(json!({"captureContent": true}));
    for said in
        ["private-question", "private-answer", "private-content", "cat private-file.txt", "[redacted]"]
    {
        assert!(with.contains(said), "{said}: {with}");
    }
    assert!(!with.contains("test-key"), "{with}");
}

#[test]
fn a_prompt_belongs_to_the_span_of_its_client() {
    let (model, collector) = (MockServer::always(Reply::stream(sse::answer("Yes."))), collector());
    let home = home(&model, &collector, json!({}));
    let prompt = |traceparent: &str| {
        let mut command = ctl::command(&home, &["prompt", "--private", "Hello?"]);
        command.env("TRACEPARENT", traceparent);
        let told = ctl::feed(command, "");
        assert_eq!(told.code, 0, "{}", told.stderr);
        spans(&collector)
    };
    let sent = prompt(TRACEPARENT);
    assert_eq!(sent.len(), 3);
    assert!(sent.iter().all(|span| span["traceId"] == "4bf92f3577b34da6a3ce929d0e0e4736"));
    let parent = json!("00f067aa0ba902b7");
    assert_eq!(tree(&sent, &parent, 0), ["invoke_agent agentd", "  turn", "    chat fake"]);
    // A trace that its beginner does not record is not recorded here either.
    assert_eq!(prompt(&TRACEPARENT.replace("-01", "-00")).len(), 3);
    // One that is malformed does not count.
    let sent = prompt("nonsense");
    assert_eq!(tree(&sent, &Value::Null, 0), ["invoke_agent agentd", "  turn", "    chat fake"]);
}

#[test]
fn commands_get_the_trace_only_by_a_setting() {
    let run = |more: Value| {
        let model = MockServer::start([
            Reply::stream(sse::calls(&[("call_1", "bash", json!({"command": "echo \"[$TRACEPARENT]\""}))])),
            Reply::stream(sse::answer("Done.")),
        ]);
        let collector = collector();
        let home = home(&model, &collector, more);
        let mut daemon = Daemon::start(&home, &[]);
        let events = daemon.prompt("Go.");
        assert!(daemon.close().status.success());
        let end = events.into_iter().find(|event| event["type"] == "tool_execution_end").unwrap();
        (end["result"]["content"][0]["text"].as_str().unwrap().trim().to_owned(), spans(&collector))
    };
    assert_eq!(run(json!({})).0, "[]");
    let (told, spans) = run(json!({"propagateToCommands": true}));
    let call = spans.iter().find(|span| span["name"] == "execute_tool bash").unwrap();
    let expected =
        format!("[00-{}-{}-01]", call["traceId"].as_str().unwrap(), call["parentSpanId"].as_str().unwrap());
    assert_eq!(told, expected);
}

#[test]
fn no_collector_changes_anything_of_a_run() {
    let events = |home: &Home| {
        let mut daemon = Daemon::start(home, &[]);
        let events = daemon.prompt("Hello?");
        let ended = daemon.close();
        assert!(ended.status.success());
        (kinds(&events).into_iter().map(str::to_owned).collect::<Vec<_>>(), ended.stderr)
    };
    let plain = {
        let model = model();
        let home = Home::with_model(&model);
        home.settings(&json!({"retry": {"baseDelayMs": 1}}));
        events(&home).0
    };
    let refusing = |status| MockServer::always(Reply::status(status, "text/plain", "no"));
    for collector in [
        refusing(400),
        refusing(503),
        MockServer::always(Reply::silence()),
        MockServer::always(Reply::hang_up()),
    ] {
        let model = model();
        assert_eq!(events(&home(&model, &collector, json!({}))).0, plain);
    }
    // Nothing listens there.
    let model = model();
    let home = home(&model, &collector(), json!({"endpoint": "http://127.0.0.1:1"}));
    assert_eq!(events(&home).0, plain);
}

#[test]
fn nothing_is_sent_unless_the_user_says_so() {
    let collector = collector();
    let run = |home: &Home, args: &[&str]| {
        let mut daemon = Daemon::start_with(home, args, |command| {
            command.env("OTEL_EXPORTER_OTLP_ENDPOINT", address(&collector));
        });
        daemon.prompt("Hello?");
        assert!(daemon.close().status.success());
    };
    let model = MockServer::always(Reply::stream(sse::answer("Yes.")));
    // The variable alone.
    let home = Home::with_model(&model);
    run(&home, &[]);
    // A project, even one that is trusted.
    let of_project = json!({"telemetry": {"endpoint": address(&collector)}}).to_string();
    home.write(".agentd/settings.json", &of_project);
    run(&home, &["--approve"]);
    // The user's setting, turned off.
    home.settings(&json!({"telemetry": {"endpoint": address(&collector), "enabled": false}}));
    run(&home, &[]);
    assert_eq!(collector.connections(), (0, 0));
    // The user asks for what the variable says.
    home.settings(&json!({"telemetry": {"enabled": true, "metrics": false}}));
    run(&home, &[]);
    let requests = collector.requests();
    let targets: Vec<&str> = requests.iter().map(|request| request.target.as_str()).collect();
    assert_eq!(targets, ["POST /v1/traces"]);
    assert_eq!(requests[0].header("content-type"), Some("application/x-protobuf"));
}

#[test]
fn headers_reach_the_collector_and_are_never_shown() {
    let (model, collector) = (MockServer::always(Reply::stream(sse::answer("Yes."))), collector());
    let home = home(&model, &collector, json!({"headers": {"x-key": "collector-key"}}));
    let mut daemon = Daemon::start(&home, &[]);
    daemon.prompt("Hello?");
    assert!(daemon.close().status.success());
    let requests = collector.requests();
    assert!(!requests.is_empty());
    assert!(requests.iter().all(|request| request.header("x-key") == Some("collector-key")));
    for args in [
        &["config", "explain", "telemetry"][..],
        &["config", "explain", "telemetry.headers"],
        &["doctor", "--json"],
        &["config", "check"],
    ] {
        let told = ctl::run(&home, args);
        assert!(
            !format!("{}{}", told.stdout, told.stderr).contains("collector-key"),
            "{args:?}: {}",
            told.stdout
        );
    }
    let explained = ctl::run(&home, &["config", "explain", "telemetry.headers"]);
    assert!(explained.stdout.contains("x-key"), "{}", explained.stdout);
    let told = ctl::run(&home, &["doctor"]).stdout;
    assert!(told.contains(&format!("traces and metrics go to {}", address(&collector))), "{told}");
    home.settings(&json!({"telemetry": {"endpoint": "localhost:4318"}}));
    let told = ctl::run(&home, &["doctor"]).stdout;
    assert!(told.contains("telemetry.endpoint is not an http:// or https:// address"), "{told}");
}
