//! What the model sees of `find`.

use std::{
    path::{Path, PathBuf},
    sync::LazyLock,
};

use agentd_agent::{Invocation, Tool, ToolError, ToolFuture};
use agentd_protocol::tool::{ToolResult, ToolSpec};
use ignore::overrides::Override;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::pattern::Pattern;
use crate::{
    arguments, blocking,
    home::Home,
    search::{List, Notices, Place, Walk, WalkRules},
};

const DEFAULT_LIMIT: f64 = 1000.0;

/// Looks for files and folders by name.
pub struct FindTool {
    home: Home,
}

impl FindTool {
    /// The tool, with the home directory of the process for `~`.
    #[must_use]
    pub fn new() -> Self {
        Self { home: Home::default() }
    }

    /// Sets the session's home directory: what `~` means in paths.
    #[must_use]
    pub fn with_home(mut self, home: impl Into<PathBuf>) -> Self {
        self.home = Home::new(home);
        self
    }
}

impl Default for FindTool {
    fn default() -> Self {
        Self::new()
    }
}

/// What models are told; the same in all sessions.
static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    ToolSpec {
    name: "find".to_owned(),
    description: "Find files and folders by a glob. Gives paths relative to the folder that is searched. What .gitignore \
                  names is left out, hidden files are not. At most 1000 results (limit) or 50KB come back, whichever is \
                  less."
        .to_owned(),
    parameters: json!({
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "description": "The glob, such as '*.ts', '**/*.json' or 'src/**/*.spec.ts'"},
            "path": {"type": "string", "description": "The folder to search; by default the working directory"},
            "limit": {"type": "number", "description": "How many results to give at most; default 1000"},
        },
        "required": ["pattern"],
    }),
    constrained_sampling: None,
}
});

#[derive(Deserialize)]
struct Arguments {
    pattern: String,
    path: Option<String>,
    limit: Option<f64>,
}

impl Tool for FindTool {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn snippet(&self) -> Option<&str> {
        Some("Find files by a glob; respects .gitignore")
    }

    fn execute(&self, invocation: Invocation) -> ToolFuture<'_> {
        let home = self.home.clone();
        Box::pin(async move {
            let arguments: Arguments = arguments::parse(invocation.arguments)?;
            let (cwd, cancel) = (invocation.cwd, invocation.cancel);
            blocking::run(move || find(&arguments, &cwd, &home, &cancel)).await
        })
    }
}

fn find(
    arguments: &Arguments,
    cwd: &Path,
    home: &Home,
    cancel: &CancellationToken,
) -> Result<ToolResult, ToolError> {
    let Place { path: root, about } = Place::find(arguments.path.as_deref(), cwd, home)?;
    if !about.is_dir() {
        return Err(ToolError(format!("Not a directory: {}", root.display())));
    }
    let pattern = Pattern::new(&arguments.pattern)?;
    // A conversion from f64 saturates, and what is no number becomes 0.
    let limit = (arguments.limit.unwrap_or(DEFAULT_LIMIT) as usize).max(1);
    let rules = WalkRules {
        root: &root,
        own_ignore_file: ".fdignore",
        require_git: is_in_repository(&root),
        overrides: Override::empty(),
    };
    let (mut list, mut notices) = (List::default(), Notices::default());
    let (mut results, mut unreadable) = (0, 0);
    for entry in Walk::new(rules) {
        if cancel.is_cancelled() {
            return Err(blocking::aborted());
        }
        let Ok(entry) = entry else {
            unreadable += 1;
            continue;
        };
        if entry.depth() == 0 || !pattern.fits(entry.path()) {
            continue;
        }
        if results == limit {
            notices.add(format!(
                "{limit} results limit reached. Use limit={} for more, or refine pattern",
                limit.saturating_mul(2)
            ));
            notices.detail("resultLimitReached", limit);
            break;
        }
        results += 1;
        let shown = entry.path().strip_prefix(&root).unwrap_or(entry.path()).to_string_lossy();
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        list.push(&format!("{shown}{}", if is_folder { "/" } else { "" }));
    }
    if list.is_empty() {
        list.push("No files found matching pattern");
    }
    let last = (unreadable > 0).then(|| match unreadable {
        1 => "1 folder could not be read".to_owned(),
        number => format!("{number} folders could not be read"),
    });
    Ok(list.into_result_with(notices, last))
}

/// Whether a folder belongs to a git repository: only there `.gitignore` files end at its root.
fn is_in_repository(folder: &Path) -> bool {
    folder.ancestors().any(|folder| folder.join(".git").exists())
}

#[cfg(test)]
mod tests;
