//! Rules: instructions for some files or some work.

use agentd_protocol::settings::matches_pattern;
use agentd_stream_rules::RuleText;
use serde_json::Value;

use crate::item::Item;

/// A rule, as its front matter says.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule<'a> {
    /// The item: its name, its file, its front matter.
    pub item: &'a Item,
    /// Its purpose.
    pub description: Option<&'a str>,
    /// The files that it is for. Advice to the model, enforced by nobody.
    pub globs: Vec<String>,
    /// True if its text is always part of the system prompt.
    pub always_apply: bool,
    /// Regular expressions on what the model writes: `condition`, or the older `ttsr_trigger`.
    pub condition: Vec<String>,
    /// Where they are looked for, such as `text` or `tool:edit(*.rs)`.
    pub scope: Vec<String>,
    /// `interruptMode`.
    pub interrupt_mode: Option<&'a str>,
    /// The agents that it is for, as globs; empty for all.
    pub agents: Vec<String>,
}

/// What becomes of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleUse {
    /// Its text is part of the system prompt.
    Always,
    /// It is listed in the system prompt, and the model reads it when it needs it.
    Listed,
    /// It has conditions alone.
    Watched,
    /// It says neither when it applies nor what it is for.
    Unused,
}

impl<'a> Rule<'a> {
    /// The rule that an item is.
    pub(crate) fn of(item: &'a Item) -> Self {
        let condition = match item.list_of_texts("condition") {
            found if found.is_empty() => item.list_of_texts("ttsr_trigger"),
            found => found,
        };
        Self {
            item,
            description: item.description.as_deref().filter(|text| !text.trim().is_empty()),
            globs: item.list("globs"),
            always_apply: item.flag("alwaysApply").unwrap_or(false),
            condition,
            scope: item.list("scope"),
            interrupt_mode: item.text("interruptMode"),
            agents: item.list("agents"),
        }
    }

    /// Whether it may watch what the model of a session writes: it has conditions, and is meant for more than other agents.
    #[must_use]
    pub fn can_be_watched(&self) -> bool {
        let is_for_session =
            self.agents.is_empty() || self.agents.iter().any(|glob| matches_pattern(glob, "main"));
        !self.condition.is_empty() && is_for_session && self.item.flag("enabled") != Some(false)
    }

    /// The rule for watching, with its text.
    #[must_use]
    pub fn stream_text(&self, body: String) -> RuleText {
        RuleText {
            name: self.item.name.clone(),
            path: self.item.path.display().to_string(),
            body,
            condition: self.condition.clone(),
            scope: self.scope.clone(),
            globs: self.globs.clone(),
            interrupt_mode: self.interrupt_mode.map(str::to_owned),
        }
    }

    /// What becomes of it in the system prompt.
    #[must_use]
    pub fn use_in_prompt(&self) -> RuleUse {
        if self.item.flag("enabled") == Some(false) {
            RuleUse::Unused
        } else if self.always_apply {
            RuleUse::Always
        } else if self.description.is_some() || !self.globs.is_empty() {
            RuleUse::Listed
        } else if !self.condition.is_empty() {
            RuleUse::Watched
        } else {
            RuleUse::Unused
        }
    }

    /// The line of the system prompt: `- name (globs): description`. A rule with globs alone is described by them.
    #[must_use]
    pub fn line(&self) -> String {
        let globs = self.globs.join(", ");
        let description = match self.description {
            Some(description) => description.split_whitespace().collect::<Vec<_>>().join(" "),
            None => format!("read it before you work on files that match {globs}"),
        };
        if globs.is_empty() {
            format!("- {}: {description}", self.item.name)
        } else {
            format!("- {} ({globs}): {description}", self.item.name)
        }
    }
}

impl Item {
    /// A text as it is, or the texts of a list: for values in which a comma is no end.
    fn list_of_texts(&self, key: &str) -> Vec<String> {
        match self.fields.get(key) {
            Some(Value::String(text)) if !text.trim().is_empty() => vec![text.trim().to_owned()],
            Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use agentd_protocol::capabilities::{CapabilityKind, CapabilityLevel};
    use serde_json::json;

    use super::*;
    use crate::provider::NATIVE;

    fn item(fields: &Value) -> Item {
        let mut item = Item::new(CapabilityKind::Rules, "r", "/r.md", (NATIVE, CapabilityLevel::Project));
        item.fields = fields.as_object().unwrap().clone();
        item.description = item.text("description").map(str::to_owned);
        item
    }

    #[test]
    fn a_rule_is_used_as_its_front_matter_says() {
        for (fields, expected, line) in [
            (json!({"alwaysApply": true, "globs": "*.ts"}), RuleUse::Always, None),
            (json!({"alwaysApply": "true"}), RuleUse::Always, None),
            (
                json!({"description": "Use\n it", "globs": "*.ts,*.js"}),
                RuleUse::Listed,
                Some("- r (*.ts, *.js): Use it"),
            ),
            (json!({"description": "d"}), RuleUse::Listed, Some("- r: d")),
            (
                json!({"globs": ["a/**"]}),
                RuleUse::Listed,
                Some("- r (a/**): read it before you work on files that match a/**"),
            ),
            (json!({"condition": "a,b"}), RuleUse::Watched, None),
            (json!({}), RuleUse::Unused, None),
            (json!({"enabled": false, "alwaysApply": true}), RuleUse::Unused, None),
        ] {
            let item = item(&fields);
            let rule = Rule::of(&item);
            assert_eq!(rule.use_in_prompt(), expected, "{fields}");
            if let Some(line) = line {
                assert_eq!(rule.line(), line);
            }
        }
        let item = item(&json!({"ttsr_trigger": ["a,b", "c"], "scope": "text, tool:edit(*.rs)"}));
        assert_eq!(Rule::of(&item).condition, ["a,b", "c"]);
        assert_eq!(Rule::of(&item).scope, ["text", "tool:edit(*.rs)"]);
    }
}
