//! Measures floors: the least that any program must do for what agentd does. `cargo run --release -p agentd-e2e --bin floors --
//! [--quick] [FLOOR…]`. docs/performance.md says beside which figures they stand.
//!
//! Prints a row for each: the median of its rounds, the least, and the processor time of this program alone for a round. `--quick` does
//! less of the same, to see that everything works; its figures are not comparable.

// A failure ends the measurement with a panic, as in a test.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod exchange;
mod files;
mod processes;
mod report;

use std::{
    env,
    io::{self, Write as _},
    process::ExitCode,
};

use report::{Scale, say};

type Floor = (&'static str, &'static str, fn(Scale));

const FLOORS: &[Floor] = &[
    ("prompt", "bytes of a prompt and of its answer", exchange::prompt),
    ("paced", "bytes of an answer that comes slowly", exchange::paced),
    ("command", "one shell command after the other, below a subreaper", processes::command),
    ("flood", "a shell command that writes 200 MB", processes::flood),
    ("search", "looking for a word in 50,000 files", files::search),
    ("lines", "reading 106 MB and counting lines", files::lines),
];

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let scale = Scale { is_quick: args.iter().any(|arg| arg == "--quick") };
    let names: Vec<&str> = args.iter().map(String::as_str).filter(|arg| *arg != "--quick").collect();
    let unknown = |name: &&&str| FLOORS.iter().all(|(known, ..)| known != *name);
    if let Some(name) = names.iter().find(unknown) {
        let list: String = FLOORS.iter().map(|(name, about, _)| format!("\n  {name:<10}{about}")).collect();
        let _ = writeln!(io::stderr(), "There is no floor {name}. There are:{list}");
        return ExitCode::from(2);
    }
    if cfg!(debug_assertions) {
        let _ = writeln!(io::stderr(), "Built without --release: the figures say nothing.");
    }
    for (name, about, run) in FLOORS {
        if names.is_empty() || names.contains(name) {
            say(&format!("{name}: {about}"));
            run(scale);
        }
    }
    ExitCode::SUCCESS
}
