//! Shows a change as a unified diff.

use std::{
    io,
    path::Path,
    time::{Duration, Instant},
};

use agentd_protocol::checkpoints::{ChangeKind, FileDiff};
use similar::{ChangeTag, TextDiff};

use crate::{
    state::{Change, FileState},
    store::Store,
};

/// The longest file whose lines are compared, in bytes.
const MAX_SHOWN: u64 = 1 << 20;

/// When the diffs of one answer have more bytes, those of the files that follow are left out.
const MAX_ALL: usize = 16 << 20;

/// Time for finding the shortest diff; after it, a longer one is shown.
const DEADLINE: Duration = Duration::from_millis(500);

/// Changes as they are shown. Those for which no room is left have a sentence instead.
pub(crate) fn show_all(
    changes: impl Iterator<Item = Change>,
    root: &Path,
    store: &Store,
) -> io::Result<Vec<FileDiff>> {
    let mut bytes = 0;
    let show = |change: Change| {
        if bytes > MAX_ALL {
            return Ok(left_out(&change, root));
        }
        let shown = show(&change, root, store)?;
        bytes += shown.diff.len();
        Ok(shown)
    };
    changes.map(show).collect()
}

fn left_out(change: &Change, root: &Path) -> FileDiff {
    let path = shown_path(change, root);
    let diff =
        format!("{}: left out, since the diffs before it are long; ask for it by its name\n", in_line(&path));
    FileDiff { path, change: change.kind(), added: 0, removed: 0, diff }
}

fn shown_path(change: &Change, root: &Path) -> String {
    match change.path.0.strip_prefix(root) {
        Ok(itself) if itself.as_os_str().is_empty() => ".".into(),
        Ok(below) => below.display().to_string(),
        Err(_) => change.path.0.display().to_string(),
    }
}

/// A path in a line of a diff: one with control characters is written with escapes, so that it stays in its line.
fn in_line(path: &str) -> String {
    if path.contains(char::is_control) { path.escape_debug().to_string() } else { path.to_owned() }
}

/// A change as it is shown: paths below `root` are relative to it.
fn show(change: &Change, root: &Path, store: &Store) -> io::Result<FileDiff> {
    let path = shown_path(change, root);
    let kind = change.kind();
    let shown = in_line(&path);
    let name = |side: &str, state: &FileState| match state {
        FileState::Absent => "/dev/null".to_owned(),
        _ if path.starts_with('/') => shown.clone(),
        _ => format!("{side}/{shown}"),
    };
    let modes = modes(change, &shown);
    let (before, after) = (text(&change.before, store)?, text(&change.after, store)?);
    let (before, after) = match (before.lines(), after.lines()) {
        (Some(before), Some(after)) => (before, after),
        _ => {
            let what = match kind {
                ChangeKind::Created => format!("{shown}: {} created\n", after.what()),
                ChangeKind::Deleted => format!("{shown}: {} deleted\n", before.what()),
                // The line about the modes says all.
                ChangeKind::Modified
                    if matches!(change.after, FileState::Folder { .. }) && !modes.is_empty() =>
                {
                    String::new()
                }
                ChangeKind::Modified => format!("{shown}: {} changed to {}\n", before.what(), after.what()),
            };
            return Ok(FileDiff { path, change: kind, added: 0, removed: 0, diff: modes + &what });
        }
    };
    let lines = TextDiff::configure().deadline(Instant::now() + DEADLINE).diff_lines(before, after);
    let count = |tag| lines.iter_all_changes().filter(|change| change.tag() == tag).count() as u64;
    let mut diff = modes;
    let (from, to) = (name("a", &change.before), name("b", &change.after));
    let unified = lines.unified_diff().header(&from, &to).to_string();
    if unified.is_empty() && kind != ChangeKind::Modified {
        diff.push_str(&format!("--- {from}\n+++ {to}\n"));
    }
    diff.push_str(&unified);
    Ok(FileDiff {
        added: count(ChangeTag::Insert),
        removed: count(ChangeTag::Delete),
        path,
        change: kind,
        diff,
    })
}

/// The lines in the style of git about a changed mode.
fn modes(change: &Change, path: &str) -> String {
    match (&change.before, &change.after) {
        (
            FileState::File { mode: before, .. } | FileState::Folder { mode: before },
            FileState::File { mode: after, .. } | FileState::Folder { mode: after },
        ) if before != after => {
            format!("mode of {path}: {before:04o} -> {after:04o}\n")
        }
        _ => String::new(),
    }
}

enum Text {
    /// Nothing is there.
    Nothing,
    Lines(String),
    /// What it is, where it has no lines.
    Plain(&'static str),
}

impl Text {
    /// The lines; none where there is nothing, so that it can be compared with lines.
    fn lines(&self) -> Option<&str> {
        match self {
            Self::Nothing => Some(""),
            Self::Lines(lines) => Some(lines),
            Self::Plain(_) => None,
        }
    }

    fn what(&self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Lines(_) => "text",
            Self::Plain(what) => what,
        }
    }
}

fn text(state: &FileState, store: &Store) -> io::Result<Text> {
    Ok(match state {
        FileState::Absent => Text::Nothing,
        FileState::File { len, .. } if *len > MAX_SHOWN => Text::Plain("file too long to show"),
        FileState::File { id, .. } => match String::from_utf8(store.get(*id)?) {
            Ok(text) if !text.contains('\0') => Text::Lines(text),
            _ => Text::Plain("binary file"),
        },
        FileState::Link(target) => {
            Text::Lines(format!("symbolic link to {}\n", in_line(&target.0.to_string_lossy())))
        }
        FileState::Folder { .. } => Text::Plain("folder"),
        FileState::Unkept { .. } => Text::Plain("file that is not kept"),
    })
}
