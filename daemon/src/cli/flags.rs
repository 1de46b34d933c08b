//! Reads the flags one after the other into values.

use agentd_config::resources::ResourceFlags;
use agentd_protocol::{
    model::ThinkingLevel,
    settings::{BudgetLimits, NetworkAccess, PermissionPreset, SandboxMode},
};
use agentd_session::{GivenFlag, SandboxOptions, ToolSelection};
use agentd_tools::operations::SshTarget;

use crate::record_replay;

use super::{
    flag_table::{OnEmpty, empty_value, is_known, on_empty, unknown},
    invocation::OnEof,
};

/// The values of `--mode`; `--stdio` is `--mode rpc`, `acp` is `--mode acp`, and `--print` without a mode is `--mode text`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ModeFlag {
    Text,
    Json,
    Rpc,
    Acp,
}

impl ModeFlag {
    /// # Errors
    /// pi's text.
    pub(super) fn parse(name: &str) -> Result<Self, String> {
        match name {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            "rpc" => Ok(Self::Rpc),
            "acp" => Ok(Self::Acp),
            other => Err(format!("Error: Invalid mode \"{other}\". Valid values: text, json, rpc, acp")),
        }
    }
}

/// The flags as they were given.
#[derive(Debug, Default)]
pub(super) struct Flags {
    pub(super) compat: bool,
    /// Whether the program was started under the name `pi`.
    pub(super) named_pi: bool,
    /// The last `--mode`, or `--stdio`.
    pub(super) mode: Option<ModeFlag>,
    pub(super) print: bool,
    /// Whether the session is one of the user's daemon.
    pub(super) shared: bool,
    pub(super) help: bool,
    pub(super) version: bool,
    /// `--list-models`, with the text to search for or an empty one.
    pub(super) list_models: Option<String>,
    /// `--export`: the session file, and where its page goes.
    pub(super) export: Option<(String, Option<String>)>,
    /// `--bug-report`: removes the secrets from a report.
    pub(super) bug_report: bool,
    /// `--fsck`: checks session files.
    pub(super) fsck: bool,
    /// `--policy-check`: verdicts about calls.
    pub(super) policy_check: bool,
    /// `--mcp-edit`: a change of mcp.json.
    pub(super) mcp_edit: bool,
    /// `--packages`: packages as users manage them.
    pub(super) packages: bool,
    /// `--usage`: what was spent.
    pub(super) usage: bool,
    pub(super) socket: Option<String>,
    pub(super) detached: bool,
    /// The first flag or word that is about one session.
    pub(super) about_a_session: Option<String>,
    /// The words that are no flags, each a prompt.
    pub(super) messages: Vec<String>,
    /// The paths of `@path`.
    pub(super) files: Vec<String>,
    pub(super) on_eof: Option<OnEof>,
    /// Whether the first line is a `ready` event.
    pub(super) ready: bool,
    pub(super) cumulative: bool,
    pub(super) continue_last: bool,
    pub(super) resume: bool,
    pub(super) session: Option<String>,
    pub(super) session_id: Option<String>,
    pub(super) preferred: Option<String>,
    pub(super) session_dir: Option<String>,
    pub(super) fork: Option<String>,
    pub(super) no_session: bool,
    pub(super) name: Option<String>,
    pub(super) provider: Option<String>,
    pub(super) model: Option<String>,
    pub(super) demo: bool,
    pub(super) models: Option<Vec<String>>,
    pub(super) fallback_models: Option<Vec<String>>,
    pub(super) api_key: Option<String>,
    pub(super) thinking: Option<ThinkingLevel>,
    pub(super) system_prompt: Option<String>,
    pub(super) append_system_prompt: Vec<String>,
    pub(super) tools: ToolSelection,
    pub(super) todo: bool,
    pub(super) syntax: bool,
    pub(super) task: bool,
    pub(super) async_jobs: bool,
    pub(super) lsp: bool,
    pub(super) web: bool,
    pub(super) plan_mode: bool,
    pub(super) ssh: Option<SshTarget>,
    pub(super) no_context_files: bool,
    pub(super) no_mcp: bool,
    pub(super) mcp_on_demand: bool,
    pub(super) no_ui: bool,
    pub(super) resources: ResourceFlags,
    /// Those that only an extension can have.
    pub(super) of_extensions: Vec<GivenFlag>,
    /// `--sandbox` and its like.
    pub(super) sandbox: SandboxOptions,
    pub(super) undo: Option<bool>,
    pub(super) approve: Option<bool>,
    /// The limits of each run.
    pub(super) budget: BudgetLimits,
    /// `--permissions`.
    pub(super) preset: Option<PermissionPreset>,
    /// `--permission-rules`.
    pub(super) permission_rules: Option<String>,
    pub(super) offline: bool,
    /// The variables that `--record` and `--replay` set.
    pub(super) record_replay: Vec<(&'static str, String)>,
    pub(super) warnings: Vec<String>,
    /// The first flag with an empty value that only pi counts as not given.
    empty: Option<String>,
}

impl Flags {
    /// No flags yet, and the compatibility that the name of the program means.
    pub(super) fn of_program(name: &str) -> Self {
        let named_pi = name == "pi";
        Self { compat: named_pi, named_pi, ..Self::default() }
    }

    pub(super) fn read(&mut self, args: &[String]) -> Result<(), String> {
        let mut args = args.iter().peekable();
        while let Some(arg) = args.next() {
            if arg == "--" {
                // From here on every word is a message.
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
            if let Some(name) = flag.strip_prefix("--").filter(|_| !is_known(flag)) {
                // Whether it takes a value is known to the extension that has it. As in pi, the next word is one.
                let next = || args.next_if(|next| !next.starts_with(['-', '@'])).cloned();
                let value = inline.clone().or_else(next);
                self.session_flag(arg);
                self.of_extensions.push(GivenFlag { name: name.to_owned(), value, unknown: unknown(flag) });
                continue;
            }
            if flag == "--list-models" {
                // The value is optional: the next word that is no flag and no file.
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
                    return Err(empty_value(flag));
                }
                let output = args.next_if(|next| *next == "-" || !next.starts_with('-')).cloned();
                self.export = Some((input, output));
                continue;
            }
            if let ("-p" | "--print", None) = (flag, &inline) {
                self.print = true;
                // A message that begins with the front matter of a document.
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
                    OnEmpty::Refused if is_empty => Err(empty_value(flag)),
                    _ => Ok(value),
                }
            };
            self.flag(flag, &mut value)?;
            if is_empty && on_empty(flag) == OnEmpty::RefusedByUs {
                self.empty.get_or_insert_with(|| flag.to_owned());
            }
        }
        // `--compat pi` may stand after the empty value.
        match &self.empty {
            Some(flag) if !self.compat => Err(empty_value(flag)),
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
            "--policy-check" => self.policy_check = true,
            "--mcp-edit" => self.mcp_edit = true,
            "--packages" => self.packages = true,
            "--usage" => self.usage = true,
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
            "--record" => self.record_replay.push((record_replay::RECORD, value()?)),
            "--replay" => self.record_replay.push((record_replay::REPLAY, value()?)),
            "--replay-match" => {
                let name = value()?;
                record_replay::matching(&name)?;
                self.record_replay.push((record_replay::REPLAY_MATCH, name));
            }
            "--replay-timing" => self.record_replay.push((record_replay::REPLAY_TIMING, "1".to_owned())),
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

    /// Keeps the first flag of a session for the error of a daemon that serves many.
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
            "--todo" => self.todo = true,
            "--syntax" => self.syntax = true,
            "--task" => self.task = true,
            "--async" => self.async_jobs = true,
            "--lsp" => self.lsp = true,
            "--web" => self.web = true,
            "--plan-mode" => self.plan_mode = true,
            "--ssh" => self.ssh = Some(ssh_target(&value()?)?),
            "-nc" | "--no-context-files" => self.no_context_files = true,
            "--no-mcp" => self.no_mcp = true,
            "--mcp-on-demand" => self.mcp_on_demand = true,
            "--no-ui" => self.no_ui = true,
            "--skill" => self.resources.skills.push(value()?),
            "-ns" | "--no-skills" => self.resources.no_skills = true,
            "--prompt-template" => self.resources.prompts.push(value()?),
            "-np" | "--no-prompt-templates" => self.resources.no_prompts = true,
            "--permissions" => {
                let name = value()?;
                let names = PermissionPreset::ALL.map(PermissionPreset::as_str).join(", ");
                let unknown = || format!("Error: --permissions {name:?} is no preset: there are {names}.");
                self.preset = Some(PermissionPreset::named(&name).ok_or_else(unknown)?);
            }
            "--permission-rules" => self.permission_rules = Some(value()?),
            limit if BudgetLimits::FLAGS.contains(&limit) => {
                let set = self.budget.set_by_flag(limit, &value()?);
                set.map_err(|error| format!("Error: {limit}: {error}"))?;
            }
            "-a" | "--approve" => self.approve = Some(true),
            "-na" | "--no-approve" => self.approve = Some(false),
            "--sandbox" => {
                let name = value()?;
                let unknown = || {
                    format!(
                        "Error: --sandbox is off, workspace-write or read-only, not {name:?} (docs/sandbox.md)"
                    )
                };
                self.sandbox.mode = Some(SandboxMode::named(&name).ok_or_else(unknown)?);
            }
            "--network" => {
                self.sandbox.network = Some(match value()?.as_str() {
                    "on" => NetworkAccess::On,
                    "off" => NetworkAccess::Off,
                    other => return Err(format!("Error: --network is \"on\" or \"off\", not \"{other}\"")),
                });
            }
            "--writable-root" => self.sandbox.writable_roots.push(value()?),
            "--undo" => {
                self.undo = Some(match value()?.as_str() {
                    "on" => true,
                    "off" => false,
                    other => return Err(format!("Error: --undo is \"on\" or \"off\", not \"{other}\"")),
                });
            }
            "-e" | "--extension" => {
                let extension = value()?;
                self.resources.extensions.push(extension);
            }
            "-ne" | "--no-extensions" => self.resources.no_extensions = true,
            "--offline" => self.offline = true,
            // Flags of pi and omp without a meaning here; clients pass them.
            "--theme" | "--use-theme" | "--tui-mode" => {
                value()?;
            }
            "--no-themes" | "--no-title" | "--verbose" => {}
            other => return Err(format!("Error: {}", unknown(other))),
        }
        Ok(())
    }

    /// An unknown level is a warning, as in pi.
    fn thinking(&mut self, level: &str) {
        self.thinking = ThinkingLevel::from_name(level);
        if self.thinking.is_none() {
            let known = ThinkingLevel::ALL.map(ThinkingLevel::as_str).join(", ");
            self.warnings
                .push(format!("Warning: unknown thinking level \"{level}\" ignored; known: {known}"));
        }
    }
}

fn lacks_value(flag: &str) -> String {
    match flag {
        "--mode" => "Error: --mode requires text, json, rpc, or acp".into(),
        _ => format!("Error: {flag} needs a value. `agentd --help` lists the flags."),
    }
}

/// An empty value that is accepted ([`on_empty`]) counts as not given, as in pi.
fn unless_empty(value: String) -> Option<String> {
    Some(value).filter(|value| !value.is_empty())
}

fn ssh_target(value: &str) -> Result<SshTarget, String> {
    value.parse().map_err(|error| format!("Error: --ssh: {error}"))
}

/// Names, or changes of the default choice. A list cannot hold both.
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
