//! How long it takes to join a session with a long past.

use std::{
    fmt::Write,
    time::{Duration, Instant},
};

use agentd_e2e::{Gate, Home, MockServer, Reply, Service, sse};
use serde_json::json;

use crate::{Scale, report::Report};

const ENTRIES: usize = 10_000;

pub(crate) fn run(scale: Scale, report: &mut Report) {
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
    measure("attach to it at rest");
    host.send(&json!({"type": "prompt", "message": "Go."}));
    host.event("message_update");
    measure("attach to it in the middle of an answer");
    gate.open();
    host.settled();
}

/// A session of questions and answers, as a file.
fn long_session(home: &Home, entries: usize) -> String {
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
