//! Measures the daemon, with a model server of its own on this machine: `cargo run --release -p agentd-e2e --bin
//! bench_daemon -- [--quick] [SCENARIO…]`. docs/performance.md says what the figures mean.
//!
//! Prints a row for each figure, and a line of JSON for each finished scenario. `--quick` does less of the same, to see that
//! everything works; its figures are not comparable.

// A failure ends the measurement with a panic, as in a test.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod agentctl;
mod children;
mod clients;
mod mcp;
mod process;
mod report;
mod tools;

use std::{
    env,
    io::{self, Write},
    process::ExitCode,
};

use report::{Report, Scale};

type Scenario = (&'static str, &'static str, fn(Scale, &mut Report));

const SCENARIOS: &[Scenario] = &[
    ("start", "from nothing to the first answer, and a prompt's round trip", process::run_start),
    ("memory", "the daemon with sessions that do nothing", process::run_memory),
    ("attach", "joining a long session", clients::attach_to_long_session),
    ("latency", "from the model server's byte to the client's", process::run_latency),
    ("fan-out", "one answer for many clients, and the floor", clients::run_fan_out),
    ("crowd", "many sessions at work at once", clients::run_crowd),
    ("children", "subagents: their start, their memory, their events for one watcher", children::run),
    ("prompt", "agentctl prompt, as a shell sees it", agentctl::run_prompt),
    ("chat", "the interactive client on a long conversation", agentctl::run_chat),
    ("mcp", "tools of MCP servers, and servers that nothing needs", mcp::run),
    ("tools", "tool calls, beside other programs", tools::run),
];

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    if let Some((process::FLOOR_COMMAND, args)) =
        args.split_first().map(|(first, rest)| (first.as_str(), rest))
    {
        process::write_floor(args);
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
