//! What a round is to be: decided before it begins.

use std::time::Duration;

use agentd_e2e::Random;

use super::points::Points;

/// How the daemon of a round is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// `agentd serve`, with several clients.
    Serve,
    /// `agentd --stdio`, with its one host.
    Stdio,
}

/// When it dies.
#[derive(Debug, Clone)]
pub(crate) enum Moment {
    /// At a fail point, or when the load is over.
    Point {
        /// The point's name.
        name: String,
        /// What the variable says.
        armed: String,
    },
    /// After so many lines to clients, and a pause.
    Lines(u64, Duration),
    /// In the middle of its start: the clients have not been there yet.
    Start(Duration),
}

/// A round.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) mode: Mode,
    pub(crate) moment: Moment,
    /// Who cleans up is killed, too.
    pub(crate) with_guard: bool,
    /// How long the load goes on at most.
    pub(crate) load: Duration,
    /// The model streams for so long that some of it has to be kept.
    pub(crate) is_slow: bool,
    /// Seed of the round's own decisions.
    pub(crate) seed: u64,
}

/// Parts of the daemon that are at work once in its life, or seldom.
const SELDOM: &[&str] = &["socket", "owner", "guard", "trust", "copy", "delete", "export", "models", "auth"];

/// What arms a point for the time that it is passed for.
fn armed(name: &str, time: u64, torn: bool) -> String {
    match name {
        // These come after a failure alone: half a line is taken back, a file that could not be begun goes.
        "store.cut" => return "store.append@4:short,store.append@5:enospc,store.cut".to_owned(),
        "store.remove" => return "store.append@1+:enospc,store.remove".to_owned(),
        _ => {}
    }
    let part = name.split('.').next().unwrap_or_default();
    let time = if SELDOM.contains(&part) || name.starts_with("store.rename") || name == "store.link" {
        1
    } else {
        time
    };
    let time = if name.starts_with("intent_log.flush") { 1 } else { time };
    // A half written line is only possible where something is written.
    let written = name.ends_with(".append") || name.ends_with(".write");
    format!("{name}@{time}{}", if torn && written { ":torn" } else { "" })
}

/// Decides a round.
pub(crate) fn plan(random: &mut Random, round: usize, points: &Points) -> Plan {
    // All are drawn in every case, so that one decision does not move the others.
    let (kind, time, lines, pause, seed) = (
        random.below(0..100),
        random.below(0..100),
        random.below(1..90),
        random.below(0..100),
        random.bits(),
    );
    let torn = random.chance(25);
    let with_guard = random.chance(20);
    let is_slow = random.chance(3);
    let pause = match pause {
        0..60 => Duration::from_micros(pause * 50),
        60..95 => Duration::from_millis(pause - 60),
        _ => Duration::from_millis((pause - 90) * 20),
    };
    let point = if kind < 50 { points.take() } else { None };
    let moment = match point {
        Some(name) => {
            let time = match time {
                0..60 => 1,
                60..80 => 2,
                80..90 => 3,
                _ => time - 80,
            };
            Moment::Point { name: name.to_owned(), armed: armed(name, time, torn) }
        }
        None if kind < 92 => Moment::Lines(lines, pause),
        None => Moment::Start(pause),
    };
    let of_socket = matches!(&moment, Moment::Point { name, .. } if name.starts_with("socket."));
    let mode = if round % 3 == 2 && !of_socket { Mode::Stdio } else { Mode::Serve };
    // What streams is kept once a second.
    let is_slow =
        is_slow || matches!(&moment, Moment::Point { name, .. } if name.starts_with("intent_log.flush"));
    let load = Duration::from_millis(if is_slow { 3_000 } else { 600 });
    Plan { mode, moment, with_guard, load, is_slow, seed }
}
