//! State of all lives: violations, counters, and the fail points that the daemon has died at.

use std::sync::{
    Mutex,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

use agentd_e2e::binaries;
use serde_json::{Value, json};

use crate::cli;

/// A broken promise.
#[derive(Debug, Clone)]
pub(crate) struct Violation {
    /// The promise, in a word or two.
    pub(crate) promise: &'static str,
    /// The observation.
    pub(crate) seen: String,
}

/// The state that all lives share.
pub(crate) struct Shared {
    pub(crate) seed: u64,
    /// The number of kills to make.
    pub(crate) wanted: u64,
    /// The number of kills so far, including those about to happen.
    pub(crate) kills: AtomicU64,
    pub(crate) points: Points,
    /// Counts of events that are no violations, by name.
    pub(crate) counts: Counts,
    pub(crate) violations: Mutex<Vec<Value>>,
    pub(crate) is_quiet: bool,
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

    pub(crate) fn value(&self) -> Value {
        let mut counts = self.0.lock().unwrap().clone();
        counts.sort_unstable();
        counts.into_iter().map(|(name, count)| (name.to_owned(), json!(count))).collect()
    }
}

impl Shared {
    /// Prints violations, and how to repeat them.
    pub(crate) fn report(&self, life: u64, round: usize, home: &str, violations: &[Violation]) {
        for Violation { promise, seen } in violations {
            if !self.is_quiet {
                cli::error(&format!(
                    "VIOLATION ({promise}) life {life} round {round}: {seen}\n  home: {home}"
                ));
            }
            let mut all = self.violations.lock().unwrap();
            all.push(json!({"life": life, "round": round, "promise": promise, "seen": seen}));
        }
    }
}

/// The variable that arms fail points.
pub(crate) const VARIABLE: &str = "AGENTD_FAIL_POINTS";

/// Points that the load does not pass, with reasons.
const NOT_PASSED: &[(&str, &str)] =
    &[("change.step", CHANGES), ("change.done", CHANGES), ("change.taken_back", CHANGES)];

/// Why the points of changes of several files are not passed.
const CHANGES: &str = "the load has no language server; tests/e2e/file_changes.rs kills there";

/// The fail points, which are armed in turn.
pub(crate) struct Points {
    names: Vec<String>,
    /// The number of deaths at each point.
    died: Mutex<Vec<u64>>,
    next: AtomicUsize,
}

impl Points {
    /// All points of the programs under test, or the chosen ones, separated by commas.
    pub(crate) fn ask(chosen: Option<&str>) -> Result<Self, String> {
        if chosen == Some("none") {
            return Ok(Self { died: Mutex::default(), names: Vec::new(), next: AtomicUsize::new(0) });
        }
        // agentd lists all points when an unknown one is armed.
        let said =
            std::process::Command::new(binaries::agentd()).arg("--version").env(VARIABLE, "?").output();
        let said = said.map_err(|error| format!("agentd does not start: {error}"))?;
        let text = String::from_utf8_lossy(&said.stderr).into_owned();
        let list =
            text.split_once("there are: ").and_then(|(_, rest)| rest.lines().next()).unwrap_or_default();
        let all: Vec<String> = list.split(", ").map(str::to_owned).filter(|name| !name.is_empty()).collect();
        if all.is_empty() {
            return Err(format!("agentd names no fail points: {text}"));
        }
        let names = match chosen {
            None | Some("all") => all,
            Some(chosen) => {
                let chosen: Vec<String> = chosen.split(',').map(str::to_owned).collect();
                if let Some(unknown) = chosen.iter().find(|name| !all.contains(name)) {
                    return Err(format!("no fail point is called {unknown}; there are {}", all.join(", ")));
                }
                chosen
            }
        };
        Ok(Self { died: Mutex::new(vec![0; names.len()]), names, next: AtomicUsize::new(0) })
    }

    /// The next point, among those with the fewest deaths; `None` if there is none.
    pub(crate) fn take(&self) -> Option<&str> {
        if self.names.is_empty() {
            return None;
        }
        let died = self.died.lock().unwrap();
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        // Every second choice is the next point in turn, the others are points with the fewest deaths.
        let least = died.iter().enumerate().filter(|(index, _)| !is_excused(&self.names[*index]));
        let at = match least.min_by_key(|(index, died)| (**died, (index + turn) % self.names.len())) {
            Some((index, 0)) if turn % 2 == 1 => index,
            _ => (turn / 2) % self.names.len(),
        };
        Some(&self.names[at])
    }

    /// Counts a death at a point.
    pub(crate) fn died(&self, name: &str) {
        if let Some(at) = self.names.iter().position(|known| known == name) {
            self.died.lock().unwrap()[at] += 1;
        }
    }

    /// The points at which it never died and should have.
    pub(crate) fn missed(&self) -> Vec<String> {
        let died = self.died.lock().unwrap();
        let missed =
            self.names.iter().zip(died.iter()).filter(|(name, died)| **died == 0 && !is_excused(name));
        missed.map(|(name, _)| name.clone()).collect()
    }

    /// The deaths at each point.
    pub(crate) fn value(&self) -> Value {
        let died = self.died.lock().unwrap();
        self.names.iter().cloned().zip(died.iter().map(|died| json!(died))).collect()
    }
}

fn is_excused(name: &str) -> bool {
    NOT_PASSED.iter().any(|(excused, _)| *excused == name)
}
