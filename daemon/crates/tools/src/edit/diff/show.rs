//! Formats line changes as a diff and as a patch.

use std::{fmt::Write as _, ops::Range};

use agentd_protocol::text_bounds;

use super::{
    super::apply::Change,
    changes::{LineChange, Lines, line_changes},
};

/// Unchanged lines shown around a change.
const CONTEXT: usize = 4;

/// The longest line that is shown whole, in bytes: 16 KiB. Longer lines are data that nobody reads.
const MAX_LINE: usize = 16 * 1024;

/// The longest patch, in bytes: 1 MiB.
const MAX_PATCH: usize = 1024 * 1024;

/// The longest diff for display, in bytes, in whole rows: about 1 MiB.
const MAX_DIFF: usize = 1024 * 1024;

/// The changes of an edit, formatted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    /// Changed lines with their numbers and some lines around them; of a very long diff the start, and how many rows
    /// are missing.
    pub(crate) diff: String,
    /// A unified diff; `None` when it would be too long.
    pub(crate) patch: Option<String>,
    /// The first changed line of the new text, from 1; `None` when no line changed.
    pub(crate) first_changed_line: Option<usize>,
}

/// Formats the `changes` from `old` to `new` of the file that the model calls `path`. Both texts have line feeds only.
pub(crate) fn show(path: &str, old: &str, new: &str, changes: &[Change]) -> Shown {
    let (old_lines, new_lines) = (Lines::new(old), Lines::new(new));
    let changes = line_changes(&old_lines, &new_lines, changes);
    let hunks = hunks(&changes, old_lines.count());
    Shown {
        diff: display(&old_lines, &new_lines, &hunks),
        patch: patch(path, &old_lines, &new_lines, &hunks),
        first_changed_line: changes.first().map(|change| change.new.start + 1),
    }
}

/// Changes that are shown together, and the old lines around them.
struct Hunk<'a> {
    old: Range<usize>,
    changes: &'a [LineChange],
}

/// Groups changes whose context overlaps.
fn hunks(changes: &[LineChange], old_count: usize) -> Vec<Hunk<'_>> {
    changes
        .chunk_by(|before, after| after.old.start - before.old.end <= 2 * CONTEXT)
        .filter_map(|group| {
            let (first, last) = (group.first()?, group.last()?);
            let old = first.old.start.saturating_sub(CONTEXT)..(last.old.end + CONTEXT).min(old_count);
            Some(Hunk { old, changes: group })
        })
        .collect()
}

/// A line of a hunk.
enum Line {
    Same { old: usize },
    Gone { old: usize },
    Come { new: usize },
}

impl Hunk<'_> {
    fn lines(&self) -> impl Iterator<Item = Line> {
        let mut at = self.old.start;
        let changed = self.changes.iter().flat_map(move |change| {
            let before = at..change.old.start;
            at = change.old.end;
            let gone = change.old.clone().map(|old| Line::Gone { old });
            let come = change.new.clone().map(|new| Line::Come { new });
            before.map(|old| Line::Same { old }).chain(gone).chain(come)
        });
        let rest = self.changes.last().map_or(at, |last| last.old.end)..self.old.end;
        changed.chain(rest.map(|old| Line::Same { old }))
    }

    /// The new lines that the hunk shows.
    fn new_range(&self) -> Range<usize> {
        let (Some(first), Some(last)) = (self.changes.first(), self.changes.last()) else { return 0..0 };
        first.new.start - (first.old.start - self.old.start)..last.new.end + (self.old.end - last.old.end)
    }
}

fn display(old: &Lines<'_>, new: &Lines<'_>, hunks: &[Hunk<'_>]) -> String {
    // The empty line after a last line feed counts, as in the line numbers of `read`.
    let numbers = |lines: &Lines<'_>| {
        let complete = lines.count() == 0 || lines.get(lines.count() - 1).ends_with('\n');
        lines.count() + usize::from(complete)
    };
    let width = numbers(old).max(numbers(new)).to_string().len();
    let mut rows = Rows::default();
    let skipped = || format!(" {:width$} ...", "");
    let mut shown = 0;
    for hunk in hunks {
        if hunk.old.start > shown {
            rows.push_with(skipped);
        }
        for line in hunk.lines() {
            rows.push_with(|| {
                let (mark, number, text) = match line {
                    Line::Same { old: index } => (' ', index, old.get(index)),
                    Line::Gone { old: index } => ('-', index, old.get(index)),
                    Line::Come { new: index } => ('+', index, new.get(index)),
                };
                format!("{mark}{:>width$} {}", number + 1, shortened(text.strip_suffix('\n').unwrap_or(text)))
            });
        }
        shown = hunk.old.end;
    }
    if shown < old.count() && !hunks.is_empty() {
        rows.push_with(skipped);
    }
    rows.finish(width)
}

/// The rows of a display, as far as they fit.
#[derive(Default)]
struct Rows {
    text: String,
    is_begun: bool,
    missing: usize,
}

impl Rows {
    fn push_with(&mut self, row: impl FnOnce() -> String) {
        if self.missing > 0 {
            self.missing += 1;
            return;
        }
        let row = row();
        if self.text.len() + row.len() >= MAX_DIFF {
            self.missing = 1;
            return;
        }
        if self.is_begun {
            self.text.push('\n');
        }
        self.is_begun = true;
        self.text.push_str(&row);
    }

    fn finish(mut self, width: usize) -> String {
        if self.missing > 0 {
            // Writing to a string cannot fail.
            let _ = write!(self.text, "\n {:width$} ... [{} more lines of the diff]", "", self.missing);
        }
        self.text
    }
}

fn shortened(line: &str) -> String {
    if line.len() <= MAX_LINE {
        return line.to_owned();
    }
    let shown = text_bounds::head(line, MAX_LINE);
    format!("{shown}... [{} more bytes]", line.len() - shown.len())
}

fn patch(path: &str, old: &Lines<'_>, new: &Lines<'_>, hunks: &[Hunk<'_>]) -> Option<String> {
    let mut patch = format!("--- {path}\n+++ {path}\n");
    for hunk in hunks {
        let new_range = hunk.new_range();
        // Writing to a string cannot fail.
        let _ = writeln!(patch, "@@ -{} +{} @@", place(&hunk.old), place(&new_range));
        for line in hunk.lines() {
            let (mark, text) = match line {
                Line::Same { old: index } => (' ', old.get(index)),
                Line::Gone { old: index } => ('-', old.get(index)),
                Line::Come { new: index } => ('+', new.get(index)),
            };
            if patch.len() + text.len() > MAX_PATCH {
                return None;
            }
            patch.push(mark);
            patch.push_str(text);
            if !text.ends_with('\n') {
                patch.push_str("\n\\ No newline at end of file\n");
            }
        }
    }
    Some(patch)
}

/// A range of lines in a patch's form: from 1, and for an empty range the line before.
fn place(lines: &Range<usize>) -> String {
    let start = if lines.is_empty() { lines.start } else { lines.start + 1 };
    format!("{start},{}", lines.len())
}

#[cfg(test)]
mod tests;
