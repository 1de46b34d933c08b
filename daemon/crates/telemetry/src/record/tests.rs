use agentd_agent::observer::Observers;
use agentd_ai::failure::FailureKind;
use agentd_protocol::{
    Json,
    budget::{BudgetQuantity, BudgetReached, BudgetScope},
    compaction::CompactionReason,
    event::{DecisionMaker, MessageStart, PermissionVerdict, TurnStart},
    model::ThinkingLevel,
    settings::TelemetrySettings,
    tool::ToolResult,
};

use super::*;
use crate::{config::TelemetryConfig, data::Span, queue::SpanQueue};

/// An observer, and what it reports to. Nothing is sent.
fn observer() -> (Arc<Hub>, SessionSpans) {
    let settings =
        TelemetrySettings { endpoint: Some("http://127.0.0.1:1".into()), ..TelemetrySettings::default() };
    let config = TelemetryConfig::of(&settings, |_| None).unwrap().unwrap();
    let queue = Arc::new(SpanQueue::default());
    let hub = Arc::new(Hub {
        config,
        metrics: Default::default(),
        loaded: Arc::default(),
        running: Arc::default(),
        queue,
    });
    (Arc::clone(&hub), SessionSpans::new(hub, "session-1"))
}

fn call(observer: &SessionSpans, purpose: CallPurpose) -> u64 {
    let model = Model { id: "m".into(), provider: "google".into(), ..Model::placeholder() };
    observer.call_begins(&ModelCall { model: &model, level: ThinkingLevel::Off, messages: &[], purpose })
}

fn answer(stop_reason: StopReason) -> AssistantMessage {
    AssistantMessage { stop_reason, ..AssistantMessage::pending("a", "google", "m", 0) }
}

fn turn_end(answer: AssistantMessage) -> Event {
    TurnEnd { message: Json::new(Message::Assistant(answer)).unwrap(), tool_results: Vec::new() }.into()
}

fn tool_start(id: &str) -> Event {
    let args = Json::new(serde_json::Map::new()).unwrap();
    ToolExecutionStart { tool_call_id: id.into(), tool_name: "bash".into(), args, parent_tool_call_id: None }
        .into()
}

/// The spans that have ended, each with its error or outcome and its events.
fn ended(hub: &Hub) -> Vec<String> {
    let word = |span: &Span, key: &str| {
        span.attributes.iter().find(|(other, _)| other == key).and_then(|(_, value)| match value {
            Value::Text(text) => Some(text.to_string()),
            _ => None,
        })
    };
    let told = |span: &Span| {
        let error = word(span, "error.type").or_else(|| word(span, "agentd.outcome")).unwrap_or_default();
        let events: String = span.events.iter().map(|event| format!(" +{}", event.name)).collect();
        format!("{}: {error}{events}", span.name)
    };
    hub.queue.take().iter().map(told).collect()
}

#[test]
fn a_task_that_is_dropped_leaves_no_span_open() {
    let (hub, observer) = observer();
    observer.run_begins(None);
    assert_eq!(hub.running.load(Ordering::Relaxed), 1);
    observer.event(&TurnStart {}.into());
    call(&observer, CallPurpose::Answer);
    observer.event(&tool_start("1"));
    observer.event(&CompactionStart { reason: CompactionReason::Threshold }.into());
    call(&observer, CallPurpose::Summary);
    assert_eq!(ended(&hub), Vec::<String>::new());
    observer.run_ends(None);
    assert_eq!(
        ended(&hub),
        [
            "execute_tool bash: aborted",
            "chat m: aborted",
            "turn: ",
            "chat m: aborted",
            "compaction: ",
            "invoke_agent agentd: completed",
        ]
    );
    assert_eq!((hub.running.load(Ordering::Relaxed), hub.loaded.load(Ordering::Relaxed)), (0, 1));
    drop(observer);
    assert_eq!(hub.loaded.load(Ordering::Relaxed), 0);
}

#[test]
fn the_outcome_is_that_of_the_last_turn() {
    let check = |answers: &[StopReason], expected: &str| {
        let (hub, observer) = observer();
        observer.run_begins(None);
        for reason in answers {
            observer.event(&TurnStart {}.into());
            let call = call(&observer, CallPurpose::Answer);
            let failure = Failure::new(FailureKind::Retryable, "500: private");
            observer.call_ends(
                call,
                &answer(*reason),
                Some(&failure).filter(|_| *reason == StopReason::Error),
            );
            observer.event(&turn_end(answer(*reason)));
        }
        observer.run_ends(None);
        assert_eq!(ended(&hub).last().unwrap(), expected);
    };
    check(&[StopReason::Error, StopReason::Stop], "invoke_agent agentd: completed");
    check(&[StopReason::Stop, StopReason::Aborted], "invoke_agent agentd: aborted");
    check(&[StopReason::Error], "invoke_agent agentd: unavailable");
}

#[test]
fn a_run_that_is_refused_says_why() {
    let check = |code, expected: &str| {
        let (hub, observer) = observer();
        observer.run_begins(None);
        observer.run_ends(Some(code));
        assert_eq!(ended(&hub), [expected]);
    };
    check(ErrorCode::NoCredentials, "invoke_agent agentd: no_credentials");
    check(ErrorCode::Aborted, "invoke_agent agentd: aborted");
}

#[test]
fn events_stand_where_they_belong() {
    let (hub, observer) = observer();
    observer.run_begins(None);
    observer.event(&TurnStart {}.into());
    observer.event(&tool_start("1"));
    observer.event(&tool_start("2"));
    let decision = PermissionDecision {
        tool_call_id: Some("2".into()),
        tool: "bash".into(),
        decision: PermissionVerdict::Denied,
        by: DecisionMaker::User,
        client: None,
        reason: "private".into(),
        source: None,
        rule: None,
        session_rule: None,
        waited_ms: 5,
    };
    observer.event(&decision.into());
    for id in ["1", "2"] {
        let (result, is_error) = (ToolResult::text("private"), id == "2");
        let (tool_call_id, tool_name) = (id.to_owned(), "bash".to_owned());
        let duration_ms = (id == "1").then_some(7);
        observer.event(
            &ToolExecutionEnd {
                tool_call_id,
                tool_name,
                result,
                is_error,
                duration_ms,
                parent_tool_call_id: None,
            }
            .into(),
        );
    }
    let (scope, what) = (BudgetScope::Run, BudgetQuantity::Turns);
    observer.event(&BudgetReached { scope, what, limit: 1.0, used: 1.0 }.into());
    observer.run_ends(None);
    let spans = ended(&hub);
    assert_eq!(
        spans,
        [
            "execute_tool bash: ",
            "execute_tool bash: not_started +agentd.permission",
            "turn: ",
            "invoke_agent agentd: completed +agentd.budget_reached",
        ]
    );
    let names: Vec<&str> = hub.metrics.collect().iter().map(|metric| metric.name).collect();
    assert_eq!(
        names,
        [
            "gen_ai.execute_tool.duration",
            "gen_ai.invoke_agent.duration",
            "agentd.permission.decisions",
            "agentd.budgets.reached"
        ]
    );
}

#[test]
fn only_an_answer_that_streams_has_a_first_chunk() {
    let (hub, observer) = observer();
    let begins = |stop_reason| {
        let message = Json::new(Message::Assistant(answer(stop_reason))).unwrap();
        observer.event(&MessageStart { message }.into());
    };
    let count = || hub.metrics.collect().iter().filter(|it| it.name.ends_with("time_to_first_chunk")).count();
    call(&observer, CallPurpose::Answer);
    begins(StopReason::Error);
    assert_eq!(count(), 0);
    begins(StopReason::Pending);
    assert_eq!(count(), 1);
}

#[test]
fn a_trace_that_is_not_recorded_sends_no_spans() {
    let (hub, observer) = observer();
    observer.run_begins(Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"));
    observer.event(&TurnStart {}.into());
    observer.run_ends(None);
    assert_eq!(ended(&hub), Vec::<String>::new());
    assert!(!hub.metrics.collect().is_empty(), "metrics count all the same");
}

#[tokio::test]
async fn telemetry_counts_its_sessions() {
    let settings =
        TelemetrySettings { endpoint: Some("http://127.0.0.1:1".into()), ..TelemetrySettings::default() };
    let config = TelemetryConfig::of(&settings, |_| None).unwrap().unwrap();
    let telemetry = crate::Telemetry::start(config, &agentd_http::Network::default(), "one");
    let session = telemetry.session("s");
    assert_eq!(session.traceparent(), None, "commands get none by default");
    drop(session);
    telemetry.shut_down(std::time::Duration::from_millis(1)).await;
}
