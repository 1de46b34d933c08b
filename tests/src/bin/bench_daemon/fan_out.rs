//! What another client of the same answer costs, beside what a program must spend that does nothing but write.

use std::time::{Duration, Instant};

use agentd_e2e::{Home, MockServer, Reply, Service, sse, usage};
use serde_json::json;

use crate::{Scale, floor, readers, report::Report};

const WORDS: &str = "a word or two ";

pub(crate) fn run(scale: Scale, report: &mut Report) {
    let deltas = scale.of(20_000, 1_000);
    let mut measured = Vec::new();
    for clients in [1, 10, 100] {
        let (cpu, bytes) = fan_out(deltas, clients, report);
        let lines = floor::measure(clients, bytes, bytes / deltas as u64);
        let batches = floor::measure(clients, bytes, 64 << 10);
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

/// One answer for so many clients: the daemon's processor time, and the bytes for each of them.
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
    let streams: Vec<_> = (0..clients).map(|_| readers::attach(&service, id)).collect();
    let reading: Vec<_> = streams.into_iter().map(readers::until_settled).collect();
    let (before, begun) = (usage::of(service.id()), Instant::now());
    host.send(&json!({"type": "prompt", "message": "Go.", "sessionId": id}));
    let all: Vec<Vec<u8>> = reading.into_iter().map(|reader| reader.join().expect("a reader")).collect();
    let (wall, after) = (begun.elapsed(), usage::of(service.id()));
    for all in &all {
        let (streamed, message) = readers::check(all);
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
