//! The flags, read one after the other into values.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use agentd_auth::Secret;
use agentd_config::{Environment, NoAgentDir, resolve_path};
use agentd_protocol::{model::ThinkingLevel, socket_path::Surroundings};
use agentd_session::{SessionOptions, Target, ToolSelection};

use super::{OnEof, ServeOptions, StdioOptions};

/// The flags as they were given.
#[derive(Debug, Default)]
pub(super) struct Flags {
    pub(super) compat: bool,
    pub(super) stdio: bool,
    /// Whether the session is to be one of the user's daemon.
    pub(super) shared: bool,
    pub(super) help: bool,
    pub(super) version: bool,
    /// `--list-models`, with the text to search for or an empty one.
    pub(super) list_models: Option<String>,
    socket: Option<String>,
    detached: bool,
    /// The first thing on the command line that is about one session.
    about_a_session: Option<String>,
    on_eof: OnEof,
    /// Whether the first line is to be `ready`.
    ready: bool,
    cumulative: bool,
    continue_last: bool,
    session: Option<String>,
    session_id: Option<String>,
    session_dir: Option<String>,
    fork: Option<String>,
    no_session: bool,
    name: Option<String>,
    provider: Option<String>,
    model: Option<String>,
    models: Option<Vec<String>>,
    api_key: Option<String>,
    thinking: Option<ThinkingLevel>,
    system_prompt: Option<String>,
    append_system_prompt: Vec<String>,
    tools: ToolSelection,
    no_context_files: bool,
    approve: Option<bool>,
    warnings: Vec<String>,
}

impl Flags {
    /// What the name that we were started under means, before any flag.
    pub(super) fn of_program(name: &str) -> Self {
        Self { compat: name == "pi", ..Self::default() }
    }

    pub(super) fn read(&mut self, args: &[String]) -> Result<(), String> {
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            if arg == "--" {
                // Messages on the command line are for the one-shot modes; this wire takes them as commands.
                break;
            }
            if let Some(path) = arg.strip_prefix('@') {
                return Err(format!("Error: @file arguments are not supported in RPC mode (got @{path})"));
            }
            if !arg.starts_with('-') {
                self.session_flag(arg);
                continue;
            }
            let (flag, inline) = match arg.split_once('=') {
                Some((flag, value)) if flag.starts_with("--") => (flag, Some(value.to_owned())),
                _ => (arg.as_str(), None),
            };
            if flag == "--list-models" {
                // Its value is optional: what follows and is no flag.
                let next = || args.clone().next().filter(|next| !next.starts_with('-')).cloned();
                self.list_models = Some(inline.clone().or_else(next).unwrap_or_default());
                continue;
            }
            let mut value = || {
                inline
                    .clone()
                    .or_else(|| args.next().cloned())
                    .ok_or_else(|| format!("Error: {flag} needs a value. `agentd --help` lists the flags."))
            };
            self.flag(flag, &mut value)?;
        }
        Ok(())
    }

    fn flag(&mut self, flag: &str, value: &mut dyn FnMut() -> Result<String, String>) -> Result<(), String> {
        match flag {
            "--stdio" => self.stdio = true,
            "--shared" => self.shared = true,
            "--mode" => self.mode(&value()?)?,
            "--socket" => self.socket = Some(value()?),
            "--detached" => self.detached = true,
            "--compat" => match value()?.as_str() {
                "pi" => self.compat = true,
                other => return Err(format!("Error: --compat knows only pi, got {other}")),
            },
            "--on-eof" => {
                self.session_flag(flag);
                self.on_eof = match value()?.as_str() {
                    "abort" => OnEof::Abort,
                    "drain" => OnEof::Drain,
                    other => return Err(format!("Error: --on-eof takes abort or drain, got {other}")),
                }
            }
            "--ready" => {
                self.session_flag(flag);
                self.ready = true;
            }
            "-h" | "--help" => self.help = true,
            "-v" | "--version" => self.version = true,
            other => {
                self.session_flag(other);
                return self.flag_of_a_session(other, value);
            }
        }
        Ok(())
    }

    /// Keeps the first for the message that it is of no use to the daemon as a whole.
    fn session_flag(&mut self, flag: &str) {
        self.about_a_session.get_or_insert_with(|| flag.to_owned());
    }

    fn flag_of_a_session(
        &mut self,
        flag: &str,
        value: &mut dyn FnMut() -> Result<String, String>,
    ) -> Result<(), String> {
        match flag {
            "--cumulative-updates" => self.cumulative = true,
            "-c" | "--continue" => self.continue_last = true,
            "--session" => self.session = Some(value()?),
            "--session-id" => self.session_id = Some(value()?),
            "--session-dir" => self.session_dir = Some(value()?),
            "--fork" => self.fork = Some(value()?),
            "--no-session" => self.no_session = true,
            "-n" | "--name" => self.name = Some(value()?),
            "--provider" => self.provider = Some(value()?),
            "--model" => self.model = Some(value()?),
            "--models" => self.models = Some(list(&value()?)),
            "--api-key" => self.api_key = Some(value()?),
            "--thinking" => self.thinking(&value()?),
            "--system-prompt" => self.system_prompt = Some(value()?),
            "--append-system-prompt" => self.append_system_prompt.push(value()?),
            "-t" | "--tools" => self.tools.allow = Some(list(&value()?)),
            "-xt" | "--exclude-tools" => self.tools.exclude = list(&value()?),
            "-nt" | "--no-tools" | "-nbt" | "--no-builtin-tools" => self.tools.none = true,
            "-nc" | "--no-context-files" => self.no_context_files = true,
            "-a" | "--approve" => self.approve = Some(true),
            "-na" | "--no-approve" => self.approve = Some(false),
            // Of use to the reference only; clients pass them all the same.
            "-e" | "--extension" | "--skill" | "--prompt-template" | "--theme" | "--use-theme"
            | "--tui-mode" => {
                value()?;
            }
            "-ne"
            | "--no-extensions"
            | "-ns"
            | "--no-skills"
            | "-np"
            | "--no-prompt-templates"
            | "--no-themes"
            | "--no-mcp"
            | "--offline"
            | "--verbose" => {}
            "-r" | "--resume" | "--export" | "-p" | "--print" => {
                return Err(format!("Error: {flag} is not part of this version of agentd."));
            }
            other => {
                return Err(format!("Error: Unknown option: {other}. `agentd --help` lists the flags."));
            }
        }
        Ok(())
    }

    fn mode(&mut self, mode: &str) -> Result<(), String> {
        match mode {
            "rpc" => self.stdio = true,
            "text" | "json" => {
                return Err(format!(
                    "Error: --mode {mode} is not part of this version of agentd; `agentctl prompt{}` does that.",
                    if mode == "json" { " --json" } else { "" }
                ));
            }
            other => return Err(format!("Error: Invalid mode \"{other}\". Valid values: text, json, rpc")),
        }
        Ok(())
    }

    /// As in the reference: an unknown level is a warning.
    fn thinking(&mut self, level: &str) {
        self.thinking = ThinkingLevel::from_name(level);
        if self.thinking.is_none() {
            let known = ThinkingLevel::ALL.map(ThinkingLevel::as_str).join(", ");
            self.warnings
                .push(format!("Warning: unknown thinking level \"{level}\" ignored; known: {known}"));
        }
    }

    pub(super) fn into_stdio(self, cwd: &Path, environment: Environment) -> Result<StdioOptions, String> {
        if self.socket.is_some() || self.detached {
            return Err("Error: --socket is for the daemon on a socket; it cannot be combined with --stdio \
                        (for --stdio --shared, AGENTD_SOCKET names the daemon's socket)"
                .into());
        }
        if self.provider.is_some() && self.model.is_none() {
            let provider = self.provider.unwrap_or_default();
            return Err(format!(
                "Error: --provider requires --model (for example: --provider {provider} --model <pattern>)"
            ));
        }
        if self.api_key.is_some() && self.model.is_none() && self.models.is_none() {
            return Err(
                "Error: --api-key requires a model to be specified via --model, --provider/--model, or \
                        --models"
                    .into(),
            );
        }
        if self.fork.is_some() {
            let others = [
                ("--session", self.session.is_some()),
                ("--session-id", self.session_id.is_some()),
                ("--continue", self.continue_last),
                ("--no-session", self.no_session),
            ];
            if let Some((flag, _)) = others.into_iter().find(|(_, given)| *given) {
                return Err(format!("Error: --fork cannot be combined with {flag}"));
            }
        }
        let (on_eof, ready, cumulative) = (self.on_eof, self.ready, self.cumulative);
        let warnings = self.warnings.clone();
        let session = self.into_session(cwd, environment);
        Ok(StdioOptions { session, on_eof, ready, cumulative, warnings })
    }

    pub(super) fn into_serve(self, cwd: &Path, mut environment: Environment) -> Result<ServeOptions, String> {
        if let Some(given) = &self.about_a_session {
            return Err(format!(
                "Error: {given} is about one session, and `agentd` without --stdio serves many: start `agentd --stdio \
                 {given} ...`, or open the session through the socket."
            ));
        }
        // They mean the same wherever a session works.
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
        Ok(ServeOptions { base: self.into_session(cwd, environment), agent_dir, socket, detached })
    }

    fn into_session(self, cwd: &Path, environment: Environment) -> SessionOptions {
        let target = self.target();
        SessionOptions {
            cwd: cwd.to_owned(),
            environment,
            compat: self.compat,
            target,
            session_dir: self.session_dir.map(PathBuf::from),
            name: self.name,
            provider: self.provider,
            model: self.model,
            models: self.models,
            api_key: self.api_key.map(Secret::new),
            thinking: self.thinking,
            system_prompt: self.system_prompt,
            append_system_prompt: self.append_system_prompt,
            tools: self.tools,
            no_context_files: self.no_context_files,
            approve: self.approve,
        }
    }

    /// `--session` wins over `--continue`: clients that resume a session give both.
    fn target(&self) -> Target {
        if self.no_session {
            return Target::Ephemeral(self.session_id.clone());
        }
        if let Some(source) = &self.fork {
            return Target::Fork(source.clone());
        }
        match (&self.session, &self.session_id) {
            (Some(session), _) => Target::Existing(session.clone()),
            (None, Some(id)) => Target::Id(id.clone()),
            (None, None) if self.continue_last => Target::Continue,
            (None, None) => Target::New,
        }
    }
}

fn list(value: &str) -> Vec<String> {
    value.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
}
