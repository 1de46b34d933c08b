//! Environments that sessions share: a thousand sessions of one user have few different ones.

use std::sync::{Mutex, PoisonError};

use agentd_config::Environment;

/// How many are remembered, the last used first.
const REMEMBERED: usize = 16;

/// The environments that were used last.
#[derive(Default)]
pub(super) struct Environments(Mutex<Vec<Environment>>);

impl Environments {
    /// An equal environment that is in memory already, if one is remembered.
    pub(super) fn share(&self, environment: Environment) -> Environment {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let shared = match known.iter().position(|other| *other == environment) {
            Some(at) => known.remove(at),
            None => environment,
        };
        known.insert(0, shared.clone());
        known.truncate(REMEMBERED);
        shared
    }
}
