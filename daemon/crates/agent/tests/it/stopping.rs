//! What ends while a hook is asked or a tool does not listen: hooks and calls are raced against the stop.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use agentd_agent::{
    ExecutionMode, Tool, ToolSet,
    hooks::{Action, GateDecision, HookFuture, HookGate, HookVerdict, Hooks, Requester},
};
use agentd_protocol::tool::ToolResult;
use serde_json::{Value, json};
use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::fakes::{Answer, FakeTool, Recorder};

fn echo() -> Arc<dyn Tool> {
    FakeTool::parallel("echo", |_| Box::pin(async { Ok(ToolResult::text("ran")) }))
}

fn results(host: &Recorder) -> Vec<&str> {
    host.words().into_iter().filter_map(|word| word.strip_prefix("end result:")).collect()
}

/// Answers nothing, before or after; says what it was asked about, and fires when it waits.
#[derive(Default)]
struct Silent {
    asks_before: bool,
    asked: Mutex<Vec<(String, Value, PathBuf)>>,
    waits: Arc<Notify>,
}

impl Hooks for Silent {
    fn before<'a>(&'a self, action: &'a Action<'a>, _: &'a CancellationToken) -> HookFuture<'a, HookVerdict> {
        if !self.asks_before {
            return Box::pin(async { Ok(HookVerdict::Run) });
        }
        let Requester::Model { call_id } = action.by else { panic!("the model calls") };
        let about = (format!("{call_id} {}", action.tool), action.arguments.clone(), action.cwd.to_owned());
        self.asked.lock().unwrap().push(about);
        self.waits.notify_one();
        Box::pin(std::future::pending())
    }

    fn after<'a>(
        &'a self,
        _: &'a Action<'a>,
        _: ToolResult,
        _: bool,
        _: &'a CancellationToken,
    ) -> HookFuture<'a, (ToolResult, bool)> {
        self.waits.notify_one();
        Box::pin(std::future::pending())
    }
}

async fn stopped_while_a_hook_waits(asks_before: bool) -> (Recorder, Arc<Silent>) {
    let calls = vec![("echo", json!({"n": 1})), ("echo", json!({"n": 2}))];
    let mut host = Recorder::new(vec![Answer::Calls(calls), Answer::Text("x")], vec![echo()]);
    let silent = Arc::new(Silent { asks_before, ..Silent::default() });
    host.gate = HookGate::new(Arc::clone(&silent) as Arc<dyn Hooks>);
    let cancel = CancellationToken::new();
    let (stop, waits) = (cancel.clone(), Arc::clone(&silent.waits));
    tokio::spawn(async move {
        waits.notified().await;
        stop.cancel();
    });
    host.prompt("go", &cancel).await.unwrap();
    (host, silent)
}

#[tokio::test]
async fn an_abort_ends_a_call_whose_hook_has_not_answered() {
    let (host, silent) = stopped_while_a_hook_waits(true).await;
    assert_eq!(results(&host), ["0:Operation aborted", "1:Operation aborted"]);
    let asked = silent.asked.lock().unwrap();
    assert_eq!(*asked, [("call_0 echo".to_owned(), json!({"n": 1}), PathBuf::from("/"))]);
}

#[tokio::test(start_paused = true)]
async fn an_abort_ends_a_call_whose_result_a_hook_looks_at() {
    let before = Instant::now();
    let (host, _) = stopped_while_a_hook_waits(false).await;
    assert_eq!(results(&host), ["0:Operation aborted", "1:Operation aborted"]);
    assert_eq!(before.elapsed(), Duration::from_millis(500), "a hook that is about to answer may");
    assert!(host.survivors.is_empty(), "the tools themselves had ended");
}

struct Panics;

impl Hooks for Panics {
    fn before<'a>(&'a self, _: &'a Action<'a>, _: &'a CancellationToken) -> HookFuture<'a, HookVerdict> {
        panic!("a bug in a hook")
    }
}

#[tokio::test]
async fn a_hook_that_panics_blocks_what_it_was_asked_about() {
    let action = Action {
        by: Requester::User,
        tool: "bash",
        arguments: &json!({"command": "ls"}),
        cwd: std::path::Path::new("/"),
        is_trusted_read: false,
        declares_reading: false,
        schema: None,
        must_ask: None,
    };
    let passage = HookGate::new(Arc::new(Panics)).before(&action, &CancellationToken::new()).await;
    let reason = "A hook failed unexpectedly at bash.".to_owned();
    assert_eq!(passage, GateDecision::Blocked { reason, terminate: false });
}

/// A tool that ends only when `end` fires, whatever its token says.
fn deaf(name: &'static str, execution: ExecutionMode, end: Arc<Notify>) -> Arc<dyn Tool> {
    FakeTool::with(name, execution, move |call| {
        let end = Arc::clone(&end);
        Box::pin(async move {
            end.notified().await;
            // Nobody hears of it.
            call.progress.report(ToolResult::text("late news"));
            Ok(ToolResult::text("late"))
        })
    })
}

async fn stopped_with_a_deaf_tool(execution: ExecutionMode, whole_run: bool) -> (Recorder, Arc<Notify>) {
    let calls = vec![("deaf", json!({"n": 1})), ("echo", json!({"n": 2}))];
    let end = Arc::new(Notify::new());
    let mut host = Recorder::new(vec![Answer::Calls(calls), Answer::Text("x")], Vec::new());
    host.tools = Arc::new(ToolSet::new([deaf("deaf", execution, Arc::clone(&end)), echo()]));
    let (cancel, tools) = (CancellationToken::new(), Arc::clone(&host.stop));
    let run = cancel.clone();
    tokio::spawn(async move {
        // The clock stands still: this fires when nothing else can happen.
        tokio::time::sleep(Duration::from_secs(1)).await;
        if whole_run { run.cancel() } else { tools.lock().unwrap().cancel() }
    });
    let before = Instant::now();
    host.prompt("go", &cancel).await.unwrap();
    let since_the_stop = before.elapsed() - Duration::from_secs(1);
    assert!(since_the_stop < Duration::from_secs(1), "{since_the_stop:?}");
    (host, end)
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_does_not_end_is_left_behind_by_an_abort() {
    let (host, end) = stopped_with_a_deaf_tool(ExecutionMode::Parallel, true).await;
    assert_eq!(results(&host), ["0:Operation aborted", "1:ran"]);
    assert!(host.words().contains(&"stopped 0"));
    let [(id, over)] = &host.survivors[..] else { panic!("{:?}", host.survivors) };
    assert_eq!(id, "call_0");
    assert!(!over.is_cancelled(), "it goes on");
    let said = host.log.len();
    end.notify_one();
    over.cancelled().await;
    assert_eq!(host.log.len(), said, "its end says nothing");
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_does_not_end_is_left_behind_when_its_calls_are_stopped() {
    let (host, _) = stopped_with_a_deaf_tool(ExecutionMode::Sequential, false).await;
    assert_eq!(results(&host), ["0:Operation aborted", "1:Operation aborted"]);
    assert_eq!(host.survivors.len(), 1);
    assert!(host.words().contains(&"end assistant:Stop"), "the run goes on: {:?}", host.words());
}
