//! The question about a call, and what its answer means.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use agentd_policy::PolicyDecision;
use agentd_protocol::{
    permissions::{PermissionAnswer, PermissionOption, PermissionQuestion},
    policy_check::VerdictCommand,
    settings::{PermissionAction, PermissionRule},
    terminal_text::visible,
};
use serde_json::Value;

use super::{diff::CallDiff, subject::CallSubject};
use crate::ui::DialogAnswer;

/// The longest arguments that are shown, in bytes of JSON: 16 KiB.
const MAX_ARGUMENTS: usize = 16 * 1024;

/// The call that is asked about.
pub(super) struct AskedCall<'a> {
    pub(super) call_id: Option<&'a str>,
    pub(super) tool: &'a str,
    pub(super) arguments: &'a Value,
    pub(super) subject: &'a CallSubject,
    pub(super) diff: Option<CallDiff>,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    Once,
    /// Allowed by a rule of the session from now on.
    Session(PermissionRule),
    /// Allowed by a rule of the user's settings from now on.
    Always(PermissionRule),
    /// Refused, with words to the model if there are some.
    No(Option<String>),
    /// Words to the model are asked for.
    NoWithWords,
}

/// The question about a call.
pub(super) fn question(call: AskedCall<'_>, verdict: &PolicyDecision, limit: Duration) -> PermissionQuestion {
    let AskedCall { call_id, tool, arguments, subject, diff } = call;
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (diff, diff_cut) = diff.map_or((None, false), |diff| (Some(diff.text), diff.is_cut));
    let is_short =
        |arguments: &Value| serde_json::to_vec(arguments).is_ok_and(|text| text.len() <= MAX_ARGUMENTS);
    let parsed = verdict.parsed.iter().cloned();
    PermissionQuestion {
        title: visible(&format!("Allow this?\n{}\nAsked, since {}.", subject.shown(tool), verdict.reason))
            .into_owned(),
        tool_call_id: call_id.map(str::to_owned),
        tool: tool.to_owned(),
        command: subject.command().map(str::to_owned),
        parsed: parsed
            .map(|command| VerdictCommand { words: command.words, redirections: command.redirections })
            .collect(),
        path: subject.path().map(|path| path.display().to_string()),
        diff,
        diff_cut,
        arguments: Some(arguments)
            .filter(|arguments| {
                matches!(subject, CallSubject::TrustedRead | CallSubject::Other) && is_short(arguments)
            })
            .cloned(),
        reason: verdict.reason.clone(),
        source: verdict.rule.as_ref().map(|rule| rule.source.as_str().to_owned()),
        rule: verdict.rule.as_ref().map(|rule| rule.rule.clone()),
        options: options(verdict),
        timeout: millis(limit),
        deadline: millis(now.saturating_add(limit)),
    }
}

fn options(verdict: &PolicyDecision) -> Vec<PermissionOption> {
    let option = |decision, text: String, rule: Option<&PermissionRule>| PermissionOption {
        decision,
        text,
        rule: rule.cloned(),
    };
    let mut options = vec![option(PermissionAnswer::Once, "Yes, this once".to_owned(), None)];
    if let Some(rule) = &verdict.suggestion {
        let shown = visible(&shown(rule)).into_owned();
        options.push(option(
            PermissionAnswer::Session,
            format!("Yes, and for this session: {shown}"),
            Some(rule),
        ));
        // A rule that asks wins over one that allows: saving one would change nothing.
        let is_asked_by_rule =
            verdict.rule.as_ref().is_some_and(|deciding| deciding.rule.action == PermissionAction::Ask);
        if !is_asked_by_rule {
            options.push(option(PermissionAnswer::Always, format!("Yes, and always: {shown}"), Some(rule)));
        }
    }
    options.push(option(PermissionAnswer::Deny, "No".to_owned(), None));
    options
}

/// What an answer of a client means; `None` for none of the options.
pub(super) fn read(question: &PermissionQuestion, answer: &DialogAnswer) -> Option<Answer> {
    let (option, message) = match answer {
        DialogAnswer::Permission { decision, message } => (question.option(*decision)?, message.clone()),
        DialogAnswer::Value(text) if text == PermissionQuestion::NO_WITH_WORDS => {
            return Some(Answer::NoWithWords);
        }
        DialogAnswer::Value(text) => (question.options.iter().find(|option| option.text == *text)?, None),
        DialogAnswer::Confirmed(_) | DialogAnswer::Nothing => return None,
    };
    match (option.decision, option.rule.clone()) {
        (PermissionAnswer::Once, _) => Some(Answer::Once),
        (PermissionAnswer::Session, rule) => rule.map(Answer::Session),
        (PermissionAnswer::Always, rule) => rule.map(Answer::Always),
        (PermissionAnswer::Deny, _) => Some(Answer::No(message)),
    }
}

/// A rule in a few words.
fn shown(rule: &PermissionRule) -> String {
    match (&rule.command, rule.path.as_ref().or(rule.domain.as_ref())) {
        (Some(command), _) => command.clone(),
        (_, Some(path)) => format!("{} {path}", rule.tool),
        _ => format!("the tool {}", rule.tool),
    }
}

#[cfg(test)]
mod tests {
    use agentd_policy::{DecidingRule, RuleSource};
    use agentd_protocol::ui::UiMethod;

    use super::*;

    fn verdict(by_rule: bool) -> PolicyDecision {
        let rule = |action| PermissionRule {
            tool: "bash".to_owned(),
            command: Some("git push *".to_owned()),
            path: None,
            domain: None,
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

    fn asked(verdict: &PolicyDecision) -> PermissionQuestion {
        let arguments = serde_json::json!({ "command": "git push" });
        let subject =
            CallSubject::of("bash", &arguments, std::path::Path::new("/w"), std::path::Path::new("/h"));
        let call = AskedCall {
            call_id: Some("c"),
            tool: "bash",
            arguments: &arguments,
            subject: &subject,
            diff: None,
        };
        question(call, verdict, Duration::from_secs(60))
    }

    #[test]
    fn answers_mean_what_they_say_in_both_forms() {
        let question = asked(&verdict(false));
        assert_eq!((question.timeout, question.command.as_deref()), (60_000, Some("git push")));
        let UiMethod::Select { title, options, timeout } = question.as_select() else { panic!("no select") };
        assert_eq!(title, "Allow this?\n$ git push\nAsked, since it goes out.");
        assert_eq!(
            options,
            [
                "Yes, this once",
                "Yes, and for this session: git push *",
                "Yes, and always: git push *",
                "No",
                "No, and tell the model why"
            ]
        );
        assert_eq!(timeout, Some(60_000));
        let text = |text: &str| read(&question, &DialogAnswer::Value(text.to_owned()));
        assert_eq!(text("Yes, this once"), Some(Answer::Once));
        assert!(
            matches!(text(&options[2]), Some(Answer::Always(rule)) if rule.command.as_deref() == Some("git push *"))
        );
        assert_eq!((text("No"), text(&options[4])), (Some(Answer::No(None)), Some(Answer::NoWithWords)));
        assert_eq!((text("yes"), read(&question, &DialogAnswer::Nothing)), (None, None));
        let decided = |decision, message: Option<&str>| {
            let message = message.map(str::to_owned);
            read(&question, &DialogAnswer::Permission { decision, message })
        };
        assert_eq!(decided(PermissionAnswer::Once, None), Some(Answer::Once));
        assert_eq!(decided(PermissionAnswer::Deny, Some("why")), Some(Answer::No(Some("why".to_owned()))));
        assert!(matches!(decided(PermissionAnswer::Session, None), Some(Answer::Session(_))));
    }

    #[test]
    fn a_rule_that_asks_is_not_answered_for_good() {
        let question = asked(&verdict(true));
        assert_eq!(question.option(PermissionAnswer::Always), None);
        assert!(question.option(PermissionAnswer::Session).is_some());
    }
}
