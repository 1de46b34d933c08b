//! Scenarios with clients that follow sessions: joining a long session, one answer for many clients beside the floor, and
//! many sessions at work at once.

use std::{
    fmt::Write,
    fs,
    io::Read,
    net::Shutdown,
    os::unix::net::UnixStream,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use agentd_e2e::{DEADLINE, Gate, Home, MockServer, Reply, Service, processes, sse};
use serde_json::{Value, json};

use crate::{
    process,
    report::{Report, Scale},
};

const ENTRIES: usize = 10_000;

pub(crate) fn attach_to_long_session(scale: Scale, report: &mut Report) {
    let gate = Gate::new();
    let server =
        MockServer::start([Reply::stream(sse::text("Half")).gate(&gate).then(sse::answer(" and half."))]);
    let home = Home::with_model(&server);
    home.write("long.jsonl", &long_session(&home, ENTRIES));
    let service = Service::start(&home, &[]);
    let mut host = service.client();
    let begun = Instant::now();
    let path = home.project().join("long.jsonl");
    let opened = host.done(json!({"type": "open_session", "cwd": home.project(), "path": path}));
    report.time(&format!("opening a file of {ENTRIES} entries"), begun.elapsed());
    let id = opened["sessionId"].clone();

    let attach = json!({"type": "attach_session", "sessionId": id});
    let mut measure = |name: &str| {
        let mut times: Vec<Duration> = (0..scale.of(500, 20))
            .map(|_| {
                let mut client = service.client();
                client.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}));
                let begun = Instant::now();
                client.done(attach.clone());
                begun.elapsed()
            })
            .collect();
        report.times(name, &mut times, 95);
    };
    measure("attach while unloaded");
    host.send(&json!({"type": "prompt", "message": "Go."}));
    host.event("message_update");
    measure("attach to it in the middle of an answer");
    gate.open();
    host.settled();
}

/// Writes a session file of questions and answers.
pub(crate) fn long_session(home: &Home, entries: usize) -> String {
    let time = "2026-11-21T00:00:00.000Z";
    let header =
        json!({"type": "session", "version": 3, "id": "long", "timestamp": time, "cwd": home.project()});
    let mut text = format!("{header}\n");
    for index in 0..entries {
        let message = if index % 2 == 0 {
            json!({"role": "user", "content": format!("Question {index}?"), "timestamp": 1})
        } else {
            json!({"role": "assistant", "content": [{"type": "text", "text": format!("Answer {index}. ").repeat(20)}],
                "api": "openai-completions", "provider": "fake", "model": "fake", "stopReason": "stop", "timestamp": 1,
                "usage": {"input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 2,
                    "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}}})
        };
        let parent = index.checked_sub(1).map(|parent| format!("{parent:08x}"));
        let entry = json!({"type": "message", "id": format!("{index:08x}"), "parentId": parent, "timestamp": time,
            "message": message});
        writeln!(text, "{entry}").expect("a string takes all");
    }
    text
}

const WORDS: &str = "a word or two ";

pub(crate) fn run_fan_out(scale: Scale, report: &mut Report) {
    let deltas = scale.of(20_000, 1_000);
    let mut measured = Vec::new();
    for clients in [1, 10, 100] {
        let (cpu, bytes) = fan_out(deltas, clients, report);
        let lines = process::measure_floor(clients, bytes, bytes / deltas as u64);
        let batches = process::measure_floor(clients, bytes, 64 << 10);
        report.time(&format!("{clients} clients: floor, a write for each delta, CPU"), lines);
        report.time(&format!("{clients} clients: floor, 64 KiB a write, CPU"), batches);
        measured.push((cpu, lines, batches));
    }
    let (first, last) = (measured[0], measured[measured.len() - 1]);
    let more = last.0.saturating_sub(first.0);
    report.time("99 more clients, CPU", more);
    report.time("99 more clients: floor, a write for each delta, CPU", last.1.saturating_sub(first.1));
    report.time("99 more clients: floor, 64 KiB a write, CPU", last.2.saturating_sub(first.2));
}

/// One answer for so many clients: the daemon's processor time, and the bytes for each client.
fn fan_out(deltas: usize, clients: usize, report: &mut Report) -> (Duration, u64) {
    let piece = sse::text(WORDS);
    let server = MockServer::always(
        Reply::stream("")
            .live(move |pieces| (0..deltas).try_for_each(|_| pieces.send(piece.as_bytes())))
            .then(sse::end("stop", (1, 0, 1))),
    );
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut host = service.client();
    let opened = host.done(json!({"type": "open_session", "cwd": home.project(), "attach": false}));
    let id = &opened["sessionId"];
    let streams: Vec<_> = (0..clients).map(|_| attach(&service, id)).collect();
    let reading: Vec<_> = streams.into_iter().map(until_settled).collect();
    let (before, begun) = (processes::usage(service.id()), Instant::now());
    host.send(&json!({"type": "prompt", "message": "Go.", "sessionId": id}));
    let all: Vec<Vec<u8>> = reading.into_iter().map(|reader| reader.join().expect("a reader")).collect();
    let (wall, after) = (begun.elapsed(), processes::usage(service.id()));
    for all in &all {
        let (streamed, message) = check(all);
        assert!(streamed == message && message.len() == WORDS.len() * deltas, "an answer that is not whole");
    }
    let bytes = all[0].len() as u64;
    let cpu = after.cpu.saturating_sub(before.cpu);
    report.time(&format!("{clients} clients: wall"), wall);
    report.time(&format!("{clients} clients: daemon, CPU"), cpu);
    report.bytes(&format!("{clients} clients: peak RSS"), after.peak);
    report.bytes(&format!("{clients} clients: bytes to each"), bytes);
    (cpu, bytes)
}

/// Clients of each session at work.
const FOLLOWERS: usize = 2;

pub(crate) fn run_crowd(scale: Scale, report: &mut Report) {
    let (sessions, streaming, deltas) = (scale.of(1_000, 30), scale.of(100, 5), scale.of(1_000, 100));
    let piece = sse::text(WORDS);
    let server = MockServer::always(
        Reply::stream("")
            .live(move |pieces| (0..deltas).try_for_each(|_| pieces.send(piece.as_bytes())))
            .then(sse::end("stop", (1, 0, 1))),
    );
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut host = service.client();
    let begun = Instant::now();
    let open = json!({"type": "open_session", "cwd": home.project(), "attach": false});
    let ids: Vec<Value> = (0..sessions).map(|_| host.done(open.clone())["sessionId"].clone()).collect();
    report.time(&format!("opening {sessions} sessions"), begun.elapsed());
    let at_work = &ids[..streaming];
    let followed = at_work.iter().flat_map(|id| std::iter::repeat_n(id, FOLLOWERS));
    let streams: Vec<_> = followed.map(|id| attach(&service, id)).collect();
    let clients = streams.len();
    let reading: Vec<_> = streams.into_iter().map(until_settled).collect();
    let (before, begun) = (processes::usage(service.id()), Instant::now());
    for id in at_work {
        host.send(&json!({"type": "prompt", "message": "Go.", "sessionId": id}));
    }
    let all: Vec<Vec<u8>> = reading.into_iter().map(|reader| reader.join().expect("a reader")).collect();
    let (wall, after) = (begun.elapsed(), processes::usage(service.id()));

    // The deltas add up to the message and to the file's entry.
    let files = home.session_files();
    assert_eq!(files.len(), streaming, "a file for each session that was used");
    let stored: Vec<String> = files
        .iter()
        .map(|file| {
            let text = fs::read_to_string(file).expect("a session file");
            let last: Value = serde_json::from_str(text.lines().last().expect("a line")).expect("an entry");
            last["message"]["content"][0]["text"].as_str().expect("a text").to_owned()
        })
        .collect();
    let whole = WORDS.repeat(deltas);
    assert!(stored.iter().all(|text| *text == whole), "a file that is not whole");
    for all in &all {
        assert_eq!(check(all), (whole.clone(), whole.clone()));
    }
    let name = format!("{streaming} of {sessions} sessions at work, {clients} clients");
    report.time(&format!("{name}: wall"), wall);
    report.time(&format!("{name}: daemon, CPU"), after.cpu.saturating_sub(before.cpu));
    report.bytes(&format!("{name}: peak RSS"), after.peak);
}

const END: &[u8] = b"\"type\":\"agent_settled\"";

/// A client that has attached to a session.
pub(crate) fn attach(service: &Service, session: &Value) -> UnixStream {
    let mut client = service.client();
    client.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}));
    client.done(json!({"type": "attach_session", "sessionId": session}));
    client.stream()
}

/// Reads to the end of the run, and returns everything.
pub(crate) fn until_settled(mut stream: UnixStream) -> JoinHandle<Vec<u8>> {
    stream.set_read_timeout(Some(4 * DEADLINE)).expect("a time limit");
    let reading = move || {
        let (mut all, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
        loop {
            let count = stream.read(&mut buffer).expect("agentd writes");
            assert!(count > 0, "agentd left before the end of the run");
            let look = all.len().saturating_sub(END.len());
            all.extend_from_slice(&buffer[..count]);
            if all.ends_with(b"\n") && all[look..].windows(END.len()).any(|window| window == END) {
                let _ = stream.shutdown(Shutdown::Both);
                return all;
            }
        }
    };
    thread::Builder::new().stack_size(128 << 10).spawn(reading).expect("a thread")
}

/// Checks that event numbers have no gap; returns the sum of the deltas and the text of the last message.
pub(crate) fn check(all: &[u8]) -> (String, String) {
    let (mut streamed, mut message, mut seq) = (String::new(), String::new(), None);
    for line in all.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let line: Value = serde_json::from_slice(line).expect("a record");
        if line["type"] == "response" {
            continue;
        }
        let number = line["seq"].as_u64();
        assert!(seq.is_none() || number == seq.map(|seq: u64| seq + 1), "after {seq:?}: {line}");
        seq = number;
        let delta = &line["assistantMessageEvent"];
        if delta["type"] == "text_delta" {
            streamed.push_str(delta["delta"].as_str().expect("a text"));
        }
        if line["type"] == "message_end" && line["message"]["role"] == "assistant" {
            message = line["message"]["content"][0]["text"].as_str().expect("a text").to_owned();
        }
    }
    (streamed, message)
}
