//! What the files of agentd and of other tools give a session: capability discovery, and where it takes effect.
//!
//! The files are looked at when they are needed, as skills and prompt templates are; [`DiscoveryCache`](agentd_discovery::DiscoveryCache)
//! keeps what is in them for as long as none of them changes. Everything here reads files and blocks.

mod agents;
mod found;
mod own_items;
mod prompt_texts;

pub(crate) use agents::ContextLookup;
pub(crate) use found::FoundCapabilities;

use agentd_config::resources::DiscoveredResources;
use agentd_discovery::{Capabilities, DiscoveryPlace, merge, provider_ids};
use agentd_protocol::{
    capabilities::{CapabilityList, GetCapabilitiesParams},
    resources::{Diagnostic, DiagnosticKind, DiagnosticLevel},
};

use crate::context::SessionContext;

impl SessionContext {
    /// Whether files of the project count that need trust.
    fn trusts_project(&self) -> bool {
        self.prompt.is_trusted() && self.prompt.is_of_cwd
    }

    pub(crate) fn discovery_place(&self) -> DiscoveryPlace {
        DiscoveryPlace::of(&self.cwd, &self.agent_dir, &self.environment)
    }

    /// The items of agentd's and of other tools' files, without those that are read as pi reads them. Reads files; blocks.
    pub(crate) fn capabilities(&self) -> FoundCapabilities {
        let (place, switches) = (self.discovery_place(), self.discovery.get());
        let snapshot = self.services.discovery.scan(&place, &switches);
        let found = merge(Vec::new(), &snapshot, &switches, self.trusts_project());
        FoundCapabilities::new(place, found)
    }

    /// The answer to `get_capabilities`. Reads files; blocks.
    pub(crate) fn capability_list(&self, params: &GetCapabilitiesParams) -> CapabilityList {
        self.all_capabilities().list(params)
    }

    /// All items, those included that are read as pi reads them.
    fn all_capabilities(&self) -> Capabilities {
        let (place, switches) = (self.discovery_place(), self.discovery.get());
        let snapshot = self.services.discovery.scan(&place, &switches);
        merge(self.own_items(), &snapshot, &switches, self.trusts_project())
    }

    /// The skills, commands and prompt templates of other tools' files that this session uses.
    pub(crate) fn discovered_resources(&self, capabilities: &Capabilities) -> DiscoveredResources {
        let flags = &self.prompt.flags;
        let mut found = capabilities.resources();
        if flags.no_skills {
            found.skills.clear();
        }
        if flags.no_prompts {
            found.prompts.clear();
        }
        found
    }

    /// What is wrong with the files. Notes about what works as it stands are left out. Reads files; blocks.
    pub(crate) fn discovery_diagnostics(&self) -> Vec<Diagnostic> {
        let (place, switches) = (self.discovery_place(), self.discovery.get());
        let snapshot = self.services.discovery.scan(&place, &switches);
        let of_files = snapshot.warnings.iter().filter(|it| it.level > DiagnosticLevel::Info).cloned();
        let known: Vec<&str> = provider_ids().collect();
        let of_settings = switches.unknown_providers(&known).into_iter().map(|name| {
            let message = format!("\"discovery\" names the provider \"{name}\", which there is not");
            let known = known.join(", ");
            Diagnostic::warning(DiagnosticKind::Settings, message)
                .at(self.agent_dir.settings_file())
                .hint(format!("there are {known}"))
        });
        of_files.chain(of_settings).collect()
    }
}
