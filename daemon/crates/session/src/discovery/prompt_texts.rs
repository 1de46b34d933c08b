//! Context files and rules of other tools in the system prompt.

use std::{path::PathBuf, sync::Arc};

use agentd_discovery::{
    Capabilities, DiscoveryPlace, ImportRules, Item, ItemDetail, RuleUse, expand_imports, read_body,
};
use agentd_protocol::capabilities::{CapabilityKind, CapabilityLevel};
use agentd_stream_rules::StreamRules;

use super::{found::FoundCapabilities, own_items::provider_of_context};
use crate::{context::SessionContext, stream_rules::RuleChoices};

/// The bytes of all rules whose texts are part of the system prompt: 256 KiB. Those beyond it are listed.
const MAX_RULE_BYTES: usize = 256 << 10;

/// The bytes of all rules that watch what the model writes: 1 MiB. Those beyond it are not watched.
const MAX_WATCHED_BYTES: usize = 1 << 20;

/// Goes before the texts of rules.
const ALWAYS: &str = "Rules of this project and its user. They always apply.";

/// Goes before the list of rules.
const LISTED: &str =
    "Rules for some files or some work, with their files. Before you do what one is for, read its file.";

impl SessionContext {
    /// The context files of agentd and of other tools in one order, the most general first: of each folder one counts. In those that are not
    /// `AGENTS.md`, imports are put in. `own` are those that are read as pi reads them. Reads files; blocks.
    pub(crate) fn context_texts(
        &self,
        own: Vec<(PathBuf, String)>,
        capabilities: &FoundCapabilities,
    ) -> Vec<(String, String)> {
        let place = &capabilities.place;
        let switches = self.discovery.get();
        let trusted = self.trusts_project();
        // By how far away they are, the user's first.
        let mut texts: Vec<(usize, PathBuf, String)> = Vec::new();
        for (path, text) in own {
            let (distance, level) = self.place_of_context(&path);
            let item = Item::context(&path, distance, (provider_of_context(&path, level), level));
            if switches.disables(&item.id) || switches.disables_provider(item.provider, level) {
                continue;
            }
            let imports = switches.foreign() && item.name.starts_with("CLAUDE");
            let text = if imports {
                expand_imports(&text, &path, ImportRules::new(place, level, trusted))
            } else {
                text
            };
            texts.push((distance.unwrap_or(usize::MAX), path, text));
        }
        for item in capabilities.counting(CapabilityKind::ContextFiles) {
            add(&mut texts, item, place, trusted);
        }
        // Nothing moves that was in this order before.
        texts.sort_by_key(|(distance, ..)| std::cmp::Reverse(*distance));
        texts.into_iter().map(|(_, path, text)| (path.display().to_string(), text)).collect()
    }

    /// The section of the system prompt about rules; `None` where there are none. Rules are listed for a model that can read files. Reads
    /// files; blocks.
    pub(crate) fn project_rules(
        &self,
        capabilities: &FoundCapabilities,
        context: &[(String, String)],
        reads: bool,
    ) -> Option<String> {
        let (watched, choices) = (self.watched_rules(capabilities), RuleChoices::of(&self.settings));
        let is_elsewhere =
            |name: &str| choices.disables(name) || watched.rules().iter().any(|rule| rule.name == name);
        rules_section(capabilities, &capabilities.place, (context, &is_elsewhere), reads)
    }

    /// The rules that watch what the model writes, as they are now. They are no part of the system prompt. Reads files; blocks.
    pub(crate) fn watched_rules(&self, capabilities: &FoundCapabilities) -> Arc<StreamRules> {
        let (choices, place) = (RuleChoices::of(&self.settings), &capabilities.place);
        let wanted = capabilities
            .rules()
            .filter(|rule| choices.is_on && rule.can_be_watched() && !choices.disables(&rule.item.name));
        let with_body = wanted.filter_map(|rule| match read_body(rule.item, place) {
            Ok(body) => Some(rule.stream_text(body)).filter(|rule| !rule.body.is_empty()),
            Err(error) => {
                tracing::debug!(%error, "a rule");
                None
            }
        });
        let mut left = MAX_WATCHED_BYTES;
        let fitting = with_body.take_while(|rule| {
            let fits = rule.body.len() <= left;
            left = left.saturating_sub(rule.body.len());
            fits
        });
        self.stream_rules.take(fitting.collect())
    }
}

/// Adds a file of another tool where its folder has none, or agentd's own in the place of that. One that says the same as another is left out.
fn add(texts: &mut Vec<(usize, PathBuf, String)>, item: &Item, place: &DiscoveryPlace, trusted: bool) {
    let ItemDetail::Context(distance) = item.detail else { return };
    let distance = distance.unwrap_or(usize::MAX);
    let is_own = item.provider.id == agentd_discovery::NATIVE.id && item.level == CapabilityLevel::Project;
    let taken = texts.iter().position(|(of, ..)| *of == distance);
    if taken.is_some() && !is_own {
        return;
    }
    let text = match read_body(item, place) {
        Ok(text) => text,
        Err(error) => return tracing::debug!(%error, "a context file of another tool"),
    };
    let text = if item.path.file_name().is_some_and(|name| name == "AGENTS.md") {
        text
    } else {
        expand_imports(&text, &item.path, ImportRules::new(place, item.level, trusted))
    };
    match taken {
        Some(at) => texts[at] = (distance, item.path.clone(), text),
        None if texts.iter().any(|(_, _, known)| known.trim() == text.trim()) => {}
        None => texts.push((distance, item.path.clone(), text)),
    }
}

fn rules_section(
    capabilities: &Capabilities,
    place: &DiscoveryPlace,
    (context, is_elsewhere): (&[(String, String)], &dyn Fn(&str) -> bool),
    reads: bool,
) -> Option<String> {
    let (mut always, mut listed) = (String::new(), String::new());
    for rule in capabilities.rules().filter(|rule| !is_elsewhere(&rule.item.name)) {
        let path = rule.item.path.display();
        let body = match rule.use_in_prompt() {
            RuleUse::Always => match read_body(rule.item, place) {
                Ok(body) => Some(body),
                Err(error) => {
                    tracing::debug!(%error, "a rule");
                    continue;
                }
            },
            RuleUse::Listed => None,
            RuleUse::Watched | RuleUse::Unused => continue,
        };
        match body {
            Some(body) if body.is_empty() || context.iter().any(|(_, text)| text.contains(&body)) => {}
            Some(body) if always.len() + body.len() <= MAX_RULE_BYTES => {
                let name = &rule.item.name;
                always.push_str(&format!("\n\n<rule name=\"{name}\" path=\"{path}\">\n{body}\n</rule>"));
            }
            Some(_) => listed.push_str(&format!("\n- {}: it always applies [{path}]", rule.item.name)),
            None => listed.push_str(&format!("\n{} [{path}]", rule.line())),
        }
    }
    let always = (!always.is_empty()).then(|| format!("{ALWAYS}{always}"));
    let listed = (reads && !listed.is_empty()).then(|| format!("{LISTED}\n{listed}"));
    let parts: Vec<String> = [always, listed].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}
