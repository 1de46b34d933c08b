//! Skills, commands and prompt templates as `agentd-config` has them.

use std::collections::HashSet;

use agentd_config::resources::{DiscoveredResources, PromptTemplate, Skill};
use agentd_protocol::{
    capabilities::{CapabilityKind, CapabilityLevel},
    resources::{SourceInfo, SourceOrigin, SourceScope},
};
use serde_json::Value;

use crate::{capabilities::Capabilities, item::Item};

impl Capabilities {
    /// The skills, commands and prompt templates that count, each name once. A command comes before a prompt template of its name.
    #[must_use]
    pub fn resources(&self) -> DiscoveredResources {
        let mut found = DiscoveredResources {
            skills: self.counting(CapabilityKind::Skills).map(|item| skill(item)).collect(),
            prompts: Vec::new(),
        };
        let mut names = HashSet::new();
        found
            .prompts
            .extend(self.commands().filter(|item| names.insert(&item.name)).map(|item| template(item)));
        found
    }
}

fn skill(item: &Item) -> Skill {
    let is_hidden =
        item.flag("hide").unwrap_or(false) || item.flag("disableModelInvocation").unwrap_or(false);
    Skill {
        name: item.name.clone(),
        description: item.description.clone().unwrap_or_default(),
        file: item.path.clone(),
        only_by_user: is_hidden,
        source: source_info(item),
    }
}

fn template(item: &Item) -> PromptTemplate {
    let hint = || {
        let parts = item.list("argumentHint");
        (!parts.is_empty())
            .then(|| parts.iter().map(|part| format!("[{part}]")).collect::<Vec<_>>().join(" "))
    };
    let written = item.fields.get("argumentHint").and_then(Value::as_str).map(|hint| hint.trim().to_owned());
    PromptTemplate {
        name: item.name.clone(),
        description: item.description.clone().unwrap_or_default(),
        argument_hint: written.filter(|hint| !hint.is_empty()).or_else(hint),
        file: item.path.clone(),
        source: source_info(item),
        appends_arguments: true,
        runs_commands: item.kind == CapabilityKind::SlashCommands,
    }
}

/// The source of an item as commands and skills are listed with it: the provider's id is how it was found.
fn source_info(item: &Item) -> SourceInfo {
    SourceInfo {
        path: item.path.display().to_string(),
        source: item.provider.id.to_owned(),
        scope: match item.level {
            CapabilityLevel::User => SourceScope::User,
            CapabilityLevel::Project => SourceScope::Project,
        },
        origin: SourceOrigin::TopLevel,
        base_dir: item.path.parent().map(|folder| folder.display().to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::provider::AGENTS;

    #[test]
    fn hints_are_shown_as_they_were_written() {
        for (hint, expected) in [
            (json!("<file> [focus]"), Some("<file> [focus]")),
            (json!(["a", "b"]), Some("[a] [b]")),
            (json!(""), None),
            (json!(null), None),
        ] {
            let mut item = Item::new(CapabilityKind::Prompts, "p", "/p.md", (AGENTS, CapabilityLevel::User));
            item.fields.insert("argumentHint".to_owned(), hint);
            assert_eq!(template(&item).argument_hint.as_deref(), expected);
        }
    }
}
