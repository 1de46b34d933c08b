//! The tool `ls`: what is in a folder.

use std::sync::LazyLock;

use agentd_agent::ToolError;
use agentd_protocol::tool::{ToolResult, ToolSpec};
use serde::Deserialize;
use serde_json::json;

use crate::{
    blocking, errno,
    search::{Here, List, Notices, Place, SearchKind, SearchTool, limit},
};

mod order;

const DEFAULT_LIMIT: usize = 500;

/// Names that are looked at between two looks at whether the call was aborted.
const STRIDE: usize = 256;

/// Lists folders.
pub type LsTool = SearchTool<Ls>;

/// What `ls` does.
pub enum Ls {}

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
pub struct Arguments {
    path: Option<String>,
    limit: Option<f64>,
}

impl SearchKind for Ls {
    type Arguments = Arguments;

    const SNIPPET: &'static str = "List a folder";

    fn spec() -> &'static ToolSpec {
        &SPEC
    }

    fn search(arguments: &Arguments, here: &Here<'_>) -> Result<ToolResult, ToolError> {
        let Place { path, about } = here.place(arguments.path.as_deref())?;
        if !about.is_dir() {
            return Err(ToolError(format!("Not a directory: {}", path.display())));
        }
        let unreadable = |error: &std::io::Error| {
            ToolError(format!("Cannot read directory: {}", errno::describe(error, "scandir", &path)))
        };
        let mut names = Vec::new();
        for (number, entry) in path.read_dir().map_err(|error| unreadable(&error))?.enumerate() {
            if number % STRIDE == 0 && here.cancel.is_cancelled() {
                return Err(blocking::aborted());
            }
            let name = entry.map_err(|error| unreadable(&error))?.file_name();
            names.push((order::key(&name.to_string_lossy()), name));
        }
        names.sort_unstable();
        let limit = limit(arguments.limit, DEFAULT_LIMIT);
        let (mut list, mut notices, mut shown) = (List::default(), Notices::default(), 0);
        for (number, (_, name)) in names.iter().enumerate() {
            if number % STRIDE == 0 && here.cancel.is_cancelled() {
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
}

#[cfg(test)]
mod tests;
