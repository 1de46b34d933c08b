//! The tool `ls`: lists a folder.

use std::{
    ffi::OsString,
    path::Path,
    sync::{Arc, LazyLock},
};

use agentd_agent::ToolError;
use agentd_protocol::tool::{ToolResult, ToolSpec};
use serde::Deserialize;
use serde_json::json;

use crate::{
    blocking, errno,
    limits::{LS_ENTRIES, MAX_SIZE},
    operations::FileKind,
    search::{List, Notices, SearchCall, SearchKind, SearchTool, limit},
};

mod order;

/// Names processed between two checks whether the call was aborted.
const STRIDE: usize = 256;

/// Lists folders.
pub type LsTool = SearchTool<Ls>;

/// The marker type of [`LsTool`].
pub enum Ls {}

/// The tool's description for models; the same in all sessions.
static SPEC: LazyLock<Arc<ToolSpec>> = LazyLock::new(|| {
    Arc::new(ToolSpec {
        name: "ls".to_owned(),
        description: format!(
            "List what is in a folder, sorted by name, hidden files included; folders end with a slash. At most {LS_ENTRIES} \
         entries (limit) or {MAX_SIZE} come back, whichever is less."
        ),
        parameters: json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "The folder; by default the working directory"},
                "limit": {"type": "number", "description": format!("How many entries to give at most; default {LS_ENTRIES}")},
            },
        }),
        constrained_sampling: None,
    })
});

#[derive(Deserialize)]
pub struct LsArguments {
    path: Option<String>,
    limit: Option<f64>,
}

impl SearchKind for Ls {
    type Arguments = LsArguments;

    const SNIPPET: &'static str = "List a folder";

    fn spec() -> &'static Arc<ToolSpec> {
        &SPEC
    }

    fn search(arguments: &LsArguments, here: &SearchCall<'_>) -> Result<ToolResult, ToolError> {
        let place = here.place(arguments.path.as_deref())?;
        let path = &place.path;
        if !place.is_folder() {
            return Err(ToolError(format!("Not a directory: {}", path.display())));
        }
        let names = if here.files.is_local() { names_here(path, here)? } else { names_there(path, here)? };
        let mut names: Vec<_> =
            names.into_iter().map(|name| (order::key(&name.name.to_string_lossy()), name)).collect();
        // Names that differ only in case are ordered by their bytes.
        names.sort_unstable_by(|(key, one), (other, two)| (key, &one.name).cmp(&(other, &two.name)));
        let limit = limit(arguments.limit, LS_ENTRIES);
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
            // Skip names that are gone meanwhile, and dangling links.
            let Some(is_folder) = name.is_folder(path) else { continue };
            shown += 1;
            list.push(&format!("{}{}", name.name.to_string_lossy(), if is_folder { "/" } else { "" }));
        }
        if list.is_empty() {
            list.push("(empty directory)");
        }
        Ok(list.into_result(notices))
    }
}

/// An entry of the folder.
struct Name {
    name: OsString,
    /// The kind of its target; `None` when it was not determined yet.
    target: Option<Option<FileKind>>,
}

impl Name {
    /// Whether it is a folder, links followed; `None` for a dangling link.
    fn is_folder(&self, of: &Path) -> Option<bool> {
        match self.target {
            Some(target) => target.map(|kind| kind == FileKind::Folder),
            None => of.join(&self.name).metadata().ok().map(|metadata| metadata.is_dir()),
        }
    }
}

/// The entries of a folder on this machine.
fn names_here(path: &Path, here: &SearchCall<'_>) -> Result<Vec<Name>, ToolError> {
    let mut names = Vec::new();
    for (number, entry) in path.read_dir().map_err(|error| unreadable(path, &error))?.enumerate() {
        if number % STRIDE == 0 && here.cancel.is_cancelled() {
            return Err(blocking::aborted());
        }
        let name = entry.map_err(|error| unreadable(path, &error))?.file_name();
        names.push(Name { name, target: None });
    }
    Ok(names)
}

/// The entries of a folder on another host, where asking for each name would be slow.
fn names_there(path: &Path, here: &SearchCall<'_>) -> Result<Vec<Name>, ToolError> {
    let asked = here.files.list(&[path.to_owned()]);
    let list = asked.and_then(|mut lists| lists.pop().unwrap_or_else(|| Ok(Vec::new())));
    let list = list.map_err(|error| unreadable(path, &error))?;
    Ok(list.into_iter().map(|entry| Name { name: entry.name, target: Some(entry.target) }).collect())
}

fn unreadable(path: &Path, error: &std::io::Error) -> ToolError {
    ToolError(format!("Cannot read directory: {}", errno::describe(error, "scandir", path)))
}

#[cfg(test)]
mod tests;
