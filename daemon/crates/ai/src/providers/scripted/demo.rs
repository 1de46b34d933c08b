//! The built-in demo: no language model and no network, but the real loop with the real tools. It lists the folder, reads one file and
//! reports what it saw, always the same for the same folder.

use agentd_protocol::{
    message::{StopReason, ToolResultMessage},
    prompt_text::typed_words,
};
use serde_json::{Value, json};

use super::facts::{Facts, result_text};
use crate::{BlockKind, BlockSeal, Delta, Request};

/// Lists the folder, one name on each line, folders with a slash.
const LIST_COMMAND: &str = "ls -1Ap";

/// The lines of the file that are read.
const READ_LINES: u64 = 40;

/// The next action of the demo.
enum Move {
    /// Explains why, then calls a tool.
    Call { why: String, tool: &'static str, arguments: Value },
    /// Reports what it saw.
    Answer(String),
}

/// All deltas of the demo's answer to `request`.
pub(super) fn answer(request: &Request) -> Vec<Delta> {
    let facts = Facts::of(request);
    let mut deltas = vec![Delta::Started];
    let (text, call) = match next(&facts) {
        Move::Answer(text) => (text, None),
        Move::Call { why, tool, arguments } => (why, Some((tool, arguments))),
    };
    let mut add = |index: usize, kind: BlockKind, pieces: Vec<String>| {
        deltas.push(Delta::Open { index, kind });
        deltas.extend(pieces.into_iter().map(|delta| Delta::Extend { index, delta }));
        deltas.push(Delta::Seal { index, seal: BlockSeal::default() });
    };
    add(0, BlockKind::Text, text.split_inclusive(' ').map(str::to_owned).collect());
    let stop_reason = match call {
        Some((tool, arguments)) => {
            let id = format!("demo_{}", facts.calls().count() + 1);
            add(1, BlockKind::ToolCall { id, name: tool.into() }, vec![arguments.to_string()]);
            StopReason::ToolUse
        }
        None => StopReason::Stop,
    };
    deltas.push(Delta::Done { stop_reason, raw_stop_reason: None });
    deltas
}

/// The next action after the tool results since the prompt: list, read, answer.
fn next(facts: &Facts<'_>) -> Move {
    let mut results = facts.results();
    let Some(listed) = results.next() else {
        return match list(facts) {
            Some(call) => call,
            None => Move::Answer(without_tools(&facts.prompt())),
        };
    };
    let listing = (!listed.is_error).then(|| Listing::parse(&result_text(listed)));
    let Some(read) = results.next() else {
        return match listing.as_ref().and_then(|listing| read(facts, listing)) {
            Some(call) => call,
            None => Move::Answer(seen(facts, listed, listing.as_ref(), None)),
        };
    };
    Move::Answer(seen(facts, listed, listing.as_ref(), Some(read)))
}

fn list(facts: &Facts<'_>) -> Option<Move> {
    let (tool, arguments) = if facts.offers("bash") {
        ("bash", json!({ "command": LIST_COMMAND }))
    } else if facts.offers("ls") {
        ("ls", json!({ "path": "." }))
    } else {
        return None;
    };
    let why = "I am the built-in demo model of agentd. First I look at what is in this folder.";
    Some(Move::Call { why: why.into(), tool, arguments })
}

fn read(facts: &Facts<'_>, listing: &Listing) -> Option<Move> {
    if !facts.offers("read") {
        return None;
    }
    let was_read = |name: &str| {
        facts.calls().any(|call| call.name == "read" && call.arguments.get("path") == Some(&json!(name)))
    };
    let name = listing.promising().find(|name| !was_read(name)).or_else(|| listing.promising().next())?;
    let why = format!("Now I read the beginning of {name}.");
    Some(Move::Call { why, tool: "read", arguments: json!({ "path": name, "limit": READ_LINES }) })
}

/// The longest quote of the question or of a line, in characters.
const MAX_QUOTE: usize = 120;

/// The most names that are listed.
const MAX_NAMES: usize = 8;

/// The answer without any tools.
pub(super) fn without_tools(question: &str) -> String {
    format!(
        "{} No tool is on offer that would let me look at this folder, so there is nothing that I can tell about it. {}",
        introduction(question),
        ADVICE
    )
}

/// The answer after listing and reading.
pub(super) fn seen(
    facts: &Facts<'_>,
    listed: &ToolResultMessage,
    listing: Option<&Listing>,
    read: Option<&ToolResultMessage>,
) -> String {
    let folder = match listing {
        Some(listing) => describe_folder(listing),
        None => format!(
            "I could not list this folder: the tool {} failed with \"{}\".",
            listed.tool_name,
            first_line(listed)
        ),
    };
    let file = match read {
        Some(read) => describe_file(facts, read),
        None if listing.is_none() => String::new(),
        None if facts.offers("read") => " None of the files looked like text worth reading.".into(),
        None => " The tool read is not on offer, so I read no file.".into(),
    };
    format!("{} {folder}{file} {ADVICE}", introduction(&facts.prompt()))
}

const ADVICE: &str = "Everything above came from real tool calls, made and recorded as with any model; for answers to your \
     questions, choose a real model.";

fn introduction(question: &str) -> String {
    let role = "I am the built-in demo model of agentd: no language model, only a few fixed rules.";
    match quoted(&typed_words(question)) {
        question if question.is_empty() => role.to_owned(),
        question => {
            format!("{role} You asked: \"{question}\". I cannot answer that, but I can say what I see.")
        }
    }
}

fn describe_folder(listing: &Listing) -> String {
    let (files, folders) = (listing.files.len(), listing.folders.len());
    if files + folders == 0 {
        return "This folder is empty.".into();
    }
    let all: Vec<&str> = listing.files.iter().chain(&listing.folders).map(String::as_str).collect();
    let more = all.len().saturating_sub(MAX_NAMES);
    let names = all[..all.len() - more].join(", ");
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("This folder holds {} and {}: {names}{rest}.", counted(files, "file"), counted(folders, "folder"))
}

fn describe_file(facts: &Facts<'_>, read: &ToolResultMessage) -> String {
    let path = facts.call_of(read).and_then(|call| call.arguments.get("path")?.as_str());
    let path = path.unwrap_or("a file");
    if read.is_error {
        return format!(" I tried to read {path}, but the tool failed with \"{}\".", first_line(read));
    }
    let text = result_text(read);
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let heading = lines.clone().find_map(|line| {
        let title = line.trim_start_matches('#');
        (title.len() < line.len() && title.starts_with(' ')).then(|| title.trim())
    });
    match (heading.filter(|_| path.to_ascii_lowercase().ends_with(".md")), lines.next()) {
        (Some(heading), _) => format!(" I read {path}; its first heading is \"{}\".", quoted(heading)),
        (None, Some(line)) => format!(" I read {path}; its first line is \"{}\".", quoted(line)),
        (None, None) => format!(" I read {path}; it is empty."),
    }
}

fn counted(count: usize, what: &str) -> String {
    match count {
        0 => format!("no {what}s"),
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    }
}

fn first_line(result: &ToolResultMessage) -> String {
    let text = result_text(result);
    quoted(text.lines().find(|line| !line.trim().is_empty()).unwrap_or("no message"))
}

/// The first part of a text as one line.
fn quoted(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_QUOTE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Names of files that tell most about a project, best first; compared without case.
const TELLING: &[&str] = &[
    "readme.md",
    "readme",
    "readme.txt",
    "readme.rst",
    "agents.md",
    "claude.md",
    "cargo.toml",
    "package.json",
    "pyproject.toml",
    "go.mod",
    "pom.xml",
    "makefile",
    "main.rs",
    "main.py",
    "main.go",
    "main.c",
    "index.js",
    "index.ts",
    "index.html",
];

/// Endings of text files.
const TEXT_ENDINGS: &[&str] = &[
    ".md", ".txt", ".rst", ".toml", ".json", ".yaml", ".yml", ".rs", ".py", ".js", ".ts", ".go", ".c", ".h",
    ".cpp", ".java", ".rb", ".sh", ".html", ".css", ".csv",
];

/// The content of a folder.
pub(super) struct Listing {
    pub(super) files: Vec<String>,
    pub(super) folders: Vec<String>,
}

impl Listing {
    /// Reads a listing: one name on each line, folders with a slash at the end. Text after a blank line is a remark of the tool.
    pub(super) fn parse(text: &str) -> Self {
        let lines = text.lines().take_while(|line| !line.trim().is_empty());
        let names = lines.filter(|line| !line.starts_with('(') || !line.ends_with(')'));
        let (folders, files): (Vec<&str>, Vec<&str>) = names.partition(|name| name.ends_with('/'));
        Self {
            files: files.into_iter().map(str::to_owned).collect(),
            folders: folders.into_iter().map(str::to_owned).collect(),
        }
    }

    /// Files worth reading, best first.
    pub(super) fn promising(&self) -> impl Iterator<Item = &str> {
        let named = TELLING
            .iter()
            .filter_map(|telling| self.files.iter().find(|name| name.eq_ignore_ascii_case(telling)));
        let is_text = |name: &&String| {
            let lower = name.to_ascii_lowercase();
            !TELLING.contains(&lower.as_str()) && TEXT_ENDINGS.iter().any(|ending| lower.ends_with(ending))
        };
        named.chain(self.files.iter().filter(is_text)).map(String::as_str)
    }
}

#[cfg(test)]
mod demo_listing_tests {
    use super::*;

    #[test]
    fn files_and_folders_are_told_apart() {
        let listing = Listing::parse("b.rs\nsrc/\nReadme.md\na.bin\n.git/\n\n[2 more lines]");
        assert_eq!((listing.files.len(), listing.folders.len()), (3, 2));
        assert_eq!(listing.promising().collect::<Vec<_>>(), ["Readme.md", "b.rs"]);
        let empty = Listing::parse("(no output)");
        assert!(empty.files.is_empty() && empty.folders.is_empty());
    }
}

#[cfg(test)]
mod tests;
