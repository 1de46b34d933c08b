//! Counts the instructions of what agentd does most often, and compares them with those on record: `cargo run --locked -p agentd-e2e --bin
//! hot_paths`. docs/performance.md says what the paths are.
//!
//! `valgrind` counts, so that neither the machine's speed nor its load matters. A path is run twice, with little and with more of the same, and
//! the difference is divided: what the start takes does not count, except for the path that is the start.
//!
//! `--record` writes the counts of this build to `tests/data/hot-paths.json`. Ends with 77 where it cannot count: without `valgrind`, or with
//! another compiler or profile than the one of the record.

// A failure ends the program with a panic, as in a test.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod paths;
mod record;

use std::{
    env,
    io::{self, Write},
    iter,
    num::NonZero,
    process::{Command, ExitCode, Stdio},
    sync::{
        OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use paths::{HotPath, PATHS};
use record::Record;

/// The exit code where nothing can be said, as in other programs of this repository.
const SKIPPED: u8 = 77;

/// How much more than on record a path may take.
const TOLERANCE: f64 = 0.05;

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let is_recorded = args.iter().any(|arg| arg == "--record");
    let names: Vec<&str> = args.iter().map(String::as_str).filter(|arg| *arg != "--record").collect();
    if let Some(name) = names.iter().find(|name| PATHS.iter().all(|path| path.name != **name)) {
        let list: String = PATHS.iter().map(|path| format!("\n  {:<12}{}", path.name, path.about)).collect();
        say(&format!("There is no path {name}. There are:{list}"));
        return ExitCode::from(2);
    }
    let has_valgrind =
        Command::new("valgrind").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !has_valgrind.is_ok_and(|status| status.success()) {
        say("SKIPPED: valgrind, which counts the instructions, is not installed.");
        return ExitCode::from(SKIPPED);
    }
    let known = Record::load();
    if !is_recorded && !known.is_of_this_build() {
        say(&format!(
            "SKIPPED: the counts on record are of {}, and this is {}.",
            known.build,
            record::build()
        ));
        return ExitCode::from(SKIPPED);
    }
    let mut counted = if is_recorded { Record::of_this_build() } else { known.clone() };
    if is_recorded && !names.is_empty() && known.is_of_this_build() {
        counted.instructions.clone_from(&known.instructions);
    }
    let mut grown = Vec::new();
    let wanted: Vec<&HotPath> =
        PATHS.iter().filter(|path| names.is_empty() || names.contains(&path.name)).collect();
    for (path, now) in wanted.iter().copied().zip(count_all(&wanted)) {
        let before = known.instructions.get(path.name).copied();
        let change = before.map(|before| now as f64 / before as f64 - 1.0);
        let shown = change.map_or_else(String::new, |change| format!("{:+.1} %", change * 100.0));
        say(&format!("{:<12} {now:>14} instructions {shown:>9}  {}", path.name, path.about));
        if change.is_none_or(|change| change > TOLERANCE) {
            grown.push((path, before, now));
        }
        counted.instructions.insert(path.name.to_owned(), now);
    }
    if is_recorded {
        counted.save();
        return ExitCode::SUCCESS;
    }
    for (path, before, now) in &grown {
        let before = before.map_or_else(|| "nothing".to_owned(), |before| before.to_string());
        say(&format!(
            "{}: {now} instructions, and {before} on record: more than {:.0} % above it. See what is new there \
             (`valgrind --tool=callgrind`, then callgrind_annotate); where it has to be, run hot_paths --record {} and say why in \
             the commit.",
            path.name,
            TOLERANCE * 100.0,
            path.name
        ));
    }
    if grown.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The instructions of each path, counted side by side: each takes one processor for most of its time.
fn count_all(paths: &[&HotPath]) -> Vec<u64> {
    let next = AtomicUsize::new(0);
    let counts: Vec<OnceLock<u64>> = paths.iter().map(|_| OnceLock::new()).collect();
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, NonZero::get) {
            scope.spawn(|| {
                let places = iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
                for at in places.take_while(|at| *at < paths.len()) {
                    counts[at].get_or_init(|| paths[at].instructions());
                }
            });
        }
    });
    counts.into_iter().map(|count| count.into_inner().expect("a count of each path")).collect()
}

fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}
