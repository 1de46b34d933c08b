//! Tools of the session that cells call.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use agentd_kernels::{CellToolCall, Language};
use agentd_protocol::tool::ToolResult;
use serde_json::json;

use crate::bench::{Bench, answering, text};

#[tokio::test]
async fn a_cell_gets_results_and_refusals() {
    let calls = Arc::new(Mutex::new(Vec::<CellToolCall>::new()));
    let noted = Arc::clone(&calls);
    let answer = move |call: CellToolCall| {
        noted.lock().unwrap().push(call.clone());
        let outcome = match call.name.as_str() {
            "read" => (ToolResult::text(format!("content of {}", call.arguments["path"])), false),
            _ => (ToolResult::text("Refused by rule 3"), true),
        };
        Box::pin(async move { outcome }) as _
    };
    for (language, code, refused) in [
        (Language::Python, "print(tool.read(path='a') + '!', read('b'))", "tool.bash(command='ls')"),
        (
            Language::JavaScript,
            "console.log(await tool.read({path: 'a'}) + '!', await read('b'))",
            "await tool.bash({command: 'ls'})",
        ),
    ] {
        let Some(bench) = Bench::with(language, |options| options.tools = answering(answer.clone())) else {
            continue;
        };
        assert_eq!(bench.text(code).await, "content of \"a\"! content of \"b\"");
        let failed = bench.run(refused).await;
        assert!(text(&failed).contains("ToolError: Refused by rule 3"), "{}", text(&failed));
        let seen = std::mem::take(&mut *calls.lock().unwrap());
        let seen: Vec<_> = seen.iter().map(|call| (call.parent.as_str(), call.name.as_str())).collect();
        assert_eq!(seen, [("call_1", "read"), ("call_1", "read"), ("call_1", "bash")]);
    }
}

#[tokio::test]
async fn the_time_of_a_cell_stands_still_while_its_tools_work() {
    let slow = |_: CellToolCall| {
        Box::pin(async {
            tokio::time::sleep(Duration::from_millis(1500)).await;
            (ToolResult::text("done"), false)
        }) as _
    };
    let Some(bench) = Bench::with(Language::Python, |options| options.tools = answering(slow)) else {
        return;
    };
    let result = bench.run_with("print(tool.task())", json!({"timeout": 1})).await;
    assert_eq!((text(&result), result.is_error), ("done\n", None));
}

#[tokio::test]
async fn threads_of_a_cell_call_tools_and_one_that_is_left_holds_nothing_up() {
    let answer = |call: CellToolCall| {
        Box::pin(async move {
            if call.name == "wait" {
                call.cancel.cancelled().await;
                return (ToolResult::text("Operation aborted"), true);
            }
            (ToolResult::text(format!("{}", call.arguments["n"])), false)
        }) as _
    };
    let Some(bench) = Bench::with(Language::Python, |options| options.tools = answering(answer)) else {
        return;
    };
    let code = "import threading\nfrom concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(8) as pool:\n    \
                print(sum(int(text) for text in pool.map(lambda n: tool.count(n=n), range(40))))";
    assert_eq!(bench.text(code).await, "780");
    let left = "def waits():\n    try:\n        tool.wait()\n    except ToolError:\n        pass\n\
                threading.Thread(target=waits, daemon=True).start(); 'on'";
    assert_eq!(bench.text(left).await, "'on'");
    assert_eq!(bench.text("1 + 1").await, "2");
}

#[tokio::test]
async fn a_call_is_stopped_with_its_cell() {
    let stopped = |call: CellToolCall| {
        Box::pin(async move {
            call.cancel.cancelled().await;
            (ToolResult::text("Operation aborted"), true)
        }) as _
    };
    let Some(bench) = Bench::with(Language::JavaScript, |options| options.tools = answering(stopped)) else {
        return;
    };
    // It does not wait for its calls.
    assert_eq!(bench.text("for (let i = 0; i < 80; i++) tool.wait({i}).catch(() => {}); 'on'").await, "'on'");
    assert_eq!(bench.text("1 + 1").await, "2");
}
