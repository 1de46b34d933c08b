//! The hooks of one session, and what they have said in its current run.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use agentd_hooks::{
    HookEvent, HookFacts, HookInput, HookOutcome, HookRunner, HookSandbox, HookSet, NamedText,
};
use agentd_process::ProcessGroup;
use agentd_protocol::{settings::ShellHookSettings, terminal_text::visible, ui::NotifyType};
use tokio_util::sync::CancellationToken;

use crate::{
    child_environment::ChildEnvironment,
    sandbox::SessionSandbox,
    ui::{Asker, Notice, Ui},
};

/// How often a run goes on because a hook says that it is not done.
const MAX_CONTINUATIONS: u32 = 8;

/// The calls whose context is kept until their results are there.
const MAX_CALLS: usize = 256;

/// The shell hooks of one session. There is none where nothing configures a hook.
pub(crate) struct SessionHooks {
    set: HookSet,
    runner: HookRunner,
    /// Variables of the session, on top of the environment.
    variables: Vec<(String, String)>,
    /// The user: there once the session's actor works.
    ui: OnceLock<Ui>,
    /// Whether the session is a subagent's.
    of_subagent: bool,
    run: Mutex<RunState>,
}

/// What the hooks of a session are run with.
pub(crate) struct HookSurroundings<'a> {
    pub(crate) processes: &'a ProcessGroup,
    /// The setting `shellPath`.
    pub(crate) shell: Option<PathBuf>,
    pub(crate) env: &'a ChildEnvironment,
    /// The sandbox of commands, and their environment in it.
    pub(crate) sandbox: Option<(&'a SessionSandbox, &'a ChildEnvironment)>,
    pub(crate) settings: Option<&'a ShellHookSettings>,
    pub(crate) facts: HookFacts,
    /// Whether the session is a subagent's.
    pub(crate) of_subagent: bool,
}

/// What hooks have said in the current run.
#[derive(Default)]
struct RunState {
    /// What the model is to know of a call, with its result.
    contexts: HashMap<String, Vec<NamedText>>,
    /// Why the run is to end.
    stop: Option<String>,
    /// How often the run went on because of a hook.
    continuations: u32,
}

impl SessionHooks {
    /// The hooks of a set; `None` where it is empty.
    pub(crate) fn of(set: HookSet, surroundings: HookSurroundings<'_>) -> Option<Arc<Self>> {
        if set.is_empty() {
            return None;
        }
        let HookSurroundings { processes, shell, env, sandbox, settings, facts, of_subagent } = surroundings;
        let file = facts.transcript_path.as_ref();
        let file = file.map(|file| ("PI_SESSION_FILE".to_owned(), file.display().to_string()));
        let variables =
            [("PI_SESSION_ID".to_owned(), facts.session_id.clone())].into_iter().chain(file).collect();
        let sandbox = sandbox.map(|(sandbox, env)| HookSandbox {
            policy: Arc::clone(sandbox.policy()),
            env: Arc::clone(env),
            is_for_user: settings.and_then(|settings| settings.sandboxed).unwrap_or(true),
        });
        let runner = HookRunner { processes: processes.clone(), shell, env: Arc::clone(env), sandbox, facts };
        Some(Arc::new(Self::new(set, runner, variables, of_subagent)))
    }

    fn new(set: HookSet, runner: HookRunner, variables: Vec<(String, String)>, of_subagent: bool) -> Self {
        Self { set, runner, variables, ui: OnceLock::new(), of_subagent, run: Mutex::default() }
    }

    /// Connects the hooks with the session's user. The first connection stays.
    pub(crate) fn connect(&self, ui: Ui) {
        let _ = self.ui.set(ui);
    }

    /// Whether there is a hook for that event.
    pub(crate) fn has(&self, event: HookEvent) -> bool {
        self.set.has(event)
    }

    /// Runs the hooks for an event, and tells the user what they have to say. `None` where there are none.
    ///
    /// Cancel safety: dropped early, the hooks are killed with all that they started.
    pub(crate) async fn ask(&self, input: &HookInput<'_>, cancel: &CancellationToken) -> Option<HookOutcome> {
        let outcome = self.runner.run(&self.set, input, &self.variables, None, cancel).await?;
        if !cancel.is_cancelled() {
            for notice in &outcome.notices {
                self.tell(notice).await;
            }
        }
        Some(outcome)
    }

    /// Runs the hooks for the end of the session, none longer than that. Nobody is told anything any more.
    pub(crate) async fn end(&self, input: &HookInput<'_>, at_most: Duration) {
        let never = CancellationToken::new();
        let outcome = self.runner.run(&self.set, input, &self.variables, Some(at_most), &never).await;
        for notice in outcome.into_iter().flat_map(|outcome| outcome.notices) {
            tracing::warn!("{}", visible(&notice));
        }
    }

    /// Whether there are hooks of the project.
    pub(crate) fn has_of_project(&self) -> bool {
        self.set.all().any(|hook| hook.origin().is_of_project)
    }

    /// The hooks of the project alone; `None` where there are none.
    pub(crate) fn of_project(&self) -> Option<Self> {
        let set = self.set.of_project();
        (!set.is_empty())
            .then(|| Self::new(set, self.runner.clone(), self.variables.clone(), self.of_subagent))
    }

    /// Tells the user something.
    pub(crate) async fn tell(&self, text: &str) {
        tracing::warn!("{}", visible(text));
        if let Some(ui) = self.ui.get() {
            ui.tell(Asker::Daemon, Notice::notify(visible(text).into_owned(), NotifyType::Warning)).await;
        }
    }

    /// A run begins.
    pub(crate) fn begin_run(&self) {
        *self.state() = RunState::default();
    }

    /// Why the run is to end, if a hook wants that.
    pub(crate) fn stopped(&self) -> Option<String> {
        self.state().stop.clone()
    }

    pub(super) fn stop(&self, why: &str) {
        self.state().stop.get_or_insert_with(|| why.to_owned());
    }

    pub(super) fn keep(&self, call: &str, contexts: Vec<NamedText>) {
        let mut state = self.state();
        if !contexts.is_empty() && state.contexts.len() < MAX_CALLS {
            state.contexts.insert(call.to_owned(), contexts);
        }
    }

    pub(super) fn take(&self, call: &str) -> Vec<NamedText> {
        self.state().contexts.remove(call).unwrap_or_default()
    }

    /// Asks the hooks whether the run may end; the reason why it goes on, if one says so.
    pub(crate) async fn goes_on(&self, cancel: &CancellationToken) -> Option<String> {
        let event = if self.of_subagent { HookEvent::SubagentStop } else { HookEvent::Stop };
        if !self.has(event) || cancel.is_cancelled() || self.stopped().is_some() {
            return None;
        }
        let continuations = self.state().continuations;
        let input = HookInput::Stop { is_continuing: continuations > 0, of_subagent: self.of_subagent };
        let outcome = self.ask(&input, cancel).await?;
        if outcome.stop.is_some() || cancel.is_cancelled() {
            return None;
        }
        let reason = outcome.block?;
        if continuations >= MAX_CONTINUATIONS {
            let text = format!(
                "A {} hook wants the work to go on for the {}th time, and is not heard any more: {reason}",
                event.name(),
                continuations + 1
            );
            self.tell(&text).await;
            return None;
        }
        self.state().continuations += 1;
        Some(reason)
    }

    fn state(&self) -> MutexGuard<'_, RunState> {
        // No method panics halfway.
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
