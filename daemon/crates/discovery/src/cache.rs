//! Scans that are kept for as long as nothing changes that they looked at.

use std::{
    collections::{BTreeMap, VecDeque},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use agentd_files::{Stamp, stamp::now};
use agentd_protocol::resources::Diagnostic;

use crate::{
    absences::Absences, item::Item, place::DiscoveryPlace, provider::NATIVE, providers::PROVIDERS,
    scan::Scan, switches::Switches,
};

/// The scans that are kept: sessions of one project share one.
const MAX_KEPT: usize = 8;

/// What all providers found at one time.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// The items, those of the strongest provider first.
    pub items: Vec<Arc<Item>>,
    /// The faults of the files.
    pub warnings: Vec<Diagnostic>,
    /// The states of what was looked at, before it was read.
    stamps: BTreeMap<PathBuf, Stamp>,
    /// What was not there.
    absent: Absences,
    /// When the scan began, since the epoch.
    began: (i64, i64),
}

/// The last scans. Cheap where nothing is scanned: it then holds nothing.
#[derive(Debug, Default)]
pub struct DiscoveryCache {
    kept: Mutex<VecDeque<(CacheKey, Arc<Snapshot>)>>,
}

/// What a scan depends on beside the files.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CacheKey {
    cwd: PathBuf,
    root: PathBuf,
    home: Option<PathBuf>,
    agent_dir: PathBuf,
    switches: Switches,
    variables: [Option<String>; 4],
}

/// The variables that say where files are.
const VARIABLES: [&str; 4] =
    ["CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "COPILOT_CUSTOM_INSTRUCTIONS_DIRS"];

impl DiscoveryCache {
    /// What all providers find. Reads nothing again while no file and no folder changes that was looked at the last time; then it only looks
    /// at their states. Blocks.
    #[must_use]
    pub fn scan(&self, place: &DiscoveryPlace, switches: &Switches) -> Arc<Snapshot> {
        let key = CacheKey {
            cwd: place.cwd.clone(),
            root: place.bounds.root.clone(),
            home: place.home.clone(),
            agent_dir: place.agent_dir.clone(),
            switches: switches.of_reading(),
            variables: VARIABLES.map(|name| place.environment.get(name).map(str::to_owned)),
        };
        if let Some(snapshot) = self.take(&key).filter(|snapshot| snapshot.is_current()) {
            self.keep(key, Arc::clone(&snapshot));
            return snapshot;
        }
        let snapshot = Arc::new(Snapshot::of(place, switches));
        self.keep(key, Arc::clone(&snapshot));
        snapshot
    }

    fn take(&self, key: &CacheKey) -> Option<Arc<Snapshot>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|(known, _)| known == key)?;
        kept.remove(at).map(|(_, snapshot)| snapshot)
    }

    fn keep(&self, key: CacheKey, snapshot: Arc<Snapshot>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        // Another session may have scanned the same meanwhile.
        kept.retain(|(known, _)| *known != key);
        kept.push_front((key, snapshot));
        kept.truncate(MAX_KEPT);
    }
}

impl Snapshot {
    /// Runs all providers. Reads files; blocks.
    #[must_use]
    pub fn of(place: &DiscoveryPlace, switches: &Switches) -> Self {
        let began = now();
        let mut scan = Scan::new(place, switches, NATIVE);
        for (provider, read) in PROVIDERS {
            scan.begin(provider);
            read(&mut scan);
        }
        let Scan { items, warnings, stamps: looked_at, .. } = scan;
        let (mut stamps, mut absent) = (BTreeMap::new(), Absences::default());
        for (path, stamp) in looked_at {
            match stamp {
                Some(stamp) => drop(stamps.insert(path, stamp)),
                None => absent.add(path),
            }
        }
        Self { items, warnings, stamps, absent, began }
    }

    /// Returns whether everything is as it was when the scan looked at it.
    fn is_current(&self) -> bool {
        self.stamps.values().all(|stamp| stamp.is_old(self.began))
            && self.stamps.iter().all(|(path, stamp)| Stamp::of(path).as_ref() == Some(stamp))
            && self.absent.are_current()
    }
}

#[cfg(test)]
mod tests;
