//! How calls run: side by side or one by one, hooks, news, slips of models and of tools.

use std::sync::Arc;

use agentd_agent::{
    ExecutionMode, Tool, ToolError, ToolSet,
    hooks::{Action, HookFuture, HookGate, HookVerdict, Hooks},
};
use agentd_protocol::tool::ToolResult;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::fakes::{Answer, FakeTool, Recorder};

async fn run(tools: Vec<Arc<dyn Tool>>, calls: Vec<(&'static str, Value)>, more: &[Answer]) -> Recorder {
    let mut answers = vec![Answer::Calls(calls)];
    answers.extend_from_slice(more);
    let mut host = Recorder::new(answers, tools);
    host.prompt("go", &CancellationToken::new()).await.unwrap();
    host
}

fn about_tools(host: &Recorder) -> Vec<&str> {
    host.words()
        .into_iter()
        .filter(|word| word.starts_with("tool ") || word.starts_with("end result"))
        .collect()
}

/// The first call ends only once the second has: they must run side by side.
fn crossing(execution: ExecutionMode) -> Arc<dyn Tool> {
    let second_done = Arc::new(Notify::new());
    FakeTool::with("cross", execution, move |call| {
        let second_done = Arc::clone(&second_done);
        Box::pin(async move {
            if call.arguments["n"] == 1 {
                second_done.notified().await;
            } else {
                second_done.notify_one();
            }
            Ok(ToolResult::text("ok"))
        })
    })
}

#[tokio::test]
async fn parallel_calls_end_in_their_own_order_and_results_keep_the_order_of_the_calls() {
    let calls = vec![("cross", json!({"n": 1})), ("cross", json!({"n": 2}))];
    let host = run(vec![crossing(ExecutionMode::Parallel)], calls, &[Answer::Text("x")]).await;
    assert_eq!(
        about_tools(&host),
        ["tool start 0", "tool start 1", "tool end 1", "tool end 0", "end result:0:ok", "end result:1:ok"]
    );
}

#[tokio::test]
async fn one_sequential_tool_makes_the_batch_sequential() {
    let echo = |name, execution| {
        FakeTool::with(name, execution, |call| {
            Box::pin(async move { Ok(ToolResult::text(call.arguments["n"].to_string())) })
        })
    };
    let tools = vec![echo("any", ExecutionMode::Parallel), echo("alone", ExecutionMode::Sequential)];
    let calls = vec![("any", json!({"n": 1})), ("alone", json!({"n": 2}))];
    let host = run(tools, calls, &[Answer::Text("x")]).await;
    assert_eq!(
        about_tools(&host),
        ["tool start 0", "tool end 0", "end result:0:1", "tool start 1", "tool end 1", "end result:1:2"]
    );
}

#[tokio::test]
async fn news_comes_before_the_end_and_is_bounded() {
    let chatty = FakeTool::parallel("chatty", |call| {
        Box::pin(async move {
            for n in 0..1000 {
                call.progress.report(ToolResult::text(n.to_string()));
            }
            Ok(ToolResult::text("done"))
        })
    });
    let host = run(vec![chatty], vec![("chatty", json!({"n": 1}))], &[Answer::Text("x")]).await;
    let words = about_tools(&host);
    let updates = words.iter().filter(|word| **word == "tool update 0").count();
    assert!((1..=20).contains(&updates), "{updates} updates");
    assert_eq!(words[words.len() - 2..], ["tool end 0", "end result:0:done"]);
    let last = host.events.iter().rev().find_map(|event| match event {
        agentd_protocol::event::Event::ToolExecutionUpdate(update) => Some(update.partial_result.clone()),
        _ => None,
    });
    assert_eq!(last, Some(ToolResult::text("999")), "the newest news is never dropped");
}

#[tokio::test]
async fn slips_become_results() {
    let panics = FakeTool::parallel("panics", |_| Box::pin(async { panic!("bug in a tool") }));
    let calls = vec![("panics", json!({"n": 1})), ("panics", json!({"n": {}})), ("unknown", json!({}))];
    let host = run(vec![panics], calls, &[Answer::Text("x")]).await;
    let words = about_tools(&host);
    assert!(words.contains(&"end result:0:The tool panics failed unexpectedly."));
    assert!(
        words
            .iter()
            .any(|word| word.starts_with("end result:1:Validation failed for tool \"panics\":\n  - n: "))
    );
    assert!(words.contains(&"end result:2:Tool unknown not found"));
}

struct Guard;

impl Hooks for Guard {
    fn before<'a>(&'a self, action: &'a Action<'a>, _: &'a CancellationToken) -> HookFuture<'a, HookVerdict> {
        Box::pin(async move {
            match action.arguments["n"].as_i64() {
                Some(1) => Ok(HookVerdict::Block { reason: None, terminate: true }),
                Some(2) => Err("hook broke".to_owned()),
                _ => Ok(HookVerdict::Run),
            }
        })
    }

    fn after<'a>(
        &'a self,
        _: &'a Action<'a>,
        mut result: ToolResult,
        _: bool,
        _: &'a CancellationToken,
    ) -> HookFuture<'a, (ToolResult, bool)> {
        result.terminate = Some(true);
        Box::pin(async move { Ok((result, true)) })
    }
}

#[tokio::test]
async fn hooks_block_and_change_calls() {
    let echo = FakeTool::parallel("echo", |_| Box::pin(async { Ok(ToolResult::text("ran")) }));
    let calls = |numbers: &[i64]| numbers.iter().map(|n| ("echo", json!({"n": n}))).collect::<Vec<_>>();
    let mut host =
        Recorder::new(vec![Answer::Calls(calls(&[1, 2, 3])), Answer::Text("x")], vec![Arc::clone(&echo)]);
    host.gate = HookGate::new(Arc::new(Guard));
    host.prompt("go", &CancellationToken::new()).await.unwrap();
    let words = about_tools(&host);
    assert_eq!(
        words[words.len() - 3..],
        ["end result:0:Tool execution was blocked", "end result:1:hook broke", "end result:2:ran"]
    );

    // Only when every result says so does the run end without asking the model again.
    let mut host = Recorder::new(vec![Answer::Calls(calls(&[1, 3]))], vec![echo]);
    host.gate = HookGate::new(Arc::new(Guard));
    host.prompt("go", &CancellationToken::new()).await.unwrap();
    assert_eq!(host.words().last(), Some(&"agent_end 4"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn parallel_calls_are_made_in_the_order_of_the_model() {
    let made = Arc::new(std::sync::Mutex::new(Vec::new()));
    let note = Arc::clone(&made);
    let tool = FakeTool::parallel("note", move |call| {
        note.lock().unwrap().push(call.arguments["n"].as_i64().unwrap());
        Box::pin(async { Ok(ToolResult::text("ok")) })
    });
    let calls = (0..50).map(|n| ("note", json!({"n": n}))).collect();
    run(vec![tool], calls, &[Answer::Text("x")]).await;
    assert_eq!(*made.lock().unwrap(), (0..50).collect::<Vec<i64>>());
}

#[tokio::test]
async fn calls_that_are_stopped_end_their_batch_and_not_the_run() {
    let calls = vec![("first", json!({"n": 1})), ("first", json!({"n": 2}))];
    let mut host = Recorder::new(vec![Answer::Calls(calls), Answer::Text("x")], Vec::new());
    let stop = Arc::clone(&host.stop);
    let first = FakeTool::with("first", ExecutionMode::Sequential, move |call| {
        stop.lock().unwrap().cancel();
        Box::pin(async move {
            call.cancel.cancelled().await;
            Err(ToolError("in its own words".into()))
        })
    });
    host.tools = Arc::new(ToolSet::new([first]));
    let ended = host.prompt("go", &CancellationToken::new()).await.unwrap();
    assert_eq!(
        about_tools(&host),
        [
            "tool start 0",
            "tool end 0",
            "end result:0:Operation aborted",
            "tool start 1",
            "tool end 1",
            "end result:1:Operation aborted",
        ]
    );
    assert!(host.words().contains(&"stopped 0"), "the second never ran");
    assert_eq!(ended.last.unwrap().text(), "x", "the model was asked again");
}
