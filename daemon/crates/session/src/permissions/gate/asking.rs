//! Asking the user about a call, and what the answer makes of it.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use agentd_agent::hooks::{Action, HookVerdict};
use agentd_config::settings::add_permission_rule;
use agentd_policy::PolicyDecision;
use agentd_protocol::{
    event::{DecisionMaker, PermissionVerdict},
    settings::{PermissionRule, TimeoutDecision},
    ui::NotifyType,
};
use tokio_util::sync::CancellationToken;

use super::{PermissionGate, blocked, call_id};
use crate::{
    permissions::{
        diff::{self, CallDiff},
        question::{Answer, AskedCall, question, read},
        record::decision,
        subject::CallSubject,
    },
    ui::{Asker, Dialog, DialogAnswer, Notice, Ui},
};

/// How a question ended.
struct Asked {
    answer: Option<Answer>,
    by: DecisionMaker,
    client: Option<String>,
}

impl PermissionGate {
    /// Asks the user about a call: the verdict that comes of it.
    pub(super) async fn ask(
        &self,
        action: &Action<'_>,
        subject: &CallSubject,
        (verdict, leaves): (&PolicyDecision, bool),
        stop: &CancellationToken,
    ) -> Result<HookVerdict, String> {
        let begun = Instant::now();
        let (limit, on_timeout) = self.in_force().terms();
        let Asked { answer, by, client } = self.answer(action, subject, verdict, stop).await;
        if answer.is_none() && stop.is_cancelled() {
            // Nobody decided anything; the caller drops this future.
            return std::future::pending().await;
        }
        let words = match (&answer, self.channels.get()) {
            (Some(Answer::NoWithWords), Some(channels)) => words(&channels.ui, limit, stop).await,
            (Some(Answer::No(words)), _) => words.clone(),
            _ => None,
        };
        let allowed = match &answer {
            Some(Answer::Once | Answer::Session(_) | Answer::Always(_)) => true,
            Some(Answer::No(_) | Answer::NoWithWords) => false,
            // Nobody leaves the sandbox by default, or gets by a hook that wants the user to decide.
            None => on_timeout == TimeoutDecision::Allow && !leaves && action.must_ask.is_none(),
        };
        let mut record = decision(
            call_id(action),
            action.tool,
            if allowed { PermissionVerdict::Allowed } else { PermissionVerdict::Denied },
            by,
            verdict.reason.clone(),
            verdict.rule.as_ref(),
        );
        record.client = client;
        record.waited_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        match &answer {
            Some(Answer::Session(rule)) => record.session_rule = self.allow(rule),
            // It counts at once, too.
            Some(Answer::Always(rule)) => {
                record.session_rule = self.allow(rule);
                self.save(rule).await;
            }
            _ => {}
        }
        let is_stored = self.record(record).await;
        if !is_stored && allowed {
            return Ok(blocked("the decision could not be stored", "The disk may be full; ask the user."));
        }
        if allowed {
            return Ok(HookVerdict::Run);
        }
        let why = match by {
            DecisionMaker::User => "the user said no".to_owned(),
            DecisionMaker::Timeout => {
                format!("it needs the user's permission, and nobody answered in time ({})", verdict.reason)
            }
            DecisionMaker::Nobody | DecisionMaker::Policy => {
                format!(
                    "it needs the user's permission, and nobody is there to be asked ({})",
                    verdict.reason
                )
            }
        };
        let advice = match words {
            Some(words) => format!("The user says: {words}"),
            None => {
                "Do not try it in another form; go on without it, or say what you need it for.".to_owned()
            }
        };
        Ok(blocked(&why, &advice))
    }

    /// Asks those who can answer; nobody waits where nobody can.
    async fn answer(
        &self,
        action: &Action<'_>,
        subject: &CallSubject,
        verdict: &PolicyDecision,
        stop: &CancellationToken,
    ) -> Asked {
        let nobody = Asked { answer: None, by: DecisionMaker::Nobody, client: None };
        let reached = || self.channels.get().filter(|channels| channels.ui.is_there(Asker::Permissions));
        if reached().is_none() {
            return nobody;
        }
        let place = stop.run_until_cancelled(Arc::clone(&self.places).acquire_owned()).await;
        // They may have left meanwhile.
        let (Some(Ok(place)), Some(channels)) = (place, reached()) else { return nobody };
        let diff = self.diff(action, subject).await;
        let (limit, _) = self.in_force().terms();
        let (tool, arguments) = (action.tool, action.arguments);
        let call = AskedCall { call_id: call_id(action), tool, arguments, subject, diff };
        let question = question(call, verdict, limit);
        let dialog = Dialog::permission(question.clone());
        // In a task: the gate drops this future when the call is stopped, and the dialog has to be taken from the screens.
        let (ui, stop) = (channels.ui.clone(), stop.clone());
        let asking = tokio::spawn(async move {
            let _place = place;
            ui.ask_whom(Asker::Permissions, dialog, &stop).await
        });
        let (answer, client) = asking.await.unwrap_or((DialogAnswer::Nothing, None));
        match client {
            Some(client) => {
                // A client that gives the dialog up says no.
                let answer = read(&question, &answer).unwrap_or(Answer::No(None));
                Asked { answer: Some(answer), by: DecisionMaker::User, client: Some(client) }
            }
            None => Asked { answer: None, by: DecisionMaker::Timeout, client: None },
        }
    }

    /// What a call would change in a file of this machine.
    async fn diff(&self, action: &Action<'_>, subject: &CallSubject) -> Option<CallDiff> {
        let path = match subject {
            CallSubject::Write(path) if !self.in_force().sources.is_elsewhere => path.clone(),
            _ => return None,
        };
        let (tool, arguments) = (action.tool.to_owned(), action.arguments.clone());
        tokio::task::spawn_blocking(move || diff::of_call(&tool, &path, &arguments)).await.ok().flatten()
    }

    /// Adds a rule of the session; the rule, if it can be used.
    fn allow(&self, rule: &PermissionRule) -> Option<PermissionRule> {
        match self.replace(|in_force| in_force.with_answer(rule.clone())) {
            Ok(()) => Some(rule.clone()),
            Err(error) => {
                tracing::error!(%error, "a rule that was offered cannot be used");
                None
            }
        }
    }

    /// Saves a rule in the user's settings. The user is told when that fails; for the session the rule counts all the same.
    async fn save(&self, rule: &PermissionRule) {
        let (agent_dir, rule) = (self.in_force().sources.agent_dir.clone(), rule.clone());
        let saved = tokio::task::spawn_blocking(move || add_permission_rule(&agent_dir, &rule)).await;
        let problem = match saved {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        if let Some(channels) = self.channels.get() {
            let text = format!("The rule counts for this session, and could not be saved: {problem}");
            channels.ui.tell(Asker::Daemon, Notice::notify(text, NotifyType::Warning)).await;
        }
    }
}

/// Words to the model; none if the user has nothing to say.
async fn words(ui: &Ui, limit: Duration, stop: &CancellationToken) -> Option<String> {
    let dialog = Dialog::input("What should the model know?", None).within(limit);
    match ui.ask(Asker::Daemon, dialog, stop).await {
        DialogAnswer::Value(text) if !text.trim().is_empty() => Some(text.trim().to_owned()),
        _ => None,
    }
}
