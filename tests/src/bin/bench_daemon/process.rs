//! Scenarios about the daemon's process: start, memory, the delay of a delta, and the floor: a program that writes as many
//! bytes to as many sockets out of one buffer, and does nothing else.

use std::{
    env,
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::net::{UnixListener, UnixStream},
    process::{Command, Stdio},
    sync::OnceLock,
    thread,
    time::{Duration, Instant},
};

use agentd_e2e::{
    DEADLINE, Daemon, Home, MockServer, Reply, Service, SocketClient, binaries, processes, sse,
};
use serde_json::{Value, json};

use crate::report::{Report, Scale, exact};

pub(crate) fn run_start(scale: Scale, report: &mut Report) {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let starts = scale.of(30, 3);
    let mut times: Vec<Duration> = (0..starts)
        .map(|_| {
            let begun = Instant::now();
            let mut daemon = Daemon::start(&home, &["--no-session"]);
            daemon.done(json!({"type": "get_state"}));
            // Taken before the end of the daemon, which takes time, too.
            begun.elapsed()
        })
        .collect();
    report.times("agentd --stdio, start to first answer", &mut times, 95);
    let mut times: Vec<Duration> = (0..starts)
        .map(|_| {
            let begun = Instant::now();
            let service = Service::start(&home, &[]);
            service.client().done(json!({"type": "daemon_status"}));
            begun.elapsed()
        })
        .collect();
    report.times("agentd serve, start to first answer", &mut times, 95);

    let service = Service::start(&home, &[]);
    let mut client = service.client();
    client.done(json!({"type": "open_session", "cwd": home.project(), "ephemeral": true}));
    let mut times: Vec<Duration> = (0..scale.of(300, 10))
        .map(|_| {
            let begun = Instant::now();
            client.prompt("Go.");
            begun.elapsed()
        })
        .collect();
    report.times("prompt to agent_settled over the socket", &mut times, 95);
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let mut times: Vec<Duration> = (0..scale.of(300, 10))
        .map(|_| {
            let begun = Instant::now();
            daemon.prompt("Go.");
            begun.elapsed()
        })
        .collect();
    report.times("prompt to agent_settled over stdio", &mut times, 95);
}

/// The idle time before a session is unloaded, where that is measured.
const IDLE: Duration = Duration::from_secs(2);

pub(crate) fn run_memory(scale: Scale, report: &mut Report) {
    let server = MockServer::always(Reply::stream(sse::answer("Hello.")));
    let home = Home::with_model(&server);
    // Nothing is unloaded during the measurement.
    home.settings(&json!({"daemon": {"idleUnloadMs": 0}}));
    let service = Service::start(&home, &[]);
    let mut client = service.client();
    let alone = show_memory(report, &service, "no session");

    let few = scale.of(100, 10);
    (0..few).for_each(|_| open_and_use(&mut client, &home));
    let with_few = show_memory(report, &service, &format!("{few} sessions"));
    let many = scale.of(1_000, 30);
    (few..many).for_each(|_| open_and_use(&mut client, &home));
    let with_many = show_memory(report, &service, &format!("{many} sessions"));
    // The first session also loads code and connects to the model, which is not its own cost.
    let each =
        |after: u64, before: u64, count: usize| exact(after.saturating_sub(before)) / exact(count as u64);
    let loaded = each(with_many.private, with_few.private, many - few);
    report.figure("each session in memory, private", loaded / 1024.0, "KiB");
    report.bytes("what the first sessions bring in, private", with_few.private.saturating_sub(alone.private));
    drop((client, service));

    let home = Home::with_model(&server);
    let idle = u64::try_from(IDLE.as_millis()).expect("a short time");
    home.settings(&json!({"daemon": {"idleUnloadMs": idle}}));
    let service = Service::start(&home, &[]);
    let mut client = service.client();
    (0..few).for_each(|_| open_and_use(&mut client, &home));
    wait_until_unloaded(&mut client, few);
    let with_few = show_memory(report, &service, &format!("{few} unloaded sessions"));
    (few..many).for_each(|_| open_and_use(&mut client, &home));
    wait_until_unloaded(&mut client, many);
    let with_many = show_memory(report, &service, &format!("{many} unloaded sessions"));
    let unloaded = each(with_many.private, with_few.private, many - few);
    report.figure("each unloaded session, private", unloaded / 1024.0, "KiB");
}

/// Opens a session, sends a prompt, and leaves.
fn open_and_use(client: &mut SocketClient, home: &Home) {
    let opened = client.done(json!({"type": "open_session", "cwd": home.project()}));
    client.prompt("Hello?");
    client.done(json!({"type": "detach_session", "sessionId": opened["sessionId"]}));
}

fn wait_until_unloaded(client: &mut SocketClient, count: usize) {
    let end = Instant::now() + IDLE + DEADLINE;
    loop {
        let status = client.done(json!({"type": "daemon_status"}));
        if status["restingSessions"].as_u64() >= Some(count as u64) && status["liveSessions"] == 0 {
            // What the sessions had goes back to the system a second later.
            thread::sleep(IDLE);
            return;
        }
        assert!(Instant::now() < end, "sessions are not unloaded: {status}");
        thread::sleep(Duration::from_millis(50));
    }
}

fn show_memory(report: &mut Report, service: &Service, what: &str) -> processes::Usage {
    let usage = processes::usage(service.id());
    report.bytes(&format!("{what}, RSS"), usage.resident);
    report.bytes(&format!("{what}, PSS"), usage.proportional);
    report.bytes(&format!("{what}, private"), usage.private);
    usage
}

/// The pause between deltas: each one finds the daemon waiting, as with a real model.
const PACE: Duration = Duration::from_millis(2);

pub(crate) fn run_latency(scale: Scale, report: &mut Report) {
    let deltas = scale.of(3_000, 100);
    let server = MockServer::always(
        Reply::stream("")
            .live(move |pieces| {
                for _ in 0..deltas {
                    thread::sleep(PACE);
                    pieces.send(sse::text(&format!("{} ", now().as_nanos())).as_bytes())?;
                }
                Ok(())
            })
            .then(sse::end("stop", (1, 0, 1))),
    );
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut client = service.client();
    client.done(json!({"type": "open_session", "cwd": home.project(), "ephemeral": true}));
    let stream = client.stream();
    client.send(&json!({"type": "prompt", "message": "Go."}));
    report.times("over the socket", &mut delays(BufReader::new(stream)), 99);

    let mut command = home.command(binaries::agentd());
    command.args(["--stdio", "--no-session"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("agentd starts");
    let (mut input, output) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
    writeln!(input, "{}", json!({"type": "prompt", "message": "Go."})).expect("agentd reads");
    report.times("over stdio", &mut delays(BufReader::new(output)), 99);
    drop(input);
    child.wait().expect("agentd ends");
}

/// The time since the first call.
fn now() -> Duration {
    static BEGUN: OnceLock<Instant> = OnceLock::new();
    BEGUN.get_or_init(Instant::now).elapsed()
}

/// Reads to the end of the run, and returns the age of each delta at its arrival.
fn delays(lines: impl BufRead) -> Vec<Duration> {
    let mut delays = Vec::new();
    for line in lines.lines() {
        let (line, came) = (line.expect("agentd writes UTF-8"), now());
        let line: Value = serde_json::from_str(&line).expect("a record");
        let delta = &line["assistantMessageEvent"];
        if delta["type"] == "text_delta" {
            let sent: u64 =
                delta["delta"].as_str().and_then(|text| text.trim().parse().ok()).expect("a time");
            delays.push(came.saturating_sub(Duration::from_nanos(sent)));
        }
        if line["type"] == "agent_settled" {
            return delays;
        }
    }
    panic!("agentd left before the end of the run");
}

/// The argument that makes this program the writer.
pub(crate) const FLOOR_COMMAND: &str = "write-the-floor";

/// The processor time of writing `bytes` to each of `clients`, `at_once` with each system call.
pub(crate) fn measure_floor(clients: usize, bytes: u64, at_once: u64) -> Duration {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("floor.sock");
    let listener = UnixListener::bind(&path).expect("a socket");
    let mut child = Command::new(env::current_exe().expect("this program"))
        .args([FLOOR_COMMAND, path.to_str().expect("a name")])
        .args([clients as u64, bytes, at_once].map(|number| number.to_string()))
        .stdout(Stdio::piped())
        .spawn()
        .expect("this program starts");
    let reading: Vec<_> = (0..clients)
        .map(|_| {
            let (mut stream, _) = listener.accept().expect("a connection");
            let reading = move || {
                let mut buffer = vec![0; 64 << 10];
                let mut read = 0;
                while let Ok(count @ 1..) = stream.read(&mut buffer) {
                    read += count as u64;
                }
                read
            };
            thread::Builder::new().stack_size(128 << 10).spawn(reading).expect("a thread")
        })
        .collect();
    let mut said = String::new();
    child.stdout.take().expect("a pipe").read_to_string(&mut said).expect("a number");
    assert!(child.wait().expect("an end").success());
    for reader in reading {
        assert_eq!(reader.join().expect("a reader"), bytes);
    }
    Duration::from_nanos(said.trim().parse().expect("nanoseconds"))
}

/// Writes: `SOCKET CLIENTS BYTES AT_ONCE`. Prints the processor time in nanoseconds.
pub(crate) fn write_floor(args: &[String]) {
    let number = |index: usize| args[index].parse::<usize>().expect("a number");
    let (clients, bytes, at_once) = (number(1), number(2), number(3).max(1));
    let mut streams: Vec<UnixStream> =
        (0..clients).map(|_| UnixStream::connect(&args[0]).expect("a connection")).collect();
    let buffer = vec![b'x'; at_once];
    let before = processes::usage(std::process::id()).cpu;
    let mut left = bytes;
    while left > 0 {
        let count = left.min(at_once);
        for stream in &mut streams {
            stream.write_all(&buffer[..count]).expect("a reader");
        }
        left -= count;
    }
    let took = processes::usage(std::process::id()).cpu.saturating_sub(before);
    writeln!(io::stdout(), "{}", took.as_nanos()).expect("a reader");
}
