//! From flags to options: which flags go together, the mode of work that they ask for, and the options of each.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use agentd_auth::Secret;
use agentd_config::{
    Environment, NoAgentDir,
    models::{DEMO_MODEL, DEMO_PROVIDER},
    read_json, resolve_path,
};
use agentd_protocol::{settings::PermissionRule, socket_path::Surroundings};
use agentd_session::{InitialMode, PermissionOptions, SessionMode, SessionOptions, Target};
use serde::Deserialize;

use super::{
    flags::{Flags, ModeFlag},
    invocation::{HostProtocol, Mode, OneShotFormat, OneShotOptions, ServeOptions, StdioOptions},
};

impl Flags {
    /// The mode of work. Under the name `agentd` a message needs `-p`, so that a mistyped subcommand is no prompt. As pi, any flag or
    /// word about a session means `-p`, since there is no terminal interface.
    ///
    /// # Errors
    /// When flags of two modes meet.
    pub(super) fn mode(&self, serve: bool) -> Result<Mode, String> {
        let asked = match (self.mode, self.print) {
            (Some(ModeFlag::Rpc), _) => Some(Mode::Stdio),
            (Some(ModeFlag::Acp), _) => Some(Mode::Host(HostProtocol::Acp)),
            (Some(ModeFlag::Json), _) => Some(Mode::OneShot(OneShotFormat::Json)),
            (Some(ModeFlag::Text), _) | (None, true) => Some(Mode::OneShot(OneShotFormat::Text)),
            (None, false) => None,
        };
        match asked {
            Some(Mode::Stdio) if serve => {
                Err("Error: `serve` listens on a socket; without it, --stdio serves stdin and stdout.".into())
            }
            Some(_) if serve => {
                Err("Error: `serve` listens on a socket; without it, -p and --mode answer prompts and end."
                    .into())
            }
            Some(mode) => Ok(mode),
            None if !serve && (self.named_pi || self.compat && self.about_a_session.is_some()) => {
                Ok(Mode::OneShot(OneShotFormat::Text))
            }
            None => Ok(Mode::Serve),
        }
    }

    /// The mode of work of `agentd mcp serve`.
    ///
    /// # Errors
    /// When a flag asks for another mode.
    pub(super) fn mcp_mode(&self) -> Result<Mode, String> {
        if self.mode.is_some() || self.print {
            return Err(
                "Error: `mcp serve` is a mode of its own: --stdio, --mode and -p do not go with it.".into()
            );
        }
        Ok(Mode::Host(HostProtocol::Mcp))
    }

    /// Checks the flags of a session for contradictions.
    ///
    /// # Errors
    /// The first contradiction, in pi's words where pi has an error for it.
    pub(super) fn check_session(&self) -> Result<(), String> {
        if self.socket.is_some() || self.detached {
            return Err("Error: --socket is for the daemon on a socket; it cannot be combined with --stdio or prompts \
                        (for --stdio --shared, AGENTD_SOCKET names the daemon's socket)"
                .into());
        }
        if let (Some(provider), None) = (&self.provider, &self.model) {
            return Err(format!(
                "Error: --provider requires --model (for example: --provider {provider} --model <pattern>)"
            ));
        }
        if self.api_key.is_some() && self.model.is_none() && self.models.is_none() {
            return Err("Error: --api-key requires a model to be specified via --model, --provider/--model, or --models"
                .into());
        }
        if self.demo {
            exclusive("--demo", &[("--model", self.model.is_some())])?;
        }
        self.check_resume()?;
        let (session, last, none) = (self.session.is_some(), self.continue_last, self.no_session);
        if self.fork.is_some() {
            exclusive("--fork", &[("--session", session), ("--continue", last), ("--no-session", none)])?;
        }
        if self.session_id.is_some() {
            exclusive("--session-id", &[("--session", session), ("--continue", last)])?;
        }
        Ok(())
    }

    /// # Errors
    /// For `--resume`, which needs a terminal interface.
    pub(super) fn check_resume(&self) -> Result<(), String> {
        if self.resume {
            return Err("Error: --resume opens a picker, and agentd has no terminal interface: --continue takes the most \
                        recent session of this folder, --session <id> any other; `agentctl prompt --resume` asks, `agentctl sessions` lists them"
                .into());
        }
        Ok(())
    }

    /// # Errors
    /// For `--record` and `--replay`: they are about a whole process, and the session belongs to another one.
    pub(super) fn check_own_process(&self) -> Result<(), String> {
        if self.record_replay.is_empty() {
            return Ok(());
        }
        Err("Error: --record and --replay are for a process of its own (`agentd --stdio`, `agentd -p`, `agentctl prompt`) or \
             a whole daemon (`agentd serve --record <dir>`), and not for one session of a daemon"
            .into())
    }

    pub(super) fn into_stdio(self, cwd: &Path, environment: Environment) -> Result<StdioOptions, String> {
        if !self.files.is_empty() {
            return Err("Error: @file arguments are not supported in RPC mode".into());
        }
        self.check_session()?;
        let (on_eof, ready, cumulative) = (self.on_eof.unwrap_or_default(), self.ready, self.cumulative);
        let warnings = self.warnings.clone();
        let session = self.into_session(cwd, environment)?;
        Ok(StdioOptions { session, on_eof, ready, cumulative, warnings })
    }

    pub(super) fn into_one_shot(
        mut self,
        format: OneShotFormat,
        cwd: &Path,
        environment: Environment,
    ) -> Result<OneShotOptions, String> {
        let for_stdio =
            [("--on-eof", self.on_eof.is_some()), ("--ready", self.ready), ("--shared", self.shared)];
        if let Some((flag, _)) = for_stdio.into_iter().find(|(_, given)| *given) {
            return Err(format!(
                "Error: {flag} is for --stdio, and not for -p and --mode text or json. `agentctl prompt` has a prompt \
                 answered by the daemon."
            ));
        }
        self.check_session()?;
        let (files, messages) = (std::mem::take(&mut self.files), std::mem::take(&mut self.messages));
        let (cumulative, warnings) = (self.cumulative, std::mem::take(&mut self.warnings));
        let session = self.into_session(cwd, environment)?;
        Ok(OneShotOptions { session, format, files, messages, cumulative, warnings })
    }

    pub(super) fn into_serve(self, cwd: &Path, mut environment: Environment) -> Result<ServeOptions, String> {
        self.check_resume()?;
        if let Some(flag) = self.of_extensions.first() {
            return Err(format!("Error: {}", flag.unknown));
        }
        if let Some(given) = &self.about_a_session {
            return Err(format!(
                "Error: {given} is about one session, and `agentd` alone serves many: `agentd -p {given} ...` answers a prompt \
                 and ends, `agentd --stdio {given} ...` serves one session on stdin and stdout; on the socket, sessions are \
                 opened by clients."
            ));
        }
        // Made absolute: sessions work in other folders.
        for name in ["AGENTD_DIR", "PI_CODING_AGENT_DIR"] {
            if let Some(path) = environment.non_empty(name) {
                let path = resolve_path(path, cwd, &environment);
                environment.set(name, path);
            }
        }
        let variable = |name: &str| environment.get_os(name).map(OsStr::to_owned);
        let here = Surroundings { variable: &variable, cwd, uid: rustix::process::getuid().as_raw() };
        let agent_dir = here.agent_dir(self.compat).ok_or_else(|| format!("Error: {NoAgentDir}"))?;
        let socket = match &self.socket {
            Some(path) => resolve_path(path, cwd, &environment),
            None => here.socket(&agent_dir),
        };
        let detached = self.detached;
        Ok(ServeOptions { base: self.into_session(cwd, environment)?, agent_dir, socket, detached })
    }

    pub(super) fn into_session(
        self,
        cwd: &Path,
        mut environment: Environment,
    ) -> Result<SessionOptions, String> {
        if self.offline {
            // pi's own variable, which programs of the session inherit.
            environment.set("PI_OFFLINE", "1");
        }
        for (name, value) in &self.record_replay {
            environment.set(*name, value);
        }
        let target = self.target();
        let rules = match &self.permission_rules {
            Some(file) => permission_rules(&cwd.join(file))?,
            None => Vec::new(),
        };
        Ok(SessionOptions {
            cwd: cwd.to_owned(),
            environment,
            compat: self.compat,
            target,
            preferred: self.preferred,
            session_dir: self.session_dir.map(PathBuf::from),
            name: self.name,
            provider: self.provider,
            model: if self.demo { Some(format!("{DEMO_PROVIDER}/{DEMO_MODEL}")) } else { self.model },
            models: self.models,
            fallback_models: self.fallback_models,
            api_key: self.api_key.map(Secret::new),
            thinking: self.thinking,
            system_prompt: self.system_prompt,
            append_system_prompt: self.append_system_prompt,
            tools: self.tools,
            todo: self.todo,
            lsp: self.lsp,
            syntax: self.syntax,
            task: self.task,
            async_jobs: self.async_jobs,
            web: self.web,
            ssh: self.ssh,
            no_context_files: self.no_context_files,
            no_mcp: self.no_mcp,
            mcp_on_demand: self.mcp_on_demand,
            additional_directories: Vec::new(),
            mcp_servers: Vec::new(),
            resources: self.resources,
            extension_flags: self.of_extensions,
            sandbox: self.sandbox,
            undo: self.undo,
            approve: self.approve,
            budget: self.budget,
            permissions: PermissionOptions { preset: self.preset, rules },
            mode: if self.no_ui { SessionMode::Headless } else { SessionMode::Rpc },
            subagent: None,
            initial_mode: if self.plan_mode { InitialMode::Plan } else { InitialMode::Default },
        })
    }

    /// `--session` wins over `--continue`: clients that resume a session give both.
    fn target(&self) -> Target {
        if self.no_session {
            return Target::Ephemeral(self.session_id.clone());
        }
        if let Some(source) = &self.fork {
            return Target::Fork { source: source.clone(), id: self.session_id.clone() };
        }
        match (&self.session, &self.session_id) {
            (Some(session), _) => Target::Existing(session.clone()),
            (None, Some(id)) => Target::Id(id.clone()),
            (None, None) if self.continue_last => Target::Continue,
            (None, None) => Target::New,
        }
    }
}

fn exclusive(flag: &str, others: &[(&str, bool)]) -> Result<(), String> {
    let given: Vec<&str> = others.iter().filter(|(_, given)| *given).map(|(other, _)| *other).collect();
    if given.is_empty() {
        return Ok(());
    }
    Err(format!("Error: {flag} cannot be combined with {}", given.join(", ")))
}

/// The rules of the file that `--permission-rules` names. Reads it; blocks.
fn permission_rules(file: &Path) -> Result<Vec<PermissionRule>, String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct RulesFile {
        rules: Vec<PermissionRule>,
    }
    let fault = |problem: String| format!("Error: --permission-rules {}: {problem}", file.display());
    let document = read_json(file).map_err(|error| format!("Error: --permission-rules: {error}"))?;
    let document = document.ok_or_else(|| fault("there is no such file".to_owned()))?;
    if !document.value.is_object() {
        return Err(fault("expected {\"rules\": […]}".to_owned()));
    }
    let RulesFile { rules } =
        serde_json::from_value(document.value).map_err(|error| fault(error.to_string()))?;
    Ok(rules)
}
