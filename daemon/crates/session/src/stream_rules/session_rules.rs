//! The rules that a session watches, and which of them the model was told.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use agentd_protocol::{
    entry::EntryBody,
    settings::{RuleContextMode, RuleInterruptMode, RuleRepeatMode, Settings, StreamRuleSettings},
    stream_rules::RULES_ENTRY,
};
use agentd_store::{EntryKind, SessionTree};
use agentd_stream_rules::{InterruptMode, RuleText, StreamRule, StreamRules};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Answers after which a rule matches again, with `after-gap`.
const REPEAT_GAP: u64 = 10;

/// The rules on the stream of one session. Cheap to clone; all clones are the same session's, and outlast a change of settings.
#[derive(Clone, Default)]
pub(crate) struct SessionRules(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// The rules as they were read last, and what they compile to; `None` before they were read.
    read: Option<(Vec<RuleText>, Arc<StreamRules>)>,
    /// The rules that the model was told, with the number of the answer.
    told: HashMap<String, u64>,
    /// The answers so far.
    answers: u64,
}

/// What the setting `ttsr` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RuleChoices {
    pub(crate) is_on: bool,
    pub(crate) keeps: bool,
    interrupts: InterruptMode,
    /// Answers after which a rule matches again; `None`: never.
    repeats_after: Option<u64>,
    disabled: Vec<String>,
}

impl RuleChoices {
    pub(crate) fn of(settings: &Settings) -> Self {
        let StreamRuleSettings {
            enabled,
            context_mode,
            interrupt_mode,
            repeat_mode,
            repeat_gap,
            disabled_rules,
        } = settings.ttsr.clone().unwrap_or_default();
        Self {
            is_on: enabled.unwrap_or(true),
            keeps: context_mode == Some(RuleContextMode::Keep),
            interrupts: match interrupt_mode.unwrap_or_default() {
                RuleInterruptMode::Always => InterruptMode::Always,
                RuleInterruptMode::ProseOnly => InterruptMode::ProseOnly,
                RuleInterruptMode::ToolOnly => InterruptMode::ToolOnly,
                RuleInterruptMode::Never => InterruptMode::Never,
            },
            repeats_after: (repeat_mode == Some(RuleRepeatMode::AfterGap))
                .then(|| repeat_gap.unwrap_or(REPEAT_GAP)),
            disabled: disabled_rules.unwrap_or_default(),
        }
    }

    /// Whether the user has switched a rule off, for everything.
    pub(crate) fn disables(&self, rule: &str) -> bool {
        self.disabled.iter().any(|name| name == rule)
    }

    /// Whether a match of a rule stops the model.
    pub(crate) fn stops(&self, rule: &StreamRule, is_tool: bool) -> bool {
        rule.interrupt_mode.unwrap_or(self.interrupts).stops(is_tool)
    }
}

impl SessionRules {
    /// Takes the rules with conditions as they are now. Compiles them where they are others than before.
    pub(crate) fn take(&self, rules: Vec<RuleText>) -> Arc<StreamRules> {
        if let Some((known, compiled)) = &self.lock().read
            && *known == rules
        {
            return Arc::clone(compiled);
        }
        // What cannot be used is a diagnostic of its file.
        let (compiled, _) = StreamRules::new(rules.clone());
        let compiled = Arc::new(compiled);
        self.lock().read = Some((rules, Arc::clone(&compiled)));
        compiled
    }

    /// The rules as they were read last; `None` before they were read.
    pub(crate) fn current(&self) -> Option<Arc<StreamRules>> {
        self.lock().read.as_ref().map(|(_, compiled)| Arc::clone(compiled))
    }

    /// Another answer begins.
    pub(crate) fn next_answer(&self) {
        self.lock().answers += 1;
    }

    /// Notes that the model is told of a rule now; false where it was told, and the rule does not match again yet.
    pub(crate) fn tell(&self, rule: &str, choices: &RuleChoices) -> bool {
        let mut state = self.lock();
        let now = state.answers;
        let is_due = match (state.told.get(rule), choices.repeats_after) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(at), Some(gap)) => now.saturating_sub(*at) >= gap.max(1),
        };
        if is_due {
            state.told.insert(rule.to_owned(), now);
        }
        is_due
    }

    /// Makes what the model was told what the branch says.
    pub(crate) fn restore(&self, rules: Vec<String>) {
        let mut state = self.lock();
        let now = state.answers;
        state.told = rules.into_iter().map(|rule| (rule, now)).collect();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No method panics halfway.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Serialize, Deserialize)]
struct Data {
    rules: Vec<String>,
}

/// The entry that keeps which rules the model was told. pi's programs pass it over.
pub(crate) fn rules_entry(rules: &[String]) -> EntryBody {
    EntryBody::Custom { custom_type: RULES_ENTRY.to_owned(), data: Some(json!({ "rules": rules })) }
}

/// The rules that the model was told on the way from the root to the leaf.
pub(crate) fn told_on(tree: &SessionTree) -> Vec<String> {
    let branch = tree.branch();
    let custom = branch.iter().filter(|entry| entry.kind() == EntryKind::Custom);
    let of_rules = custom.filter_map(|entry| match entry.body()? {
        EntryBody::Custom { custom_type, data: Some(data) } if custom_type == RULES_ENTRY => {
            serde_json::from_value::<Data>(data).ok()
        }
        _ => None,
    });
    of_rules.flat_map(|data| data.rules).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choices(json: serde_json::Value) -> RuleChoices {
        RuleChoices::of(&serde_json::from_value(json!({ "ttsr": json })).unwrap())
    }

    #[test]
    fn a_rule_is_told_once_or_after_a_gap() {
        let rules = SessionRules::default();
        let once = choices(json!({}));
        assert!(rules.tell("a", &once) && !rules.tell("a", &once) && rules.tell("b", &once));
        let again = choices(json!({"repeatMode": "after-gap", "repeatGap": 2}));
        assert!(!rules.tell("a", &again));
        rules.next_answer();
        assert!(!rules.tell("a", &again));
        rules.next_answer();
        assert!(rules.tell("a", &again) && !rules.tell("a", &again));
        rules.restore(vec!["a".into()]);
        assert!(!rules.tell("a", &again) && rules.tell("b", &once), "the age begins anew");
    }

    #[test]
    fn settings() {
        let default = choices(json!({}));
        assert!(default.is_on && !default.keeps && default.repeats_after.is_none());
        let other = choices(json!({"enabled": false, "contextMode": "keep", "disabledRules": ["x"]}));
        assert!(!other.is_on && other.keeps && other.disables("x") && !other.disables("y"));
        let (rules, _) = StreamRules::new(vec![RuleText {
            condition: vec!["x".into()],
            interrupt_mode: Some("never".into()),
            ..RuleText::default()
        }]);
        assert!(!default.stops(&rules.rules()[0], true), "the rule's own mode comes first");
    }

    #[test]
    fn rules_are_compiled_once() {
        let rules = SessionRules::default();
        let text =
            |body: &str| RuleText { condition: vec!["x".into()], body: body.into(), ..RuleText::default() };
        let first = rules.take(vec![text("a")]);
        assert!(Arc::ptr_eq(&first, &rules.take(vec![text("a")])));
        assert!(!Arc::ptr_eq(&first, &rules.take(vec![text("b")])));
    }
}
