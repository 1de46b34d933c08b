//! The load that the daemon can take: commands in a second, floods beside another client's prompt, memory at each load.
//!
//! `torture load [--short] [--only rates|flood|memory]`

mod flood;

use std::{
    path::Path,
    thread,
    time::{Duration, Instant},
};

use agentd_e2e::{Home, Service, home, processes};
use serde_json::{Value, json};

use self::flood::Load;
use crate::{
    cli::{self, Options, Outcome},
    model::Model,
    peer::{Peer, TIMEOUT, Trouble},
};

/// A part: its figures and findings.
type Part = fn(&Load<'_>) -> Result<(Value, Vec<String>), Trouble>;

/// Runs the sub-command.
pub(crate) fn run(options: &mut Options) -> Result<Outcome, String> {
    const PARTS: [(&str, Part); 3] =
        [("rates", measure_rates), ("flood", flood::run), ("memory", measure_memory)];
    let is_short = options.flag("--short");
    let only: Option<String> = options.value("--only")?;
    options.end()?;
    if let Some(only) = only.as_ref().filter(|only| PARTS.iter().all(|(name, _)| name != only)) {
        return Err(format!("--only: there is no part \"{only}\""));
    }
    let load = Load { options, is_short };
    let (mut summary, mut findings) = (json!({"short": is_short}), Vec::new());
    for (name, part) in PARTS.iter().filter(|(name, _)| only.as_ref().is_none_or(|only| only == name)) {
        match part(&load) {
            Ok((figures, found)) => {
                summary[*name] = figures;
                findings.extend(found);
            }
            Err(trouble) => findings.push(format!("{name}: {trouble}")),
        }
    }
    findings.iter().for_each(|text| cli::error(&format!("FINDING: {text}")));
    summary["findings"] = json!(findings);
    Ok(Outcome { held: findings.is_empty(), summary })
}

/// Simultaneous connections.
const MANY: usize = 200;

/// The sessions of these connections.
const SESSIONS: usize = 20;

pub(crate) fn measure_rates(load: &Load<'_>) -> Result<(Value, Vec<String>), Trouble> {
    let model = Model::start();
    let home = Home::new();
    home.configure(&home::models(&model.base_url()));
    let service = Service::start(&home, &[]);
    let mut peer = Peer::counting(service.socket())?;
    let open = json!({"type": "open_session", "cwd": home.project()});
    let id = peer.done(open.clone())?["sessionId"].clone();
    let mut figures = json!({});
    let mut tell = |name: &str, measured: Measured| {
        load.say(&format!("{name}: {measured}"));
        figures[name] = measured.json();
    };
    let state = json!({"type": "get_state", "sessionId": id});
    let status = json!({"type": "daemon_status"});
    let name = json!({"type": "set_session_name", "name": "a name", "sessionId": id});
    let bash = json!({"type": "bash", "command": "true", "sessionId": id});
    for (what, command, full, short) in [
        ("get_state, one at a time", &state, 20_000, 300),
        ("daemon_status, one at a time", &status, 20_000, 300),
        ("set_session_name, one at a time", &name, 5_000, 100),
        ("bash true, one at a time", &bash, 300, 10),
    ] {
        tell(what, one_at_a_time(&service, &mut peer, command, load.of(full, short))?);
    }
    tell("get_state, pipelined", pipelined(&service, &state, load.of(100_000, 1_000))?);
    let mut ids = vec![id];
    for _ in 1..SESSIONS {
        ids.push(peer.done(open.clone())?["sessionId"].clone());
    }
    drop(peer);
    let each = load.of(500, 10);
    tell(&format!("get_state, {MANY} connections"), crowd_at_once(&service, &ids, each)?);
    Ok((figures, Vec::new()))
}

/// The rate of answered commands.
struct Measured {
    count: usize,
    wall: Duration,
    cpu: Duration,
    /// The times of single commands that were waited for, sorted.
    times: Vec<Duration>,
}

impl Measured {
    fn per_second(&self) -> f64 {
        exact(self.count) / self.wall.as_secs_f64()
    }

    fn at(&self, percent: usize) -> Option<f64> {
        let index = (self.times.len() * percent / 100).min(self.times.len().checked_sub(1)?);
        Some((self.times[index].as_secs_f64() * 1e6).round())
    }

    fn cpu_us(&self) -> f64 {
        (self.cpu.as_secs_f64() * 1e7 / exact(self.count)).round() / 10.0
    }

    fn json(&self) -> Value {
        json!({"perSecond": self.per_second().round(), "count": self.count, "daemonCpuUs": self.cpu_us(),
               "medianUs": self.at(50), "p99Us": self.at(99)})
    }
}

impl std::fmt::Display for Measured {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{:.0} in a second, {} µs of the daemon's CPU each", self.per_second(), self.cpu_us())?;
        match (self.at(50), self.at(99)) {
            (Some(median), Some(high)) => write!(out, "; median {median} µs, p99 {high} µs"),
            _ => Ok(()),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "no count here comes near 2^53")]
fn exact(count: usize) -> f64 {
    count as f64
}

fn one_at_a_time(
    service: &Service,
    peer: &mut Peer,
    command: &Value,
    count: usize,
) -> Result<Measured, Trouble> {
    peer.done(command.clone())?;
    let (before, begun) = (processes::usage(service.id()).cpu, Instant::now());
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let begun = Instant::now();
        peer.done(command.clone())?;
        times.push(begun.elapsed());
    }
    let wall = begun.elapsed();
    times.sort_unstable();
    Ok(Measured { count, wall, cpu: processes::usage(service.id()).cpu.saturating_sub(before), times })
}

/// Sends all commands before it waits for the responses.
fn pipelined(service: &Service, command: &Value, count: usize) -> Result<Measured, Trouble> {
    let mut peer = Peer::counting(service.socket())?;
    let mut stream = peer.stream().map_err(|error| Trouble::Closed(error.to_string()))?;
    let line = format!("{command}\n");
    let (before, begun) = (processes::usage(service.id()).cpu, Instant::now());
    let writing = thread::spawn(move || {
        let batch = line.repeat(10);
        (0..count / 10).try_for_each(|_| std::io::Write::write_all(&mut stream, batch.as_bytes()))
    });
    let mut left = count / 10 * 10;
    while left > 0 {
        let line = peer.next()?;
        if line["type"] == "response" {
            if line["success"] != true {
                return Err(crate::peer::refusal(&line));
            }
            left -= 1;
        }
    }
    let wall = begun.elapsed();
    writing.join().expect("a writer").map_err(|error| Trouble::Closed(error.to_string()))?;
    let cpu = processes::usage(service.id()).cpu.saturating_sub(before);
    Ok(Measured { count, wall, cpu, times: Vec::new() })
}

/// Many connections, each of which waits for its responses.
fn crowd_at_once(service: &Service, ids: &[Value], each: usize) -> Result<Measured, Trouble> {
    let socket = service.socket();
    let ask = |id: &Value, socket: &Path| -> Result<Vec<Duration>, Trouble> {
        let mut peer = Peer::counting(socket)?;
        let command = json!({"type": "get_state", "sessionId": id});
        (0..each)
            .map(|_| {
                let begun = Instant::now();
                peer.done(command.clone())?;
                Ok(begun.elapsed())
            })
            .collect()
    };
    let (before, begun) = (processes::usage(service.id()).cpu, Instant::now());
    let mut times = Vec::new();
    thread::scope(|scope| {
        let ask = &ask;
        let all: Vec<_> = (0..MANY)
            .map(|number| {
                let id = &ids[number % ids.len()];
                thread::Builder::new().stack_size(128 << 10).spawn_scoped(scope, move || ask(id, socket))
            })
            .collect();
        for asking in all {
            let asked = asking.expect("a thread").join().expect("a client")?;
            times.extend(asked);
        }
        Ok(())
    })?;
    let wall = begun.elapsed();
    times.sort_unstable();
    let cpu = processes::usage(service.id()).cpu.saturating_sub(before);
    Ok(Measured { count: times.len(), wall, cpu, times })
}

pub(crate) fn measure_memory(load: &Load<'_>) -> Result<(Value, Vec<String>), Trouble> {
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
fn show_memory(load: &Load<'_>, service: &Service, what: &str) -> Value {
    let usage = processes::usage(service.id());
    // In MiB, to a tenth.
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
            wait_until_unloaded(&mut peer)?;
            model.hang_up();
        }
        figures[count.to_string()] = show_memory(load, &service, &format!("{count} {what}"));
    }
    Ok(figures)
}

/// Opens a session, sends a prompt, and leaves.
fn use_session(peer: &mut Peer, home: &Home, number: usize) -> Result<(), Trouble> {
    let opened = peer.done(json!({"type": "open_session", "cwd": home.project()}))?;
    let id = &opened["sessionId"];
    peer.done(json!({"type": "prompt", "message": format!("soak {number} text 5"), "sessionId": id}))?;
    peer.until("agent_settled", |line| Ok((line["type"] == "agent_settled").then_some(())))?;
    peer.done(json!({"type": "detach_session", "sessionId": id}))?;
    Ok(())
}

fn wait_until_unloaded(peer: &mut Peer) -> Result<(), Trouble> {
    let end = Instant::now() + TIMEOUT;
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

/// Clients that follow unloaded sessions, ten to a session.
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
        figures[count.to_string()] =
            show_memory(load, &service, &format!("{count} clients, {EACH} to a session"));
    }
    Ok(figures)
}
