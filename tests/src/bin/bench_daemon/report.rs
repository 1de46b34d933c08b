//! Figures: rows for people, and a line of JSON for programs.

use std::{
    io::{self, Write},
    time::Duration,
};

use serde_json::{Map, Value, json};

/// The amount of work.
#[derive(Clone, Copy)]
pub(crate) struct Scale {
    pub(crate) is_quick: bool,
}

impl Scale {
    /// Returns `full`, or `quick` with `--quick`.
    pub(crate) fn of(self, full: usize, quick: usize) -> usize {
        if self.is_quick { quick } else { full }
    }
}

/// The figures of a scenario.
pub(crate) struct Report {
    scenario: &'static str,
    figures: Map<String, Value>,
}

impl Report {
    pub(crate) fn begin(scenario: &'static str, about: &str) -> Self {
        say(&format!("{scenario}: {about}"));
        Self { scenario, figures: Map::new() }
    }

    /// A figure, rounded to three decimals.
    pub(crate) fn figure(&mut self, name: &str, value: f64, unit: &str) {
        let value = (value * 1000.0).round() / 1000.0;
        say(&format!("  {name:<64} {value:>12} {unit}"));
        self.figures.insert(format!("{name} ({unit})"), json!(value));
    }

    pub(crate) fn bytes(&mut self, name: &str, bytes: u64) {
        self.figure(name, exact(bytes) / 1024.0, "KiB");
    }

    pub(crate) fn time(&mut self, name: &str, time: Duration) {
        self.figure(name, time.as_secs_f64() * 1000.0, "ms");
    }

    /// Median and a high percentile of times.
    pub(crate) fn times(&mut self, name: &str, times: &mut [Duration], percentile: usize) {
        times.sort_unstable();
        let at = |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)];
        let micros = |time: Duration| time.as_secs_f64() * 1e6;
        self.figure(&format!("{name}, median of {}", times.len()), micros(at(50)), "µs");
        self.figure(&format!("{name}, p{percentile}"), micros(at(percentile)), "µs");
    }

    /// The median of times.
    pub(crate) fn median(&mut self, name: &str, times: &mut [Duration]) {
        times.sort_unstable();
        self.time(name, times[times.len() / 2]);
    }

    /// A remark.
    pub(crate) fn note(&self, text: &str) {
        say(&format!("  {}: {text}", self.scenario));
    }

    pub(crate) fn end(self) {
        say(&json!({"scenario": self.scenario, "figures": self.figures}).to_string());
    }
}

/// A count as a floating-point number.
#[expect(clippy::cast_precision_loss, reason = "no count here comes near 2^53")]
pub(crate) fn exact(count: u64) -> f64 {
    count as f64
}

fn say(line: &str) {
    let mut out = io::stdout().lock();
    // The reader may be gone; the error is ignored.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
