//! What a call does, as far as its arguments tell: paths are resolved as the tools resolve them.

use std::path::{Path, PathBuf};

use agentd_agent::hooks::{Action, Requester};
use agentd_lsp::LSP_TOOL;
use agentd_mcp::RESOURCE_URL;
use agentd_policy::Subject;
use agentd_protocol::{
    agent_mode::{LOCAL_URL, PROPOSE_PLAN_TOOL},
    ask::ASK_TOOL,
    eval::EVAL_TOOL,
    jobs::{JOB_URL, WAIT_TOOL},
    patch::PATCH_TOOL,
    remote_hosts::{SSH_TOOL, SSH_URL},
    subagent::{AGENT_URL, HISTORY_URL, TASK_TOOL, YIELD_TOOL},
    syntax::{AST_EDIT_TOOL, AST_GREP_TOOL},
    text_bounds,
    todo::TODO_TOOL,
    web::{WEB_FETCH_TOOL, WEB_SEARCH_TOOL, WEB_URLS, host_of},
};
use agentd_tools::{has_own_shell, resolve_path_argument};
use serde_json::Value;

/// What a call does. Owns what it names.
pub(super) enum CallSubject {
    Read {
        path: PathBuf,
        is_deep: bool,
    },
    Write(PathBuf),
    Command {
        text: String,
        folder: PathBuf,
        variables: Vec<String>,
    },
    /// A command on another host.
    RemoteCommand {
        host: String,
        text: String,
    },
    /// A file or folder of another host, by its URL.
    RemoteFile(String),
    /// A resource of an MCP server, by its URL.
    Resource(String),
    /// A call that only reads, as the user has said to believe.
    TrustedRead,
    /// What a client serves, by its URL.
    HostUrl {
        url: String,
        writes: bool,
    },
    /// A file of the session's own folder, by its URL, or what else it has by a URL.
    OwnFile(String),
    /// A call that changes what the session knows of itself, and nothing else.
    OwnNotes,
    /// What is written to a job, by its URL: input of a process, or its end.
    Job {
        url: String,
        text: String,
    },
    /// A page of the web, by its URL, or a search.
    Web {
        subject: String,
        host: Option<String>,
    },
    /// Code for an interpreter that stays.
    Code {
        language: String,
        code: String,
    },
    Other,
}

/// Bytes of code that the user who is asked sees: 8 KiB.
const SHOWN_CODE: usize = 8 << 10;

/// Bytes of the input of a job that the user who is asked sees: 2 KiB.
const SHOWN_INPUT: usize = 2 << 10;

/// The tools that write to background processes and end them. What is written to a URL of a job is judged as a call of these.
const JOB_INPUT_TOOL: &str = "process_input";
const JOB_KILL_TOOL: &str = "process_kill";

/// The tool that reads resources of MCP servers. A URL of one in `read` is judged as a call of it.
const RESOURCE_TOOL: &str = "read_mcp_resource";

/// The tools whose rules count for URLs that clients serve.
const HOST_URL_TOOLS: [&str; 2] = ["read_host_uri", "write_host_uri"];

/// URLs of what the session itself tells the model of: its skills and rules, its subagents and what they did, the state of its jobs.
const RESOURCE_URLS: [&str; 5] = ["skill://", "rule://", AGENT_URL, HISTORY_URL, JOB_URL];

impl CallSubject {
    /// Of an action in a session of a user with this home directory. `is_served`: whether clients serve URLs of a scheme, or have done so.
    /// `shell`: where the shell that stays is, if there is one.
    pub(super) fn of_action(
        action: &Action<'_>,
        home: &Path,
        is_served: impl Fn(&str) -> bool,
        shell: Option<PathBuf>,
    ) -> Self {
        if matches!(action.tool, "read" | "write")
            && let Some(url) = action.arguments.get("path").and_then(Value::as_str)
            && let Some((scheme, _)) = url.split_once("://")
            && is_served(&scheme.to_ascii_lowercase())
        {
            return Self::HostUrl { url: url.to_owned(), writes: action.tool == "write" };
        }
        match Self::of(action.tool, action.arguments, action.cwd, home) {
            Self::Command { text, folder, variables } => {
                // The user's own commands have a shell of their own.
                let is_in_it = action.by != Requester::User && !has_own_shell(action.arguments);
                let folder = shell.filter(|_| is_in_it).unwrap_or(folder);
                Self::Command { text, folder, variables }
            }
            Self::Other if action.is_trusted_read => Self::TrustedRead,
            subject => subject,
        }
    }

    /// Of a call of `tool` in a session that works in `cwd`. A path that cannot be resolved is left to the tool, which refuses it.
    pub(super) fn of(tool: &str, arguments: &Value, cwd: &Path, home: &Path) -> Self {
        let text = |key: &str| arguments.get(key).and_then(Value::as_str);
        let path = |key: &str| {
            resolve_path_argument(text(key).unwrap_or_default(), cwd, home).unwrap_or_else(|_| cwd.to_owned())
        };
        match tool {
            "read" if text("path").is_some_and(|path| path.starts_with(RESOURCE_URL)) => {
                Self::Resource(text("path").unwrap_or_default().to_owned())
            }
            "read"
                if text("path").is_some_and(|path| WEB_URLS.iter().any(|start| path.starts_with(start))) =>
            {
                Self::web(text("path").unwrap_or_default())
            }
            WEB_FETCH_TOOL => Self::web(text("url").unwrap_or_default()),
            WEB_SEARCH_TOOL => {
                Self::Web { subject: text("query").unwrap_or_default().to_owned(), host: None }
            }
            "read" | "write" | "edit" if text("path").is_some_and(|path| path.starts_with(LOCAL_URL)) => {
                Self::OwnFile(text("path").unwrap_or_default().to_owned())
            }
            // A message to another agent.
            "write" if text("path").is_some_and(|path| path.starts_with(AGENT_URL)) => {
                Self::OwnFile(text("path").unwrap_or_default().to_owned())
            }
            "read"
                if text("path")
                    .is_some_and(|path| RESOURCE_URLS.iter().any(|start| path.starts_with(start))) =>
            {
                Self::OwnFile(text("path").unwrap_or_default().to_owned())
            }
            "write" if text("path").is_some_and(|path| path.starts_with(JOB_URL)) => Self::Job {
                url: text("path").unwrap_or_default().to_owned(),
                text: text("content").unwrap_or_default().to_owned(),
            },
            "read" | "write" if text("path").is_some_and(|path| path.starts_with(SSH_URL)) => {
                Self::RemoteFile(text("path").unwrap_or_default().to_owned())
            }
            SSH_TOOL => Self::RemoteCommand {
                host: text("host").unwrap_or_default().to_owned(),
                text: text("command").unwrap_or_default().to_owned(),
            },
            "read" | "ls" => Self::Read { path: path("path"), is_deep: false },
            // What an edit changes is asked about file by file, once it is known.
            "grep" | "find" | AST_GREP_TOOL | AST_EDIT_TOOL | PATCH_TOOL => {
                Self::Read { path: path("path"), is_deep: true }
            }
            "write" | "edit" => Self::Write(path("path")),
            "bash" => Self::Command {
                text: text("command").unwrap_or_default().to_owned(),
                folder: path("cwd"),
                variables: arguments
                    .get("env")
                    .and_then(Value::as_object)
                    .map(|env| env.keys().cloned().collect())
                    .unwrap_or_default(),
            },
            LSP_TOOL => Self::of_language_server(arguments, &path, cwd),
            EVAL_TOOL => Self::Code {
                language: text("language").unwrap_or_default().to_owned(),
                code: text("code").unwrap_or_default().to_owned(),
            },
            // Each call of a subagent is judged for itself.
            TODO_TOOL | ASK_TOOL | PROPOSE_PLAN_TOOL | TASK_TOOL | WAIT_TOOL | YIELD_TOOL => Self::OwnNotes,
            _ => Self::Other,
        }
    }

    /// Of a call of the tool for language servers. Files that an edit changes besides are asked about by the tool, and so is the start of a
    /// server that runs code of the project: that is a call with the action `start`.
    fn of_language_server(arguments: &Value, path: &dyn Fn(&str) -> PathBuf, cwd: &Path) -> Self {
        let applies = arguments.get("apply").and_then(Value::as_bool);
        let file = || path("file");
        match arguments.get("action").and_then(Value::as_str).unwrap_or_default() {
            "status" | "reload" => Self::OwnNotes,
            "rename" | "rename_file" if applies != Some(false) => Self::Write(file()),
            "code_actions" if applies == Some(true) => Self::Write(file()),
            "symbols" if arguments.get("query").is_some() => {
                Self::Read { path: cwd.to_owned(), is_deep: true }
            }
            "references" | "implementation" => Self::Read { path: cwd.to_owned(), is_deep: true },
            "diagnostics" | "definition" | "hover" | "symbols" | "rename" | "rename_file"
            | "code_actions" | "type_definition" | "capabilities" => {
                Self::Read { path: file(), is_deep: false }
            }
            _ => Self::Other,
        }
    }

    fn web(url: &str) -> Self {
        Self::Web { subject: url.to_owned(), host: host_of(url) }
    }

    pub(super) fn borrowed(&self) -> Subject<'_> {
        match self {
            Self::Read { path, is_deep } => Subject::Read { path, is_deep: *is_deep },
            Self::Write(path) => Subject::Write { path },
            Self::Command { text, folder, variables } => Subject::Command { text, folder, variables },
            Self::RemoteCommand { host, text } => Subject::RemoteCommand { host, text },
            Self::TrustedRead | Self::HostUrl { writes: false, .. } => Subject::TrustedRead,
            Self::Web { host, .. } => Subject::Web { host: host.as_deref() },
            Self::OwnFile(_) | Self::OwnNotes => Subject::OwnNotes,
            Self::Resource(_)
            | Self::RemoteFile(_)
            | Self::HostUrl { writes: true, .. }
            | Self::Job { .. }
            | Self::Code { .. }
            | Self::Other => Subject::Other,
        }
    }

    /// The tool whose rules count for a call of `tool`.
    pub(super) fn judged_as<'a>(&self, tool: &'a str) -> &'a str {
        match self {
            Self::Resource(_) => RESOURCE_TOOL,
            Self::Web { .. } if tool == "read" => WEB_FETCH_TOOL,
            Self::RemoteFile(_) => SSH_TOOL,
            Self::HostUrl { writes, .. } => HOST_URL_TOOLS[usize::from(*writes)],
            Self::Job { url, .. } if url.ends_with("/kill") => JOB_KILL_TOOL,
            Self::Job { .. } => JOB_INPUT_TOOL,
            _ => tool,
        }
    }

    /// The subject in a line or more, for the user who is asked.
    pub(super) fn shown(&self, tool: &str) -> String {
        match self {
            Self::Read { path, .. } | Self::Write(path) => format!("{tool}: {}", path.display()),
            Self::Command { text, .. } => format!("$ {text}"),
            Self::RemoteCommand { host, text } => format!("{tool} {host}\n$ {text}"),
            Self::RemoteFile(url) => format!("{tool}: {url}"),
            Self::Job { url, text } if text.is_empty() => format!("{tool}: {url}"),
            Self::Job { url, text } => format!("{tool}: {url}\n{}", text_bounds::head(text, SHOWN_INPUT)),
            Self::Code { language, code } => {
                format!("{tool} ({language}):\n{}", text_bounds::head(code, SHOWN_CODE))
            }
            Self::Resource(url)
            | Self::OwnFile(url)
            | Self::HostUrl { url, .. }
            | Self::Web { subject: url, .. } => format!("{tool}: {url}"),
            Self::TrustedRead | Self::OwnNotes | Self::Other => tool.to_owned(),
        }
    }

    /// The file or folder, if it is about one.
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::Read { path, .. } | Self::Write(path) => Some(path),
            Self::Command { .. }
            | Self::RemoteCommand { .. }
            | Self::RemoteFile(_)
            | Self::Resource(_)
            | Self::HostUrl { .. }
            | Self::OwnFile(_)
            | Self::TrustedRead
            | Self::OwnNotes
            | Self::Job { .. }
            | Self::Web { .. }
            | Self::Code { .. }
            | Self::Other => None,
        }
    }

    /// The shell command, if it is one.
    pub(super) fn command(&self) -> Option<&str> {
        match self {
            Self::Command { text, .. } | Self::RemoteCommand { text, .. } => Some(text),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_are_those_of_the_tools() {
        let of = |tool: &str, arguments: Value| {
            CallSubject::of(tool, &arguments, Path::new("/w"), Path::new("/h")).shown(tool)
        };
        assert_eq!(of("read", json!({"path": "@a/../b"})), "read: /w/b");
        assert_eq!(of("write", json!({"path": "~/x"})), "write: /h/x");
        assert_eq!(of("grep", json!({"pattern": "x"})), "grep: /w");
        assert_eq!(of("bash", json!({"command": "ls"})), "$ ls");
        assert_eq!(of("mine", json!({"path": "x"})), "mine");
        assert_eq!(of("ssh", json!({"host": "box", "command": "df"})), "ssh box\n$ df");
        assert_eq!(of("read", json!({"path": "ssh://box/x"})), "read: ssh://box/x");
        assert_eq!(of("ast_grep", json!({"pattern": "f($A)"})), "ast_grep: /w");
        assert_eq!(of("patch", json!({"diff": "--- x\n+++ x\n"})), "patch: /w");
        assert_eq!(of("eval", json!({"language": "py", "code": "1 + 1"})), "eval (py):\n1 + 1");
        assert_eq!(of("read", json!({"path": "mcp://s/x:1"})), "read: mcp://s/x:1");
        assert_eq!(of("write", json!({"path": "local://p.md"})), "write: local://p.md");
        assert_eq!(of("read", json!({"path": "skill://s/a.md"})), "read: skill://s/a.md");
        assert_eq!(of("write", json!({"path": "skill://s"})), "write: /w/skill:/s");
        assert_eq!(of("web_fetch", json!({"url": "example.org/x"})), "web_fetch: example.org/x");
        assert_eq!(of("grep", json!({"path": "local://p.md"})), "grep: /w/local:/p.md");
    }

    #[test]
    fn language_servers_are_asked_edit_and_execute() {
        let of = |arguments: Value| {
            let subject = CallSubject::of(LSP_TOOL, &arguments, Path::new("/w"), Path::new("/h"));
            match subject {
                CallSubject::Read { path, is_deep } => format!("read {} {is_deep}", path.display()),
                CallSubject::Write(path) => format!("write {}", path.display()),
                CallSubject::OwnNotes => "notes".to_owned(),
                CallSubject::Other => "other".to_owned(),
                _ => "unexpected".to_owned(),
            }
        };
        for (arguments, expected) in [
            (json!({"action": "hover", "file": "a"}), "read /w/a false"),
            (json!({"action": "diagnostics"}), "read /w false"),
            (json!({"action": "references", "file": "a"}), "read /w true"),
            (json!({"action": "symbols", "query": "x"}), "read /w true"),
            (json!({"action": "rename", "file": "~/a"}), "write /h/a"),
            (json!({"action": "rename", "file": "a", "apply": false}), "read /w/a false"),
            (json!({"action": "rename_file", "file": "a"}), "write /w/a"),
            (json!({"action": "code_actions", "file": "a"}), "read /w/a false"),
            (json!({"action": "code_actions", "file": "a", "apply": true}), "write /w/a"),
            (json!({"action": "status"}), "notes"),
            (json!({"action": "request", "file": "a"}), "other"),
            (json!({"action": "start", "server": "rust-analyzer"}), "other"),
        ] {
            assert_eq!(of(arguments.clone()), expected, "{arguments}");
        }
    }

    #[test]
    fn trust_in_a_tool_says_nothing_of_tools_that_are_known() {
        let of = |tool: &str, is_trusted_read: bool| {
            let action = Action {
                by: Requester::User,
                tool,
                arguments: &json!({"path": "x"}),
                cwd: Path::new("/w"),
                is_trusted_read,
                declares_reading: false,
                schema: None,
                must_ask: None,
            };
            CallSubject::of_action(&action, Path::new("/h"), |_| false, None)
        };
        assert!(matches!(of("mcp__s__t", true), CallSubject::TrustedRead));
        assert!(matches!(of("mcp__s__t", false), CallSubject::Other));
        assert!(matches!(of("write", true), CallSubject::Write(_)));
    }

    #[test]
    fn commands_are_where_the_shell_that_stays_is_unless_they_have_one_of_their_own() {
        let of = |by: Requester<'_>, arguments: Value| {
            let action = Action {
                by,
                tool: "bash",
                arguments: &arguments,
                cwd: Path::new("/w"),
                is_trusted_read: false,
                declares_reading: false,
                schema: None,
                must_ask: None,
            };
            match CallSubject::of_action(&action, Path::new("/h"), |_| false, Some("/etc".into())) {
                CallSubject::Command { folder, .. } => folder,
                _ => panic!("no command"),
            }
        };
        let model = Requester::Model { call_id: "c" };
        assert_eq!(of(model, json!({"command": "rm x"})), Path::new("/etc"));
        assert_eq!(of(model, json!({"command": "rm x", "cwd": "y"})), Path::new("/w/y"));
        assert_eq!(of(model, json!({"command": "rm x", "async": false})), Path::new("/w"));
        assert_eq!(of(Requester::User, json!({"command": "rm x"})), Path::new("/w"));
    }

    #[test]
    fn urls_of_clients_are_judged_by_names_of_their_own() {
        let of = |tool: &str, path: &str| {
            let action = Action {
                by: Requester::User,
                tool,
                arguments: &json!({"path": path}),
                cwd: Path::new("/w"),
                is_trusted_read: false,
                declares_reading: false,
                schema: None,
                must_ask: None,
            };
            let subject = CallSubject::of_action(&action, Path::new("/h"), |scheme| scheme == "db", None);
            (
                subject.judged_as(tool).to_owned(),
                subject.shown(tool),
                matches!(subject.borrowed(), Subject::Other),
            )
        };
        let judged = |tool: &str, shown: &str, is_other: bool| (tool.to_owned(), shown.to_owned(), is_other);
        assert_eq!(of("read", "DB://../x"), judged("read_host_uri", "read: DB://../x", false));
        assert_eq!(of("write", "db://x"), judged("write_host_uri", "write: db://x", true));
        assert_eq!(of("edit", "db://x"), judged("edit", "edit: /w/db:/x", false));
        assert_eq!(of("read", "other://../../x"), judged("read", "read: /x", false));
    }

    #[test]
    fn a_page_is_judged_by_its_host_however_it_is_read() {
        let of = |tool: &str, key: &str, text: &str| {
            let subject = CallSubject::of(tool, &json!({key: text}), Path::new("/w"), Path::new("/h"));
            let host = match subject.borrowed() {
                Subject::Web { host } => host.map(str::to_owned),
                other => panic!("{other:?}"),
            };
            (subject.judged_as(tool).to_owned(), host)
        };
        let page = ("web_fetch".to_owned(), Some("example.org".to_owned()));
        assert_eq!(of("read", "path", "https://EXAMPLE.org:443/a:5-9"), page);
        assert_eq!(of("web_fetch", "url", "example.org/a"), page);
        assert_eq!(of("web_search", "query", "x"), ("web_search".to_owned(), None));
    }

    #[test]
    fn a_resource_is_judged_as_by_its_own_tool() {
        let of = |path: &str| {
            let subject = CallSubject::of("read", &json!({"path": path}), Path::new("/w"), Path::new("/h"));
            (subject.judged_as("read"), matches!(subject.borrowed(), Subject::Other))
        };
        assert_eq!(of("mcp://s/x:1"), ("read_mcp_resource", true));
        assert_eq!(of("ssh://box/x"), ("ssh", true));
        assert_eq!(of("./mcp://s/x:1"), ("read", false));
    }

    #[test]
    fn what_is_written_to_a_job_is_judged_as_by_the_tools_for_processes() {
        let of = |tool: &str, path: &str| {
            let arguments = json!({"path": path, "content": "x"});
            let subject = CallSubject::of(tool, &arguments, Path::new("/w"), Path::new("/h"));
            (
                subject.judged_as(tool).to_owned(),
                matches!(subject.borrowed(), Subject::Other),
                subject.shown(tool),
            )
        };
        assert_eq!(
            of("write", "proc://bg-1"),
            ("process_input".into(), true, "write: proc://bg-1\nx".into())
        );
        assert_eq!(of("write", "proc://bg-1/eof").0, "process_input");
        assert_eq!(of("write", "proc://web/kill").0, "process_kill");
        assert_eq!(of("read", "proc://bg-1"), ("read".into(), false, "read: proc://bg-1".into()));
        assert_eq!(of("edit", "proc://bg-1").2, "edit: /w/proc:/bg-1");
    }
}
