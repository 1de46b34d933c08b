//! What is measured, and how it is shown.

use std::{
    fs,
    io::{self, Write as _},
    time::{Duration, Instant},
};

/// Whether to do less.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    pub(crate) is_quick: bool,
}

impl Scale {
    /// Returns `full`, or `quick` with `--quick`.
    pub(crate) fn of(self, full: usize, quick: usize) -> usize {
        if self.is_quick { quick } else { full }
    }
}

/// Measures `rounds` of something and prints a row.
pub(crate) fn measure(name: &str, rounds: usize, mut round: impl FnMut()) {
    let before = processor_time();
    let mut times: Vec<Duration> = (0..rounds)
        .map(|_| {
            let start = Instant::now();
            round();
            start.elapsed()
        })
        .collect();
    let own = (processor_time() - before) / u32::try_from(rounds).unwrap();
    times.sort_unstable();
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    let (median, least) = (ms(times[rounds / 2]), ms(times[0]));
    say(&format!("  {name:<52} median {median:>9.3} ms  least {least:>9.3} ms  own CPU {:>8.3} ms", ms(own)));
}

/// The processor time of this program's first thread.
fn processor_time() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split_whitespace().next().unwrap().parse().unwrap())
}

pub(crate) fn say(line: &str) {
    let mut out = io::stdout().lock();
    // The reader may be gone; the error is ignored.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
