//! Loading the extensions of a host, or taking them over as they are loaded.

use std::{
    sync::{Arc, PoisonError, Weak},
    time::Duration,
};

use serde_json::{Map, Value, json};

use super::Runtime;
use crate::{
    connection::RequestTerms,
    early::{EarlyExtension, EarlyExtensions},
    host::{ExtensionToLoad, Host, HostEvents},
    setup::LoadError,
};

impl Runtime {
    /// Starts a host, unless it runs already, and loads its extensions.
    ///
    /// # Errors
    /// [`LoadError`] of the first that could not be loaded.
    pub(crate) async fn load(&self, host: usize, reason: &str, clear_cache: bool) -> Result<(), LoadError> {
        match self.load_all(host, reason, clear_cache).await.into_iter().next() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// The same: all that could not be loaded. Nothing of them is registered.
    pub(crate) async fn load_all(&self, host: usize, reason: &str, clear_cache: bool) -> Vec<LoadError> {
        let slot = &self.hosts[host];
        let failed = |extension: usize, reason: String| {
            self.discard(extension);
            self.states.failed(extension, &reason);
            LoadError { path: self.path(extension).to_owned(), reason }
        };
        let all_failed = |reason: String| {
            slot.extensions.iter().map(|extension| failed(*extension, reason.clone())).collect()
        };
        let mut early = self.take_early(slot);
        if slot.down().is_some() {
            early.clear();
            let events: Weak<dyn HostEvents> = self.me.clone();
            let surroundings = (&self.setup.launcher, &self.setup.tasks);
            if let Err(error) = slot.start(host, surroundings, events, &self.setup.facts).await {
                return all_failed(format!("its host could not be started: {error}"));
            }
        }
        let to_load = || slot.extensions.iter().filter(|extension| !early.contains(extension));
        if !early.is_empty() && to_load().next().is_none() {
            return Vec::new();
        }
        let extensions: Vec<ExtensionToLoad> = to_load()
            .map(|extension| {
                let source = &self.setup.sources[*extension];
                ExtensionToLoad {
                    ext: self.ext(*extension),
                    path: source.path.clone(),
                    entry: source.entry.display().to_string(),
                    base_dir: source.base_dir.display().to_string(),
                    source_info: serde_json::to_value(&source.source_info).unwrap_or_default(),
                }
            })
            .collect();
        let loaded = slot.load(&self.setup.facts, (reason, clear_cache), &extensions).await;
        let loaded = match loaded {
            Ok(loaded) => loaded,
            Err(error) => return all_failed(self.explain(&error, "load")),
        };
        let mut errors = Vec::new();
        for extension in to_load() {
            match loaded.iter().find(|loaded| loaded.ext == self.ext(*extension)) {
                Some(loaded) if loaded.ok => self.states.loaded(*extension, loaded.ms),
                Some(loaded) => {
                    let reason = loaded.error.clone().unwrap_or_else(|| "it failed".to_owned());
                    errors.push(failed(*extension, reason));
                }
                None => errors.push(failed(*extension, "its host did not load it".to_owned())),
            }
        }
        errors
    }

    /// The values of the flags of the command line. They were checked when the extensions were first loaded; one that nobody has any more has none.
    fn flag_values(&self) -> Map<String, Value> {
        let registrations = self.registrations();
        let values = |flag| registrations.flag_values(std::slice::from_ref(flag)).ok();
        self.setup.flags.iter().filter_map(values).flatten().collect()
    }

    /// Lets the extensions of a host act.
    pub(crate) async fn bind(&self, host: usize) {
        let core = self.core.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let fields = json!({"epoch": self.hosts[host].epoch(), "flags": self.flag_values(), "core": core});
        let terms = RequestTerms { limit: Some(Duration::from_secs(60)), ..RequestTerms::default() };
        if let Err(error) = self.hosts[host].request("bind", &fields, terms).await {
            self.failed("<host>".to_owned(), "bind", self.explain(&error, "bind"));
        }
    }

    /// Notes the extensions of a host that are loaded already, and the place of each.
    pub(super) fn take_over(&self, host: &Host, before: &EarlyExtensions, places: &mut [Option<usize>]) {
        for extension in &host.extensions {
            let entry = &self.setup.sources[*extension].entry;
            let Some(at) = before.extensions.iter().position(|early| early.entry == *entry) else { continue };
            places[at] = Some(*extension);
            self.states.set(*extension, before.extensions[at].state.clone());
            self.early.lock().unwrap_or_else(PoisonError::into_inner).push(*extension);
        }
    }

    /// The extensions of a host that are loaded already, once.
    fn take_early(&self, host: &Host) -> Vec<usize> {
        let mut early = self.early.lock().unwrap_or_else(PoisonError::into_inner);
        early.extract_if(.., |extension| host.extensions.contains(extension)).collect()
    }

    /// The extensions as they are loaded.
    pub(crate) fn as_early(&self) -> EarlyExtensions {
        let extensions = self.setup.sources.iter().zip(&self.numbers).zip(self.states.all());
        let extensions = extensions.map(|((source, number), state)| EarlyExtension {
            entry: source.entry.clone(),
            number: *number,
            state,
        });
        EarlyExtensions { extensions: extensions.collect(), registrations: Arc::clone(&self.registrations) }
    }
}
