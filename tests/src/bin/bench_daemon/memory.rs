//! What the daemon holds while nothing happens: by itself, for each session in memory, and for each that rests on disk.

use std::{
    thread,
    time::{Duration, Instant},
};

use agentd_e2e::{DEADLINE, Home, MockServer, Reply, Service, SocketClient, sse, usage};
use serde_json::json;

use crate::{
    Scale,
    report::{Report, exact},
};

/// How long a session may do nothing before it is unloaded, where that is measured.
const IDLE: Duration = Duration::from_secs(2);

pub(crate) fn run(scale: Scale, report: &mut Report) {
    let server = MockServer::always(Reply::stream(sse::answer("Hello.")));
    let home = Home::with_model(&server);
    // Nothing is unloaded while it is counted.
    home.settings(&json!({"daemon": {"idleUnloadMs": 0}}));
    let service = Service::start(&home, &[]);
    let mut client = service.client();
    let alone = show(report, &service, "no session");

    let few = scale.of(100, 10);
    (0..few).for_each(|_| open_and_use(&mut client, &home));
    let with_few = show(report, &service, &format!("{few} sessions"));
    let many = scale.of(1_000, 30);
    (few..many).for_each(|_| open_and_use(&mut client, &home));
    let with_many = show(report, &service, &format!("{many} sessions"));
    // What the first of them brought in (code, the connection to the model) is no session's own.
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
    wait_for_rest(&mut client, few);
    let with_few = show(report, &service, &format!("{few} unloaded sessions"));
    (few..many).for_each(|_| open_and_use(&mut client, &home));
    wait_for_rest(&mut client, many);
    let with_many = show(report, &service, &format!("{many} unloaded sessions"));
    let resting = each(with_many.private, with_few.private, many - few);
    report.figure("each unloaded session, private", resting / 1024.0, "KiB");
}

/// Opens a session, has a question answered, and leaves it.
fn open_and_use(client: &mut SocketClient, home: &Home) {
    let opened = client.done(json!({"type": "open_session", "cwd": home.project()}));
    client.prompt("Hello?");
    client.done(json!({"type": "detach_session", "sessionId": opened["sessionId"]}));
}

fn wait_for_rest(client: &mut SocketClient, count: usize) {
    let end = Instant::now() + IDLE + DEADLINE;
    loop {
        let status = client.done(json!({"type": "daemon_status"}));
        if status["restingSessions"].as_u64() >= Some(count as u64) && status["liveSessions"] == 0 {
            return;
        }
        assert!(Instant::now() < end, "sessions are not unloaded: {status}");
        thread::sleep(Duration::from_millis(50));
    }
}

fn show(report: &mut Report, service: &Service, what: &str) -> usage::Usage {
    let usage = usage::of(service.id());
    report.bytes(&format!("{what}, RSS"), usage.resident);
    report.bytes(&format!("{what}, PSS"), usage.proportional);
    report.bytes(&format!("{what}, private"), usage.private);
    usage
}
