//! The result of a call of `patch`. Pure.

use agentd_protocol::{text_bounds, tool::ToolResult};
use serde_json::{Map, Value, json};

use super::{parse::DiffTarget, prepare::PreparedFile};
use crate::edit::show;

/// The longest diff and the longest patches for clients, in bytes: 1 MiB each.
const MAX_SHOWN: usize = 1 << 20;

/// The bytes after which no more files are listed: 8 KiB.
const MAX_LISTED: usize = 8 << 10;

/// The result of a call that has changed these files.
pub(super) fn result(files: &[PreparedFile]) -> ToolResult {
    let hunks: usize = files.iter().map(|file| file.hunks).sum();
    let mut text = match files {
        [file] => format!("Successfully {}.", done(file)),
        _ => format!("Successfully applied {hunks} hunk(s) to {} files:", files.len()),
    };
    let (mut diff, mut patches, mut left) = (String::new(), Vec::new(), MAX_SHOWN);
    let mut details = Map::new();
    for file in files {
        let shown = show(&file.shown, &file.old, &file.new, &file.changes);
        if files.len() > 1 {
            if text.len() < MAX_LISTED {
                text.push_str(&format!("\n{}", done(file)));
            }
            if diff.len() < MAX_SHOWN {
                diff.push_str(&format!("{}\n{}\n", file.shown, shown.diff));
            }
        } else {
            diff = shown.diff;
            if let Some(patch) = &shown.patch {
                details.insert("patch".to_owned(), patch.as_str().into());
            }
            if let Some(line) = shown.first_changed_line {
                details.insert("firstChangedLine".to_owned(), line.into());
            }
        }
        let patch = shown.patch.filter(|patch| patch.len() <= left);
        left -= patch.as_ref().map_or(0, String::len);
        let mut one = json!({"path": file.path.display().to_string(), "hunks": file.hunks, "patch": patch});
        if let Some(from) = &file.from {
            one["from"] = from.display().to_string().into();
        }
        if let DiffTarget::Remove(_) = file.target {
            one["removed"] = true.into();
        }
        patches.push(one);
    }
    if text.len() >= MAX_LISTED {
        text.push_str("\n… and other files");
    }
    if files.iter().any(|file| file.sets_mode) {
        text.push_str("\n[The modes of files are as before; use bash to change them]");
    }
    details.insert("diff".to_owned(), text_bounds::head(diff.trim_end_matches('\n'), MAX_SHOWN).into());
    details.insert("files".to_owned(), Value::Array(patches));
    ToolResult { details: Some(Value::Object(details)), ..ToolResult::text(text) }
}

/// What was done to a file.
fn done(file: &PreparedFile) -> String {
    let PreparedFile { hunks, target, .. } = file;
    match target {
        DiffTarget::Change(name) => format!("applied {hunks} hunk(s) to {name}"),
        DiffTarget::Create(name) => format!("created {name}"),
        DiffTarget::Remove(name) => format!("removed {name}"),
        DiffTarget::Rename { from, to } if *hunks == 0 => format!("renamed {from} to {to}"),
        DiffTarget::Rename { from, to } => format!("renamed {from} to {to} and applied {hunks} hunk(s)"),
    }
}
