//! Measures what a started process costs: `cargo run --release -p agentd-process --example measure`.

use std::{
    env, fs,
    io::{self, Write as _},
    process::ExitCode,
    time::{Duration, Instant},
};

use agentd_process::{
    CommandSpec, CommandStreams, GuardCommand, Launcher, ShellCommand, ShellRun, run_guard,
};
use tokio_util::sync::CancellationToken;

/// Commands that are started one after the other.
const ROUNDS: usize = 500;

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    if env::args().nth(1).as_deref() == Some("guard") {
        return Ok(run_guard());
    }
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?.block_on(measure())?;
    Ok(ExitCode::SUCCESS)
}

async fn measure() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = io::stdout();
    let launcher = Launcher::new(GuardCommand::this_program());
    let group = launcher.group();
    let environment = vec![("PATH".into(), "/usr/bin:/bin".into())];

    let start = Instant::now();
    let process = group.spawn(script("exit 0", &environment)).await?;
    writeln!(out, "first start, with the guard's: {:?}", start.elapsed())?;
    process.wait().await;

    let (mut starts, mut ends) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let process = group.spawn(script("exit 0", &environment)).await?;
        starts.push(start.elapsed());
        process.wait().await;
        ends.push(start.elapsed());
    }
    report(&mut out, "spawn to started", starts)?;
    report(&mut out, "spawn to exit of `sh -c 'exit 0'`", ends)?;

    let mut plain = Vec::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        std::process::Command::new("/bin/sh").args(["-c", "exit 0"]).status()?;
        plain.push(start.elapsed());
    }
    report(&mut out, "the same by std::process, from this process", plain)?;

    let idle = group.spawn(script("echo; sleep 1000", &environment)).await?;
    let guard = launcher.guard_pid().await.ok_or("no guard")?;
    memory(&mut out, "guard", guard)?;
    let stat = fs::read_to_string(format!("/proc/{}/stat", idle.pid().ok_or("no process")?))?;
    let scope =
        stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)).ok_or("no parent")?;
    memory(&mut out, "scope", scope.parse()?)?;

    let command = ShellCommand {
        shell: "/bin/sh".into(),
        command: "head -c 1000000000 /dev/zero".into(),
        cwd: "/".into(),
        env: environment,
        timeout: None,
        cancel: CancellationToken::new(),
        streams: CommandStreams::Output,
        sandbox: None,
    };
    let start = Instant::now();
    let mut run = ShellRun::start(&group, command).await?;
    let mut bytes = 0;
    while let Some(chunk) = run.next().await {
        bytes += chunk.len();
    }
    writeln!(out, "output: {:.0} MB/s", bytes as f64 / 1e6 / start.elapsed().as_secs_f64())?;
    Ok(())
}

fn script(text: &str, environment: &[(std::ffi::OsString, std::ffi::OsString)]) -> CommandSpec {
    CommandSpec {
        program: "/bin/sh".into(),
        args: vec!["-c".into(), text.into()],
        cwd: "/".into(),
        env: environment.to_vec(),
        streams: CommandStreams::Output,
        sandbox: None,
    }
}

fn report(out: &mut impl io::Write, what: &str, mut times: Vec<Duration>) -> io::Result<()> {
    times.sort();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100];
    writeln!(out, "{what}: median {:?}, 99th percentile {:?}", at(50), at(99))
}

fn memory(out: &mut impl io::Write, what: &str, pid: u32) -> io::Result<()> {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    let fields = ["Rss:", "Pss:", "Private_Dirty:"];
    let lines = rollup.lines().filter(|line| fields.iter().any(|field| line.starts_with(field)));
    let values: Vec<String> =
        lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    writeln!(out, "{what}: {}", values.join(", "))
}
