//! Samples of the daemon's use of resources: taken, judged and drawn.

use std::{fmt::Write, fs, path::Path, time::Instant};

use serde_json::{Value, json};

use crate::{
    peer::{Peer, Trouble},
    tally::{Tally, descendants},
};

/// The figures of a moment. `PANELS` holds names and units.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Sample {
    /// Seconds since the beginning.
    pub(crate) at: f64,
    /// Memory in RAM, MiB.
    pub(crate) resident: f64,
    /// The part of it that mirrors no file, MiB.
    pub(crate) anonymous: f64,
    /// Processor time so far, seconds.
    pub(crate) cpu: f64,
    pub(crate) descriptors: f64,
    pub(crate) threads: f64,
    pub(crate) tasks: f64,
    /// Processes below the daemon, its guard included.
    pub(crate) children: f64,
    pub(crate) live: f64,
    pub(crate) unloaded: f64,
    pub(crate) clients: f64,
    /// Commands that were answered so far.
    pub(crate) commands: f64,
    /// Prompts that were answered so far.
    pub(crate) prompts: f64,
}

impl Sample {
    /// The names of the columns of a CSV file.
    pub(crate) const HEADER: &str =
        "seconds,rss_mib,anon_mib,cpu_s,fds,threads,tasks,children,live,unloaded,clients,commands,prompts";

    /// A row of a CSV file.
    pub(crate) fn row(&self) -> String {
        let Self { at, resident, anonymous, cpu, descriptors, threads, tasks, children, .. } = self;
        let Self { live, unloaded, clients, commands, prompts, .. } = self;
        format!(
            "{at:.1},{resident:.2},{anonymous:.2},{cpu:.2},{descriptors},{threads},{tasks},{children},{live},{unloaded},\
             {clients},{commands},{prompts}"
        )
    }

    /// For the summary.
    pub(crate) fn json(&self) -> Value {
        let round = |value: f64| (value * 100.0).round() / 100.0;
        json!({"s": round(self.at), "rssMiB": round(self.resident), "anonMiB": round(self.anonymous),
               "cpuS": round(self.cpu), "fds": self.descriptors, "threads": self.threads, "tasks": self.tasks,
               "children": self.children, "live": self.live, "unloaded": self.unloaded, "clients": self.clients})
    }
}

/// Samples one daemon.
pub(crate) struct Looker<'a> {
    id: u32,
    peer: Peer,
    tally: &'a Tally,
    begun: Instant,
}

impl<'a> Looker<'a> {
    /// A sampler of the daemon with this process id and socket.
    pub(crate) fn new(id: u32, socket: &Path, tally: &'a Tally, begun: Instant) -> Result<Self, Trouble> {
        Ok(Self { id, peer: Peer::connect(socket)?, tally, begun })
    }

    /// Asks for `daemon_status`, and records its time.
    pub(crate) fn ask(&mut self) -> Result<Value, Trouble> {
        let asked = Instant::now();
        let status = self.peer.done(json!({"type": "daemon_status"}))?;
        self.tally.looked(asked.elapsed());
        Ok(status)
    }

    /// Samples this moment.
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
            unloaded: number("restingSessions"),
            clients: number("clients"),
            commands: count(&self.tally.commands),
            prompts: count(&self.tally.prompts),
        })
    }
}

/// A count as a floating-point number.
#[expect(clippy::cast_precision_loss, reason = "no count here comes near 2^53")]
pub(crate) fn exact(count: u64) -> f64 {
    count as f64
}

/// A field of `/proc/ID/status`.
fn field(text: &str, name: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}

/// Seconds of processor time so far.
fn cpu(stat: &str) -> f64 {
    // The name stands in brackets and may hold any character; the times are the 14th and 15th field.
    let fields = stat.rsplit_once(") ").map_or("", |(_, rest)| rest).split(' ');
    let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    exact(ticks) / exact(rustix::param::clock_ticks_per_second())
}

/// A figure that must not grow.
struct Law {
    name: &'static str,
    of: fn(&Sample) -> f64,
    /// The share of itself by which it may grow.
    share: f64,
    /// The growth that is always allowed.
    slack: f64,
}

/// Memory is in MiB.
const LAWS: &[Law] = &[
    Law { name: "resident memory", of: |it| it.resident, share: 0.10, slack: 8.0 },
    Law { name: "anonymous memory", of: |it| it.anonymous, share: 0.10, slack: 8.0 },
    Law { name: "open files", of: |it| it.descriptors, share: 0.15, slack: 40.0 },
    Law { name: "threads", of: |it| it.threads, share: 0.15, slack: 8.0 },
    Law { name: "tasks", of: |it| it.tasks, share: 0.15, slack: 100.0 },
    Law { name: "child processes", of: |it| it.children, share: 0.15, slack: 10.0 },
    Law { name: "known sessions", of: |it| it.live + it.unloaded, share: 0.02, slack: 20.0 },
];

/// The seconds until the number of loaded sessions is stable, and the memory in MiB that a shorter run may grow by.
const WARM: (u64, f64) = (300, 48.0);

/// The medians of two quarters for each figure, and the figures that grew, in a run of so many seconds.
pub(crate) fn flat(samples: &[Sample], seconds: u64) -> (Value, Vec<String>) {
    let quarter = samples.len() / 4;
    let mut figures = json!({});
    let mut grown = Vec::new();
    if quarter == 0 {
        return (figures, vec!["there are too few samples to tell".into()]);
    }
    let (second, last) = (&samples[quarter..2 * quarter], &samples[samples.len() - quarter..]);
    for Law { name, of, share, slack } in LAWS {
        let (before, after) = (median(second, *of), median(last, *of));
        let is_cold = seconds < WARM.0 && name.ends_with("memory");
        let slack = if is_cold { WARM.1 } else { *slack };
        let may = before + (before * share).max(slack);
        let peak = samples.iter().map(of).fold(0.0, f64::max);
        let round = |value: f64| (value * 100.0).round() / 100.0;
        figures[*name] =
            json!({"secondQuarter": round(before), "lastQuarter": round(after), "peak": round(peak)});
        if after > may {
            grown.push(format!("{name} grew: {before:.1} in the second quarter, {after:.1} in the last"));
        }
    }
    (figures, grown)
}

/// The figures that stayed higher after all clients left than before any came.
pub(crate) fn back(before: &Sample, after: &Sample) -> Vec<String> {
    let laws: [(&str, f64, f64); 5] = [
        ("open files", before.descriptors, after.descriptors),
        ("tasks", before.tasks, after.tasks),
        ("child processes", before.children, after.children),
        ("sessions in memory", 0.0, after.live),
        ("clients", before.clients, after.clients),
    ];
    let left = laws.iter().filter(|(_, before, after)| after > before);
    left.map(|(name, before, after)| format!("{name}: {after} are left, {before} were there before"))
        .collect()
}

fn median(samples: &[Sample], of: fn(&Sample) -> f64) -> f64 {
    let mut values: Vec<f64> = samples.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

const WIDTH: f64 = 920.0;

const LEFT: f64 = 70.0;

const RIGHT: f64 = 150.0;

const PANEL: f64 = 120.0;

const GAP: f64 = 34.0;

const TOP: f64 = 52.0;

/// More points are not visible at this width.
const POINTS: usize = 600;

/// A curve: its name, its class in the style sheet, and its value.
type Curve = (&'static str, &'static str, fn(&Sample) -> f64);

/// Panels: a title with the unit, and the curves.
const PANELS: &[(&str, &[Curve])] = &[
    (
        "memory of the daemon, MiB",
        &[("resident", "a", |it| it.resident), ("anonymous", "b", |it| it.anonymous)],
    ),
    ("open files, tasks", &[("open files", "a", |it| it.descriptors), ("tasks", "b", |it| it.tasks)]),
    (
        "threads, child processes",
        &[("threads", "a", |it| it.threads), ("child processes", "b", |it| it.children)],
    ),
    ("sessions", &[("in memory", "a", |it| it.live), ("unloaded", "b", |it| it.unloaded)]),
    ("clients", &[("clients", "a", |it| it.clients)]),
];

const STYLE: &str = "text{font:12px system-ui,sans-serif;fill:#24292f}.t{font-weight:600}.n{fill:#57606a}\
.g{stroke:#d0d7de;stroke-width:1}.a,.b,.c{fill:none;stroke-width:1.5}.a{stroke:#0969da}.b{stroke:#bc4c00}.c{stroke:#1a7f37}\
.la{fill:#0969da}.lb{fill:#bc4c00}.lc{fill:#1a7f37}.p{fill:#ffffff}\
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.n{fill:#9198a1}.g{stroke:#3d444d}.a{stroke:#4493f8}.b{stroke:#f0883e}\
.c{stroke:#3fb950}.la{fill:#4493f8}.lb{fill:#f0883e}.lc{fill:#3fb950}.p{fill:#0d1117}}";

/// The picture of a run.
pub(crate) fn svg(title: &str, samples: &[Sample]) -> String {
    let rates = rates(samples);
    let count = PANELS.len() + 1;
    #[expect(clippy::cast_precision_loss, reason = "a handful of panels")]
    let height = TOP + count as f64 * (PANEL + GAP) + 20.0;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         role=\"img\"><title>{title}</title><style>{STYLE}</style><rect class=\"p\" width=\"100%\" height=\"100%\"/>\
         <text class=\"t\" x=\"{LEFT}\" y=\"24\">{title}</text>"
    );
    let times: Vec<f64> = samples.iter().map(|it| it.at).collect();
    let mut top = TOP;
    for (title, curves) in PANELS {
        let lines: Vec<(&str, &str, Vec<f64>)> = curves
            .iter()
            .map(|(name, class, of)| (*name, *class, samples.iter().map(of).collect()))
            .collect();
        panel(&mut out, top, title, &times, &lines);
        top += PANEL + GAP;
    }
    let lines = [("commands", "a", rates.0), ("prompts", "b", rates.1), ("CPU, %", "c", rates.2)];
    panel(&mut out, top, "work in a second", &times, &lines);
    let _ = writeln!(out, "<text class=\"n\" x=\"{LEFT}\" y=\"{}\">minutes</text></svg>", top + PANEL + 32.0);
    out
}

/// Commands, prompts and per cent of a processor, of each second; smoothed over ten samples.
fn rates(samples: &[Sample]) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
    let rate = |of: fn(&Sample) -> f64, factor: f64| -> Vec<f64> {
        (0..samples.len())
            .map(|index| {
                let (before, after) = (&samples[index.saturating_sub(10)], &samples[index]);
                let seconds = (after.at - before.at).max(0.001);
                if index == 0 { 0.0 } else { factor * (of(after) - of(before)) / seconds }
            })
            .collect()
    };
    (rate(|it| it.commands, 1.0), rate(|it| it.prompts, 1.0), rate(|it| it.cpu, 100.0))
}

fn panel(out: &mut String, top: f64, title: &str, times: &[f64], lines: &[(&str, &str, Vec<f64>)]) {
    let end = times.last().copied().unwrap_or(1.0).max(1.0);
    let most = lines.iter().flat_map(|(_, _, values)| values).copied().fold(1.0, f64::max);
    let most = ceiling(most);
    let (width, bottom) = (WIDTH - LEFT - RIGHT, top + PANEL);
    let x = |time: f64| LEFT + width * time / end;
    let y = |value: f64| bottom - PANEL * value / most;
    let _ = write!(out, "<text class=\"t\" x=\"{LEFT}\" y=\"{}\">{title}</text>", top - 7.0);
    for step in 0..=2 {
        let value = most * f64::from(step) / 2.0;
        let _ = write!(
            out,
            "<line class=\"g\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{1:.1}\" y2=\"{1:.1}\"/>\
             <text class=\"n\" text-anchor=\"end\" x=\"{2}\" y=\"{3:.1}\">{value}</text>",
            LEFT + width,
            y(value),
            LEFT - 8.0,
            y(value) + 4.0
        );
    }
    for step in 0..=6 {
        let minutes = end / 60.0 * f64::from(step) / 6.0;
        let _ = write!(
            out,
            "<text class=\"n\" text-anchor=\"middle\" x=\"{:.1}\" y=\"{:.1}\">{minutes:.1}</text>",
            x(minutes * 60.0),
            bottom + 15.0
        );
    }
    let mut labels: Vec<(f64, &str, &str)> = Vec::new();
    for (name, class, values) in lines {
        let every = values.len().div_ceil(POINTS).max(1);
        let points: String = times
            .iter()
            .zip(values)
            .step_by(every)
            .map(|(time, value)| format!("{:.1},{:.1} ", x(*time), y(*value)))
            .collect();
        let _ = write!(out, "<polyline class=\"{class}\" points=\"{}\"/>", points.trim_end());
        labels.push((y(values.last().copied().unwrap_or_default()), name, class));
    }
    labels.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut last = f64::MIN;
    for (at, name, class) in labels {
        // Labels stand beside the ends of their curves and do not overlap.
        last = (at + 4.0).max(last + 15.0);
        let _ = write!(
            out,
            "<text class=\"l{class}\" x=\"{}\" y=\"{last:.1}\">{name}</text>",
            LEFT + width + 8.0
        );
    }
}

/// The next round number.
fn ceiling(value: f64) -> f64 {
    let unit = 10_f64.powf(value.log10().floor());
    [1.0, 2.0, 4.0, 5.0, 8.0, 10.0]
        .iter()
        .map(|step| step * unit)
        .find(|round| *round >= value)
        .unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(resident: impl Fn(u32) -> f64) -> Vec<String> {
        let samples: Vec<Sample> =
            (0..100).map(|at| Sample { resident: resident(at), ..Sample::default() }).collect();
        flat(&samples, 600).1
    }

    #[test]
    fn growth_after_the_beginning_is_seen_and_noise_is_not() {
        assert_eq!(run(|_| 100.0), Vec::<String>::new());
        // The figure warms up, has a peak, and varies.
        assert_eq!(run(|at| if at < 20 { f64::from(at) } else { 100.0 }), Vec::<String>::new());
        assert_eq!(run(|at| if at == 80 { 900.0 } else { 100.0 + f64::from(at % 7) }), Vec::<String>::new());
        assert_eq!(run(|at| 100.0 + f64::from(at)).len(), 1);
    }

    #[test]
    fn what_is_left_is_told() {
        let before = Sample { descriptors: 20.0, ..Sample::default() };
        assert!(back(&before, &Sample { descriptors: 19.0, ..before }).is_empty());
        assert_eq!(back(&before, &Sample { descriptors: 21.0, live: 1.0, ..before }).len(), 2);
    }

    #[test]
    fn a_picture_has_every_curve_with_its_name() {
        let samples: Vec<Sample> =
            (0..2000).map(|at| Sample { at: f64::from(at), resident: 50.0, ..Sample::default() }).collect();
        let svg = svg("a run", &samples);
        let curves: usize = PANELS.iter().map(|(_, curves)| curves.len()).sum();
        assert_eq!(svg.matches("<polyline").count(), curves + 3);
        for (_, curves) in PANELS {
            assert!(curves.iter().all(|(name, ..)| svg.contains(&format!(">{name}</text>"))));
        }
        assert!(svg.ends_with("</svg>\n") && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        assert!(svg.len() < 200_000, "{}", svg.len());
    }

    #[test]
    fn axes_end_at_round_numbers() {
        assert_eq!([0.7, 1.0, 3.0, 42.0, 81.0, 1001.0].map(ceiling), [0.8, 1.0, 4.0, 50.0, 100.0, 2000.0]);
    }
}
