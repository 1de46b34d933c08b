//! What the daemon uses, each second: as the system counts it, and as it says itself.

use std::{collections::HashMap, fs, path::Path, time::Instant};

use serde_json::{Value, json};

use super::tally::Tally;
use crate::wire::{Peer, Trouble};

/// The figures of a moment. A name, a unit, and what is plotted where, stand in [`super::picture`].
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Sample {
    /// Seconds since the beginning.
    pub(crate) at: f64,
    /// Memory in RAM, MiB.
    pub(crate) resident: f64,
    /// Of that, what mirrors no file, MiB.
    pub(crate) anonymous: f64,
    /// Processor time so far, seconds.
    pub(crate) cpu: f64,
    pub(crate) descriptors: f64,
    pub(crate) threads: f64,
    pub(crate) tasks: f64,
    /// Processes below the daemon, its guard included.
    pub(crate) children: f64,
    pub(crate) live: f64,
    pub(crate) resting: f64,
    pub(crate) clients: f64,
    /// Commands that were answered so far.
    pub(crate) commands: f64,
    /// Prompts that were answered so far.
    pub(crate) prompts: f64,
}

impl Sample {
    /// The names of the columns of a CSV file.
    pub(crate) const HEADER: &str =
        "seconds,rss_mib,anon_mib,cpu_s,fds,threads,tasks,children,live,resting,clients,commands,prompts";

    /// A row of a CSV file.
    pub(crate) fn row(&self) -> String {
        let Self { at, resident, anonymous, cpu, descriptors, threads, tasks, children, .. } = self;
        let Self { live, resting, clients, commands, prompts, .. } = self;
        format!(
            "{at:.1},{resident:.2},{anonymous:.2},{cpu:.2},{descriptors},{threads},{tasks},{children},{live},{resting},\
             {clients},{commands},{prompts}"
        )
    }

    /// For the summary.
    pub(crate) fn json(&self) -> Value {
        let round = |value: f64| (value * 100.0).round() / 100.0;
        json!({"s": round(self.at), "rssMiB": round(self.resident), "anonMiB": round(self.anonymous),
               "cpuS": round(self.cpu), "fds": self.descriptors, "threads": self.threads, "tasks": self.tasks,
               "children": self.children, "live": self.live, "resting": self.resting, "clients": self.clients})
    }
}

/// Looks at one daemon.
pub(crate) struct Looker<'a> {
    id: u32,
    peer: Peer,
    tally: &'a Tally,
    begun: Instant,
}

impl<'a> Looker<'a> {
    /// Begins to look at the daemon with that process id and socket.
    pub(crate) fn new(id: u32, socket: &Path, tally: &'a Tally, begun: Instant) -> Result<Self, Trouble> {
        Ok(Self { id, peer: Peer::connect(socket)?, tally, begun })
    }

    /// Asks the daemon how it is, and notes how long that took.
    pub(crate) fn ask(&mut self) -> Result<Value, Trouble> {
        let asked = Instant::now();
        let status = self.peer.done(json!({"type": "daemon_status"}))?;
        self.tally.looked(asked.elapsed());
        Ok(status)
    }

    /// The figures of this moment.
    pub(crate) fn look(&mut self) -> Result<Sample, Trouble> {
        let status = self.ask()?;
        let number = |name: &str| status[name].as_f64().unwrap_or_default();
        let read = |name: &str| {
            fs::read_to_string(format!("/proc/{}/{name}", self.id))
                .map_err(|error| Trouble::Closed(format!("the daemon is gone: {error}")))
        };
        let (process, stat) = (read("status")?, read("stat")?);
        let descriptors = fs::read_dir(format!("/proc/{}/fd", self.id)).map_or(0, Iterator::count);
        let count =
            |atomic: &std::sync::atomic::AtomicU64| exact(atomic.load(std::sync::atomic::Ordering::Relaxed));
        Ok(Sample {
            at: self.begun.elapsed().as_secs_f64(),
            resident: field(&process, "VmRSS:") / 1024.0,
            anonymous: field(&process, "RssAnon:") / 1024.0,
            cpu: cpu(&stat),
            descriptors: exact(descriptors as u64),
            threads: field(&process, "Threads:"),
            tasks: number("tasks"),
            children: exact(descendants(self.id).len() as u64),
            live: number("liveSessions"),
            resting: number("restingSessions"),
            clients: number("clients"),
            commands: count(&self.tally.commands),
            prompts: count(&self.tally.prompts),
        })
    }
}

/// A count as a number to plot.
#[expect(clippy::cast_precision_loss, reason = "no count here comes near 2^53")]
pub(crate) fn exact(count: u64) -> f64 {
    count as f64
}

/// The field of that name in `/proc/ID/status`.
fn field(text: &str, name: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}

/// Seconds on a processor so far.
fn cpu(stat: &str) -> f64 {
    // The name stands in brackets and may hold anything; the times are the 14th and 15th field.
    let fields = stat.rsplit_once(") ").map_or("", |(_, rest)| rest).split(' ');
    let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    exact(ticks) / exact(rustix::param::clock_ticks_per_second())
}

/// The processes below one, in any depth.
pub(crate) fn descendants(id: u32) -> Vec<u32> {
    let mut below: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(child) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        // One that ended meanwhile has no file any more.
        let Ok(stat) = fs::read_to_string(format!("/proc/{child}/stat")) else { continue };
        let parent = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)?.parse().ok());
        below.entry(parent.unwrap_or(0)).or_default().push(child);
    }
    let mut found = Vec::new();
    let mut next = vec![id];
    while let Some(id) = next.pop() {
        let children = below.remove(&id).unwrap_or_default();
        found.extend(&children);
        next.extend(children);
    }
    found
}
