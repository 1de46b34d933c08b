//! What commands read from and write to: pipes and terminals.

use agentd_process::{CommandSpec, CommandStreams, Process, ShellRun, TerminalSize};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::fixture::{is_alive, launcher, read_all, script, shell, soon, until_dead};

async fn start(streams: CommandStreams, text: &str) -> Process {
    start_command(CommandSpec { streams, ..script(text) }).await
}

async fn start_command(command: CommandSpec) -> Process {
    soon(launcher().group().spawn(command)).await.expect("a process")
}

fn terminal() -> CommandStreams {
    CommandStreams::Terminal(TerminalSize::default())
}

/// Reads until `what` was written.
async fn read_until(process: &mut Process, what: &str) -> String {
    let mut text = Vec::new();
    while !text.ends_with(what.as_bytes()) {
        let byte = soon(process.output.read_u8()).await;
        text.push(byte.unwrap_or_else(|error| panic!("{error} after {}", String::from_utf8_lossy(&text))));
    }
    String::from_utf8(text).expect("UTF-8")
}

#[tokio::test]
async fn a_command_reads_what_it_is_given_until_its_end() {
    let mut process = start(CommandStreams::InputOutput, "cat; echo end >&2").await;
    let mut input = process.take_input().expect("an input");
    assert!(process.take_input().is_none(), "there is only one");
    soon(input.write_all(b"one\ntwo")).await.expect("room");
    assert_eq!(read_until(&mut process, "two").await, "one\ntwo");
    soon(input.shutdown()).await.expect("an end");
    assert_eq!(read_all(&mut process.output).await, "end\n");
    let error = soon(input.write_all(b"more")).await.expect_err("it is closed");
    assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
}

#[tokio::test]
async fn dropping_the_input_ends_it() {
    let mut process = start(CommandStreams::InputOutput, "cat; echo end").await;
    drop(process.take_input());
    assert_eq!(read_all(&mut process.output).await, "end\n");
}

#[tokio::test]
async fn a_command_that_does_not_read_holds_its_writer_up() {
    let mut process = start(CommandStreams::InputOutput, "read go < /proc/self/fd/0; cat | wc -c").await;
    let mut input = process.take_input().expect("an input");
    soon(input.write_all(b"\n")).await.expect("room");
    let writer = tokio::spawn(async move {
        input.write_all(&vec![b'x'; 1_000_000]).await?;
        input.shutdown().await
    });
    assert_eq!(read_all(&mut process.output).await.trim(), "1000000");
    soon(writer).await.expect("the writer").expect("all of it");
}

#[tokio::test]
async fn writing_to_a_command_that_has_ended_fails() {
    for streams in [CommandStreams::InputOutput, terminal()] {
        let mut process = start(streams, "exit 0").await;
        let mut input = process.take_input().expect("an input");
        read_all(&mut process.output).await;
        let error = soon(async {
            loop {
                if let Err(error) = input.write_all(&[b'\n'; 1000]).await {
                    return error;
                }
            }
        });
        assert_eq!(error.await.kind(), std::io::ErrorKind::BrokenPipe, "{streams:?}");
    }
}

#[tokio::test]
async fn errors_may_have_a_pipe_of_their_own() {
    let mut process = start(CommandStreams::Separate, "cat >&2; echo out; ls -l /proc/self/fd | wc -l").await;
    let mut input = process.take_input().expect("an input");
    soon(input.write_all(b"in")).await.expect("room");
    drop(input);
    let mut errors = process.errors.take().expect("a pipe for errors");
    assert_eq!(read_all(&mut errors).await, "in");
    // Three streams, the folder that `ls` lists, and its heading.
    assert_eq!(read_all(&mut process.output).await, "out\n5\n");
}

#[tokio::test]
async fn without_an_input_there_is_nothing_to_read() {
    let mut process = start(CommandStreams::Output, "cat; echo end").await;
    assert!(process.take_input().is_none());
    assert_eq!(
        process.resize(TerminalSize::default()).expect_err("no terminal").kind(),
        std::io::ErrorKind::Unsupported
    );
    assert_eq!(read_all(&mut process.output).await, "end\n");
}

#[tokio::test]
async fn a_terminal_is_all_that_a_command_has() {
    let text = "test -t 0 && test -t 1 && test -t 2 && echo all; stty size; tty; ls /proc/self/fd | wc -l; \
        cut -d' ' -f6,7,8 /proc/$$/stat; echo $$; sh -c 'echo direct > /dev/tty'";
    let size = TerminalSize { rows: 33, cols: 111 };
    let mut process = start(CommandStreams::Terminal(size), text).await;
    let output = read_all(&mut process.output).await;
    let lines: Vec<&str> = output.split("\r\n").collect();
    assert_eq!(lines[..2], ["all", "33 111"], "{output}");
    assert!(lines[2].starts_with("/dev/pts/"), "{output}");
    assert_eq!(lines[3], "4", "three streams, and the folder that is listed");
    let [session, terminal, foreground] = lines[4].split(' ').collect::<Vec<_>>()[..] else {
        panic!("three numbers: {output}");
    };
    assert_eq!((session, foreground), (lines[5], lines[5]), "the shell leads the session, in the foreground");
    assert_ne!(terminal, "0", "the session has a terminal");
    assert_eq!(lines[6..], ["direct", ""]);
}

#[tokio::test]
async fn what_is_typed_reaches_the_command_line_by_line() {
    let mut process =
        start(terminal(), "stty -echo; echo ready; read a; echo \"got $a\"; cat; echo end").await;
    let mut input = process.take_input().expect("an input");
    read_until(&mut process, "ready\r\n").await;
    soon(input.write_all("k\u{e9}y\x7fes\n".as_bytes())).await.expect("room");
    assert_eq!(read_until(&mut process, "\r\n").await, "got k\u{e9}es\r\n", "a character was erased");
    // Not at the start of a line: the line is handed over first.
    soon(input.write_all(b"half")).await.expect("room");
    soon(input.shutdown()).await.expect("an end");
    assert_eq!(read_all(&mut process.output).await, "halfend\r\n");
}

#[tokio::test]
async fn an_end_reaches_a_program_that_chose_another_key() {
    let mut process = start(terminal(), "stty -echo eof ^A; echo ready; cat; echo end").await;
    let mut input = process.take_input().expect("an input");
    read_until(&mut process, "ready\r\n").await;
    soon(input.shutdown()).await.expect("an end");
    assert_eq!(read_all(&mut process.output).await, "end\r\n");
}

#[tokio::test]
async fn keys_of_the_terminal_are_signals() {
    let mut process =
        start(terminal(), "trap 'echo interrupted; exit 5' INT; echo ready; while :; do sleep 0.05; done")
            .await;
    let mut input = process.take_input().expect("an input");
    read_until(&mut process, "ready\r\n").await;
    soon(input.write_all(b"\x03")).await.expect("room");
    let output = read_all(&mut process.output).await;
    assert!(output.ends_with("interrupted\r\n"), "{output}");
    assert_eq!(soon(process.wait()).await.code, 5);
}

#[tokio::test]
async fn a_command_learns_of_a_new_size() {
    let mut process =
        start(terminal(), "trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.05; done").await;
    read_until(&mut process, "ready\r\n").await;
    process.resize(TerminalSize { rows: 10, cols: 20 }).expect("another size");
    assert_eq!(read_all(&mut process.output).await, "10 20\r\n");
}

#[tokio::test]
async fn queries_to_the_terminal_are_answered() {
    let ask = "stty raw -echo; printf '\\033[999;999H\\033[6n'; answer=$(dd bs=1 count=8 2> /dev/null); \
        printf '\\033[c'; more=$(dd bs=1 count=9 2> /dev/null); stty sane; echo \"$answer $more\" | tr '\\033' E";
    let mut process = start(terminal(), ask).await;
    let output = read_all(&mut process.output).await;
    assert!(output.ends_with("E[24;80R E[?62;22c\r\n"), "{output:?}");
}

#[tokio::test]
async fn much_output_of_a_terminal_arrives_whole() {
    let mut process = start(terminal(), "stty raw; head -c 3000000 /dev/zero").await;
    let mut bytes = Vec::new();
    soon(process.output.read_to_end(&mut bytes)).await.expect("reading");
    assert_eq!((bytes.len(), bytes.iter().all(|byte| *byte == 0)), (3_000_000, true));
    assert!(soon(process.wait()).await.success());
}

#[tokio::test]
async fn what_runs_on_a_terminal_ends_with_its_command() {
    let dir = tempfile::tempdir().expect("a folder");
    let text = crate::fixture::escape_artists(dir.path()) + "wait";
    let mut process = start(terminal(), &text).await;
    let output = read_until(&mut process, "ready\r\n").await;
    let pids = output.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    soon(process.kill()).await;
    until_dead(&pids).await;
}

#[tokio::test]
async fn a_shell_run_has_the_same_streams() {
    let group = launcher().group();
    let mut run = ShellRun::start(
        &group,
        agentd_process::ShellCommand { streams: terminal(), ..shell("read a; echo \"$a!\"; stty size") },
    )
    .await
    .expect("a shell");
    run.resize(TerminalSize { rows: 5, cols: 6 }).expect("another size");
    let mut input = run.take_input().expect("an input");
    soon(input.write_all(b"typed\n")).await.expect("room");
    let mut output = Vec::new();
    while let Some(chunk) = soon(run.next()).await {
        output.extend_from_slice(chunk);
    }
    assert_eq!(String::from_utf8_lossy(&output), "typed\r\ntyped!\r\n5 6\r\n");
    assert!(run.finish().exit.is_some_and(agentd_process::ExitStatus::success));
}

#[tokio::test]
async fn what_was_left_on_a_terminal_goes_on() {
    let group = launcher().group();
    let text = "setsid sh -c 'echo $$; echo ready; sleep 0.3; echo late; exec sleep 1000' & sleep 0.1";
    let command = CommandSpec { streams: terminal(), ..script(text) };
    let mut process = soon(group.spawn(command)).await.expect("a process");
    let output = read_until(&mut process, "ready\r\n").await;
    let pids = output.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    soon(process.wait()).await;
    assert_eq!(read_until(&mut process, "late\r\n").await, "late\r\n");
    let pids: std::collections::BTreeSet<i32> = pids;
    assert!(pids.iter().all(|pid| is_alive(*pid)), "it is not hung up");
    soon(process.kill()).await;
    until_dead(&pids).await;
}
