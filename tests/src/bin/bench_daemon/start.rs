//! How long it takes until the first answer, and a prompt that the model answers at once.

use std::time::{Duration, Instant};

use agentd_e2e::{Daemon, Home, MockServer, Reply, Service, sse};
use serde_json::json;

use crate::{Scale, report::Report};

pub(crate) fn run(scale: Scale, report: &mut Report) {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let starts = scale.of(30, 3);
    let mut times: Vec<Duration> = (0..starts)
        .map(|_| {
            let begun = Instant::now();
            let mut daemon = Daemon::start(&home, &["--no-session"]);
            daemon.done(json!({"type": "get_state"}));
            // Before it is ended, which takes its time too.
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
