//! The items of a session, as other parts of agentd ask for them.

use std::{path::Path, sync::Arc};

use agentd_config::Environment;
use agentd_protocol::{
    capabilities::{Capability, CapabilityKind, CapabilityList, CapabilitySource, GetCapabilitiesParams},
    resources::Diagnostic,
};
use serde_json::{Map, Value};

use crate::{
    agents::AgentDefinition,
    entry_values::entry_with_defaults,
    hooks::Hook,
    item::{Item, ItemDetail},
    rules::{Rule, RuleUse},
    standing::{ListedItem, Standing},
};

/// All items, kind by kind, with their standing; and what is wrong with their files.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Capabilities {
    /// The items. Within a kind in the order in which they count.
    pub items: Vec<ListedItem>,
    /// The faults of the files.
    pub warnings: Vec<Diagnostic>,
}

impl Capabilities {
    pub(crate) fn new(items: Vec<ListedItem>, warnings: Vec<Diagnostic>) -> Self {
        Self { items, warnings }
    }

    /// The items of a kind that count, the strongest first.
    pub fn counting(&self, kind: CapabilityKind) -> impl Iterator<Item = &Arc<Item>> {
        let of_kind = self.items.iter().filter(move |listed| listed.item.kind == kind);
        of_kind.filter(|listed| listed.standing.counts()).map(|listed| &listed.item)
    }

    /// The rules that count, instructions for some files among them; those without a use, too.
    pub fn rules(&self) -> impl Iterator<Item = Rule<'_>> {
        let rules = self.counting(CapabilityKind::Rules).chain(self.counting(CapabilityKind::Instructions));
        rules.map(|item| Rule::of(item))
    }

    /// The definitions of agents that count.
    pub fn agents(&self) -> impl Iterator<Item = AgentDefinition<'_>> {
        self.counting(CapabilityKind::Agents).filter_map(|item| AgentDefinition::of(item))
    }

    /// The hooks that count, in their order.
    pub fn hooks(&self) -> impl Iterator<Item = Hook<'_>> {
        self.counting(CapabilityKind::Hooks).filter_map(|item| Hook::of(item))
    }

    /// Commands, then prompt templates, that count.
    pub fn commands(&self) -> impl Iterator<Item = &Arc<Item>> {
        self.counting(CapabilityKind::SlashCommands).chain(self.counting(CapabilityKind::Prompts))
    }

    /// The MCP servers that count: name, file, and the entry as in `mcp.json`. Defaults of variables that are not set are filled in; the
    /// variables are not.
    pub fn servers<'a>(
        &'a self,
        environment: &'a Environment,
    ) -> impl Iterator<Item = (&'a str, &'a Path, Map<String, Value>)> {
        self.counting(CapabilityKind::Mcps).filter_map(move |item| match &item.detail {
            ItemDetail::Server(entry) => {
                Some((item.name.as_str(), item.path.as_path(), entry_with_defaults(entry, environment)))
            }
            _ => None,
        })
    }

    /// The answer to `get_capabilities`.
    #[must_use]
    pub fn list(&self, params: &GetCapabilitiesParams) -> CapabilityList {
        let GetCapabilitiesParams { kind, include_shadowed } = *params;
        let items = self.items.iter().filter(|listed| kind.is_none_or(|kind| listed.item.kind == kind));
        let items = items.filter(|listed| include_shadowed || !listed.standing.is_shadowed());
        CapabilityList { items: items.map(shown).collect(), warnings: self.warnings.clone() }
    }

    /// The number of items that another one shadows.
    #[must_use]
    pub fn shadowed(&self) -> usize {
        self.items.iter().filter(|listed| listed.standing.is_shadowed()).count()
    }

    /// The number of items that wait for the project's trust.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.items.iter().filter(|listed| listed.standing == Standing::WaitsForTrust).count()
    }
}

fn shown(listed: &ListedItem) -> Capability {
    let ListedItem { item, standing } = listed;
    // A rule that counts and has no effect is told why.
    let is_rule = matches!(item.kind, CapabilityKind::Rules | CapabilityKind::Instructions);
    let is_unused = is_rule && standing.counts() && Rule::of(item).use_in_prompt() == RuleUse::Unused;
    let unused = is_unused.then(|| "it has neither alwaysApply nor globs nor a description".to_owned());
    Capability {
        kind: item.kind,
        id: item.id.clone(),
        name: item.name.clone(),
        description: item.description.clone(),
        source: CapabilitySource {
            provider: item.provider.id.to_owned(),
            provider_name: item.provider.name.to_owned(),
            path: item.path.display().to_string(),
            level: item.level,
        },
        counts: standing.counts() && !is_unused,
        shadowed: standing.is_shadowed(),
        disabled: matches!(standing, Standing::Disabled | Standing::LeftOut | Standing::SwitchedOff),
        reason: standing.reason().or(unused),
    }
}
