//! How long a delta is on its way through the daemon: the model server writes the time into each, and the client, which is
//! this same process, subtracts.

use std::{
    io::{BufRead, BufReader, Write},
    process::Stdio,
    sync::OnceLock,
    thread,
    time::{Duration, Instant},
};

use agentd_e2e::{Home, MockServer, Reply, Service, binaries, sse};
use serde_json::{Value, json};

use crate::{Scale, report::Report};

/// A pause between deltas: each finds the daemon waiting, as with a real model.
const PACE: Duration = Duration::from_millis(2);

pub(crate) fn run(scale: Scale, report: &mut Report) {
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

/// The time since the first look at the clock.
fn now() -> Duration {
    static BEGUN: OnceLock<Instant> = OnceLock::new();
    BEGUN.get_or_init(Instant::now).elapsed()
}

/// Reads to the end of the run, and gives each delta's age when it came.
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
