//! The flags, read one after the other into values.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use agentd_auth::Secret;
use agentd_config::{
    Environment, NoAgentDir,
    models::{DEMO_MODEL, DEMO_PROVIDER},
    resolve_path,
    resources::ResourceFlags,
};
use agentd_protocol::{model::ThinkingLevel, socket_path::Surroundings};
use agentd_session::{SessionOptions, Target, ToolSelection};
use agentd_tools::operations::SshTarget;

use crate::traffic;

use super::{
    OnEof, OneShotFormat, OneShotOptions, ServeOptions, StdioOptions,
    empty::{OnEmpty, on_empty, refusal},
    known::unknown,
    mode::ModeFlag,
};

/// The flags as they were given.
#[derive(Debug, Default)]
pub(super) struct Flags {
    pub(super) compat: bool,
    /// Whether we were started under the reference's name.
    pub(super) named_pi: bool,
    /// The last `--mode`, or `--stdio`.
    pub(super) mode: Option<ModeFlag>,
    pub(super) print: bool,
    /// Whether the session is to be one of the user's daemon.
    pub(super) shared: bool,
    pub(super) help: bool,
    pub(super) version: bool,
    /// `--list-models`, with the text to search for or an empty one.
    pub(super) list_models: Option<String>,
    /// `--export`: the session file, and where its page goes.
    pub(super) export: Option<(String, Option<String>)>,
    /// `--bug-report`: takes the secrets out of a report.
    pub(super) bug_report: bool,
    /// `--fsck`: looks at session files.
    pub(super) fsck: bool,
    pub(super) socket: Option<String>,
    pub(super) detached: bool,
    /// The first thing on the command line that is about one session.
    pub(super) about_a_session: Option<String>,
    /// The words that are no flags: a prompt each.
    messages: Vec<String>,
    /// The paths of `@path`.
    files: Vec<String>,
    on_eof: Option<OnEof>,
    /// Whether the first line is to be `ready`.
    ready: bool,
    cumulative: bool,
    pub(super) continue_last: bool,
    pub(super) resume: bool,
    pub(super) session: Option<String>,
    pub(super) session_id: Option<String>,
    preferred: Option<String>,
    session_dir: Option<String>,
    pub(super) fork: Option<String>,
    pub(super) no_session: bool,
    name: Option<String>,
    pub(super) provider: Option<String>,
    pub(super) model: Option<String>,
    pub(super) demo: bool,
    pub(super) models: Option<Vec<String>>,
    fallback_models: Option<Vec<String>>,
    pub(super) api_key: Option<String>,
    thinking: Option<ThinkingLevel>,
    system_prompt: Option<String>,
    append_system_prompt: Vec<String>,
    tools: ToolSelection,
    ssh: Option<SshTarget>,
    no_context_files: bool,
    resources: ResourceFlags,
    approve: Option<bool>,
    offline: bool,
    /// Variables that flags about the traffic with providers stand for.
    traffic: Vec<(&'static str, String)>,
    warnings: Vec<String>,
    /// The first flag with an empty value that only the reference takes for one that was not given.
    empty: Option<String>,
}

impl Flags {
    /// What the name that we were started under means, before any flag.
    pub(super) fn of_program(name: &str) -> Self {
        let named_pi = name == "pi";
        Self { compat: named_pi, named_pi, ..Self::default() }
    }

    pub(super) fn read(&mut self, args: &[String]) -> Result<(), String> {
        let mut args = args.iter().peekable();
        while let Some(arg) = args.next() {
            if arg == "--" {
                // From here on everything is a message, whatever it begins with.
                args.by_ref().for_each(|message| self.message(message));
                break;
            }
            if let Some(path) = arg.strip_prefix('@') {
                self.session_flag(arg);
                self.files.push(path.to_owned());
                continue;
            }
            if !arg.starts_with('-') {
                self.message(arg);
                continue;
            }
            let (flag, inline) = match arg.split_once('=') {
                Some((flag, value)) if flag.starts_with("--") => (flag, Some(value.to_owned())),
                _ => (arg.as_str(), None),
            };
            if flag == "--list-models" {
                // Its value is optional: what follows and is no flag.
                let next = || args.clone().next().filter(|next| !next.starts_with(['-', '@'])).cloned();
                self.list_models = Some(inline.clone().or_else(next).unwrap_or_default());
                continue;
            }
            if flag == "--export" {
                let input = inline.clone().or_else(|| args.next().cloned());
                let input = input.filter(|input| input == "-" || !input.starts_with('-'));
                let input =
                    input.ok_or("Error: --export needs a session file: agentd --export <in> [out]")?;
                if input.is_empty() {
                    return Err(refusal(flag));
                }
                let output = args.next_if(|next| *next == "-" || !next.starts_with('-')).cloned();
                self.export = Some((input, output));
                continue;
            }
            if let ("-p" | "--print", None) = (flag, &inline) {
                self.print = true;
                // A message that begins like the front matter of a document.
                if let Some(message) = args.next_if(|next| next.starts_with("---")) {
                    self.message(message);
                }
                continue;
            }
            let mut is_empty = false;
            let mut value = || {
                let value =
                    inline.clone().or_else(|| args.next().cloned()).ok_or_else(|| lacks_value(flag))?;
                is_empty = value.is_empty();
                match on_empty(flag) {
                    OnEmpty::Refused if is_empty => Err(refusal(flag)),
                    _ => Ok(value),
                }
            };
            self.flag(flag, &mut value)?;
            if is_empty && on_empty(flag) == OnEmpty::RefusedByUs {
                self.empty.get_or_insert_with(|| flag.to_owned());
            }
        }
        // Whether the reference's ways are asked for is known only now.
        match &self.empty {
            Some(flag) if !self.compat => Err(refusal(flag)),
            _ => Ok(()),
        }
    }

    fn message(&mut self, text: &str) {
        self.session_flag(text);
        self.messages.push(text.to_owned());
    }

    fn flag(&mut self, flag: &str, value: &mut dyn FnMut() -> Result<String, String>) -> Result<(), String> {
        match flag {
            "--stdio" => self.mode = Some(ModeFlag::Rpc),
            "--shared" => self.shared = true,
            "--mode" => self.mode = Some(ModeFlag::parse(&value()?)?),
            "--socket" => self.socket = Some(value()?),
            "--detached" => self.detached = true,
            "--bug-report" => self.bug_report = true,
            "--fsck" => self.fsck = true,
            "--compat" => match value()?.as_str() {
                "pi" => self.compat = true,
                other => return Err(format!("Error: --compat knows only pi, got {other}")),
            },
            "--on-eof" => {
                self.session_flag(flag);
                self.on_eof = Some(match value()?.as_str() {
                    "abort" => OnEof::Abort,
                    "drain" => OnEof::Drain,
                    other => return Err(format!("Error: --on-eof takes abort or drain, got {other}")),
                });
            }
            "--record" => self.traffic.push((traffic::RECORD, value()?)),
            "--replay" => self.traffic.push((traffic::REPLAY, value()?)),
            "--replay-match" => {
                let name = value()?;
                traffic::matching(&name)?;
                self.traffic.push((traffic::REPLAY_MATCH, name));
            }
            "--replay-timing" => self.traffic.push((traffic::REPLAY_TIMING, "1".to_owned())),
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
            "-r" | "--resume" => self.resume = true,
            "--session" => self.session = unless_empty(value()?),
            "--session-id" => self.session_id = Some(value()?),
            "--prefer" => self.preferred = unless_empty(value()?),
            "--session-dir" => self.session_dir = unless_empty(value()?),
            "--fork" => self.fork = unless_empty(value()?),
            "--no-session" => self.no_session = true,
            "-n" | "--name" => {
                let name = value()?;
                if name.trim().is_empty() {
                    return Err("Error: --name requires a non-empty value".into());
                }
                self.name = Some(name);
            }
            "--provider" => self.provider = unless_empty(value()?),
            "--model" => self.model = unless_empty(value()?),
            "--demo" => self.demo = true,
            "--models" => self.models = Some(list(&value()?)),
            "--fallback-models" => self.fallback_models = Some(list(&value()?)),
            "--api-key" => self.api_key = unless_empty(value()?),
            "--thinking" => self.thinking(&value()?),
            "--system-prompt" => self.system_prompt = unless_empty(value()?),
            "--append-system-prompt" => self.append_system_prompt.extend(unless_empty(value()?)),
            "-t" | "--tools" => self.tools.allow = Some(tool_names(flag, &value()?)?),
            "-xt" | "--exclude-tools" => self.tools.exclude = list(&value()?),
            "-nt" | "--no-tools" => (self.tools.none, self.tools.none_of_clients) = (true, true),
            "-nbt" | "--no-builtin-tools" => self.tools.none = true,
            "--ssh" => self.ssh = Some(ssh_target(&value()?)?),
            "-nc" | "--no-context-files" => self.no_context_files = true,
            "--skill" => self.resources.skills.push(value()?),
            "-ns" | "--no-skills" => self.resources.no_skills = true,
            "--prompt-template" => self.resources.prompts.push(value()?),
            "-np" | "--no-prompt-templates" => self.resources.no_prompts = true,
            "-a" | "--approve" => self.approve = Some(true),
            "-na" | "--no-approve" => self.approve = Some(false),
            "-e" | "--extension" => {
                let path = value()?;
                self.warnings.push(format!(
                    "Warning: --extension {path} is not loaded: this version of agentd has no extensions"
                ));
            }
            "--offline" => self.offline = true,
            // Of use to the reference only; clients pass them all the same.
            "--theme" | "--use-theme" | "--tui-mode" => {
                value()?;
            }
            "-ne" | "--no-extensions" | "--no-themes" | "--no-mcp" | "--verbose" => {}
            other => return Err(unknown(other)),
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

    /// # Errors
    /// When the traffic with providers is to be recorded or played back: that is about a whole process, and this session is one
    /// of another process.
    pub(super) fn check_own_process(&self) -> Result<(), String> {
        if self.traffic.is_empty() {
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
        let session = self.into_session(cwd, environment);
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
        let session = self.into_session(cwd, environment);
        Ok(OneShotOptions { session, format, files, messages, cumulative, warnings })
    }

    pub(super) fn into_serve(self, cwd: &Path, mut environment: Environment) -> Result<ServeOptions, String> {
        self.check_resume()?;
        if let Some(given) = &self.about_a_session {
            return Err(format!(
                "Error: {given} is about one session, and `agentd` alone serves many: `agentd -p {given} ...` answers a prompt \
                 and ends, `agentd --stdio {given} ...` serves one session on stdin and stdout; on the socket, sessions are \
                 opened by clients."
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

    fn into_session(self, cwd: &Path, mut environment: Environment) -> SessionOptions {
        if self.offline {
            // The reference's own variable: what a session starts is told, too.
            environment.set("PI_OFFLINE", "1");
        }
        for (name, value) in &self.traffic {
            environment.set(*name, value);
        }
        let target = self.target();
        SessionOptions {
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
            ssh: self.ssh,
            no_context_files: self.no_context_files,
            resources: self.resources,
            approve: self.approve,
        }
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

fn lacks_value(flag: &str) -> String {
    match flag {
        "--mode" => "Error: --mode requires text, json, or rpc".into(),
        _ => format!("Error: {flag} needs a value. `agentd --help` lists the flags."),
    }
}

/// Where an empty value is taken at all ([`on_empty`]), the flag counts as not given, as in the reference.
fn unless_empty(value: String) -> Option<String> {
    Some(value).filter(|value| !value.is_empty())
}

fn ssh_target(value: &str) -> Result<SshTarget, String> {
    value.parse().map_err(|error| format!("Error: --ssh: {error}"))
}

/// Names, or changes of the default choice. Both in one list have no meaning.
fn tool_names(flag: &str, value: &str) -> Result<Vec<String>, String> {
    let names = list(value);
    let changes = names.iter().filter(|name| name.starts_with(['+', '-'])).count();
    if changes != 0 && changes != names.len() {
        return Err(format!("Error: {flag}: tool names cannot be mixed with +name or -name entries"));
    }
    Ok(names)
}

fn list(value: &str) -> Vec<String> {
    value.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
}
