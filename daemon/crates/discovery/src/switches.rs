//! The setting `discovery`, ready to be asked.

use std::collections::BTreeSet;

use agentd_protocol::{
    capabilities::CapabilityLevel,
    settings::{DiscoverySettings, matches_pattern},
};

use crate::provider::{NATIVE, Provider};

/// What the user switched on and off.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Switches {
    no_foreign: bool,
    enabled_providers: BTreeSet<String>,
    disabled_providers: BTreeSet<String>,
    disabled_items: BTreeSet<String>,
    included_skills: BTreeSet<String>,
}

impl Switches {
    /// The switches of a setting.
    #[must_use]
    pub fn of(settings: Option<&DiscoverySettings>) -> Self {
        let Some(settings) = settings else { return Self::default() };
        let set = |list: &Option<Vec<String>>| list.iter().flatten().cloned().collect();
        Self {
            no_foreign: settings.foreign == Some(false),
            enabled_providers: set(&settings.enabled_providers),
            disabled_providers: set(&settings.disabled_providers),
            disabled_items: set(&settings.disabled_items),
            included_skills: set(&settings.include_skills),
        }
    }

    /// Returns whether a provider's files of that level are read. agentd's own always are.
    #[must_use]
    pub fn reads(&self, provider: Provider, level: CapabilityLevel) -> bool {
        if provider.id == NATIVE.id {
            return true;
        }
        if self.disables_provider(provider, level) {
            return false;
        }
        match level {
            CapabilityLevel::Project => !self.no_foreign,
            CapabilityLevel::User => {
                let is_named = || {
                    [provider.id, "*", "all"].into_iter().any(|name| self.enabled_providers.contains(name))
                };
                if provider.user_is_opt_in { is_named() } else { !self.no_foreign }
            }
        }
    }

    /// Returns whether `discovery.disabledProviders` names a provider, or its files of that level, as `codex:user` does.
    #[must_use]
    pub fn disables_provider(&self, provider: Provider, level: CapabilityLevel) -> bool {
        let level = match level {
            CapabilityLevel::User => "user",
            CapabilityLevel::Project => "project",
        };
        let is_named = |name: &String| match name.split_once(':') {
            Some((id, of_level)) => id == provider.id && of_level == level,
            None => name == provider.id,
        };
        self.disabled_providers.iter().any(is_named)
    }

    /// The names in `discovery.enabledProviders` and `discovery.disabledProviders` that no provider has.
    #[must_use]
    pub fn unknown_providers(&self, known: &[&str]) -> Vec<&str> {
        let enabled = self.enabled_providers.iter().filter(|name| !matches!(name.as_str(), "*" | "all"));
        let named = enabled.chain(&self.disabled_providers).map(String::as_str);
        let id = |name: &str| {
            name.strip_suffix(":user").or(name.strip_suffix(":project")).unwrap_or(name).to_owned()
        };
        named.filter(|name| !known.contains(&id(name).as_str())).collect()
    }

    /// Returns whether a project's files of other tools count at all.
    #[must_use]
    pub fn foreign(&self) -> bool {
        !self.no_foreign
    }

    /// Returns whether `discovery.disabledItems` names an item, by its id or by a pattern with `*`.
    #[must_use]
    pub fn disables(&self, id: &str) -> bool {
        self.disabled_items.contains(id)
            || self.disabled_items.iter().any(|name| name.contains('*') && matches_pattern(name, id))
    }

    /// Returns whether an item is a skill that `discovery.includeSkills` does not name, though it names some.
    #[must_use]
    pub fn leaves_out(&self, id: &str) -> bool {
        !self.included_skills.is_empty()
            && id
                .strip_prefix("skill:")
                .is_some_and(|name| !self.included_skills.iter().any(|known| matches_pattern(known, name)))
    }

    /// The names of `discovery.includeSkills`, sorted.
    pub fn included_skills(&self) -> impl Iterator<Item = &str> {
        self.included_skills.iter().map(String::as_str)
    }

    /// The same with that item on or off.
    #[must_use]
    pub fn with_item(mut self, id: &str, enabled: bool) -> Self {
        if enabled {
            self.disabled_items.remove(id);
        } else {
            self.disabled_items.insert(id.to_owned());
        }
        self
    }

    /// The ids of `discovery.disabledItems`, sorted.
    pub fn disabled_items(&self) -> impl Iterator<Item = &str> {
        self.disabled_items.iter().map(String::as_str)
    }

    /// These, without what has no influence on what is read.
    pub(crate) fn of_reading(&self) -> Self {
        Self { disabled_items: BTreeSet::new(), included_skills: BTreeSet::new(), ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_folders_of_other_tools_are_opt_in() {
        use CapabilityLevel::{Project, User};
        let claude = Provider::new("claude", "Claude Code", 80, true);
        let agents = Provider::new("agents", "Agents", 70, false);
        let reads = |settings: &DiscoverySettings, provider| {
            let switches = Switches::of(Some(settings));
            (switches.reads(provider, Project), switches.reads(provider, User))
        };
        let list = |name: &str| Some(vec![name.to_owned()]);
        let default = DiscoverySettings::default();
        assert_eq!(reads(&default, claude), (true, false));
        assert_eq!(reads(&default, agents), (true, true));
        let named = DiscoverySettings { enabled_providers: list("claude"), ..default.clone() };
        assert_eq!(reads(&named, claude), (true, true));
        let all = DiscoverySettings { enabled_providers: list("*"), foreign: Some(false), ..default };
        assert_eq!(reads(&all, claude), (false, true));
        assert_eq!(reads(&all, agents), (false, false));
        assert_eq!(reads(&all, NATIVE), (true, true));
        let off = DiscoverySettings { disabled_providers: list("claude"), ..all };
        assert_eq!(reads(&off, claude), (false, false));
        let of_user = DiscoverySettings {
            enabled_providers: list("claude"),
            disabled_providers: Some(vec![
                "claude:user".to_owned(),
                "agents:project".to_owned(),
                "cursr".to_owned(),
            ]),
            disabled_items: Some(vec!["skill:draft-*".to_owned()]),
            ..DiscoverySettings::default()
        };
        assert_eq!((reads(&of_user, claude), reads(&of_user, agents)), ((true, false), (false, true)));
        let switches = Switches::of(Some(&of_user));
        assert_eq!(switches.unknown_providers(&["claude", "agents"]), ["cursr"]);
        assert!(switches.disables("skill:draft-a") && !switches.disables("rule:draft-a"));
        let included = Some(vec!["write-*".to_owned(), "notes".to_owned()]);
        let some = Switches::of(Some(&DiscoverySettings {
            include_skills: included,
            ..DiscoverySettings::default()
        }));
        let left_out = |id: &str| some.leaves_out(id);
        assert!(left_out("skill:draft") && !left_out("skill:write-a") && !left_out("skill:notes"));
        assert!(!left_out("rule:draft") && !Switches::default().leaves_out("skill:draft"));
        let switches = Switches::default().with_item("rule:a", false);
        assert!(switches.disables("rule:a") && !switches.with_item("rule:a", true).disables("rule:a"));
    }
}
