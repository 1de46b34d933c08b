//! Hosts that outlive the extensions that they ran: the next extensions of the session, or those of the session after it, are loaded into
//! the same processes, so that what code keeps in them survives.

use std::sync::Weak;

use crate::{
    event::EventSet, flags::GivenFlag, host::HostLink, process::HostProgram, session::ExtensionFailure,
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

/// Hosts without extensions. Dropped, they end.
#[derive(Default)]
pub struct KeptHosts {
    links: Vec<(HostProgram, HostLink)>,
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
        Self { links: Vec::new(), flags, gates, predecessor: Some(predecessor) }
    }

    pub(crate) fn push(&mut self, program: HostProgram, link: HostLink) {
        self.links.push((program, link));
    }

    /// A host of this program that runs.
    pub(crate) fn take(&mut self, program: &HostProgram) -> Option<HostLink> {
        let at = self.links.iter().position(|(kept, link)| kept.can_run(program) && !link.has_ended())?;
        Some(self.links.swap_remove(at).1)
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
        Self { links: Vec::new(), flags, gates, predecessor: None }
    }

    /// The flags that the extensions had.
    #[must_use]
    pub fn flags(&self) -> &[GivenFlag] {
        &self.flags
    }

    fn end(&mut self) {
        self.links.drain(..).for_each(|(_, link)| link.end());
    }

    /// Ends the processes, and waits until they are gone.
    pub async fn ended(mut self) {
        let gone: Vec<_> = self.links.iter().map(|(_, link)| link.gone()).collect();
        self.end();
        for gone in gone {
            gone.cancelled().await;
        }
    }
}

impl Drop for KeptHosts {
    fn drop(&mut self) {
        self.end();
    }
}
