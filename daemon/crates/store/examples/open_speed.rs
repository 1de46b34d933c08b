//! How long opening a session file takes, and what of it: `cargo run --release -p agentd-store --example open_speed -- FILE`.
//!
//! The floor is reading the file and finding its lines, which every program has to do.

use std::{
    fs::File,
    io::{self, Read, Write},
    path::PathBuf,
    time::{Duration, Instant},
};

use agentd_store::{Context, StatsCounter, Store, StoreOptions, context_usage};

/// The runs of each measurement.
const RUNS: usize = 7;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = PathBuf::from(std::env::args_os().nth(1).ok_or("the session file is missing")?);
    let store = Store::new(StoreOptions::default());
    let mut out = io::stdout().lock();
    writeln!(out, "{:.1} MB; median and least of {RUNS}", file.metadata()?.len() as f64 / 1e6)?;
    report(&mut out, "reading and counting lines (the floor)", || {
        let (mut file, mut chunk, mut lines) = (File::open(&file)?, vec![0; 256 << 10], 0);
        loop {
            match file.read(&mut chunk)? {
                0 => return Ok(lines),
                count => lines += memchr::memchr_iter(b'\n', &chunk[..count]).count(),
            }
        }
    })?;
    let open = || store.reopen(&file).map_err(io::Error::other);
    report(&mut out, "opening", open)?;
    let session = open()?;
    report(&mut out, "the context", || Ok(Context::new(&session.tree)))?;
    let context = Context::new(&session.tree);
    report(&mut out, "its size", || Ok(context_usage(&session.tree, &context, 200_000)))?;
    report(&mut out, "counting", || Ok(StatsCounter::default().totals(&session.tree).clone()))?;
    Ok(())
}

fn report<T>(out: &mut impl Write, what: &str, mut work: impl FnMut() -> io::Result<T>) -> io::Result<()> {
    let mut times: Vec<Duration> = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        let began = Instant::now();
        let done = work()?;
        times.push(began.elapsed());
        drop(done);
    }
    times.sort_unstable();
    writeln!(out, "{what:<40} {:>8.1} {:>8.1} ms", ms(times[RUNS / 2]), ms(times[0]))
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
