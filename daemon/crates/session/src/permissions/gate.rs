//! The gate: asks the policy before a call starts, and the user where the policy says so.

use std::{
    path::Path,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use agentd_agent::hooks::{Action, HookFuture, HookVerdict, Hooks, OUTSIDE_SANDBOX, Requester};
use agentd_config::settings::add_permission_rule;
use agentd_policy::{PolicyDecision, PolicyError};
use agentd_protocol::{
    event::{DecisionMaker, PermissionDecision, PermissionVerdict},
    session::PermissionState,
    settings::{PermissionAction, PermissionPreset, PermissionRule, PermissionSettings, TimeoutDecision},
    ui::NotifyType,
};
use serde_json::Value;
use tokio::sync::{Semaphore, oneshot};
use tokio_util::sync::CancellationToken;

use super::{
    diff::{self, CallDiff},
    in_force::{GateSources, InForce},
    planning::{self, Planning},
    question::{Answer, AskedCall, question, read},
    record::{RecordDecision, decision},
    subject::CallSubject,
};
use crate::{
    message_sender::MessageSender,
    ui::{Asker, Dialog, DialogAnswer, Notice, Ui},
};

/// How many questions are open at once. Each is held in memory, for clients that come later; others wait for their turn.
const MAX_OPEN: usize = 32;

/// How many calls wait for an answer at most: as many as commands of all sessions run by default.
const MAX_WAITING: usize = 1024;

/// The people and the file behind a gate: there once the session's actor works.
struct Channels {
    ui: Ui,
    decisions: MessageSender<RecordDecision>,
}

/// Decides about every call of a session. One for as long as the session is in memory, so that changes count at once.
pub(crate) struct PermissionGate {
    in_force: Mutex<Arc<InForce>>,
    /// The gate of the session that a subagent works for: it has its permissions, as they are at any time.
    parent: Option<Arc<Self>>,
    /// Those permissions for another folder, and what they were made from.
    moved: Mutex<Option<(Arc<InForce>, Arc<InForce>)>>,
    /// Whether there is something to decide; as `in_force` has it.
    is_restricted: AtomicBool,
    /// Whether commands have a sandbox, which they can ask to leave.
    has_sandbox: bool,
    /// Whether plan mode is on.
    is_planning: AtomicBool,
    channels: OnceLock<Channels>,
    /// The places for open questions.
    places: Arc<Semaphore>,
    /// The places for calls that wait for an answer.
    waiting: Semaphore,
}

/// How a question ended.
struct Asked {
    answer: Option<Answer>,
    by: DecisionMaker,
    client: Option<String>,
}

impl PermissionGate {
    pub(super) fn new(in_force: InForce) -> Self {
        let is_restricted = AtomicBool::new(in_force.is_restricted());
        Self {
            in_force: Mutex::new(Arc::new(in_force)),
            parent: None,
            moved: Mutex::default(),
            is_restricted,
            has_sandbox: false,
            is_planning: AtomicBool::new(false),
            channels: OnceLock::new(),
            places: Arc::new(Semaphore::new(MAX_OPEN)),
            waiting: Semaphore::new(MAX_WAITING),
        }
    }

    /// Also asks about commands that want to run outside of the session's sandbox, if it has one.
    #[must_use]
    pub(crate) fn with_sandbox(self, has_sandbox: bool) -> Self {
        Self { has_sandbox, ..self }
    }

    /// The gate of a subagent's session.
    #[must_use]
    pub(crate) fn under(self, parent: Option<Arc<Self>>) -> Self {
        Self { parent, ..self }
    }

    /// Whether there is something to decide.
    fn is_restricted(&self) -> bool {
        match &self.parent {
            Some(parent) => parent.is_restricted(),
            None => self.is_restricted.load(Ordering::Acquire),
        }
    }

    /// Whether plan mode is on.
    pub(crate) fn planning(&self) -> Planning {
        match &self.parent {
            // A subagent changes no more than the session that it works for.
            Some(parent) if parent.planning().is_on() => Planning::ForParent,
            _ => self.own_planning(),
        }
    }

    /// The same, whatever the session does that a subagent works for.
    pub(crate) fn own_planning(&self) -> Planning {
        if self.is_planning.load(Ordering::Acquire) { Planning::On } else { Planning::Off }
    }

    /// Switches plan mode on or off. Counts from the next call on.
    pub(crate) fn set_planning(&self, is_on: bool) {
        self.is_planning.store(is_on, Ordering::Release);
    }

    /// Connects the gate with the session's user and file. The first connection stays.
    pub(crate) fn connect(&self, ui: Ui, decisions: MessageSender<RecordDecision>) {
        let _ = self.channels.set(Channels { ui, decisions });
    }

    /// The permissions, where something is not allowed.
    pub(crate) fn state(&self) -> Option<PermissionState> {
        self.is_restricted().then(|| self.full_state())
    }

    /// The permissions, as clients see them.
    pub(crate) fn full_state(&self) -> PermissionState {
        self.in_force().state()
    }

    /// The preset of the project's policy, where the project is trusted.
    pub(crate) fn project_preset(&self) -> Option<PermissionPreset> {
        self.in_force().project_preset()
    }

    /// The changes by commands, which count until the session is closed.
    pub(crate) fn changes(&self) -> Option<PermissionSettings> {
        if self.parent.is_some() {
            return None;
        }
        Some(self.in_force().changes.clone()).filter(|changes| *changes != PermissionSettings::default())
    }

    /// Changes the permissions. Looks at folders; blocks.
    ///
    /// # Errors
    /// A rule that cannot be used; nothing has changed then.
    pub(crate) fn change(&self, changes: &PermissionSettings) -> Result<PermissionState, PolicyError> {
        self.replace(|in_force| in_force.changed(changes)).map(|()| self.full_state())
    }

    /// Goes on with other settings, and with all that the session was given since. Looks at folders; blocks.
    ///
    /// # Errors
    /// A rule that cannot be used; nothing has changed then.
    pub(crate) fn go_on_with(&self, sources: GateSources) -> Result<(), PolicyError> {
        if self.parent.is_some() {
            return Ok(());
        }
        self.replace(|in_force| in_force.with_sources(sources))
    }

    fn replace(
        &self,
        change: impl FnOnce(&InForce) -> Result<InForce, PolicyError>,
    ) -> Result<(), PolicyError> {
        if let Some(parent) = &self.parent {
            return parent.replace(change);
        }
        let mut in_force = self.in_force.lock().unwrap_or_else(PoisonError::into_inner);
        *in_force = Arc::new(change(&in_force)?);
        self.is_restricted.store(in_force.is_restricted(), Ordering::Release);
        Ok(())
    }

    fn in_force(&self) -> Arc<InForce> {
        let own = Arc::clone(&self.in_force.lock().unwrap_or_else(PoisonError::into_inner));
        match &self.parent {
            Some(parent) => self.of_parent(parent.in_force(), &own.sources.cwd),
            None => own,
        }
    }

    /// The permissions of the parent, in the folder of this session.
    fn of_parent(&self, of_parent: Arc<InForce>, cwd: &Path) -> Arc<InForce> {
        if of_parent.sources.cwd == cwd {
            return of_parent;
        }
        let mut moved = self.moved.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((from, made)) = &*moved
            && Arc::ptr_eq(from, &of_parent)
        {
            return Arc::clone(made);
        }
        match of_parent.moved_to(cwd) {
            Ok(made) => {
                let made = Arc::new(made);
                *moved = Some((of_parent, Arc::clone(&made)));
                made
            }
            Err(error) => {
                // Those of the other folder permit less here.
                tracing::warn!(%error, "the permissions of a subagent are those for its parent's folder");
                of_parent
            }
        }
    }

    async fn decide(&self, action: &Action<'_>, stop: &CancellationToken) -> Result<HookVerdict, String> {
        let leaves = self.has_sandbox && asks_to_leave(action);
        // A sandbox alone asks about nothing that stays inside.
        let planning = match action.by {
            Requester::Model { .. } => self.planning(),
            // Plan mode is about what the model does.
            Requester::User => Planning::Off,
        };
        if !leaves && action.must_ask.is_none() && !self.is_restricted() && !planning.is_on() {
            return Ok(HookVerdict::Run);
        }
        let in_force = self.in_force();
        let subject = CallSubject::of_action(action, &in_force.sources.home);
        let (judge, tool) = (Arc::clone(&in_force), action.tool.to_owned());
        let is_reading = planning::is_reading(action);
        // It looks at links of the paths that are named, and a file system may take its time.
        let judged = tokio::task::spawn_blocking(move || {
            let refused = match planning.is_on() {
                true => planning::refusal(&judge.sources, &tool, &subject, is_reading)?,
                false => None,
            };
            let verdict = judge.policy.decide(subject.judged_as(&tool), subject.borrowed());
            Ok::<_, String>((refused, verdict, subject))
        });
        let (refused, verdict, subject) =
            judged.await.map_err(|error| format!("Permission denied: the policy failed ({error})."))??;
        if let Some(reason) = refused {
            // No decision of the permissions: while the model plans, nothing of its work is missing.
            return Ok(blocked(&reason, planning.advice()));
        }
        let verdict = if leaves { outside_sandbox(verdict) } else { verdict };
        let verdict = match action.must_ask {
            Some(reason) => asked_by_hook(verdict, reason),
            None => verdict,
        };
        match verdict.action {
            PermissionAction::Allow => Ok(HookVerdict::Run),
            PermissionAction::Deny => {
                let advice = "Do not try it in another form; say what you need it for, or go on without it.";
                Ok(self.refuse(action, verdict, advice).await)
            }
            PermissionAction::Ask => {
                let Ok(_waiting) = self.waiting.try_acquire() else {
                    let reason = "too many calls wait for an answer".to_owned();
                    let verdict = PolicyDecision { reason, ..verdict };
                    return Ok(self.refuse(action, verdict, "Try again when some are answered.").await);
                };
                self.ask(action, &subject, (&verdict, leaves), stop).await
            }
        }
    }

    /// Refuses a call without a question.
    async fn refuse(&self, action: &Action<'_>, verdict: PolicyDecision, advice: &str) -> HookVerdict {
        let (id, by) = (call_id(action), DecisionMaker::Policy);
        let blocked = blocked(&verdict.reason, advice);
        let rule = verdict.rule.as_ref();
        self.record(decision(id, action.tool, PermissionVerdict::Denied, by, verdict.reason, rule)).await;
        blocked
    }

    async fn ask(
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

    /// Stores a decision and tells it; whether it is stored.
    async fn record(&self, decision: PermissionDecision) -> bool {
        let Some(channels) = self.channels.get() else { return false };
        let (stored, is_stored) = oneshot::channel();
        channels.decisions.send(RecordDecision { decision, stored }).await;
        is_stored.await.unwrap_or(false)
    }
}

impl Hooks for PermissionGate {
    fn is_idle(&self) -> bool {
        !self.is_restricted() && !self.has_sandbox && !self.planning().is_on()
    }

    fn before<'a>(
        &'a self,
        action: &'a Action<'a>,
        stop: &'a CancellationToken,
    ) -> HookFuture<'a, HookVerdict> {
        Box::pin(self.decide(action, stop))
    }
}

/// The id of a call of the model.
fn call_id<'a>(action: &Action<'a>) -> Option<&'a str> {
    match action.by {
        Requester::Model { call_id } => Some(call_id),
        Requester::User => None,
    }
}

/// Whether a call asks to run outside of the sandbox.
fn asks_to_leave(action: &Action<'_>) -> bool {
    action.arguments.get(OUTSIDE_SANDBOX) == Some(&Value::Bool(true))
}

/// A verdict about a command that asks to leave the sandbox: it is asked about even where it is allowed inside, each time.
fn outside_sandbox(verdict: PolicyDecision) -> PolicyDecision {
    let asked = "it asks to run outside of the sandbox";
    match verdict.action {
        PermissionAction::Deny => verdict,
        PermissionAction::Allow => PolicyDecision {
            action: PermissionAction::Ask,
            rule: None,
            reason: asked.to_owned(),
            suggestion: None,
            ..verdict
        },
        PermissionAction::Ask => {
            PolicyDecision { reason: format!("{asked}, and {}", verdict.reason), suggestion: None, ..verdict }
        }
    }
}

/// A verdict about a call about which a hook wants the user to be asked: what is refused stays so, and the answer is for this call alone.
fn asked_by_hook(verdict: PolicyDecision, why: &str) -> PolicyDecision {
    match verdict.action {
        PermissionAction::Deny => verdict,
        PermissionAction::Allow => PolicyDecision {
            action: PermissionAction::Ask,
            rule: None,
            reason: why.to_owned(),
            suggestion: None,
            ..verdict
        },
        PermissionAction::Ask => {
            PolicyDecision { reason: format!("{}, and {why}", verdict.reason), suggestion: None, ..verdict }
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

fn blocked(why: &str, advice: &str) -> HookVerdict {
    HookVerdict::Block { reason: Some(format!("Permission denied: {why}. {advice}")), terminate: false }
}
