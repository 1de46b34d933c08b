//! Kills the daemon at bad moments, starts it again, and compares its state with what was acknowledged.
//!
//! A **life** is one home: some rounds, then a regular end. A **round** starts the daemon, checks that everything ever
//! acknowledged is there, puts it under load, and kills it: at a named fail point, at a random moment, or in the middle of
//! its start. The decisions of a life follow from the seed and the life's number alone.

mod check;
mod client;
mod daemon;
mod life;
mod load;
mod model_server;
mod record;
mod shared;

use std::{
    process,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Instant,
};

use model_server::Model;
use serde_json::json;
use shared::{Counts, Points, Shared};

use crate::cli::{Options, Outcome};

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
