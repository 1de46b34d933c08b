//! Commands in a second, over one connection and over two hundred.

use std::{
    path::Path,
    thread,
    time::{Duration, Instant},
};

use agentd_e2e::{Home, Service, home, processes};
use serde_json::{Value, json};

use super::Load;
use crate::{
    model::Model,
    wire::{Peer, Trouble},
};

/// Connections at once.
const MANY: usize = 200;

/// Sessions that these are spread over.
const SESSIONS: usize = 20;

pub(crate) fn run(load: &Load<'_>) -> Result<(Value, Vec<String>), Trouble> {
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
    tell(&format!("get_state, {MANY} connections"), crowd(&service, &ids, each)?);
    Ok((figures, Vec::new()))
}

/// How fast commands were answered.
struct Measured {
    count: usize,
    wall: Duration,
    cpu: Duration,
    /// Of a command alone, where each was waited for: sorted.
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

/// All commands are sent before the answers are waited for.
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
                return Err(crate::wire::refusal(&line));
            }
            left -= 1;
        }
    }
    let wall = begun.elapsed();
    writing.join().expect("a writer").map_err(|error| Trouble::Closed(error.to_string()))?;
    let cpu = processes::usage(service.id()).cpu.saturating_sub(before);
    Ok(Measured { count, wall, cpu, times: Vec::new() })
}

/// Many connections, each of which waits for its answers.
fn crowd(service: &Service, ids: &[Value], each: usize) -> Result<Measured, Trouble> {
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
