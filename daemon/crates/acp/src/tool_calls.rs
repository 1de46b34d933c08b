//! Pure. What clients see of a tool call: its kind, title, places in files, and content.

use std::path::PathBuf;

use agentd_protocol::{
    agent_mode::PROPOSE_PLAN_TOOL,
    message::ContentBlock,
    patch::{PATCH_TOOL, diff_names},
    plain_path::without_dots,
    remote_hosts::SSH_TOOL,
    subagent::TASK_TOOL,
    syntax::{AST_EDIT_TOOL, AST_GREP_TOOL},
    todo::TODO_TOOL,
    tool::ToolResult,
    web::{WEB_FETCH_TOOL, WEB_SEARCH_TOOL},
};
pub(crate) use agentd_translator::shortened;
use serde_json::{Map, Value};

use crate::{
    patch::hunks,
    updates::{Content, Location, ToolContent, ToolKind},
};

/// The arguments of a call.
pub(crate) type Arguments = Map<String, Value>;

/// The folders that paths of a session are seen from.
#[derive(Debug, Clone, Default)]
pub(crate) struct Folders {
    /// The session's folder, absolute.
    pub(crate) cwd: PathBuf,
    /// The folder for `~`.
    pub(crate) home: Option<PathBuf>,
}

impl Folders {
    /// The path that a model gave, absolute and without `.` and `..`.
    pub(crate) fn absolute(&self, path: &str) -> PathBuf {
        let path = match (path.strip_prefix("~/"), &self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ if path == "~" => self.home.clone().unwrap_or_else(|| self.cwd.join(path)),
            _ => self.cwd.join(path),
        };
        without_dots(&path)
    }

    /// The path for people: relative where it lies below the session's folder.
    fn shown(&self, path: &str) -> String {
        let absolute = self.absolute(path);
        match absolute.strip_prefix(&self.cwd) {
            Ok(below) if below.as_os_str().is_empty() => ".".to_owned(),
            Ok(below) => below.display().to_string(),
            Err(_) => absolute.display().to_string(),
        }
    }
}

/// The kind of a tool, by its name.
pub(crate) fn kind(tool: &str) -> ToolKind {
    match tool {
        "read" => ToolKind::Read,
        "write" | "edit" | AST_EDIT_TOOL | PATCH_TOOL => ToolKind::Edit,
        "bash" | "eval" | SSH_TOOL => ToolKind::Execute,
        "grep" | "find" | "ls" | "glob" | "lsp" | AST_GREP_TOOL => ToolKind::Search,
        WEB_FETCH_TOOL | WEB_SEARCH_TOOL | "fetch" => ToolKind::Fetch,
        TODO_TOOL | TASK_TOOL => ToolKind::Think,
        PROPOSE_PLAN_TOOL => ToolKind::SwitchMode,
        _ if tool.starts_with("process_") => ToolKind::Execute,
        _ => ToolKind::Other,
    }
}

/// The title of a call.
pub(crate) fn title(tool: &str, arguments: &Arguments, folders: &Folders) -> String {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let path = text("path").map(|path| if is_url(path) { path.to_owned() } else { folders.shown(path) });
    let here = || path.clone().unwrap_or_else(|| ".".to_owned());
    let title = match (tool, &path) {
        ("bash", _) => text("command").and_then(|command| command.trim().lines().next()).map(str::to_owned),
        ("eval", _) => text("title").or_else(|| text("code")?.trim().lines().next()).map(str::to_owned),
        ("read", Some(path)) => Some(format!("Read {path}{}", lines_read(arguments))),
        ("write", Some(path)) => Some(format!("Write {path}")),
        ("edit", Some(path)) => Some(format!("Edit {path}")),
        (PATCH_TOOL, _) => {
            let names = diff_names(text("diff").unwrap_or_default()).into_iter();
            let names: Vec<String> = names.map(|name| folders.shown(name)).collect();
            Some(format!("Edit {}", names.join(", "))).filter(|_| !names.is_empty())
        }
        ("ls", _) => Some(format!("List {}", here())),
        (SSH_TOOL, _) => {
            let command = text("command").and_then(|command| command.trim().lines().next());
            command.map(|command| format!("{}: {command}", text("host").unwrap_or("ssh")))
        }
        (AST_EDIT_TOOL, _) => {
            let verb = if text("apply").is_some() { "Rewrite" } else { "Preview rewriting" };
            text("pattern").map(|pattern| format!("{verb} {pattern} in {}", here()))
        }
        ("grep" | AST_GREP_TOOL, _) => {
            text("pattern").map(|pattern| format!("Search {pattern} in {}", here()))
        }
        (TODO_TOOL, _) => {
            let subject = text("task").or_else(|| text("phase")).map(|of| format!(": {of}"));
            Some(format!("Todo {}{}", text("op").unwrap_or("list"), subject.unwrap_or_default()))
        }
        (TASK_TOOL, _) => {
            let tasks = arguments.get("tasks").and_then(Value::as_array);
            let names = tasks.into_iter().flatten().filter_map(|task| task.get("name")?.as_str());
            let names = names.collect::<Vec<_>>().join(", ");
            Some(match (names.as_str(), tasks.map_or(1, Vec::len)) {
                ("", 1) => "Subagent".to_owned(),
                ("", count) => format!("{count} subagents"),
                (names, _) => format!("Subagents {names}"),
            })
        }
        (PROPOSE_PLAN_TOOL, _) => text("title").map(|title| format!("Plan {title}")),
        ("lsp", _) => text("action").map(|action| lsp_title(action, arguments, folders)),
        (WEB_FETCH_TOOL, _) => text("url").map(|url| format!("Fetch {url}")),
        (WEB_SEARCH_TOOL, _) => text("query").map(|query| format!("Search the web for {query}")),
        ("find", _) => text("pattern").map(|pattern| format!("Find {pattern} in {}", here())),
        _ => None,
    };
    shortened(&title.unwrap_or_else(|| tool.to_owned()))
}

/// The title of a question to a language server: what is asked, of what, and where.
fn lsp_title(action: &str, arguments: &Arguments, folders: &Folders) -> String {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let action = action.replace('_', " ");
    let symbol = text("symbol").or_else(|| text("query")).map(|of| format!(" {of}")).unwrap_or_default();
    let to = text("new_name").map(|name| format!(" to {name}")).unwrap_or_default();
    let file = text("file").map(|file| format!(" in {}", folders.shown(file))).unwrap_or_default();
    format!("Language server: {action}{symbol}{to}{file}")
}

/// Whether a path is a URL, and so no file of the workspace.
fn is_url(path: &str) -> bool {
    path.contains("://")
}

/// The lines that `read` is asked for, as the end of a title.
fn lines_read(arguments: &Arguments) -> String {
    let number = |name: &str| arguments.get(name).and_then(Value::as_u64);
    match (number("offset"), number("limit")) {
        (Some(first), Some(count)) => format!(" ({first}–{})", (first + count).saturating_sub(1)),
        (Some(first), None) => format!(" (from {first})"),
        (None, Some(count)) => format!(" (1–{count})"),
        (None, None) => String::new(),
    }
}

/// The files that a call is about.
pub(crate) fn locations(
    tool: &str,
    arguments: &Arguments,
    result: Option<&ToolResult>,
    folders: &Folders,
) -> Vec<Location> {
    if kind(tool) == ToolKind::Execute || kind(tool) == ToolKind::Other {
        return Vec::new();
    }
    let place = |path: &str, line| Location { path: folders.absolute(path).display().to_string(), line };
    if tool == PATCH_TOOL {
        let diff = arguments.get("diff").and_then(Value::as_str).unwrap_or_default();
        return diff_names(diff).into_iter().map(|name| place(name, None)).collect();
    }
    let name = if tool == "lsp" { "file" } else { "path" };
    let path = arguments.get(name).and_then(Value::as_str).filter(|path| !is_url(path));
    let Some(path) = path else { return Vec::new() };
    let number = |value: Option<&Value>| value.and_then(Value::as_u64).and_then(|it| it.try_into().ok());
    let line = match tool {
        "read" => number(arguments.get("offset")),
        "lsp" => number(arguments.get("line")),
        "edit" => result.and_then(|it| it.details.as_ref()).and_then(|it| number(it.get("firstChangedLine"))),
        _ => None,
    };
    vec![place(path, line)]
}

/// A file as it was before a call: `None` for a file that was not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OldText(pub(crate) Option<String>);

/// The changes that a finished call made: those of its patch, else the whole file that it wrote.
pub(crate) fn changes(
    tool: &str,
    arguments: &Arguments,
    result: &ToolResult,
    old: Option<&OldText>,
    folders: &Folders,
) -> Option<Vec<ToolContent>> {
    if tool == AST_EDIT_TOOL || tool == PATCH_TOOL {
        // The result names its files.
        let files = result.details.as_ref()?.get("files")?.as_array()?.iter();
        let of_file =
            |file: &Value| Some(of_patch(file.get("path")?.as_str()?, file.get("patch")?.as_str()?));
        return Some(files.filter_map(of_file).flatten().collect::<Vec<_>>())
            .filter(|changes| !changes.is_empty());
    }
    let path = arguments.get("path")?.as_str().filter(|path| !is_url(path))?;
    let path = folders.absolute(path).display().to_string();
    match tool {
        "edit" => {
            let patch = result.details.as_ref()?.get("patch")?.as_str()?;
            Some(of_patch(&path, patch)).filter(|changes| !changes.is_empty())
        }
        "write" => {
            let OldText(old_text) = old?.clone();
            let new_text = arguments.get("content")?.as_str()?.to_owned();
            Some(vec![ToolContent::Diff { path, old_text, new_text }])
        }
        _ => None,
    }
}

/// The changes of a unified diff, one a hunk.
pub(crate) fn of_patch(path: &str, patch: &str) -> Vec<ToolContent> {
    let is_new = patch.contains("--- /dev/null") || patch.contains("@@ -0,0 ");
    let diff = |hunk: crate::patch::Hunk| ToolContent::Diff {
        path: path.to_owned(),
        old_text: Some(hunk.old).filter(|old| !(is_new && old.is_empty())),
        new_text: hunk.new,
    };
    hunks(patch).into_iter().map(diff).collect()
}

/// The result of a call: text and images. Clients show text as Markdown, so that outputs of commands and contents of files are
/// code blocks.
pub(crate) fn content(tool: &str, blocks: &[ContentBlock]) -> Vec<ToolContent> {
    let is_plain = matches!(kind(tool), ToolKind::Read | ToolKind::Execute | ToolKind::Search);
    let content = blocks.iter().filter_map(|block| match block {
        ContentBlock::Text { text, .. } if text.is_empty() => None,
        ContentBlock::Text { text, .. } if is_plain => Some(Content::text(fenced(text))),
        ContentBlock::Text { text, .. } => Some(Content::text(text.as_str())),
        ContentBlock::Image(image) => {
            Some(Content::Image { data: image.data.clone(), mime_type: image.mime_type.clone() })
        }
        ContentBlock::Thinking { .. } | ContentBlock::ToolCall(_) => None,
    });
    content.map(|content| ToolContent::Content { content }).collect()
}

/// The result of a call in a terminal, which shows the output itself. Where the command did not end by itself, the result says what
/// happened.
pub(crate) fn in_terminal(terminal: String, tool: &str, result: &ToolResult) -> Vec<ToolContent> {
    let shown = ToolContent::Terminal { terminal_id: terminal };
    let told = if result.structured_content.is_some() { Vec::new() } else { content(tool, &result.content) };
    std::iter::once(shown).chain(told).collect()
}

/// The text as a code block of Markdown, in a fence that does not occur in it.
fn fenced(text: &str) -> String {
    let mut longest = 0;
    let mut run = 0;
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat((longest + 1).max(3));
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}\n{text}{end}{fence}")
}

/// What programs can read of a result: its structured content, else its details, where that is more than the text.
pub(crate) fn raw_output(result: &ToolResult) -> Option<Value> {
    let is_object = |value: &&Value| value.as_object().is_some_and(|object| !object.is_empty());
    let structured = result.structured_content.as_ref().filter(is_object);
    structured.or(result.details.as_ref().filter(is_object)).cloned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn folders() -> Folders {
        Folders { cwd: "/p".into(), home: Some("/h".into()) }
    }

    fn arguments(value: Value) -> Arguments {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn titles_tell_what_is_done() {
        for (tool, given, expected) in [
            ("bash", json!({"command":"cargo test\n# more"}), "cargo test"),
            ("bash", json!({}), "bash"),
            ("read", json!({"path":"src/a.rs"}), "Read src/a.rs"),
            ("read", json!({"path":"/etc/x","offset":5,"limit":10}), "Read /etc/x (5–14)"),
            ("read", json!({"path":"a","offset":5}), "Read a (from 5)"),
            ("write", json!({"path":"/p/b"}), "Write b"),
            ("edit", json!({"path":"./x/../b"}), "Edit b"),
            ("patch", json!({"diff":"--- a/x\n+++ b/x\n@@ @@\n-y\n--- /dev/null\n+++ b/z\n"}), "Edit x, z"),
            ("patch", json!({"diff":"no diff"}), "patch"),
            ("ls", json!({}), "List ."),
            ("ls", json!({"path":"/p"}), "List ."),
            ("grep", json!({"pattern":"x","path":"~/y"}), "Search x in /h/y"),
            (
                "lsp",
                json!({"action":"rename_file","file":"src/a","new_name":"b"}),
                "Language server: rename file to b in src/a",
            ),
            (
                "lsp",
                json!({"action":"references","file":"src/a","symbol":"x"}),
                "Language server: references x in src/a",
            ),
            ("find", json!({"pattern":"*.rs"}), "Find *.rs in ."),
            ("mcp__a__b", json!({"path":"x"}), "mcp__a__b"),
        ] {
            assert_eq!(title(tool, &arguments(given), &folders()), expected, "{tool}");
        }
        let long = title("bash", &arguments(json!({"command": "é".repeat(200)})), &folders());
        assert_eq!((long.chars().count(), long.chars().last()), (80, Some('…')));
    }

    #[test]
    fn places_are_absolute() {
        let place = |tool: &str, given: Value, result: Option<&ToolResult>| {
            locations(tool, &arguments(given), result, &folders())
        };
        let at = |path: &str, line| vec![Location { path: path.to_owned(), line }];
        assert_eq!(place("read", json!({"path":"a","offset":7}), None), at("/p/a", Some(7)));
        assert_eq!(place("write", json!({"path":"~/a"}), None), at("/h/a", None));
        let edited = ToolResult { details: Some(json!({"firstChangedLine":3})), ..ToolResult::default() };
        assert_eq!(place("edit", json!({"path":"a"}), Some(&edited)), at("/p/a", Some(3)));
        assert_eq!(place("patch", json!({"diff":"--- a/x\n+++ b/x\n"}), None), at("/p/x", None));
        assert_eq!(place("bash", json!({"command":"a","path":"b"}), None), []);
        assert_eq!(place("grep", json!({"pattern":"a"}), None), []);
    }

    #[test]
    fn changes_have_old_and_new_text() {
        let patch = "--- a\n+++ a\n@@ -1,1 +1,1 @@\n-x\n+y\n";
        let edited = ToolResult { details: Some(json!({"patch":patch})), ..ToolResult::default() };
        let diff = |old: Option<&str>, new: &str| ToolContent::Diff {
            path: "/p/a".into(),
            old_text: old.map(str::to_owned),
            new_text: new.into(),
        };
        let given = arguments(json!({"path":"a","content":"new"}));
        let of = |tool: &str, result: &ToolResult, old: Option<OldText>| {
            changes(tool, &given, result, old.as_ref(), &folders())
        };
        assert_eq!(of("edit", &edited, None), Some(vec![diff(Some("x\n"), "y\n")]));
        assert_eq!(of("edit", &ToolResult::default(), None), None);
        assert_eq!(of("write", &ToolResult::default(), Some(OldText(None))), Some(vec![diff(None, "new")]));
        let old = OldText(Some("old".into()));
        assert_eq!(of("write", &ToolResult::default(), Some(old)), Some(vec![diff(Some("old"), "new")]));
        assert_eq!(of("write", &ToolResult::default(), None), None);
        assert_eq!(of("bash", &edited, None), None);
        let new = of_patch("/p/a", "--- /dev/null\n+++ a\n@@ -0,0 +1,1 @@\n+new\n");
        assert_eq!(new, [diff(None, "new\n")]);
    }

    #[test]
    fn outputs_are_code_blocks_that_nothing_in_them_ends() {
        let text = |tool: &str, text: &str| match content(tool, &[ContentBlock::text(text)]).pop() {
            Some(ToolContent::Content { content: Content::Text { text } }) => text,
            other => panic!("{other:?}"),
        };
        assert_eq!(text("bash", "a\n"), "```\na\n```");
        assert_eq!(text("read", "a\n```\nb"), "````\na\n```\nb\n````");
        assert_eq!(text("task", "**a**"), "**a**");
        assert!(content("bash", &[ContentBlock::text("")]).is_empty());
    }

    #[test]
    fn raw_output_does_not_repeat_the_text() {
        let result = |structured: Value, details: Value| ToolResult {
            structured_content: Some(structured),
            details: Some(details),
            ..ToolResult::text("a")
        };
        assert_eq!(raw_output(&result(json!("a"), json!({}))), None);
        assert_eq!(raw_output(&result(json!({"exit_code":0}), json!({}))), Some(json!({"exit_code":0})));
        assert_eq!(raw_output(&result(json!("a"), json!({"x":1}))), Some(json!({"x":1})));
    }
}
