//! Kills the daemon at bad moments, starts it again, and compares what is there with what was acknowledged.
//!
//! A **life** is one home: some rounds, then an end as it should be. A **round** starts the daemon, looks whether
//! everything that was ever acknowledged is there, puts it under load, and kills it: at a named fail point, at a random
//! moment, or in the middle of its start. What a life decides follows from the seed and the life's number alone.

mod check;
mod client;
mod daemon;
mod file;
mod leftovers;
mod life;
mod load;
mod model_server;
mod plan;
mod points;
mod record;
mod reopen;

use std::{
    process,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Instant,
};

use serde_json::{Value, json};

use crate::{Outcome, options::Options, say};
use model_server::Model;
use points::Points;

/// Where a promise did not hold.
#[derive(Debug, Clone)]
pub(crate) struct Violation {
    /// The promise, in a word or two.
    pub(crate) promise: &'static str,
    /// What was seen.
    pub(crate) seen: String,
}

/// What all lives share.
pub(crate) struct Shared {
    pub(crate) seed: u64,
    /// How many kills there are to be.
    pub(crate) wanted: u64,
    /// How many there were, or are about to be.
    pub(crate) kills: AtomicU64,
    pub(crate) points: Points,
    /// How often things happened that are no violations, by name.
    pub(crate) counts: Counts,
    violations: Mutex<Vec<Value>>,
    is_quiet: bool,
    /// Homes of lives with violations are kept.
    pub(crate) keep: bool,
}

/// Named counters.
#[derive(Default)]
pub(crate) struct Counts(Mutex<Vec<(&'static str, u64)>>);

impl Counts {
    pub(crate) fn add(&self, name: &'static str, number: u64) {
        let mut counts = self.0.lock().unwrap();
        match counts.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += number,
            None => counts.push((name, number)),
        }
    }

    fn value(&self) -> Value {
        let mut counts = self.0.lock().unwrap().clone();
        counts.sort_unstable();
        counts.into_iter().map(|(name, count)| (name.to_owned(), json!(count))).collect()
    }
}

impl Shared {
    /// Says what was wrong, and how to see it again.
    pub(crate) fn report(&self, life: u64, round: usize, home: &str, violations: &[Violation]) {
        for Violation { promise, seen } in violations {
            if !self.is_quiet {
                say::error(&format!(
                    "VIOLATION ({promise}) life {life} round {round}: {seen}\n  home: {home}"
                ));
            }
            let mut all = self.violations.lock().unwrap();
            all.push(json!({"life": life, "round": round, "promise": promise, "seen": seen}));
        }
    }
}

/// Runs the sub-command.
pub(crate) fn run(options: &mut Options) -> Result<Outcome, String> {
    let wanted = options.value("--kills")?.unwrap_or(100);
    let parallel = options.value("--parallel")?.unwrap_or(3);
    let only_life: Option<u64> = options.value("--life")?;
    let points: Option<String> = options.value("--points")?;
    let keep = options.flag("--keep");
    let must_cover = options.flag("--cover");
    options.end()?;
    let points = Points::ask(points.as_deref())?;
    let shared = Shared {
        seed: options.seed,
        wanted,
        kills: AtomicU64::new(0),
        points,
        counts: Counts::default(),
        violations: Mutex::default(),
        is_quiet: options.is_quiet,
        keep,
    };
    let begun = Instant::now();
    let lives = AtomicU64::new(0);
    thread::scope(|scope| {
        for worker in 0..if only_life.is_some() { 1 } else { parallel } {
            let (shared, lives) = (&shared, &lives);
            scope.spawn(move || {
                let model = Model::start(&format!("{:06}{worker:02}", process::id() % 1_000_000));
                if let Some(life) = only_life {
                    return life::live(shared, &model, life);
                }
                while shared.kills.load(Ordering::Relaxed) < wanted {
                    life::live(shared, &model, lives.fetch_add(1, Ordering::Relaxed));
                }
            });
        }
    });
    let seconds = begun.elapsed().as_secs_f64();
    let kills = shared.kills.load(Ordering::Relaxed);
    let violations = shared.violations.into_inner().unwrap();
    let missed = shared.points.missed();
    let held = violations.is_empty() && (!must_cover || missed.is_empty());
    let summary = json!({
        "kills": kills, "lives": lives.into_inner(), "seconds": (seconds * 10.0).round() / 10.0,
        "kills_per_second": (f64::from(u32::try_from(kills).unwrap_or(u32::MAX)) / seconds * 10.0).round() / 10.0,
        "points": shared.points.value(), "points_never_passed": missed,
        "counts": shared.counts.value(), "violations": violations,
    });
    Ok(Outcome { held, summary })
}
