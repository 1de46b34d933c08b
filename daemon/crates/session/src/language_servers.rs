//! What language servers get of a session: their configuration, the trust in the project, and who is asked before they change something.

use std::{path::Path, sync::Arc, time::Duration};

use agentd_agent::hooks::{Action, GateDecision, Requester};
use agentd_config::{AgentDir, ProjectFolders, trust_subjects};
use agentd_lsp::{
    DiagnosticsOnEdit, LSP_LOG, LSP_TOOL, LspConfig, LspOptions, LspParts, LspPermissions, ProjectTrust,
    ProposedChange,
};
use agentd_protocol::{
    resources::Diagnostic,
    settings::{LspDiagnosticsOnEdit, LspSettings, Settings},
};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    context::{ContextLink, SessionContext},
    discovery_switches::DiscoverySwitches,
    options::{SessionOptions, lsp_is_on},
    services::Services,
};

/// How long the result of an edit waits for diagnostics.
const WAIT: Duration = Duration::from_secs(2);

/// The longest such time: the result of an edit is not held up for long.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// Memory of one server, in bytes.
const MAX_MEMORY: u64 = 6_000_000_000;

/// Time for a server to begin.
const START: Duration = Duration::from_secs(60);

/// What says which language servers a session has.
pub(crate) struct LanguageServerSources<'a> {
    pub(crate) services: &'a Arc<Services>,
    pub(crate) options: &'a SessionOptions,
    pub(crate) settings: &'a Settings,
    pub(crate) cwd: &'a Path,
    pub(crate) agent_dir: &'a AgentDir,
    pub(crate) folders: &'a ProjectFolders,
    /// Whether the user trusts the project.
    pub(crate) is_trusted: bool,
    pub(crate) link: &'a ContextLink,
}

impl LanguageServerSources<'_> {
    /// What language servers need; `None` where the session has none. Reads files; blocks.
    pub(crate) fn parts(&self, found: &mut Vec<Diagnostic>) -> Option<LspParts> {
        let Self { services, options, settings, cwd, agent_dir, folders, is_trusted, link } = *self;
        let is_on = lsp_is_on(settings, options.lsp) || options.tools.names(LSP_TOOL);
        // Servers of this machine know no files of another one.
        if !is_on || options.ssh.is_some() {
            return None;
        }
        let config = LspConfig::load(agent_dir, is_trusted.then_some(folders), found);
        let foreign = DiscoverySwitches::of(settings.discovery.as_ref()).get().foreign();
        let trust = if is_trusted {
            ProjectTrust::Trusted
        } else if trust_subjects(cwd, folders, agent_dir, &options.environment, foreign).is_empty() {
            ProjectTrust::NothingToTrust
        } else {
            ProjectTrust::Untrusted
        };
        Some(LspParts {
            config,
            shared: Arc::clone(&services.language_servers),
            launcher: services.launcher.clone(),
            tasks: services.tasks.clone(),
            memory: services.memory.clone(),
            log: services.program_logs.at(agent_dir.path().join(LSP_LOG)),
            trust,
            options: lsp_options(settings.lsp.as_ref()),
            permissions: Arc::new(SessionLspPermissions(link.clone())),
        })
    }
}

fn lsp_options(settings: Option<&LspSettings>) -> LspOptions {
    let settings = settings.cloned().unwrap_or_default();
    LspOptions {
        on_edit: match settings.diagnostics_on_edit {
            Some(LspDiagnosticsOnEdit::Off) => DiagnosticsOnEdit::Off,
            Some(LspDiagnosticsOnEdit::Warm) => DiagnosticsOnEdit::Warm,
            Some(LspDiagnosticsOnEdit::Start) | None => DiagnosticsOnEdit::Start,
        },
        wait: settings.diagnostics_wait_ms.map_or(WAIT, Duration::from_millis).min(MAX_WAIT),
        max_memory: settings.max_memory_bytes.unwrap_or(MAX_MEMORY),
        start_limit: settings.start_timeout_ms.map_or(START, Duration::from_millis),
        edits_outside: settings.edits_outside.unwrap_or(false),
    }
}

/// Asks the gate of a session.
struct SessionLspPermissions(ContextLink);

/// Texts up to this length are shown whole to those who are asked; of longer ones the lines that change.
const SHOWN_WHOLE: usize = 64 << 10;

impl SessionLspPermissions {
    async fn ask(
        &self,
        call_id: &str,
        (tool, arguments): (&str, &Value),
        stop: &CancellationToken,
    ) -> Result<(), String> {
        let context = self.0.get().ok_or("the session is ending.")?;
        let action = action(&context, Requester::Model { call_id }, (tool, arguments));
        match context.gate.before(&action, stop).await {
            GateDecision::Free { arguments: Some(changed) } if changed != *arguments => Err(format!(
                "a hook wants to change this call of {tool}, which is not possible here: use {tool} itself."
            )),
            GateDecision::Free { .. } => Ok(()),
            GateDecision::Blocked { reason, .. } => Err(reason),
            GateDecision::Stopped => Err("Operation aborted.".to_owned()),
        }
    }
}

/// A call as the gate sees it.
fn action<'a>(
    context: &'a SessionContext,
    by: Requester<'a>,
    (tool, arguments): (&'a str, &'a Value),
) -> Action<'a> {
    Action {
        by,
        tool,
        arguments,
        cwd: &context.cwd,
        is_trusted_read: false,
        declares_reading: false,
        schema: None,
        must_ask: None,
    }
}

impl LspPermissions for SessionLspPermissions {
    fn may_change<'a>(
        &'a self,
        call_id: &'a str,
        change: ProposedChange<'a>,
        stop: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let (tool, arguments) = as_call(&change);
            self.ask(call_id, (tool, &arguments), stop).await
        })
    }

    fn may_start<'a>(
        &'a self,
        call_id: &'a str,
        server: &'a str,
        stop: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let asked = self.ask(call_id, (LSP_TOOL, &start_arguments(server)), stop).await;
            asked.map_err(|why| format!("{server} is not started, as it runs code of the project: {why}"))
        })
    }

    fn may_start_unasked<'a>(&'a self, server: &'a str) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let Some(context) = self.0.get() else { return false };
            let arguments = start_arguments(server);
            let asking = tokio::task::spawn_blocking(move || {
                context.permissions.allows_unasked(&action(&context, Requester::User, (LSP_TOOL, &arguments)))
            });
            asking.await.unwrap_or(false)
        })
    }
}

/// The start of a server as a call of the tool, for permissions alone.
fn start_arguments(server: &str) -> Value {
    json!({"action": "start", "server": server})
}

/// A change as a call of `write` for a new file, else of `edit`.
fn as_call(change: &ProposedChange<'_>) -> (&'static str, Value) {
    let path = change.path.display().to_string();
    match (change.old, change.new) {
        (None, Some(new)) => ("write", json!({"path": path, "content": new})),
        (old, new) => {
            let (old, new) = changed_part(old.unwrap_or_default(), new.unwrap_or_default());
            ("edit", json!({"path": path, "edits": [{"oldText": old, "newText": new}]}))
        }
    }
}

/// Both texts, or of long ones the lines that differ.
fn changed_part<'a>(old: &'a str, new: &'a str) -> (&'a str, &'a str) {
    if old.len().max(new.len()) <= SHOWN_WHOLE {
        return (old, new);
    }
    let same = old.bytes().zip(new.bytes()).take_while(|(old, new)| old == new).count();
    let start = old.as_bytes()[..same].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let (old, new) = (&old[start..], &new[start..]);
    let most = old.len().min(new.len());
    let same =
        old.bytes().rev().zip(new.bytes().rev()).take(most).take_while(|(old, new)| old == new).count();
    let tail = &old.as_bytes()[old.len() - same..];
    // The tail begins with a whole line.
    let kept = tail.iter().position(|byte| *byte == b'\n').map_or(0, |at| same - at - 1);
    (&old[..old.len() - kept], &new[..new.len() - kept])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_long_texts_the_lines_that_change_are_shown() {
        let long = "é\n".repeat(40 << 10);
        let (old, new) = (format!("{long}one é\n{long}"), format!("{long}two é\n{long}"));
        assert_eq!(changed_part(&old, &new), ("one é\n", "two é\n"));
        assert_eq!(changed_part(&old, &old), ("", ""));
        assert_eq!(changed_part("a", "b"), ("a", "b"));
    }

    #[test]
    fn changes_are_calls_of_the_tools_for_files() {
        let of = |old, new| as_call(&ProposedChange { path: Path::new("/a"), old, new });
        assert_eq!(of(None, Some("x")), ("write", json!({"path": "/a", "content": "x"})));
        let edit = |old: &str, new: &str| json!({"path": "/a", "edits": [{"oldText": old, "newText": new}]});
        assert_eq!(of(Some("x"), Some("y")), ("edit", edit("x", "y")));
        assert_eq!(of(Some("x"), None), ("edit", edit("x", "")));
        assert_eq!(of(None, None), ("edit", edit("", "")));
    }
}
