//! What a call does, as far as its arguments tell: paths are resolved as the tools resolve them.

use std::path::{Path, PathBuf};

use agentd_agent::hooks::Action;
use agentd_mcp::RESOURCE_URL;
use agentd_policy::Subject;
use agentd_protocol::{
    agent_mode::{LOCAL_URL, PROPOSE_PLAN_TOOL},
    ask::ASK_TOOL,
    jobs::WAIT_TOOL,
    subagent::{TASK_TOOL, YIELD_TOOL},
    todo::TODO_TOOL,
};
use agentd_tools::resolve_path_argument;
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
    /// A resource of an MCP server, by its URL.
    Resource(String),
    /// A call that only reads, as the user has said to believe.
    TrustedRead,
    /// A file of the session's own folder, by its URL.
    OwnFile(String),
    /// A call that changes what the session knows of itself, and nothing else.
    OwnNotes,
    Other,
}

/// The tool that reads resources of MCP servers. A URL of one in `read` is judged as a call of it.
const RESOURCE_TOOL: &str = "read_mcp_resource";

/// URLs of what the session itself tells the model of: its skills and rules.
const RESOURCE_URLS: [&str; 2] = ["skill://", "rule://"];

impl CallSubject {
    /// Of an action in a session of a user with this home directory.
    pub(super) fn of_action(action: &Action<'_>, home: &Path) -> Self {
        match Self::of(action.tool, action.arguments, action.cwd, home) {
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
            "read" | "write" | "edit" if text("path").is_some_and(|path| path.starts_with(LOCAL_URL)) => {
                Self::OwnFile(text("path").unwrap_or_default().to_owned())
            }
            "read"
                if text("path")
                    .is_some_and(|path| RESOURCE_URLS.iter().any(|start| path.starts_with(start))) =>
            {
                Self::OwnFile(text("path").unwrap_or_default().to_owned())
            }
            "read" | "ls" => Self::Read { path: path("path"), is_deep: false },
            "grep" | "find" => Self::Read { path: path("path"), is_deep: true },
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
            // Each call of a subagent is judged for itself.
            TODO_TOOL | ASK_TOOL | PROPOSE_PLAN_TOOL | TASK_TOOL | WAIT_TOOL | YIELD_TOOL => Self::OwnNotes,
            _ => Self::Other,
        }
    }

    pub(super) fn borrowed(&self) -> Subject<'_> {
        match self {
            Self::Read { path, is_deep } => Subject::Read { path, is_deep: *is_deep },
            Self::Write(path) => Subject::Write { path },
            Self::Command { text, folder, variables } => Subject::Command { text, folder, variables },
            Self::TrustedRead => Subject::TrustedRead,
            Self::OwnFile(_) | Self::OwnNotes => Subject::OwnNotes,
            Self::Resource(_) | Self::Other => Subject::Other,
        }
    }

    /// The tool whose rules count for a call of `tool`.
    pub(super) fn judged_as<'a>(&self, tool: &'a str) -> &'a str {
        if matches!(self, Self::Resource(_)) { RESOURCE_TOOL } else { tool }
    }

    /// The subject in a line or more, for the user who is asked.
    pub(super) fn shown(&self, tool: &str) -> String {
        match self {
            Self::Read { path, .. } | Self::Write(path) => format!("{tool}: {}", path.display()),
            Self::Command { text, .. } => format!("$ {text}"),
            Self::Resource(url) | Self::OwnFile(url) => format!("{tool}: {url}"),
            Self::TrustedRead | Self::OwnNotes | Self::Other => tool.to_owned(),
        }
    }

    /// The file or folder, if it is about one.
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::Read { path, .. } | Self::Write(path) => Some(path),
            Self::Command { .. }
            | Self::Resource(_)
            | Self::OwnFile(_)
            | Self::TrustedRead
            | Self::OwnNotes
            | Self::Other => None,
        }
    }

    /// The shell command, if it is one.
    pub(super) fn command(&self) -> Option<&str> {
        match self {
            Self::Command { text, .. } => Some(text),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use agentd_agent::hooks::Requester;
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
        assert_eq!(of("read", json!({"path": "mcp://s/x:1"})), "read: mcp://s/x:1");
        assert_eq!(of("write", json!({"path": "local://p.md"})), "write: local://p.md");
        assert_eq!(of("read", json!({"path": "skill://s/a.md"})), "read: skill://s/a.md");
        assert_eq!(of("write", json!({"path": "skill://s"})), "write: /w/skill:/s");
        assert_eq!(of("grep", json!({"path": "local://p.md"})), "grep: /w/local:/p.md");
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
            CallSubject::of_action(&action, Path::new("/h"))
        };
        assert!(matches!(of("mcp__s__t", true), CallSubject::TrustedRead));
        assert!(matches!(of("mcp__s__t", false), CallSubject::Other));
        assert!(matches!(of("write", true), CallSubject::Write(_)));
    }

    #[test]
    fn a_resource_is_judged_as_by_its_own_tool() {
        let of = |path: &str| {
            let subject = CallSubject::of("read", &json!({"path": path}), Path::new("/w"), Path::new("/h"));
            (subject.judged_as("read"), matches!(subject.borrowed(), Subject::Other))
        };
        assert_eq!(of("mcp://s/x:1"), ("read_mcp_resource", true));
        assert_eq!(of("./mcp://s/x:1"), ("read", false));
    }
}
