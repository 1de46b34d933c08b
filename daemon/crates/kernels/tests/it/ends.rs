//! Kernels that hang, flood, grow, are killed, or have nothing to do.

use std::{
    fs,
    time::{Duration, Instant},
};

use agentd_kernels::{KernelPool, Language};
use serde_json::json;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::bench::{Bench, is_alive, text, until};

const OWN_PID: &str = "import os; os.getpid()";

fn kill(pid: i32) {
    let status = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status();
    assert!(status.is_ok_and(|status| status.success()));
}

#[tokio::test]
async fn a_killed_kernel_is_replaced_and_the_model_is_told() {
    let Some(bench) = Bench::new(Language::Python) else { return };
    let pid = bench.pid(OWN_PID).await;
    kill(pid);
    until("it is dead", || !is_alive(pid)).await;
    let next = bench.run("'here'").await;
    assert_eq!(next.is_error, None);
    let said = text(&next);
    assert!(
        said.starts_with("[The Python kernel of earlier cells is gone: signal 9 ended it. A new one"),
        "{said}"
    );
    assert!(said.ends_with("\n\n'here'\n"), "{said}");
    assert!(next.details.unwrap()["notice"].is_string());
    assert_eq!(bench.text("1").await, "1", "it is told once");
}

#[tokio::test]
async fn a_cell_that_had_begun_is_not_repeated() {
    let Some(bench) = Bench::new(Language::Python) else { return };
    let code = "open('count', 'a').write('x')\nimport os, signal\nos.kill(os.getpid(), signal.SIGKILL)";
    let died = bench.run(code).await;
    assert_eq!(died.is_error, Some(true));
    assert!(text(&died).contains("signal 9 ended it. The cell was not repeated"), "{}", text(&died));
    assert_eq!(fs::read_to_string(bench.dir.path().join("count")).unwrap(), "x");
    assert!(bench.text("1").await.starts_with("[The Python kernel of earlier cells is gone: signal 9"));
}

#[tokio::test]
async fn a_timeout_interrupts_the_cell_and_ends_what_it_started() {
    let Some(bench) = Bench::new(Language::Python) else { return };
    let older =
        bench.pid("import subprocess\nserver = subprocess.Popen(['sleep', '1000'])\nserver.pid").await;
    let code = "open('pid', 'w').write(str(subprocess.Popen(['setsid', 'sleep', '1001']).pid))\nprint('before', flush=True)\nwhile True: pass";
    let late = bench.run_with(code, json!({"timeout": 1})).await;
    let said = text(&late);
    assert!(said.starts_with("before\n") && said.contains("KeyboardInterrupt"), "{said}");
    assert!(
        said.ends_with(
            "Cell timed out after 1 seconds: it was interrupted, and the kernel keeps its variables"
        ),
        "{said}"
    );
    let newer: i32 = fs::read_to_string(bench.dir.path().join("pid")).unwrap().parse().unwrap();
    until("what the cell started is dead", || !is_alive(newer)).await;
    assert!(is_alive(older), "an earlier cell started it");
    assert_eq!(bench.text("server.poll() is None").await, "True");
    bench.group.terminate(Duration::ZERO).await;
    until("nothing outlives the session", || !is_alive(older)).await;
}

#[tokio::test]
async fn an_abort_is_answered_at_once_and_a_deaf_kernel_is_killed() {
    let Some(bench) = Bench::new(Language::Python) else { return };
    let deaf = "import os, signal\nopen('pid', 'w').write(str(os.getpid()))\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nsignal.signal(signal.SIGTERM, \
                signal.SIG_IGN)\nprint('deaf', flush=True)\nwhile True: pass";
    let cancel = CancellationToken::new();
    let updates = bench.updates.clone();
    let said = move || {
        updates
            .lock()
            .unwrap()
            .iter()
            .any(|update| update.content.first().is_some_and(|block| block.as_text() == Some("deaf\n")))
    };
    let aborting = cancel.clone();
    let aborter = tokio::spawn(async move {
        until("the cell runs", said).await;
        aborting.cancel();
        Instant::now()
    });
    let result = bench.call(json!({"language": "py", "code": deaf, "timeout": 0}), &cancel).await.unwrap();
    let since = aborter.await.unwrap();
    assert!(since.elapsed() < Duration::from_millis(750), "{:?}", since.elapsed());
    assert_eq!((text(&result), result.is_error), ("deaf\n\n\nCell aborted", Some(true)));
    let next = bench.run("1 + 1").await;
    let said = text(&next);
    assert!(
        said.starts_with("[The Python kernel of earlier cells is gone: its cell could not be interrupted"),
        "{said}"
    );
    let pid: i32 = fs::read_to_string(bench.dir.path().join("pid")).unwrap().parse().unwrap();
    assert!(!is_alive(pid));
}

#[tokio::test]
async fn a_flood_is_cut_and_kept_in_a_file() {
    let Some(bench) = Bench::new(Language::Python) else { return };
    let flood = bench.run("for i in range(300000): print('line', i)").await;
    let said = text(&flood);
    assert!(
        said.len() < 60_000 && said.contains("line 299999\n\n[Showing lines "),
        "{}",
        &said[said.len() - 300..]
    );
    let details = flood.details.unwrap();
    let file = details["fullOutputPath"].as_str().expect("a file");
    assert!(fs::read_to_string(file).unwrap().starts_with("line 0\nline 1\n"));
    let endless = bench.run_with("while True: print('x' * 1000)", json!({"timeout": 1})).await;
    assert!(text(&endless).contains("Cell timed out after 1 seconds"));
    let images = "for i in range(200): display(b'\\x89PNG\\r\\n\\x1a\\n' + bytes(1000))";
    assert!(text(&bench.run(images).await).contains("[184 more images are left out: 16 are shown]"));
}

#[tokio::test]
async fn a_kernel_that_breaks_the_protocol_is_killed() {
    let Some(bench) = Bench::new(Language::Python) else { return };
    let broken = bench.run("import os; os.write(4, b'hello\\n'); import time; time.sleep(60)").await;
    assert!(text(&broken).contains("it broke the protocol, and was killed"), "{}", text(&broken));
}

#[tokio::test]
async fn memory_is_bounded() {
    let Some(bench) = Bench::with(Language::Python, |options| options.memory_bytes = 300 << 20) else {
        return;
    };
    bench.text("kept = 1").await;
    let failed = bench.run("data = bytearray(10 << 30)").await;
    assert!(text(&failed).contains("MemoryError"), "{}", text(&failed));
    assert_eq!(bench.text("kept").await, "1", "what the interpreter itself can refuse costs nothing");
    // Two that each keep to the limit of one process.
    let eater = "import subprocess, sys\neat = 'import time; data = b\"x\" * (220 << 20); time.sleep(100)'\n\
                 eaters = [subprocess.Popen([sys.executable, '-c', eat]) for _ in range(3)]\n[eater.wait() for eater in eaters]";
    let died = bench.run(eater).await;
    let said = text(&died);
    assert!(
        said.contains(
            "it used more than 314572800 bytes of memory, and was killed (setting eval.maxMemoryBytes)"
        ),
        "{said}"
    );
    assert!(
        bench.text("1").await.starts_with("[The Python kernel of earlier cells is gone: it used more than")
    );
}

#[tokio::test]
async fn an_idle_kernel_ends_and_the_next_call_starts_another() {
    let Some(bench) =
        Bench::with(Language::Python, |options| options.idle = Some(Duration::from_millis(150)))
    else {
        return;
    };
    let pid = bench.pid(OWN_PID).await;
    until("it has ended", || !is_alive(pid)).await;
    until("nothing of it is left", || bench.group.running() == 0).await;
    let next = bench.text("1").await;
    assert!(next.contains("it had nothing to do for") && next.contains("eval.idleMs"), "{next}");
}

#[tokio::test]
async fn the_pool_is_bounded_over_sessions() {
    let pool = KernelPool::new(TaskTracker::new());
    let bench = || Bench::in_pool(Language::Python, pool.clone(), |options| options.most = 2);
    let (Some(one), Some(two), Some(three)) = (bench(), bench(), bench()) else { return };
    let first = one.pid(OWN_PID).await;
    let second = two.pid(OWN_PID).await;
    one.text("1").await;
    let third = three.pid(OWN_PID).await;
    until("the one that was idle for longest made room", || !is_alive(second)).await;
    assert!(is_alive(first) && is_alive(third));
    let next = two.text("1").await;
    assert!(next.contains("it made room for the kernel of another session"), "{next}");
}

#[tokio::test]
async fn the_kernels_of_a_session_end_with_it() {
    let Some(bench) = Bench::new(Language::Python) else { return };
    let child = bench.pid("import subprocess; p = subprocess.Popen(['sleep', '1000']); p.pid").await;
    let kernel = bench.pid(OWN_PID).await;
    let Bench { tool, group, .. } = bench;
    drop(tool);
    until("the kernel has ended", || !is_alive(kernel) && !is_alive(child)).await;
    until("nothing is left in the group", || group.running() == 0).await;
}

#[tokio::test]
async fn an_interpreter_that_is_none_is_named() {
    let Some(bench) =
        Bench::with(Language::Python, |options| options.interpreters[0].1 = "/no/such/python".into())
    else {
        return;
    };
    let arguments = json!({"language": "py", "code": "1"});
    let error = bench.call(arguments, &CancellationToken::new()).await.unwrap_err();
    assert!(
        error.0.starts_with("The Python kernel could not be started by /no/such/python (setting eval.python): it exited with code 127"),
        "{error}"
    );
    assert_eq!(bench.group.running(), 0);
}

#[tokio::test]
async fn what_is_left_running_may_go_on_printing() {
    let Some(bench) = Bench::new(Language::Python) else { return };
    // Slowly, so that the ticks do not push the result out of what is kept.
    let ticks =
        "import subprocess\np = subprocess.Popen('while :; do echo tick; sleep 0.02; done', shell=True)";
    bench.text(ticks).await;
    // A cell may be done before the loop has begun.
    for _ in 0..10_000 {
        let seen = bench.run("2 + 2").await;
        assert!(text(&seen).contains("4\n"), "{seen:?}");
        if text(&seen).contains("tick\n") {
            return;
        }
    }
    panic!("a terminal would show it, too");
}
