//! Scenarios about subagents: from the call that starts one to its first request, memory of many, and their events for one watcher.

use std::{
    io::{BufRead, BufReader},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use agentd_e2e::{
    DEADLINE, Gate, Home, MockServer, Reply, Service, SocketClient, mock_server::Request, processes, sse,
};
use serde_json::{Value, json};

use crate::report::{Report, Scale, exact};

/// The text of a delta of a subagent.
const WORDS: &str = "a word or two ";

/// Times of the model server, by the subagents that it saw.
#[derive(Default)]
struct Clock {
    /// When the call that starts subagents was given to the daemon.
    called: Option<Instant>,
    /// The times from there to the first request of each.
    started: Vec<Duration>,
}

/// What a request says last.
fn last(request: &Request) -> &str {
    request.messages().last().and_then(|message| message["content"].as_str()).unwrap_or_default()
}

/// A model that starts as many subagents as the prompt says, and whose subagents answer as `child` says.
fn model(clock: &Arc<Mutex<Clock>>, child: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> MockServer {
    let clock = Arc::clone(clock);
    MockServer::choosing(move |request| {
        // No clock is poisoned halfway.
        let mut clock = clock.lock().unwrap_or_else(PoisonError::into_inner);
        if last(request).contains("<task>") {
            let called = clock.called.expect("a call");
            clock.started.push(called.elapsed());
            return child(request);
        }
        let Some(count) = last(request).strip_prefix("Start ").and_then(|count| count.parse::<usize>().ok())
        else {
            return Reply::stream(sse::answer("Ok."));
        };
        let tasks: Vec<Value> =
            (0..count).map(|number| json!({"task": format!("Do part {number}.")})).collect();
        let reply = Reply::stream(sse::calls(&[("t1", "task", json!({"tasks": tasks}))]));
        clock.called = Some(Instant::now());
        reply
    })
}

fn hand_in() -> String {
    sse::calls(&[("y1", "yield", json!({"data": "done"}))])
}

/// A client of a session that can start subagents without a limit.
fn session(home: &Home, service: &Service) -> SocketClient {
    let mut client = service.client();
    client.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}));
    client.done(json!({"type": "open_session", "cwd": home.project()}));
    client
}

fn home(server: &MockServer) -> Home {
    let home = Home::with_model(server);
    home.settings(&json!({"task": {"enabled": true, "maxConcurrency": 0}, "daemon": {"idleUnloadMs": 0}}));
    home
}

pub(crate) fn run(scale: Scale, report: &mut Report) {
    start(scale, report);
    memory(scale, report);
    events(scale, report);
}

/// One after the other, and many at once.
fn start(scale: Scale, report: &mut Report) {
    let clock = Arc::<Mutex<Clock>>::default();
    let server = model(&clock, |_| Reply::stream(hand_in()));
    let home = home(&server);
    let service = Service::start(&home, &[]);
    let mut client = session(&home, &service);
    let take = || std::mem::take(&mut clock.lock().unwrap_or_else(PoisonError::into_inner).started);
    client.prompt("Start 1");
    take();
    let count = scale.of(100, 5);
    let mut times: Vec<Duration> = (0..count)
        .flat_map(|_| {
            client.prompt("Start 1");
            take()
        })
        .collect();
    assert_eq!(times.len(), count, "a request of each");
    report.times("a subagent, call to its first request", &mut times, 95);
    let many = scale.of(100, 8);
    client.prompt(&format!("Start {many}"));
    let mut times = take();
    assert_eq!(times.len(), many, "a request of each");
    times.sort_unstable();
    report.time(&format!("{many} subagents of one call, to the first request of the last"), times[many - 1]);
    report.time(
        &format!("{many} subagents of one call, for each"),
        times[many - 1] / u32::try_from(many).expect("a small number"),
    );
}

/// While they wait for their model, and when they have ended and wait for a message.
fn memory(scale: Scale, report: &mut Report) {
    let gate = Gate::new();
    let waiting = gate.clone();
    let clock = Arc::<Mutex<Clock>>::default();
    let server = model(&clock, move |_| Reply::stream(hand_in()).gate_first(&waiting));
    let home = home(&server);
    let service = Service::start(&home, &[]);
    let (few, many) = (scale.of(10, 2), scale.of(100, 8));
    // Each part has a session of its own, so that those of the other are no part of it.
    let mut working = Vec::new();
    let mut usage = Vec::new();
    let mut asked = 0;
    for count in [few, many - few] {
        let mut client = session(&home, &service);
        client.send(&json!({"type": "prompt", "message": format!("Start {count}")}));
        asked += count + 1;
        let _ = server.wait_for_requests(asked);
        usage.push(processes::usage(service.id()).private);
        working.push(client);
    }
    let each =
        |before: u64, after: u64| exact(after.saturating_sub(before)) / exact((many - few) as u64) / 1024.0;
    report.figure("each subagent that waits for its model, private", each(usage[0], usage[1]), "KiB");
    // What a session of its own takes in the same state, with its client.
    let mut usage = Vec::new();
    for count in [few, many - few] {
        for _ in 0..count {
            let mut client = session(&home, &service);
            client.send(&json!({"type": "prompt", "message": "<task> of a session"}));
            working.push(client);
        }
        asked += count;
        let _ = server.wait_for_requests(asked);
        usage.push(processes::usage(service.id()).private);
    }
    report.figure("each session that waits for its model, private", each(usage[0], usage[1]), "KiB");
    gate.open();
    for client in &mut working {
        client.settled();
    }
    drop(working);
    // In a daemon of its own: what work has left behind is no part of it.
    drop(service);
    let service = Service::start(&home, &[]);
    let mut usage = Vec::new();
    for count in [few, many - few] {
        let mut client = session(&home, &service);
        client.prompt(&format!("Start {count}"));
        usage.push(processes::usage(service.id()).private);
    }
    report.figure("each subagent that has ended, in memory, private", each(usage[0], usage[1]), "KiB");
}

/// With a watcher of all events of subagents, and without.
fn events(scale: Scale, report: &mut Report) {
    let (children, deltas) = (scale.of(100, 5), scale.of(200, 20));
    let clock = Arc::<Mutex<Clock>>::default();
    let server = model(&clock, move |_| {
        let piece = sse::text(WORDS);
        Reply::stream("")
            .live(move |pieces| (0..deltas).try_for_each(|_| pieces.send(piece.as_bytes())))
            .then(hand_in())
    });
    let home = home(&server);
    let mut cpu = Vec::new();
    for level in ["off", "progress", "events"] {
        let service = Service::start(&home, &[]);
        let mut client = service.client();
        client.done(json!({"type": "open_session", "cwd": home.project()}));
        client.done(json!({"type": "set_subagent_subscription", "subscription": level}));
        let stream = client.stream();
        stream.set_read_timeout(Some(4 * DEADLINE)).expect("a time limit");
        let (before, begun) = (processes::usage(service.id()), Instant::now());
        client.send(&json!({"type": "prompt", "message": format!("Start {children}")}));
        let (mut lines, mut bytes, mut seen) = (0_u64, 0_u64, 0_usize);
        for line in BufReader::new(stream).lines() {
            let line = line.expect("agentd writes UTF-8");
            let event: Value = serde_json::from_str(&line).expect("a record");
            if event["type"].as_str().is_some_and(|kind| kind.starts_with("subagent_")) {
                (lines, bytes) = (lines + 1, bytes + line.len() as u64 + 1);
            }
            if event["payload"]["event"]["assistantMessageEvent"]["type"] == "text_delta" {
                seen += 1;
            }
            assert_ne!(event["type"], "lagged", "the watcher keeps up");
            if event["type"] == "agent_settled" {
                break;
            }
        }
        let (wall, after) = (begun.elapsed(), processes::usage(service.id()));
        if level == "events" {
            assert_eq!(seen, children * deltas, "every delta reached the watcher");
        }
        let name = format!("{children} subagents, {deltas} deltas each, subscription {level}");
        report.time(&format!("{name}: wall"), wall);
        let used = after.cpu.saturating_sub(before.cpu);
        report.time(&format!("{name}: daemon, CPU"), used);
        report.figure(&format!("{name}: lines"), exact(lines), "");
        report.bytes(&format!("{name}: bytes"), bytes);
        cpu.push(used);
    }
    let more = cpu[2].saturating_sub(cpu[0]).as_secs_f64() * 1e6;
    report.figure(
        "a delta of a subagent for the watcher, CPU",
        more / exact((children * deltas) as u64),
        "µs",
    );
}
