//! The question about a call, and what its answer means.

use agentd_policy::PolicyDecision;
use agentd_protocol::settings::{PermissionAction, PermissionRule};

use crate::ui::{Dialog, DialogAnswer};

const ONCE: &str = "Yes, this once";
const NO: &str = "No";
const NO_WITH_WORDS: &str = "No, and tell the model why";

/// What the user may answer.
pub(super) struct Question {
    title: String,
    options: Vec<(String, Answer)>,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    Once,
    /// Allowed by a rule of the session from now on.
    Session(PermissionRule),
    /// Allowed by a rule of the user's settings from now on.
    Always(PermissionRule),
    No,
    /// Words to the model are asked for.
    NoWithWords,
}

impl Question {
    /// The question about a call that is shown as `subject`.
    pub(super) fn new(subject: &str, verdict: &PolicyDecision) -> Self {
        let mut options = vec![(ONCE.to_owned(), Answer::Once)];
        if let Some(rule) = &verdict.suggestion {
            let shown = shown(rule);
            options.push((format!("Yes, and for this session: {shown}"), Answer::Session(rule.clone())));
            // A rule that asks wins over one that allows: saving one would change nothing.
            let is_asked_by_rule =
                verdict.rule.as_ref().is_some_and(|deciding| deciding.rule.action == PermissionAction::Ask);
            if !is_asked_by_rule {
                options.push((format!("Yes, and always: {shown}"), Answer::Always(rule.clone())));
            }
        }
        options.push((NO.to_owned(), Answer::No));
        options.push((NO_WITH_WORDS.to_owned(), Answer::NoWithWords));
        Self { title: format!("Allow this?\n{subject}\nAsked, since {}.", verdict.reason), options }
    }

    /// The dialog for clients.
    pub(super) fn dialog(&self) -> Dialog {
        Dialog::select(&self.title, self.options.iter().map(|(text, _)| text))
    }

    /// What an answer of a client means; `None` for none of the options.
    pub(super) fn read(&self, answer: &DialogAnswer) -> Option<Answer> {
        let DialogAnswer::Value(value) = answer else { return None };
        self.options.iter().find(|(text, _)| text == value).map(|(_, answer)| answer.clone())
    }
}

/// A rule in a few words.
fn shown(rule: &PermissionRule) -> String {
    match (&rule.command, &rule.path) {
        (Some(command), _) => command.clone(),
        (_, Some(path)) => format!("{} {path}", rule.tool),
        _ => format!("the tool {}", rule.tool),
    }
}

#[cfg(test)]
mod tests {
    use agentd_policy::{DecidingRule, RuleSource};

    use super::*;

    fn verdict(by_rule: bool) -> PolicyDecision {
        let rule = |action| PermissionRule {
            tool: "bash".to_owned(),
            command: Some("git push *".to_owned()),
            path: None,
            action,
            reason: None,
        };
        PolicyDecision {
            action: PermissionAction::Ask,
            rule: by_rule.then(|| DecidingRule {
                source: RuleSource::User,
                index: 0,
                rule: rule(PermissionAction::Ask),
            }),
            reason: "it goes out".to_owned(),
            parsed: Vec::new(),
            suggestion: Some(rule(PermissionAction::Allow)),
        }
    }

    #[test]
    fn answers_mean_what_they_say() {
        let question = Question::new("$ git push", &verdict(false));
        let texts: Vec<&str> = question.options.iter().map(|(text, _)| text.as_str()).collect();
        assert_eq!(
            texts,
            [ONCE, "Yes, and for this session: git push *", "Yes, and always: git push *", NO, NO_WITH_WORDS]
        );
        let read = |text: &str| question.read(&DialogAnswer::Value(text.to_owned()));
        assert_eq!(read(ONCE), Some(Answer::Once));
        assert!(
            matches!(read(texts[2]), Some(Answer::Always(rule)) if rule.command.as_deref() == Some("git push *"))
        );
        assert_eq!(read("yes"), None);
        assert_eq!(question.read(&DialogAnswer::Nothing), None);
    }

    #[test]
    fn a_rule_that_asks_is_not_answered_for_good() {
        let question = Question::new("$ git push", &verdict(true));
        assert!(!question.options.iter().any(|(_, answer)| matches!(answer, Answer::Always(_))));
        assert!(question.options.iter().any(|(_, answer)| matches!(answer, Answer::Session(_))));
    }
}
