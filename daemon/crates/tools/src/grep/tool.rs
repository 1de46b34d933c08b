//! The `grep` tool: its description and its calls.

use std::{
    path::Path,
    sync::{Arc, LazyLock, atomic::AtomicBool},
};

use agentd_agent::ToolError;
use agentd_protocol::tool::{ToolResult, ToolSpec};
use ignore::overrides::{Override, OverrideBuilder};
use serde::Deserialize;
use serde_json::json;

use super::{
    far::{search_far_file, search_far_tree},
    file::{Engine, Found, Search, Stop, compile},
    tree::{Wanted, search_tree},
};
use crate::{
    limits::{GREP_LINE_UNITS, GREP_MATCHES, MAX_SIZE},
    search::{Notices, SearchCall, SearchKind, SearchTool, UnusedFiles, WalkRules, limit},
};

/// The most lines shown around a match: they are kept in memory.
const MOST_CONTEXT: usize = 1000;

/// Searches files for lines that match a regular expression.
pub type GrepTool = SearchTool<Grep>;

/// The marker type of [`GrepTool`].
pub enum Grep {}

/// The tool's description for models; the same in all sessions.
static SPEC: LazyLock<Arc<ToolSpec>> = LazyLock::new(|| {
    Arc::new(ToolSpec {
        name: "grep".to_owned(),
        description: format!(
            "Search file contents for a pattern. Gives matching lines with file and line number. Files that \
         .gitignore names are left out, hidden files are searched. At most {GREP_MATCHES} matches (limit) or {MAX_SIZE} \
         come back, whichever is less; long lines are cut to {GREP_LINE_UNITS} characters."
        ),
        parameters: json!({
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "description": "The regular expression (Rust syntax), or the text with literal"},
                "path": {"type": "string", "description": "The folder or file to search; by default the working directory"},
                "glob": {"type": "string", "description": "Only files that fit this glob, such as '*.ts' or 'src/**/*.rs'; with a leading ! all others"},
                "ignoreCase": {"type": "boolean", "description": "Whether upper and lower case are the same; default false"},
                "literal": {"type": "boolean", "description": "Whether the pattern is plain text; default false"},
                "context": {"type": "number", "description": "Lines to show before and after each match; default 0"},
                "limit": {"type": "number", "description": format!("How many matches to give at most; default {GREP_MATCHES}")},
            },
            "required": ["pattern"],
        }),
        constrained_sampling: None,
    })
});

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GrepArguments {
    pattern: String,
    path: Option<String>,
    glob: Option<String>,
    #[serde(default)]
    ignore_case: bool,
    #[serde(default)]
    literal: bool,
    context: Option<f64>,
    limit: Option<f64>,
}

impl SearchKind for Grep {
    type Arguments = GrepArguments;

    const SNIPPET: &'static str = "Search file contents; respects .gitignore";

    fn spec() -> &'static Arc<ToolSpec> {
        &SPEC
    }

    fn search(arguments: &GrepArguments, here: &SearchCall<'_>) -> Result<ToolResult, ToolError> {
        let place = here.place(arguments.path.as_deref())?;
        let matcher = compile(&arguments.pattern, arguments.ignore_case, arguments.literal)?;
        let limit = limit(arguments.limit, GREP_MATCHES);
        // The conversion from f64 saturates, and NaN becomes 0.
        let context = (arguments.context.unwrap_or_default() as usize).min(MOST_CONTEXT);
        let (files, enough) = (here.files, AtomicBool::new(false));
        let unused = UnusedFiles::default();
        let search =
            Search { matcher: &matcher, context, stop: Stop { cancel: here.cancel, enough: &enough } };
        let found = if place.is_folder() {
            let root = &files.root_of_walk(&place.path);
            let overrides = overrides(arguments.glob.as_deref(), root)?;
            let rules = WalkRules {
                root,
                own_ignore_file: ".rgignore",
                require_git: true,
                overrides,
                unused: &unused,
            };
            if files.is_local() {
                search_tree(rules, &Wanted { matcher: &matcher, context, limit }, here.cancel)?
            } else {
                search_far_tree(files, rules, &search, limit)?
            }
        } else if place.is_file() {
            let name = place.path.file_name().unwrap_or_default().to_string_lossy();
            if files.is_local() {
                search.named_file(&mut Engine::new(context, true), (&place.path, &name), limit)?
            } else {
                search_far_file(files, (&place.path, &name), &search, limit)?
            }
        } else {
            let path = place.path.display();
            return Err(ToolError(format!("Cannot search {path}: it is neither a file nor a folder")));
        };
        Ok(show(found, limit, unused.notice()))
    }
}

/// The globs that select files, in ripgrep's form.
fn overrides(glob: Option<&str>, root: &Path) -> Result<Override, ToolError> {
    let Some(glob) = glob.filter(|glob| !glob.is_empty()) else { return Ok(Override::empty()) };
    let glob = glob.strip_prefix("./").unwrap_or(glob);
    let mut builder = OverrideBuilder::new(root);
    let built = builder.add(glob).and_then(|builder| builder.build());
    built.map_err(|error| ToolError(error.to_string()))
}

fn show(found: Found, limit: usize, unused: Option<String>) -> ToolResult {
    let mut notices = Notices::default();
    if found.has_more {
        notices.add(format!(
            "{limit} matches limit reached. Use limit={} for more, or refine pattern",
            limit.saturating_mul(2)
        ));
        notices.detail("matchLimitReached", limit);
    }
    if found.cut_lines {
        notices.detail("linesTruncated", true);
    }
    let mut list = found.list;
    if list.is_empty() {
        list.push("No matches found");
    }
    let last = [
        found.cut_lines.then(|| {
            format!("Some lines truncated to {GREP_LINE_UNITS} chars. Use read tool to see full lines")
        }),
        (found.unreadable > 0).then(|| match found.unreadable {
            1 => "1 file or folder could not be read".to_owned(),
            number => format!("{number} files or folders could not be read"),
        }),
        unused,
    ];
    list.into_result_with(notices, last.into_iter().flatten())
}

#[cfg(test)]
mod tests;
