//! What the daemon holds with so many sessions, and with so many clients.

use std::{
    thread,
    time::{Duration, Instant},
};

use agentd_e2e::{Home, Service, home, processes};
use serde_json::{Value, json};

use super::Load;
use crate::{
    model::Model,
    wire::{PATIENCE, Peer, Trouble},
};

pub(crate) fn run(load: &Load<'_>) -> Result<(Value, Vec<String>), Trouble> {
    let model = Model::start();
    let sessions: &[usize] = if load.is_short { &[0, 1, 20] } else { &[0, 1, 100, 1_000] };
    let clients: &[usize] = if load.is_short { &[1, 20] } else { &[1, 50, 200, 500] };
    let mut figures = json!({});
    for (name, idle_ms) in [("sessions in memory", 0), ("sessions that left memory", 500)] {
        figures[name] = with_sessions(load, &model, name, idle_ms, sessions)?;
    }
    figures["clients"] = with_clients(load, &model, clients)?;
    Ok((figures, Vec::new()))
}

fn daemon(model: &Model, idle_ms: u64) -> (Home, Service) {
    let home = Home::new();
    home.configure(&home::models(&model.base_url()));
    home.settings(&json!({"daemon": {"idleUnloadMs": idle_ms}}));
    let service = Service::start(&home, &[]);
    (home, service)
}

/// Resident and private memory, in MiB.
fn show(load: &Load<'_>, service: &Service, what: &str) -> Value {
    let usage = processes::usage(service.id());
    // MiB to a tenth; no figure here comes near the limits.
    #[expect(clippy::cast_precision_loss, reason = "no figure here comes near 2^53")]
    let mib = |bytes: u64| (bytes as f64 / f64::from(1 << 20) * 10.0).round() / 10.0;
    load.say(&format!("{what}: {} MiB resident, {} MiB private", mib(usage.resident), mib(usage.private)));
    json!({"residentMiB": mib(usage.resident), "privateMiB": mib(usage.private)})
}

fn with_sessions(
    load: &Load<'_>,
    model: &Model,
    what: &str,
    idle_ms: u64,
    counts: &[usize],
) -> Result<Value, Trouble> {
    let (home, service) = daemon(model, idle_ms);
    let mut peer = Peer::counting(service.socket())?;
    let (mut figures, mut there) = (json!({}), 0);
    for count in counts {
        for number in there..*count {
            use_session(&mut peer, &home, number)?;
        }
        there = *count;
        if idle_ms > 0 {
            wait_for_rest(&mut peer)?;
            model.hang_up();
        }
        figures[count.to_string()] = show(load, &service, &format!("{count} {what}"));
    }
    Ok(figures)
}

/// Opens a session, has a question answered, and leaves it.
fn use_session(peer: &mut Peer, home: &Home, number: usize) -> Result<(), Trouble> {
    let opened = peer.done(json!({"type": "open_session", "cwd": home.project()}))?;
    let id = &opened["sessionId"];
    peer.done(json!({"type": "prompt", "message": format!("soak {number} text 5"), "sessionId": id}))?;
    peer.until("agent_settled", |line| Ok((line["type"] == "agent_settled").then_some(())))?;
    peer.done(json!({"type": "detach_session", "sessionId": id}))?;
    Ok(())
}

fn wait_for_rest(peer: &mut Peer) -> Result<(), Trouble> {
    let end = Instant::now() + PATIENCE;
    loop {
        let status = peer.done(json!({"type": "daemon_status"}))?;
        if status["liveSessions"] == 0 {
            return Ok(());
        }
        if Instant::now() > end {
            return Err(Trouble::Wrong(format!("sessions do not leave memory: {status}")));
        }
        thread::sleep(Duration::from_millis(100));
    }
}

/// Clients that follow sessions at rest, ten to a session.
fn with_clients(load: &Load<'_>, model: &Model, counts: &[usize]) -> Result<Value, Trouble> {
    const EACH: usize = 10;
    let (home, service) = daemon(model, 0);
    let (mut figures, mut clients) = (json!({}), Vec::<Peer>::new());
    let mut session = Value::Null;
    for count in counts {
        while clients.len() < *count {
            let mut peer = Peer::counting(service.socket())?;
            if clients.len() % EACH == 0 {
                session =
                    peer.done(json!({"type": "open_session", "cwd": home.project()}))?["sessionId"].take();
            } else {
                peer.done(json!({"type": "attach_session", "sessionId": session}))?;
            }
            clients.push(peer);
        }
        figures[count.to_string()] = show(load, &service, &format!("{count} clients, {EACH} to a session"));
    }
    Ok(figures)
}
