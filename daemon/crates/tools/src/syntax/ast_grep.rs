//! The tool `ast_grep`.

use std::{
    path::PathBuf,
    sync::{Arc, LazyLock},
    time::Duration,
};

use agentd_agent::{Invocation, Tool, ToolError, ToolFuture};
use agentd_protocol::{
    syntax::AST_GREP_TOOL,
    tool::{ToolResult, ToolSpec},
};
use serde::Deserialize;
use serde_json::json;

use super::{
    program::SyntaxProgram,
    request::{SyntaxContext, Target, properties},
    search::{CodeSearch, FileMatches},
};
use crate::{
    arguments,
    home::Home,
    limits::{GREP_LINE_UNITS, GREP_MATCHES, MAX_SIZE},
    operations::FileHost,
    search::{List, Notices, limit},
    truncate::cut_line,
};

/// The most lines that are shown of one match.
const MATCH_LINES: usize = 12;

/// Finds code by its structure.
pub struct AstGrepTool {
    context: SyntaxContext,
}

impl AstGrepTool {
    /// The tool of one session: with its home directory, for `~`, its files, and the time that the program may take for a request.
    #[must_use]
    pub fn new(
        program: SyntaxProgram,
        home: impl Into<PathBuf>,
        host: Arc<dyn FileHost>,
        timeout: Duration,
    ) -> Self {
        Self { context: SyntaxContext { program, home: Home::new(home), host, timeout } }
    }

    async fn run(&self, invocation: Invocation) -> Result<ToolResult, ToolError> {
        let Invocation { arguments, cwd, cancel, .. } = invocation;
        let AstGrepArguments { target, limit: most } = arguments::parse(arguments)?;
        let most = limit(most, GREP_MATCHES);
        let search =
            CodeSearch { context: &self.context, target: &target, rewrite: None, cwd: &cwd, cancel: &cancel };
        let mut shown = Shown::default();
        let facts = search.run(|file| lines_of(&file, most), |file| Ok(shown.add(file, most))).await?;
        let mut notices = Notices::default();
        if shown.has_more {
            notices.add(format!(
                "{most} matches limit reached. Use limit={} for more, or refine pattern",
                most.saturating_mul(2)
            ));
            notices.detail("matchLimitReached", most);
        }
        facts.add_to(&mut notices);
        notices.detail("matches", shown.matches);
        let mut last = facts.notices();
        if shown.cut_lines {
            notices.detail("linesTruncated", true);
            last.insert(
                0,
                format!("Some lines truncated to {GREP_LINE_UNITS} chars. Use read tool to see full lines"),
            );
        }
        if shown.list.is_empty() {
            shown.list.push(&format!("No matches found in {} files", facts.files));
        }
        Ok(shown.list.into_result_with(notices, last))
    }
}

/// The matches of a file as they are shown.
struct FileLines {
    /// The lines of each match.
    matches: Vec<Vec<String>>,
    cut_lines: bool,
}

/// The lines of a file's matches, at most one match more than `most`. A match on the lines of the one before is not shown again.
fn lines_of(file: &FileMatches, most: usize) -> FileLines {
    let mut found = FileLines { matches: Vec::new(), cut_lines: false };
    let text = file.text.as_str();
    // The number and the beginning of the line at which the count is.
    let (mut line, mut at) = (1, 0);
    let mut shown_to = 0;
    for one in &file.matches {
        if found.matches.len() > most {
            break;
        }
        let (Some(before), Some(code)) = (text.get(at..one.start), text.get(one.start..one.end)) else {
            continue;
        };
        line += memchr::memchr_iter(b'\n', before.as_bytes()).count();
        at = one.start;
        let last = line + memchr::memchr_iter(b'\n', code.trim_end_matches('\n').as_bytes()).count();
        if last <= shown_to {
            continue;
        }
        let begin = memchr::memrchr(b'\n', &text.as_bytes()[..one.start]).map_or(0, |feed| feed + 1);
        let mut lines = Vec::new();
        for (offset, whole) in text[begin..].split('\n').take(last - line + 1).enumerate() {
            if offset == MATCH_LINES {
                lines.push(format!(
                    "{}-{}- … {} more lines",
                    file.file.shown,
                    line + offset,
                    last + 1 - line - offset
                ));
                break;
            }
            let (cut, is_cut) = cut_line(whole);
            found.cut_lines |= is_cut;
            let mark = if offset == 0 { ':' } else { '-' };
            let end = if is_cut { "... [truncated]" } else { "" };
            lines.push(format!("{}{mark}{}{mark} {cut}{end}", file.file.shown, line + offset));
        }
        shown_to = last;
        found.matches.push(lines);
    }
    found
}

#[derive(Default)]
struct Shown {
    list: List,
    matches: usize,
    has_more: bool,
    cut_lines: bool,
}

impl Shown {
    /// Adds the matches of a file; whether more files are wanted.
    fn add(&mut self, file: FileLines, most: usize) -> bool {
        for lines in file.matches {
            if self.matches == most {
                self.has_more = true;
                return false;
            }
            self.matches += 1;
            lines.iter().for_each(|line| self.list.push(line));
        }
        self.cut_lines |= file.cut_lines;
        true
    }
}

/// The tool's description for models; the same in all sessions.
static SPEC: LazyLock<Arc<ToolSpec>> = LazyLock::new(|| {
    let mut properties = properties();
    properties.insert(
        "limit".to_owned(),
        json!({"type": "number", "description": format!("How many matches to give at most; default {GREP_MATCHES}")}),
    );
    Arc::new(ToolSpec {
        name: AST_GREP_TOOL.to_owned(),
        description: format!(
            "Find code by its structure, whatever its spaces, line breaks and comments are: calls, definitions, statements. Patterns are \
             those of ast-grep. Files that .gitignore names are left out. Matches come back with path and line, at most {GREP_MATCHES} \
             (limit) or {MAX_SIZE}. For texts use grep."
        ),
        parameters: json!({"type": "object", "properties": properties, "required": ["pattern"]}),
        constrained_sampling: None,
    })
});

#[derive(Deserialize)]
struct AstGrepArguments {
    #[serde(flatten)]
    target: Target,
    limit: Option<f64>,
}

impl Tool for AstGrepTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &SPEC
    }

    fn snippet(&self) -> Option<&str> {
        Some("Find code by its structure")
    }

    fn execute(&self, invocation: Invocation) -> ToolFuture<'_> {
        Box::pin(self.run(invocation))
    }
}

#[cfg(test)]
mod tests {
    use agentd_syntax::{Match, by_name};

    use super::*;
    use crate::syntax::read::CodeFile;

    fn shown(text: &str, matches: &[(usize, usize)], most: usize) -> Vec<Vec<String>> {
        let file =
            CodeFile { path: "/w/a.rs".into(), shown: "a.rs".into(), language: by_name("rust").unwrap() };
        let matches = matches
            .iter()
            .map(|(start, end)| Match { start: *start, end: *end, replacement: None })
            .collect();
        lines_of(&FileMatches { file, text: text.to_owned(), matches }, most).matches
    }

    #[test]
    fn matches_are_whole_lines_with_their_numbers() {
        let text = "one\ntwo(a,\n  b)\nthree";
        assert_eq!(shown(text, &[(0, 3)], 9), [["a.rs:1: one"]]);
        assert_eq!(shown(text, &[(4, 15)], 9), [["a.rs:2: two(a,", "a.rs-3-   b)"]]);
        assert_eq!(shown(text, &[(16, 21)], 9), [["a.rs:4: three"]]);
        // One within another is on its lines.
        assert_eq!(shown(text, &[(4, 15), (8, 9), (16, 18)], 9).len(), 2);
        assert_eq!(shown(text, &[(0, 1), (4, 5), (16, 17)], 1).len(), 2, "one more than wanted");
        let long = "x\n".repeat(40);
        let lines = shown(&long, &[(0, 80)], 9).remove(0);
        assert_eq!((lines.len(), lines[12].as_str()), (13, "a.rs-13- … 28 more lines"));
        let wide = format!("{}é", "y".repeat(600));
        assert!(shown(&wide, &[(0, 600)], 9)[0][0].ends_with("... [truncated]"));
    }
}
