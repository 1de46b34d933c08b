//! The gate: asks the policy before a call starts, and the user where the policy says so.

mod asking;

use std::sync::{
    Arc, Mutex, OnceLock, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use agentd_agent::hooks::{Action, HookFuture, HookVerdict, Hooks, OUTSIDE_SANDBOX, Requester};
use agentd_policy::{PolicyDecision, PolicyError, Subject};
use agentd_process::ShellSession;
use agentd_protocol::{
    event::{DecisionMaker, PermissionDecision, PermissionVerdict},
    session::PermissionState,
    settings::{PermissionAction, PermissionPreset, PermissionSettings},
    web::WEB_FETCH_TOOL,
};
use serde_json::Value;
use tokio::sync::{Semaphore, oneshot};
use tokio_util::sync::CancellationToken;

use super::{
    in_force::{GateSources, InForce},
    moved::MovedPermissions,
    planning::{self, Planning},
    record::{RecordDecision, decision},
    subject::CallSubject,
};
use crate::{client_tools::HostUrlsLink, message_sender::MessageSender, ui::Ui};

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
    /// Those permissions for the session's own folder, where that is another one.
    moved: MovedPermissions,
    /// Whether there is something to decide; as `in_force` has it.
    is_restricted: AtomicBool,
    /// Whether commands have a sandbox, which they can ask to leave.
    has_sandbox: bool,
    /// The URLs that clients serve.
    host_urls: HostUrlsLink,
    /// The shell that stays, whose directory is that of commands.
    shell_session: ShellSession,
    /// Whether plan mode is on.
    is_planning: AtomicBool,
    channels: OnceLock<Channels>,
    /// The places for open questions.
    places: Arc<Semaphore>,
    /// The places for calls that wait for an answer.
    waiting: Semaphore,
}

impl PermissionGate {
    pub(super) fn new(in_force: InForce) -> Self {
        let is_restricted = AtomicBool::new(in_force.is_restricted());
        Self {
            in_force: Mutex::new(Arc::new(in_force)),
            parent: None,
            moved: MovedPermissions::default(),
            is_restricted,
            has_sandbox: false,
            host_urls: HostUrlsLink::default(),
            shell_session: ShellSession::default(),
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

    /// Judges URLs that clients serve as such.
    #[must_use]
    pub(crate) fn with_host_urls(self, host_urls: HostUrlsLink) -> Self {
        Self { host_urls, ..self }
    }

    /// Judges commands of a shell that stays where that is.
    #[must_use]
    pub(crate) fn with_shell_session(self, shell_session: ShellSession) -> Self {
        Self { shell_session, ..self }
    }

    /// The gate of a subagent's session. Looks at folders; blocks.
    #[must_use]
    pub(crate) fn under(self, parent: Option<Arc<Self>>) -> Self {
        let gate = Self { parent, ..self };
        // Made here, so that no call has to wait for it.
        gate.in_force();
        gate
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
            Some(parent) => self.moved.of(parent.in_force(), &own.sources.cwd),
            None => own,
        }
    }

    /// Whether a call may start without a question, as far as the permissions and plan mode have a say. Looks at folders; blocks. Nothing is
    /// recorded.
    pub(crate) fn allows_unasked(&self, action: &Action<'_>) -> bool {
        let planning = self.planning();
        if !self.is_restricted() && !planning.is_on() {
            return true;
        }
        let in_force = self.in_force();
        let subject = CallSubject::of_action(
            action,
            &in_force.sources.home,
            |scheme| self.host_urls.knows(scheme),
            self.shell_session.directory(),
        );
        let is_reading = planning::is_reading(action);
        let is_refused = planning.is_on()
            && !matches!(planning::refusal(&in_force.sources, action.tool, &subject, is_reading), Ok(None));
        let verdict = in_force.policy.decide(subject.judged_as(action.tool), subject.borrowed());
        !is_refused && verdict.action == PermissionAction::Allow
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
        let subject = CallSubject::of_action(
            action,
            &in_force.sources.home,
            |scheme| self.host_urls.knows(scheme),
            self.shell_session.directory(),
        );
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

    /// Whether a host of the web may be asked for a page that another one leads to, without a question.
    ///
    /// # Errors
    /// Why not, in a clause.
    pub(crate) fn check_host(&self, host: &str) -> Result<(), String> {
        if !self.is_restricted() {
            return Ok(());
        }
        let verdict = self.in_force().policy.decide(WEB_FETCH_TOOL, Subject::Web { host: Some(host) });
        match verdict.action {
            PermissionAction::Allow => Ok(()),
            PermissionAction::Ask | PermissionAction::Deny => {
                Err(format!("the permissions do not allow {host} unasked: {}", verdict.reason))
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

fn blocked(why: &str, advice: &str) -> HookVerdict {
    HookVerdict::Block { reason: Some(format!("Permission denied: {why}. {advice}")), terminate: false }
}
