//! The tool `ls`: what is in a folder.

use std::{
    path::{Path, PathBuf},
    sync::LazyLock,
};

use agentd_agent::{Invocation, Tool, ToolError, ToolFuture};
use agentd_protocol::tool::{ToolResult, ToolSpec};
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{
    arguments, blocking, errno,
    home::Home,
    search::{List, Notices, Place},
};

mod order;

const DEFAULT_LIMIT: f64 = 500.0;

/// Names that are looked at between two looks at whether the call was aborted.
const STRIDE: usize = 256;

/// Lists folders.
pub struct LsTool {
    home: Home,
}

impl LsTool {
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

impl Default for LsTool {
    fn default() -> Self {
        Self::new()
    }
}

/// What models are told; the same in all sessions.
static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    ToolSpec {
    name: "ls".to_owned(),
    description: "List what is in a folder, sorted by name, hidden files included; folders end with a slash. At most 500 \
                  entries (limit) or 50KB come back, whichever is less."
        .to_owned(),
    parameters: json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The folder; by default the working directory"},
            "limit": {"type": "number", "description": "How many entries to give at most; default 500"},
        },
    }),
    constrained_sampling: None,
}
});

#[derive(Deserialize)]
struct Arguments {
    path: Option<String>,
    limit: Option<f64>,
}

impl Tool for LsTool {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn snippet(&self) -> Option<&str> {
        Some("List a folder")
    }

    fn execute(&self, invocation: Invocation) -> ToolFuture<'_> {
        let home = self.home.clone();
        Box::pin(async move {
            let arguments: Arguments = arguments::parse(invocation.arguments)?;
            let (cwd, cancel) = (invocation.cwd, invocation.cancel);
            blocking::run(move || ls(&arguments, &cwd, &home, &cancel)).await
        })
    }
}

fn ls(
    arguments: &Arguments,
    cwd: &Path,
    home: &Home,
    cancel: &CancellationToken,
) -> Result<ToolResult, ToolError> {
    let Place { path, about } = Place::find(arguments.path.as_deref(), cwd, home)?;
    if !about.is_dir() {
        return Err(ToolError(format!("Not a directory: {}", path.display())));
    }
    let unreadable = |error: &std::io::Error| {
        ToolError(format!("Cannot read directory: {}", errno::describe(error, "scandir", &path)))
    };
    let mut names = Vec::new();
    for (number, entry) in path.read_dir().map_err(|error| unreadable(&error))?.enumerate() {
        if number % STRIDE == 0 && cancel.is_cancelled() {
            return Err(blocking::aborted());
        }
        let name = entry.map_err(|error| unreadable(&error))?.file_name();
        names.push((order::key(&name.to_string_lossy()), name));
    }
    names.sort_unstable();
    // A conversion from f64 saturates, and what is no number becomes 0.
    let limit = (arguments.limit.unwrap_or(DEFAULT_LIMIT) as usize).max(1);
    let (mut list, mut notices, mut shown) = (List::default(), Notices::default(), 0);
    for (number, (_, name)) in names.iter().enumerate() {
        if number % STRIDE == 0 && cancel.is_cancelled() {
            return Err(blocking::aborted());
        }
        if shown == limit {
            notices.add(format!(
                "{limit} entries limit reached. Use limit={} for more",
                limit.saturating_mul(2)
            ));
            notices.detail("entryLimitReached", limit);
            break;
        }
        // What is gone meanwhile, and links that lead nowhere, are left out.
        let Ok(about) = path.join(name).metadata() else { continue };
        shown += 1;
        list.push(&format!("{}{}", name.to_string_lossy(), if about.is_dir() { "/" } else { "" }));
    }
    if list.is_empty() {
        list.push("(empty directory)");
    }
    Ok(list.into_result(notices))
}

#[cfg(test)]
mod tests;
