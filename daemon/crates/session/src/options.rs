//! The options of a session: the session flags of the command line, as values.

use std::{path::PathBuf, sync::Arc};

use agentd_config::{Environment, resources::ResourceFlags};
use agentd_extensions::GivenFlag;
use agentd_lsp::LSP_TOOL;
use agentd_mcp::ServerConfig;
use agentd_protocol::{
    ask::ASK_TOOL,
    eval::EVAL_TOOL,
    jobs::WAIT_TOOL,
    model::ThinkingLevel,
    remote_hosts::SSH_TOOL,
    settings::{BudgetLimits, NetworkAccess, SandboxMode, Settings, matches_pattern as matches},
    subagent::TASK_TOOL,
    syntax::{AST_EDIT_TOOL, AST_GREP_TOOL},
    todo::TODO_TOOL,
    web::{WEB_FETCH_TOOL, WEB_SEARCH_TOOL},
};
use agentd_tools::operations::SshTarget;

use crate::{permissions::PermissionOptions, subagent_place::SubagentOptions};

/// The options of a session.
#[derive(Debug, Clone)]
pub struct SessionOptions {
    /// The folder to work in, absolute. A session from a file works in the folder that the file names.
    pub cwd: PathBuf,
    /// The environment of the session: what configures it, and what its child processes get.
    pub environment: Environment,
    /// Whether pi's own directories and names come first (`--compat pi`).
    pub compat: bool,
    /// Which session.
    pub target: Target,
    /// `--prefer`: of the sessions of the working directory, the one that `--continue` takes before the most recent one.
    pub preferred: Option<String>,
    /// `--session-dir`: the folder of session files.
    pub session_dir: Option<PathBuf>,
    /// `--name`.
    pub name: Option<String>,
    /// `--provider`.
    pub provider: Option<String>,
    /// `--model`: an id, a pattern, `provider/id`, with an optional `:level`.
    pub model: Option<String>,
    /// `--models`: what `cycle_model` goes through.
    pub models: Option<Vec<String>>,
    /// `--fallback-models`: who is asked when the chosen model fails for good.
    pub fallback_models: Option<Vec<String>>,
    /// `--api-key`: the key for the provider of the chosen model.
    pub api_key: Option<agentd_auth::Secret>,
    /// `--thinking`.
    pub thinking: Option<ThinkingLevel>,
    /// `--system-prompt`: a text, or the path of a file that holds it.
    pub system_prompt: Option<String>,
    /// `--append-system-prompt`, as often as given.
    pub append_system_prompt: Vec<String>,
    /// Which tools are active.
    pub tools: ToolSelection,
    /// `--todo`: the tool `todo` is active where the setting `todo.enabled` says nothing.
    pub todo: bool,
    /// `--task`: the tool `task` is active where the setting `task.enabled` says nothing.
    pub task: bool,
    /// `--syntax`: the tools `ast_grep` and `ast_edit` are active where the setting `syntax.enabled` says nothing.
    pub syntax: bool,
    /// `--async`: commands can be jobs where the setting `async.enabled` says nothing.
    pub async_jobs: bool,
    /// `--lsp`: there are language servers where the setting `lsp.enabled` says nothing.
    pub lsp: bool,
    /// `--web`: the tools of the web are active where the setting `web.enabled` says nothing.
    pub web: bool,
    /// `--ssh`: the host that tools and commands work on instead of this machine.
    pub ssh: Option<SshTarget>,
    /// `--no-context-files`.
    pub no_context_files: bool,
    /// `--no-mcp`: no MCP server is read or connected.
    pub no_mcp: bool,
    /// `--mcp-on-demand`: no MCP server is connected before something of it is called, searched or asked for.
    pub mcp_on_demand: bool,
    /// Further folders of the workspace, absolute, that the client gives the session.
    pub additional_directories: Vec<PathBuf>,
    /// MCP servers that the client gives the session.
    pub mcp_servers: Vec<ServerConfig>,
    /// `--skill`, `--prompt-template` and what leaves the others out.
    pub resources: ResourceFlags,
    /// Flags that only extensions can have.
    pub extension_flags: Vec<GivenFlag>,
    /// `--permissions` and `--permission-rules`.
    pub permissions: PermissionOptions,
    /// `--sandbox` and its like.
    pub sandbox: SandboxOptions,
    /// `--undo`: whether changes of tool calls are kept; `None` leaves that to the settings.
    pub undo: Option<bool>,
    /// `--approve` (true) or `--no-approve` (false): whether the project's own settings are trusted.
    pub approve: Option<bool>,
    /// `--max-cost` and the like: the limits of each run, beside those of the settings.
    pub budget: BudgetLimits,
    /// How its client shows it.
    pub mode: SessionMode,
    /// Whose subagent it is; `None` for a session of its own.
    pub subagent: Option<Arc<SubagentOptions>>,
    /// `--plan-mode`: the mode that it begins in.
    pub initial_mode: InitialMode,
}

/// The mode that a session begins in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InitialMode {
    /// The one that its file says, else the default.
    #[default]
    Default,
    /// Plan mode.
    Plan,
}

/// How a session is shown, as extensions are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SessionMode {
    /// By clients that follow its events, and may answer questions.
    #[default]
    Rpc,
    /// By clients that follow its events, none of which is asked or shown anything of extensions (`--no-ui`).
    Headless,
    /// As events, to nobody who could answer (`--mode json`).
    Json,
    /// As its last answer, to nobody who could answer a question (`--print`).
    Print,
}

impl SessionMode {
    /// Whether its user may be asked and shown something at all.
    #[must_use]
    pub fn has_ui(self) -> bool {
        self != Self::Headless
    }

    /// Its name for extensions.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rpc | Self::Headless => "rpc",
            Self::Json => "json",
            Self::Print => "print",
        }
    }
}

impl SessionOptions {
    /// These, but for what only says how a session begins: which one it is, its name, its first model and level.
    #[must_use]
    pub(crate) fn without_beginning(&self) -> Self {
        Self {
            target: Target::New,
            preferred: None,
            name: None,
            provider: None,
            model: None,
            thinking: None,
            initial_mode: InitialMode::Default,
            ..self.clone()
        }
    }
}

/// The flags of a session's sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SandboxOptions {
    /// `--sandbox`: the mode in the place of that of the settings.
    pub mode: Option<SandboxMode>,
    /// `--network`: whether commands may use the network.
    pub network: Option<NetworkAccess>,
    /// `--writable-root`: folders besides those of the settings.
    pub writable_roots: Vec<String>,
}

/// Which session to open.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Target {
    /// A new one.
    #[default]
    New,
    /// A new one that names another session file as its parent.
    Child(String),
    /// The most recent one of the working directory, else a new one (`--continue`).
    Continue,
    /// `--session`: a path, an id, or the beginning of an id.
    Existing(String),
    /// Exactly this file, which an extension keeps a session in. A session that is new in it has this id and this parent.
    File {
        /// The file, absolute.
        path: PathBuf,
        /// The id of a new session.
        id: Option<String>,
        /// The file that a new session comes from.
        parent: Option<String>,
    },
    /// A copy of another session, of any working directory (`--fork`).
    Fork {
        /// The other session, named as in `Existing`.
        source: String,
        /// The copy's id, which no session of the working directory may have (`--session-id`).
        id: Option<String>,
    },
    /// `--session-id`: exactly this id in the working directory, made if it is not there.
    Id(String),
    /// `--no-session`, with the id of `--session-id` if given: nothing is written.
    Ephemeral(Option<String>),
}

/// Which tools are active: `--tools`, `--exclude-tools`, `--no-tools`, `--no-builtin-tools`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolSelection {
    /// The names to allow, with `*`; or only `+name` and `-name`, which change the default choice.
    pub allow: Option<Vec<String>>,
    /// The names to leave out, with `*`, applied last.
    pub exclude: Vec<String>,
    /// No built-in tools but those that `allow` names.
    pub none: bool,
    /// No tools of clients but those that `allow` names.
    pub none_of_clients: bool,
    /// What another session lets in: nothing else is there, whatever `allow` names.
    pub within: Option<Arc<ToolSelection>>,
}

impl ToolSelection {
    /// Whether a tool is active. `defaults` are the names that are active when nothing was chosen.
    #[must_use]
    pub fn is_active(&self, name: &str, defaults: &[String]) -> bool {
        if self.exclude.iter().any(|pattern| matches(pattern, name)) || !self.is_within(name) {
            return false;
        }
        let by_default = !self.none && defaults.iter().any(|pattern| matches(pattern, name));
        let Some(allow) = &self.allow else { return by_default };
        choose(allow, name, by_default)
    }

    /// Whether a session has a built-in tool at all, so that it can be made active.
    #[must_use]
    pub(crate) fn permits(&self, name: &str) -> bool {
        self.lets_in(name, self.none) && self.is_within(name)
    }

    fn is_within(&self, name: &str) -> bool {
        self.within.as_ref().is_none_or(|within| within.permits(name))
    }

    /// Whether a client may provide a tool of that name.
    #[must_use]
    pub(crate) fn permits_of_client(&self, name: &str) -> bool {
        self.lets_in(name, self.none_of_clients)
    }

    /// A list of names is the whole of what there may be. Changes of the default choice leave all tools there; only where there
    /// are none they bring some.
    fn lets_in(&self, name: &str, none: bool) -> bool {
        let is_excluded = self.exclude.iter().any(|pattern| matches(pattern, name));
        !is_excluded
            && match &self.allow {
                Some(allow) if none || !modifies(allow) => choose(allow, name, false),
                Some(_) => true,
                None => !none,
            }
    }
}

impl ToolSelection {
    /// Whether a tool is brought in by its name, or by a pattern.
    #[must_use]
    pub(crate) fn names(&self, name: &str) -> bool {
        self.allow.as_ref().is_some_and(|allow| choose(allow, name, false))
    }

    /// Whether a tool is left out by its name, whatever else is active.
    #[must_use]
    pub(crate) fn leaves_out(&self, name: &str) -> bool {
        let named = self.exclude.iter().map(String::as_str);
        let taken = self.allow.iter().flatten().filter_map(|item| item.strip_prefix('-'));
        named.chain(taken).any(|pattern| matches(pattern, name))
    }

    /// The patterns that fit none of the tools.
    #[must_use]
    pub(crate) fn unknown(&self, tools: &[&str]) -> Vec<&str> {
        let allowed = self.allow.iter().flatten().map(|item| item.trim_start_matches(['+', '-']));
        let all = allowed.chain(self.exclude.iter().map(String::as_str));
        all.filter(|pattern| !tools.iter().any(|name| matches(pattern, name))).collect()
    }
}

/// Applies a list of names, or of `+name` and `-name` when it holds nothing else.
fn choose(list: &[String], name: &str, by_default: bool) -> bool {
    if !modifies(list) {
        return list.iter().any(|pattern| matches(pattern, name));
    }
    // The last word on a name counts.
    let last = list.iter().rev().find(|item| matches(&item[1..], name));
    last.map_or(by_default, |item| item.starts_with('+'))
}

/// Whether a list holds nothing but `+name` and `-name`.
fn modifies(list: &[String]) -> bool {
    !list.is_empty() && list.iter().all(|item| item.starts_with(['+', '-']))
}

/// Tools that flags make active where the settings say nothing.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DefaultTools {
    pub(crate) todo: bool,
    pub(crate) task: bool,
    pub(crate) syntax: bool,
    pub(crate) async_jobs: bool,
    pub(crate) lsp: bool,
    pub(crate) web: bool,
}

impl From<&SessionOptions> for DefaultTools {
    fn from(options: &SessionOptions) -> Self {
        Self {
            todo: options.todo,
            task: options.task,
            async_jobs: options.async_jobs,
            syntax: options.syntax,
            lsp: options.lsp,
            web: options.web,
        }
    }
}

/// The names that settings make active: those of `defaultTools`, `todo`, `task` and `lsp` where `todo.enabled` and its like say so, or the
/// options where these say nothing, `web_fetch` and `web_search` by `web.enabled` in the same way, `ast_grep` and `ast_edit` by
/// `syntax.enabled`, `wait` where there are jobs, and `ask`, `ssh` and `eval` where `ask.enabled` and its like
/// say so.
#[must_use]
pub(crate) fn default_tools(settings: &Settings, of_flags: DefaultTools) -> Vec<String> {
    let mut names = chosen_by_default(settings.default_tools.as_deref());
    let has_todo = settings.todo.as_ref().and_then(|todo| todo.enabled).unwrap_or(of_flags.todo);
    let has_task = settings.task.as_ref().and_then(|task| task.enabled).unwrap_or(of_flags.task);
    let has_ask = settings.ask.as_ref().and_then(|ask| ask.enabled).unwrap_or(false);
    let has_jobs = async_is_on(settings, of_flags.async_jobs)
        || has_task && settings.task.as_ref().and_then(|task| task.background).unwrap_or(false);
    let has_lsp = lsp_is_on(settings, of_flags.lsp);
    let has_web = settings.web.as_ref().and_then(|web| web.enabled).unwrap_or(of_flags.web);
    let has_ssh = settings.ssh.as_ref().and_then(|ssh| ssh.enabled).unwrap_or(false);
    let has_syntax = settings.syntax.as_ref().and_then(|syntax| syntax.enabled).unwrap_or(of_flags.syntax);
    let has_eval = settings.eval.as_ref().and_then(|eval| eval.enabled).unwrap_or(false);
    let wanted = [
        (has_todo, TODO_TOOL),
        (has_task, TASK_TOOL),
        (has_jobs, WAIT_TOOL),
        (has_ask, ASK_TOOL),
        (has_lsp, LSP_TOOL),
        (has_web, WEB_FETCH_TOOL),
        (has_web, WEB_SEARCH_TOOL),
        (has_ssh, SSH_TOOL),
        (has_syntax, AST_GREP_TOOL),
        (has_syntax, AST_EDIT_TOOL),
        (has_eval, EVAL_TOOL),
    ];
    for (is_wanted, tool) in wanted {
        if is_wanted && !names.iter().any(|pattern| matches(pattern, tool)) {
            names.push(tool.to_owned());
        }
    }
    names
}

/// Whether commands can be jobs, in a session with this flag.
#[must_use]
pub(crate) fn async_is_on(settings: &Settings, of_flag: bool) -> bool {
    settings.async_jobs.as_ref().and_then(|jobs| jobs.enabled).unwrap_or(of_flag)
}

/// Whether there are language servers, in a session with this flag.
#[must_use]
pub(crate) fn lsp_is_on(settings: &Settings, of_flag: bool) -> bool {
    settings.lsp.as_ref().and_then(|lsp| lsp.enabled).unwrap_or(of_flag)
}

/// The names that a `defaultTools` setting makes active: a list of its own, or a change of the built-in choice.
fn chosen_by_default(setting: Option<&[String]>) -> Vec<String> {
    const BUILT_IN: [&str; 4] = ["read", "bash", "edit", "write"];
    let Some(list) = setting else { return BUILT_IN.map(str::to_owned).to_vec() };
    if list.is_empty() || !list.iter().all(|item| item.starts_with(['+', '-'])) {
        // Beside names there is no default choice that could be changed: the list is gone through from the beginning.
        let mut names: Vec<String> = Vec::new();
        for item in list {
            match item.strip_prefix('-') {
                Some(pattern) => names.retain(|name| !matches(pattern, name)),
                None => names.push(item.strip_prefix('+').unwrap_or(item).to_owned()),
            }
        }
        return names;
    }
    let added = list.iter().filter_map(|item| item.strip_prefix('+')).map(str::to_owned);
    let kept = BUILT_IN.into_iter().filter(|name| choose(list, name, true)).map(str::to_owned);
    kept.chain(added.filter(|name| !BUILT_IN.contains(&name.as_str()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn active(allow: Option<&[&str]>, exclude: &[&str]) -> Vec<&'static str> {
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        active_of(&ToolSelection {
            allow: allow.map(list),
            exclude: list(exclude),
            ..ToolSelection::default()
        })
    }

    fn active_of(selection: &ToolSelection) -> Vec<&'static str> {
        let defaults = chosen_by_default(None);
        ["read", "bash", "edit", "write", "grep"]
            .into_iter()
            .filter(|name| selection.is_active(name, &defaults))
            .collect()
    }

    #[test]
    fn selections() {
        assert_eq!(active(None, &[]), ["read", "bash", "edit", "write"]);
        assert_eq!(active(Some(&["read", "grep"]), &[]), ["read", "grep"]);
        assert_eq!(active(Some(&["+grep", "-write"]), &[]), ["read", "bash", "edit", "grep"]);
        assert_eq!(active(Some(&["*r*e*"]), &["re*"]), ["write", "grep"]);
        assert_eq!(active(Some(&["*"]), &["b*h"]), ["read", "edit", "write", "grep"]);
        assert_eq!(
            chosen_by_default(Some(&["+grep".into(), "-bash".into()])),
            ["read", "edit", "write", "grep"]
        );
        assert_eq!(chosen_by_default(Some(&["ls".into()])), ["ls"]);
        assert_eq!(
            chosen_by_default(Some(&["read".into(), "bash".into(), "-bash".into(), "+ls".into()])),
            ["read", "ls"]
        );
    }

    #[test]
    fn what_is_not_let_in_cannot_be_made_active() {
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let check = |allow: Option<&[&str]>, exclude: &[&str], none, own: &[&str], of_clients: &[&str]| {
            let selection = ToolSelection {
                allow: allow.map(list),
                exclude: list(exclude),
                none,
                none_of_clients: none && exclude.is_empty(),
                within: None,
            };
            let names = ["read", "bash", "grep"];
            let permitted: Vec<&str> = names.into_iter().filter(|name| selection.permits(name)).collect();
            assert_eq!(permitted, own, "{selection:?}");
            let names = ["deploy", "open"];
            let permitted: Vec<&str> =
                names.into_iter().filter(|name| selection.permits_of_client(name)).collect();
            assert_eq!(permitted, of_clients, "{selection:?}");
        };
        check(None, &[], false, &["read", "bash", "grep"], &["deploy", "open"]);
        check(Some(&["read", "dep*"]), &[], false, &["read"], &["deploy"]);
        check(Some(&["-bash", "+grep"]), &[], false, &["read", "bash", "grep"], &["deploy", "open"]);
        check(None, &["b*", "open"], false, &["read", "grep"], &["deploy"]);
        check(Some(&["*"]), &["bash"], false, &["read", "grep"], &["deploy", "open"]);
        check(None, &[], true, &[], &[]);
        check(Some(&["+read"]), &[], true, &["read"], &[]);
        // Without built-in tools, those of clients are there.
        check(None, &["x"], true, &[], &["deploy", "open"]);
    }

    #[test]
    fn what_another_session_does_not_let_in_is_not_there() {
        let within = Some(Arc::new(ToolSelection {
            allow: Some(vec!["read".into(), "grep".into()]),
            ..ToolSelection::default()
        }));
        let of = |allow: Option<&[&str]>| {
            let allow = allow.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
            active_of(&ToolSelection { allow, within: within.clone(), ..ToolSelection::default() })
        };
        assert_eq!(of(None), ["read"]);
        assert_eq!(of(Some(&["*"])), ["read", "grep"]);
        assert!(of(Some(&["bash"])).is_empty());
    }

    #[test]
    fn without_default_tools_those_that_are_named_stay() {
        let active = |allow: Option<&[&str]>| {
            let allow = allow.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
            active_of(&ToolSelection { allow, none: true, ..ToolSelection::default() })
        };
        assert!(active(None).is_empty());
        assert_eq!(active(Some(&["read", "grep"])), ["read", "grep"]);
        assert_eq!(active(Some(&["+grep", "-read"])), ["grep"]);
    }

    #[test]
    fn the_tool_for_tasks_is_active_where_somebody_says_so() {
        let has = |settings: serde_json::Value, todo: bool| {
            let settings: Settings = serde_json::from_value(settings).unwrap();
            default_tools(&settings, DefaultTools { todo, ..DefaultTools::default() })
                .contains(&TODO_TOOL.to_owned())
        };
        use serde_json::json;
        assert!(!has(json!({}), false) && has(json!({}), true));
        assert!(has(json!({"todo": {"enabled": true}}), false));
        assert!(!has(json!({"todo": {"enabled": false}}), true));
        let asks: Settings = serde_json::from_value(json!({"ask": {"enabled": true}})).unwrap();
        assert!(default_tools(&asks, DefaultTools::default()).contains(&ASK_TOOL.to_owned()));
        assert!(
            has(json!({"defaultTools": ["+todo"]}), false) && has(json!({"defaultTools": ["read"]}), true)
        );
    }
}
