//! Hosts that outlive the extensions that they ran: the next extensions of the session, or those of the session after it, are loaded into
//! the same processes, so that what code keeps in them survives.

use std::{
    path::{Path, PathBuf},
    sync::Weak,
};

use crate::{
    early::EarlyExtensions, event::EventSet, flags::GivenFlag, host::HostLink, process::HostProgram,
    session::ExtensionFailure,
};

/// Extensions that others come after.
pub(crate) trait Predecessor: Send + Sync {
    /// From here on failures go to `successor`, where the session is gone.
    fn followed_by(&self, successor: Weak<dyn Successor>);
}

/// Extensions that came after others.
pub(crate) trait Successor: Send + Sync {
    /// A failure of code of those before.
    fn take_failure(&self, failure: ExtensionFailure);
}

/// A process that is kept.
struct KeptLink {
    program: HostProgram,
    link: HostLink,
    /// The files of the extensions that it has loaded.
    loaded: Vec<PathBuf>,
}

/// Hosts that wait for the extensions of a session. They have none, or those that the session has been asked about first
/// ([`SessionExtensions::into_kept`](crate::SessionExtensions::into_kept)). Dropped, they end.
#[derive(Default)]
pub struct KeptHosts {
    links: Vec<KeptLink>,
    /// The extensions that are loaded in them.
    pub(crate) early: EarlyExtensions,
    pub(crate) flags: Vec<GivenFlag>,
    /// The extensions that decided about something, by their paths, and about what.
    pub(crate) gates: Vec<(String, EventSet)>,
    /// Where the extensions came from.
    pub(crate) predecessor: Option<Weak<dyn Predecessor>>,
}

impl KeptHosts {
    /// None yet, after these extensions.
    pub(crate) fn after(
        predecessor: Weak<dyn Predecessor>,
        flags: Vec<GivenFlag>,
        gates: Vec<(String, EventSet)>,
    ) -> Self {
        let (links, early) = (Vec::new(), EarlyExtensions::default());
        Self { links, early, flags, gates, predecessor: Some(predecessor) }
    }

    /// Keeps a process, and the extensions of these files that it has loaded.
    pub(crate) fn push(&mut self, program: HostProgram, link: HostLink, loaded: Vec<PathBuf>) {
        self.links.push(KeptLink { program, link, loaded });
    }

    /// The program of the process that has loaded the extension of that file.
    pub(crate) fn program_of(&self, entry: &Path) -> Option<&HostProgram> {
        let runs = |kept: &&KeptLink| !kept.link.has_ended() && kept.has_loaded(entry);
        self.links.iter().find(runs).map(|kept| &kept.program)
    }

    /// A host of this program that runs, for the extensions of these files, and whether it has loaded some of them. One that has loaded
    /// others is left alone.
    pub(crate) fn take(&mut self, program: &HostProgram, entries: &[&Path]) -> Option<(HostLink, bool)> {
        let is_fit = |kept: &KeptLink| {
            kept.program.can_run(program)
                && !kept.link.has_ended()
                && (kept.loaded.is_empty() || entries.iter().any(|entry| kept.has_loaded(entry)))
        };
        let KeptLink { link, loaded, .. } = self.links.swap_remove(self.links.iter().position(is_fit)?);
        Some((link, !loaded.is_empty()))
    }

    /// Ends the processes; what else is kept stays.
    #[must_use]
    pub fn without_processes(mut self) -> Self {
        self.end();
        self
    }

    /// What is kept besides the processes, for extensions that are started without them.
    #[must_use]
    pub fn remains(&self) -> Self {
        let (flags, gates) = (self.flags.clone(), self.gates.clone());
        let (links, early) = (Vec::new(), EarlyExtensions::default());
        Self { links, early, flags, gates, predecessor: None }
    }

    /// The flags that the extensions had.
    #[must_use]
    pub fn flags(&self) -> &[GivenFlag] {
        &self.flags
    }

    fn end(&mut self) {
        self.links.drain(..).for_each(|kept| kept.link.end());
    }

    /// Ends the processes, and waits until they are gone.
    pub async fn ended(mut self) {
        let gone: Vec<_> = self.links.iter().map(|kept| kept.link.gone()).collect();
        self.end();
        for gone in gone {
            gone.cancelled().await;
        }
    }
}

impl KeptLink {
    fn has_loaded(&self, entry: &Path) -> bool {
        self.loaded.iter().any(|loaded| loaded == entry)
    }
}

impl Drop for KeptHosts {
    fn drop(&mut self) {
        self.end();
    }
}
