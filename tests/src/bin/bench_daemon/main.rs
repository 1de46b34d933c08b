//! Measures the daemon, with a model server of its own on this machine: `cargo run --release -p agentd-e2e --bin
//! bench_daemon -- [--quick] [SCENARIO…]`. docs/performance.md says what the figures mean.
//!
//! A row for each figure, and a line of JSON for each scenario when it is done. `--quick` measures the same with less of
//! it: to see that everything works, not to compare.

// What goes wrong ends the measurement with what was seen, as in a test.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod attach;
mod crowd;
mod fan_out;
mod floor;
mod latency;
mod memory;
mod readers;
mod report;
mod start;
mod tools;

use std::{
    env,
    io::{self, Write},
    process::ExitCode,
};

use report::Report;

/// How much is measured.
#[derive(Clone, Copy)]
struct Scale {
    is_quick: bool,
}

impl Scale {
    /// The number to use: the first one, and the second one when it has to be quick.
    fn of(self, full: usize, quick: usize) -> usize {
        if self.is_quick { quick } else { full }
    }
}

type Scenario = (&'static str, &'static str, fn(Scale, &mut Report));

const SCENARIOS: &[Scenario] = &[
    ("start", "from nothing to the first answer, and a prompt's round trip", start::run),
    ("memory", "the daemon with sessions that do nothing", memory::run),
    ("attach", "joining a long session", attach::run),
    ("latency", "from the model server's byte to the client's", latency::run),
    ("fan-out", "one answer for many clients, and the floor", fan_out::run),
    ("crowd", "many sessions at work at once", crowd::run),
    ("tools", "tool calls, beside other programs", tools::run),
];

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    if let Some((floor::COMMAND, args)) = args.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        floor::write(args);
        return ExitCode::SUCCESS;
    }
    let scale = Scale { is_quick: args.iter().any(|arg| arg == "--quick") };
    let names: Vec<&str> = args.iter().map(String::as_str).filter(|arg| *arg != "--quick").collect();
    let unknown = |name: &&&str| SCENARIOS.iter().all(|(known, ..)| known != *name);
    if let Some(name) = names.iter().find(unknown) {
        let list: String =
            SCENARIOS.iter().map(|(name, about, _)| format!("\n  {name:<10}{about}")).collect();
        let _ = writeln!(io::stderr(), "There is no scenario {name}. There are:{list}");
        return ExitCode::from(2);
    }
    if cfg!(debug_assertions) {
        let _ = writeln!(io::stderr(), "Built without --release: the figures say nothing.");
    }
    for (name, about, run) in SCENARIOS {
        if names.is_empty() || names.contains(name) {
            let mut report = Report::begin(name, about);
            run(scale, &mut report);
            report.end();
        }
    }
    ExitCode::SUCCESS
}
