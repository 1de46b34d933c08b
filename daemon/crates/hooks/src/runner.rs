//! Runs all hooks of an event, side by side.

use std::{ffi::OsString, path::PathBuf, pin::Pin, sync::Arc, time::Duration};

use agentd_process::ProcessGroup;
use agentd_sandbox::SandboxPolicy;
use futures::{StreamExt as _, stream};
use tokio_util::sync::CancellationToken;

use crate::{
    dialect::Dialect,
    hook::Hook,
    input::{HookFacts, HookInput},
    outcome::HookOutcome,
    process::HookProcess,
    reply::{HookReply, reply},
    set::HookSet,
};

/// The hooks of one event that run at the same time.
const SIDE_BY_SIDE: usize = 8;

/// A hook that runs: its name, and what it wants.
type Running<'a> = Pin<Box<dyn Future<Output = (String, HookReply)> + Send + 'a>>;

/// Runs the hooks of a session.
#[derive(Debug, Clone)]
pub struct HookRunner {
    /// Owns their processes.
    pub processes: ProcessGroup,
    /// The setting `shellPath`.
    pub shell: Option<PathBuf>,
    /// Their environment.
    pub env: Arc<[(OsString, OsString)]>,
    /// The sandbox of the session's commands, if there is one.
    pub sandbox: Option<HookSandbox>,
    /// What all are told.
    pub facts: HookFacts,
}

/// A sandbox for hooks: what they run may have been written by a command in it, and must not get out of it in that way.
#[derive(Debug, Clone)]
pub struct HookSandbox {
    /// What may be touched.
    pub policy: Arc<SandboxPolicy>,
    /// The environment in it.
    pub env: Arc<[(OsString, OsString)]>,
    /// Whether the user's own hooks run in it, too. Those of a project always do.
    pub is_for_user: bool,
}

impl HookRunner {
    /// Runs the hooks that an event is for, and merges what they want. `variables` come on top of the environment; none runs longer than
    /// `at_most`, where that is given. `None` where there are none.
    ///
    /// When `cancel` fires, they are killed with all that they started. Cancel safety: so they are when this is dropped.
    pub async fn run(
        &self,
        hooks: &HookSet,
        input: &HookInput<'_>,
        variables: &[(String, String)],
        at_most: Option<Duration>,
        cancel: &CancellationToken,
    ) -> Option<HookOutcome> {
        let matching = hooks.matching(input.event(), &input.about());
        if matching.is_empty() {
            return None;
        }
        let told = Told::new(&matching, input, &self.facts);
        let mut running: Vec<Running<'_>> = Vec::with_capacity(matching.len());
        for hook in &matching {
            let sandbox = self.sandbox.as_ref().filter(|it| it.is_for_user || hook.origin.is_of_project);
            let env = self.environment(sandbox.map_or(&self.env, |sandbox| &sandbox.env), input, variables);
            let process = HookProcess {
                group: &self.processes,
                shell: self.shell.as_ref(),
                line: hook.program.line(),
                cwd: self.facts.cwd.clone(),
                env,
                sandbox: sandbox.map(|sandbox| Arc::clone(&sandbox.policy)),
                timeout: at_most.map_or(hook.timeout, |limit| hook.timeout.min(limit)),
                input: told.to(hook),
                cancel: cancel.child_token(),
            };
            running.push(Box::pin(async move {
                let end = process.run().await;
                tracing::debug!(event = hook.event.name(), %hook, how = ?end.how, "a hook has ended");
                (hook.to_string(), reply(hook, input.tool(), &end))
            }));
        }
        let replies: Vec<_> = stream::iter(running).buffered(SIDE_BY_SIDE).collect().await;
        Some(HookOutcome::merged(replies))
    }

    fn environment(
        &self,
        base: &[(OsString, OsString)],
        input: &HookInput<'_>,
        variables: &[(String, String)],
    ) -> Vec<(OsString, OsString)> {
        let project = self.facts.cwd.as_os_str();
        let own = [
            ("AGENTD_PROJECT_DIR".into(), project.to_owned()),
            ("CLAUDE_PROJECT_DIR".into(), project.to_owned()),
            ("AGENTD_HOOK_EVENT".into(), input.event().name().into()),
        ];
        let variables = variables.iter().map(|(name, value)| (name.into(), value.into()));
        base.iter().cloned().chain(variables).chain(own).collect()
    }
}

/// The lines that hooks get, made once for each spelling.
struct Told {
    own: Vec<u8>,
    claude: Vec<u8>,
}

impl Told {
    fn new(hooks: &[Arc<Hook>], input: &HookInput<'_>, facts: &HookFacts) -> Self {
        let line = |dialect| {
            if hooks.iter().any(|hook| hook.dialect == dialect) {
                let mut line = input.json(facts, dialect).to_string().into_bytes();
                line.push(b'\n');
                line
            } else {
                Vec::new()
            }
        };
        Self { own: line(Dialect::Own), claude: line(Dialect::Claude) }
    }

    fn to(&self, hook: &Hook) -> &[u8] {
        match hook.dialect {
            Dialect::Own => &self.own,
            Dialect::Claude => &self.claude,
        }
    }
}
