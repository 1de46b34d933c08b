//! When a shell command ends.

use std::time::Duration;

use agentd_process::{ShellError, ShellOutcome, ShellRun, StopCause};

use crate::fixture::{freeze, is_alive, launcher, shell, soon};

/// Runs to the end; returns the output and how it ended.
async fn finish(mut run: ShellRun) -> (String, ShellOutcome) {
    let mut output = Vec::new();
    while let Some(chunk) = soon(run.next()).await {
        output.extend_from_slice(chunk);
    }
    (String::from_utf8(output).expect("UTF-8"), run.finish())
}

#[tokio::test]
async fn it_ends_when_the_shell_exits() {
    let group = launcher().group();
    let run = soon(ShellRun::start(&group, shell("echo hi; exit 3"))).await.expect("a run");
    let (output, outcome) = finish(run).await;
    assert_eq!(output, "hi\n");
    assert_eq!((outcome.exit.map(|exit| exit.code), outcome.stopped), (Some(3), None));
    assert!(outcome.wall_time < Duration::from_secs(10));
}

#[tokio::test]
async fn a_silent_background_process_is_not_waited_for() {
    let group = launcher().group();
    let run = soon(ShellRun::start(&group, shell("sleep 1000 & echo $!"))).await.expect("a run");
    let (output, outcome) = finish(run).await;
    assert_eq!((outcome.exit.map(|exit| exit.code), outcome.stopped), (Some(0), None));
    assert!(is_alive(output.trim().parse().expect("an id")), "it goes on");
    assert_eq!(group.running(), 1);
    soon(group.terminate(Duration::from_secs(10))).await;
    assert!(!is_alive(output.trim().parse().expect("an id")));
}

#[tokio::test]
async fn a_background_process_that_goes_on_writing_is_waited_for_and_then_may_go_on() {
    let group = launcher().group();
    let dir = tempfile::tempdir().expect("a folder");
    let script = "(echo 0; for i in 1 2 3 4; do while [ ! -e $i ]; do sleep 0.01; done; echo $i; done; : > 5) & exit 0";
    let mut command = shell(script);
    command.cwd = dir.path().into();
    let mut run = soon(ShellRun::start(&group, command)).await.expect("a run");
    let clock = freeze();
    assert_eq!(run.next().await, Some(&b"0\n"[..]));
    for line in ["1", "2", "3"] {
        // Not silent for long enough, again and again.
        tokio::time::advance(Duration::from_millis(99)).await;
        std::fs::write(dir.path().join(line), "").expect("a file");
        assert_eq!(run.next().await, Some(format!("{line}\n").as_bytes()));
    }
    drop(clock);
    assert_eq!(run.next().await, None);
    assert_eq!(run.finish().stopped, None);
    tokio::time::resume();
    std::fs::write(dir.path().join("4"), "").expect("a file");
    let done = dir.path().join("5");
    crate::fixture::until("it survives its late line", || done.exists()).await;
}

#[tokio::test]
async fn a_slow_reader_loses_nothing() {
    let group = launcher().group();
    let dir = tempfile::tempdir().expect("a folder");
    let script =
        "(echo one; while [ ! -e two ]; do sleep 0.01; done; echo two; : > written; sleep 1000) & exit 0";
    let mut command = shell(script);
    command.cwd = dir.path().into();
    let mut run = soon(ShellRun::start(&group, command)).await.expect("a run");
    assert_eq!(soon(run.next()).await, Some(&b"one\n"[..]));
    // Comes back only after more time than the silence that ends a command; there was no silence.
    let back = tokio::time::Instant::now() + Duration::from_millis(150);
    std::fs::write(dir.path().join("two"), "").expect("a file");
    let written = dir.path().join("written");
    while !written.exists() || tokio::time::Instant::now() < back {
        // Blocks the whole runtime, which therefore hears nothing of the pipe.
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(soon(run.next()).await, Some(&b"two\n"[..]));
    assert_eq!(soon(run.next()).await, None);
}

#[tokio::test]
async fn a_closed_output_does_not_end_it() {
    let group = launcher().group();
    let run = soon(ShellRun::start(&group, shell("exec >&- 2>&-; sleep 0.3; exit 5"))).await.expect("a run");
    let (output, outcome) = finish(run).await;
    assert_eq!((output.as_str(), outcome.exit.map(|exit| exit.code)), ("", Some(5)));
}

#[tokio::test]
async fn its_time_can_be_up() {
    let group = launcher().group();
    let mut command = shell("echo before; sleep 1000 & setsid sleep 1000 & wait");
    command.timeout = Some(Duration::from_millis(300));
    let run = soon(ShellRun::start(&group, command)).await.expect("a run");
    let (output, outcome) = finish(run).await;
    assert_eq!(output, "before\n");
    assert_eq!(outcome.stopped, Some(StopCause::TimedOut));
    assert_eq!(outcome.shell_exited_after, None);
    assert!(outcome.wall_time >= Duration::from_millis(300));
    crate::fixture::until("nothing is left", || group.running() == 0).await;
}

#[tokio::test]
async fn writers_in_the_background_can_use_up_its_time() {
    let group = launcher().group();
    let mut command = shell("yes & exit 6");
    command.timeout = Some(Duration::from_secs(3));
    let mut run = soon(ShellRun::start(&group, command)).await.expect("a run");
    let _clock = freeze();
    tokio::time::advance(Duration::from_secs(1)).await;
    while run.shell_exit().is_none() {
        assert!(run.next().await.is_some());
    }
    tokio::time::advance(Duration::from_secs(3)).await;
    while run.next().await.is_some() {}
    let outcome = run.finish();
    assert_eq!(outcome.stopped, Some(StopCause::TimedOut));
    assert_eq!(outcome.exit.map(|exit| exit.code), Some(6));
    let after = outcome.shell_exited_after.expect("the time of its exit").as_secs_f64();
    assert!((1.0..3.0).contains(&after), "{after}");
}

#[tokio::test]
async fn a_flood_can_be_aborted_at_once() {
    let group = launcher().group();
    let command = shell("yes & yes");
    let cancel = command.cancel.clone();
    let mut run = soon(ShellRun::start(&group, command)).await.expect("a run");
    for _ in 0..20 {
        assert!(soon(run.next()).await.is_some());
    }
    let aborted = tokio::time::Instant::now();
    cancel.cancel();
    while soon(run.next()).await.is_some() {}
    let outcome = run.finish();
    assert_eq!(outcome.stopped, Some(StopCause::Aborted));
    assert_eq!(outcome.exit.map(|exit| exit.code), Some(137));
    assert!(aborted.elapsed() < Duration::from_secs(10), "took {:?}", aborted.elapsed());
    crate::fixture::until("nothing is left", || group.running() == 0).await;
}

#[tokio::test]
async fn a_flood_does_not_starve_others_on_the_same_thread() {
    let group = launcher().group();
    let command = shell("yes");
    let cancel = command.cancel.clone();
    let run = soon(ShellRun::start(&group, command)).await.expect("a run");
    let flood = tokio::spawn(async move {
        let mut run = run;
        while run.next().await.is_some() {}
        run.finish()
    });
    for _ in 0..20 {
        let other = soon(ShellRun::start(&group, shell("echo other"))).await.expect("a run");
        assert_eq!(finish(other).await.0, "other\n");
    }
    cancel.cancel();
    assert_eq!(soon(flood).await.expect("the flood's end").stopped, Some(StopCause::Aborted));
}

#[tokio::test]
async fn a_token_that_fired_before_stops_it_too() {
    let group = launcher().group();
    let command = shell("sleep 1000");
    command.cancel.cancel();
    let run = soon(ShellRun::start(&group, command)).await.expect("a run");
    assert_eq!(finish(run).await.1.stopped, Some(StopCause::Aborted));
}

#[tokio::test]
async fn asking_for_output_can_be_given_up_at_any_time() {
    let group = launcher().group();
    let mut run = soon(ShellRun::start(&group, shell("for i in $(seq 300); do echo $i; sleep 0.001; done")))
        .await
        .expect("a run");
    let mut output = Vec::new();
    loop {
        tokio::select! {
            biased;
            chunk = run.next() => match chunk {
                Some(chunk) => output.extend_from_slice(chunk),
                None => break,
            },
            () = tokio::time::sleep(Duration::from_micros(300)) => {}
        }
    }
    let all: String = (1..=300).map(|number| format!("{number}\n")).collect();
    assert_eq!(String::from_utf8(output).expect("UTF-8"), all);
}

#[tokio::test]
async fn a_missing_directory_is_told_in_its_own_words() {
    let group = launcher().group();
    let mut command = shell("true");
    command.cwd = "/no/such/folder".into();
    let error = soon(ShellRun::start(&group, command)).await.expect_err("no such folder");
    assert!(matches!(error, ShellError::WorkingDirectoryMissing(_)));
    assert_eq!(
        error.to_string(),
        "Working directory does not exist: /no/such/folder\nCannot execute bash commands."
    );
}
