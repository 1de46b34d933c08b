//! What became of each extension, for people who look after them.

use std::sync::atomic::Ordering;

use agentd_protocol::extensions::{ExtensionHostKind, ExtensionState, ExtensionStatus};

use crate::{extensions::SessionExtensions, load_states::LoadState, source::ExtensionKind};

impl SessionExtensions {
    /// The state of each extension, in load order.
    #[must_use]
    pub fn overview(&self) -> Vec<ExtensionStatus> {
        let runtime = &self.0;
        let states = runtime.states.all();
        let mut registered = runtime.registrations().overview();
        let sources = runtime.setup.sources.iter().zip(states).enumerate();
        sources
            .map(|(extension, (source, LoadState { is_loaded, ms, last_error }))| {
                let host = runtime.host_of(extension);
                let state = match host.down() {
                    _ if host.is_restarting.load(Ordering::Relaxed) => ExtensionState::Restarting,
                    None if is_loaded => ExtensionState::Running,
                    _ => ExtensionState::Failed,
                };
                let of_host = host.down().filter(|_| state != ExtensionState::Running);
                let of = registered.get_mut(extension).map(std::mem::take).unwrap_or_default();
                ExtensionStatus {
                    path: source.path.clone(),
                    source_info: source.source_info.clone(),
                    kind: match source.kind {
                        ExtensionKind::Node => ExtensionHostKind::Node,
                        ExtensionKind::Native { .. } => ExtensionHostKind::Native,
                    },
                    host_pid: host.pid(),
                    state,
                    tools: of.tools,
                    commands: of.commands,
                    flags: of.flags,
                    events: of.events,
                    load_ms: ms,
                    last_error: last_error.or(of_host).map(|error| error.to_string()),
                }
            })
            .collect()
    }
}
