//! The order of events, steering, follow-ups, ends of every kind.

use agentd_agent::{HostError, queue::QueueKind};
use agentd_protocol::{
    event::Event,
    message::{Message, StopReason},
    tool::ToolResult,
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::fakes::{Answer, FakeTool, Recorder};

fn echo() -> std::sync::Arc<dyn agentd_agent::Tool> {
    FakeTool::parallel("echo", |call| {
        Box::pin(async move { Ok(ToolResult::text(call.arguments["n"].to_string())) })
    })
}

#[tokio::test]
async fn a_plain_answer() {
    let mut host = Recorder::new(vec![Answer::Text("Hi")], Vec::new());
    let ended = host.prompt("hello", &CancellationToken::new()).await.unwrap();
    assert_eq!(
        host.words(),
        [
            "agent_start",
            "turn_start",
            "start user:hello",
            "end user:hello",
            "start assistant",
            "end assistant:Stop",
            "turn_end",
            "agent_end 2",
        ]
    );
    assert_eq!(ended.last.unwrap().text(), "Hi");
}

#[tokio::test]
async fn tool_calls_go_back_to_the_model_in_order() {
    let calls = vec![("echo", json!({"n": 1})), ("echo", json!({"n": 2}))];
    let mut host = Recorder::new(vec![Answer::Calls(calls), Answer::Text("done")], vec![echo()]);
    host.prompt("go", &CancellationToken::new()).await.unwrap();
    let words = host.words();
    let from = words.iter().position(|word| *word == "tool start 0").unwrap();
    assert_eq!(words[from..from + 2], ["tool start 0", "tool start 1"]);
    assert_eq!(
        words[words.len() - 10..],
        [
            "start result:0:1",
            "end result:0:1",
            "start result:1:2",
            "end result:1:2",
            "turn_end",
            "turn_start",
            "start assistant",
            "end assistant:Stop",
            "turn_end",
            "agent_end 5",
        ]
    );
    assert_eq!(host.model.requests.lock().unwrap()[1].messages.len(), 4);
}

#[tokio::test]
async fn steering_comes_between_turns_and_follow_ups_at_the_end() {
    let call = |n| vec![("echo", json!({"n": n}))];
    let answers = vec![Answer::Calls(call(1)), Answer::Calls(call(2)), Answer::Text("a"), Answer::Text("b")];
    let mut host = Recorder::new(answers, vec![echo()]);
    host.at = Some((
        "tool start 0",
        Box::new(|queues| {
            if queues.is_empty() {
                queues.push(QueueKind::Steering, "left".into(), Vec::new());
                queues.push(QueueKind::FollowUp, "later".into(), Vec::new());
            }
        }),
    ));
    host.prompt("go", &CancellationToken::new()).await.unwrap();
    let said: Vec<&str> = host
        .words()
        .into_iter()
        .filter(|word| {
            word.starts_with("start user") || word.starts_with("end assistant") || *word == "turn_start"
        })
        .collect();
    assert_eq!(
        said,
        [
            "turn_start",
            "start user:go",
            "end assistant:ToolUse",
            "turn_start",
            "start user:left",
            "end assistant:ToolUse",
            "turn_start",
            "end assistant:Stop",
            "turn_start",
            "start user:later",
            "end assistant:Stop",
        ]
    );
}

#[tokio::test]
async fn queued_steering_joins_a_new_run_before_its_first_answer() {
    let mut host = Recorder::new(vec![Answer::Text("a")], Vec::new());
    host.queues.push(QueueKind::Steering, "also".into(), Vec::new());
    host.prompt("go", &CancellationToken::new()).await.unwrap();
    let words = host.words();
    assert_eq!(
        words[2..7],
        ["start user:go", "end user:go", "delivered true", "start user:also", "end user:also"]
    );
}

#[tokio::test]
async fn an_abort_while_streaming_keeps_the_text_and_the_queue() {
    let mut host = Recorder::new(vec![Answer::Hang("partial")], Vec::new());
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    host.at = Some((
        "update",
        Box::new(move |queues| {
            if queues.is_empty() {
                queues.push(QueueKind::Steering, "later".into(), Vec::new());
                queues.push(QueueKind::FollowUp, "last".into(), Vec::new());
            } else {
                stop.cancel();
            }
        }),
    ));
    let ended = host.prompt("go", &cancel).await.unwrap();
    let last = ended.last.unwrap();
    assert_eq!((last.stop_reason, last.text().as_str()), (StopReason::Aborted, "partial"));
    assert_eq!(last.error_message.as_deref(), Some("Request was aborted"));
    assert_eq!(host.queues.len(), 2, "queued messages wait for the next run");
    assert_eq!(host.words().last(), Some(&"agent_end 2"));
}

#[tokio::test]
async fn an_abort_in_tools_answers_every_call_and_ends_with_an_aborted_answer() {
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    let slow = FakeTool::parallel("slow", move |call| {
        stop.cancel();
        Box::pin(async move {
            call.cancel.cancelled().await;
            Err("Command aborted".to_owned().into())
        })
    });
    let calls = vec![("slow", json!({"n": 1})), ("nope", json!({})), ("slow", json!({"n": 2}))];
    let mut host = Recorder::new(vec![Answer::Calls(calls)], vec![slow]);
    host.prompt("go", &cancel).await.unwrap();
    let words = host.words();
    let results: Vec<&str> = words.iter().copied().filter(|word| word.starts_with("end result")).collect();
    assert_eq!(
        results,
        ["end result:0:Command aborted", "end result:1:Tool nope not found", "end result:2:Command aborted"]
    );
    assert_eq!(
        words[words.len() - 7..],
        [
            "turn_end",
            "turn_start",
            "start assistant",
            "end assistant:Aborted",
            "retry? Aborted Some(Aborted)",
            "turn_end",
            "agent_end 6"
        ]
    );
}

#[tokio::test]
async fn a_cut_off_answer_runs_no_call() {
    let answers = vec![Answer::CutOff(vec![("echo", json!({"n": 1}))]), Answer::Text("again")];
    let mut host = Recorder::new(answers, vec![echo()]);
    host.prompt("go", &CancellationToken::new()).await.unwrap();
    let result = host.words().into_iter().find(|word| word.starts_with("end result")).unwrap();
    assert!(result.contains("Tool call \"echo\" was not executed: the response hit the output token limit"));
    assert_eq!(host.words().last(), Some(&"agent_end 4"), "the model is asked again");
}

#[tokio::test]
async fn a_model_that_cannot_be_asked_is_a_failed_answer() {
    let mut host = Recorder::new(Vec::new(), Vec::new());
    host.refuse = Some("No API key for provider: p");
    let ended = host.prompt("go", &CancellationToken::new()).await.unwrap();
    let last = ended.last.unwrap();
    assert_eq!(last.error_message.as_deref(), Some("No API key for provider: p"));
    assert_eq!(
        host.words()[4..],
        ["start assistant", "end assistant:Error", "retry? Error None", "turn_end", "agent_end 2"]
    );
    assert!(!ended.will_retry);
    // The first sight of a failed answer is the whole of it.
    let Event::MessageStart(start) = &host.events[4] else { panic!("{:?}", host.events[4]) };
    assert!(
        matches!(start.message.get(), Some(Message::Assistant(answer)) if answer.stop_reason == StopReason::Error)
    );
}

#[tokio::test]
async fn the_end_of_a_run_says_whether_it_is_tried_again() {
    for retries in [true, false] {
        let mut host = Recorder::new(Vec::new(), Vec::new());
        (host.refuse, host.retries) = (Some("503: busy"), retries);
        let ended = host.prompt("go", &CancellationToken::new()).await.unwrap();
        let Some(Event::AgentEnd(end)) = host.events.last() else { panic!("{:?}", host.events.last()) };
        assert_eq!((ended.will_retry, end.will_retry), (retries, retries));
    }
}

#[tokio::test]
async fn a_message_that_cannot_be_stored_ends_the_run() {
    let mut host = Recorder::new(vec![Answer::Calls(vec![("echo", json!({"n": 1}))])], vec![echo()]);
    host.broken_role = Some("toolResult");
    let error = host.prompt("go", &CancellationToken::new()).await.unwrap_err();
    assert_eq!(error, HostError::NotStored("disk full".into()));
}
