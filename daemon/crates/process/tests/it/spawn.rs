//! What a started program finds, and what is said when it cannot start.

use agentd_process::{CommandSpec, ExitStatus, SpawnError};

use crate::fixture::{env, launcher, read_all, script, soon, until};

async fn run(command: CommandSpec) -> (String, ExitStatus) {
    let group = launcher().group();
    let mut process = soon(group.spawn(command)).await.expect("a process");
    let output = read_all(&mut process.output).await;
    (output, soon(process.wait()).await)
}

#[tokio::test]
async fn output_and_errors_arrive_in_order() {
    let (output, status) = run(script("for i in 1 2 3; do echo out$i; echo err$i >&2; done")).await;
    assert_eq!(output, "out1\nerr1\nout2\nerr2\nout3\nerr3\n");
    assert_eq!(status, ExitStatus::exited(0));
}

#[tokio::test]
async fn exit_codes_and_signals_are_told() {
    assert_eq!(run(script("exit 3")).await.1, ExitStatus::exited(3));
    assert_eq!(run(script("exit 255")).await.1, ExitStatus::exited(255));
    for (name, number) in [("TERM", 15), ("KILL", 9), ("SEGV", 11), ("PIPE", 13)] {
        let (_, status) = run(script(&format!("ulimit -c 0; kill -{name} $$"))).await;
        assert_eq!(status, ExitStatus { code: 128 + number, signal: Some(number) }, "{name}");
    }
}

#[tokio::test]
async fn the_environment_is_what_was_given() {
    let mut command = script("env");
    command.program = "/usr/bin/env".into();
    command.args = Vec::new();
    command.env =
        vec![("A".into(), "first".into()), ("B".into(), "two words".into()), ("A".into(), "last".into())];
    let output = run(command).await.0;
    let [a, owner, b] = output.lines().collect::<Vec<_>>()[..] else { panic!("three variables: {output}") };
    assert_eq!((a, b), ("A=last", "B=two words"));
    let mark = owner.strip_prefix("AGENTD_OWNER=").expect("whose it is");
    assert!(mark.len() == 16 && mark.bytes().all(|digit| digit.is_ascii_hexdigit()), "{mark}");
}

#[tokio::test]
async fn the_directory_is_what_was_given() {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path().canonicalize().expect("its real path");
    let mut command = script("pwd -P");
    command.cwd = dir.clone();
    assert_eq!(run(command).await.0, format!("{}\n", dir.display()));
}

#[tokio::test]
async fn a_program_is_found_on_the_path_it_is_given() {
    let mut command = script("echo found");
    command.program = "sh".into();
    assert_eq!(run(command).await.0, "found\n");
}

#[tokio::test]
async fn only_the_three_standard_descriptors_are_open() {
    // `ls` itself opens the folder that it lists.
    let (output, _) =
        run(script("ls -l /proc/self/fd | sed -n 's/.* \\([0-9]*\\) -> \\(.*\\)/\\1 \\2/p'")).await;
    let lines: Vec<_> = output.lines().collect();
    assert_eq!(lines.len(), 4, "{output}");
    assert_eq!(lines[0], "0 /dev/null");
    assert!(lines[1].starts_with("1 pipe:") && lines[2].starts_with("2 pipe:"), "{output}");
    assert!(lines[3].ends_with("/fd"), "{output}");
}

#[tokio::test]
async fn signals_have_their_default_effect_and_none_is_blocked() {
    let (output, _) = run(script("grep -E '^Sig(Blk|Ign)' /proc/self/status")).await;
    for line in output.lines() {
        let bits = line.split_once(":\t").expect("a field").1;
        // The C library keeps signals 32 and 33 to itself.
        let bits = u64::from_str_radix(bits, 16).map(|bits| bits & !(3 << 31));
        assert_eq!(bits, Ok(0), "{output}");
    }
    assert_eq!(output.lines().count(), 2, "{output}");
}

#[tokio::test]
async fn the_shell_leads_a_session_of_its_own() {
    let (output, _) = run(script("echo $$; cut -d' ' -f6 /proc/$$/stat")).await;
    let (pid, session) = output.trim().split_once('\n').expect("two lines");
    assert_eq!(pid, session);
}

#[tokio::test]
async fn a_long_command_and_environment_arrive_whole() {
    let text = "x".repeat(100_000);
    let mut command = script(&format!("printf %s {text} | wc -c; printf %s \"$LONG\" | wc -c; env | wc -l"));
    command.env.push(("LONG".into(), text.into()));
    command.env.extend((0..5000).map(|number| (format!("N{number}").into(), "value".into())));
    let (output, _) = run(command).await;
    assert_eq!(output.split_whitespace().take(2).collect::<Vec<_>>(), ["100000", "100000"]);
    assert!(
        output.lines().nth(2).is_some_and(|count| count.trim().parse::<u32>().unwrap() > 5000),
        "{output}"
    );
}

#[tokio::test]
async fn a_command_too_long_for_the_system_is_refused_by_it() {
    let group = launcher().group();
    let error = soon(group.spawn(script(&"x".repeat(3_000_000)))).await.expect_err("too long");
    assert!(
        matches!(&error, SpawnError::Program { source, .. } if source.raw_os_error() == Some(libc::E2BIG)),
        "{error}"
    );
    assert_eq!(group.running(), 0, "nothing stays behind");
}

#[tokio::test]
async fn a_missing_program_and_a_missing_directory_are_told_apart() {
    let group = launcher().group();
    let missing = CommandSpec { program: "/no/such/shell".into(), ..script("") };
    let error = soon(group.spawn(missing)).await.expect_err("no such program");
    assert!(
        matches!(&error, SpawnError::Program { source, .. } if source.kind() == std::io::ErrorKind::NotFound)
    );
    assert_eq!(error.to_string(), "cannot execute /no/such/shell: No such file or directory (os error 2)");

    let nowhere = CommandSpec { cwd: "/no/such/folder".into(), ..script("") };
    let error = soon(group.spawn(nowhere)).await.expect_err("no such folder");
    assert!(
        matches!(&error, SpawnError::WorkingDirectory { path, .. } if path.to_str() == Some("/no/such/folder"))
    );
}

#[tokio::test]
async fn a_missing_guard_is_told() {
    let launcher = agentd_process::Launcher::new(agentd_process::GuardCommand {
        program: "/no/such/guard".into(),
        args: Vec::new(),
    });
    let error = soon(launcher.group().spawn(script("true"))).await.expect_err("no guard");
    assert!(matches!(error, SpawnError::Guard { .. }), "{error}");
}

#[tokio::test]
async fn a_program_that_is_no_guard_is_told() {
    let launcher = agentd_process::Launcher::new(agentd_process::GuardCommand {
        program: "/bin/true".into(),
        args: Vec::new(),
    });
    let error = soon(launcher.group().spawn(script("true"))).await.expect_err("no guard");
    assert!(matches!(error, SpawnError::Guard { .. } | SpawnError::GuardLost), "{error}");
}

#[tokio::test]
async fn many_commands_run_beside_each_other() {
    let group = launcher().group();
    let runs = (0..50).map(|number| {
        let group = group.clone();
        async move {
            let mut process =
                group.spawn(script(&format!("echo {number}; exit {number}"))).await.expect("a process");
            let output = read_all(&mut process.output).await;
            (output, process.wait().await.code)
        }
    });
    let mut tasks = tokio::task::JoinSet::new();
    runs.for_each(|run| drop(tasks.spawn(run)));
    let mut seen = soon(tasks.join_all()).await;
    seen.sort_by_key(|(_, code)| *code);
    let expected: Vec<_> = (0..50).map(|number| (format!("{number}\n"), number)).collect();
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_start_that_is_given_up_leaves_nothing() {
    let dir = tempfile::tempdir().expect("a folder");
    let group = launcher().group();
    // The first start brings up the guard, which takes longer.
    soon(soon(group.spawn(script("true"))).await.expect("a process").wait()).await;
    // Large enough not to fit the socket at once.
    let mut command = script(&format!("touch {}/$$; exec sleep 1000", dir.path().display()));
    command.env.extend((0..400).map(|number| (format!("N{number}").into(), "v".repeat(2000).into())));
    for polls in 1..40 {
        let mut start = Box::pin(group.spawn(command.clone()));
        let mut polled = 0;
        let given_up = std::future::poll_fn(|context| {
            polled += 1;
            match start.as_mut().poll(context) {
                std::task::Poll::Pending if polled < polls => std::task::Poll::Pending,
                _ => std::task::Poll::Ready(()),
            }
        });
        soon(given_up).await;
        drop(start);
    }
    until("nothing is left", || group.running() == 0).await;
}

#[test]
fn no_secret_is_in_the_debug_form() {
    let mut command = script("curl -H secret-header");
    command.env = env();
    command.env.push(("KEY".into(), "secret-key".into()));
    assert!(!format!("{command:?}").contains("secret"));
}
