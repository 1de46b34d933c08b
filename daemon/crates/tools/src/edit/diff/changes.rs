//! Which lines differ.

use std::{
    ops::Range,
    time::{Duration, Instant},
};

use similar::{Algorithm, capture_diff_slices_deadline};

use super::super::apply::Change;

/// How long one edit may look for the shortest difference; after that a longer one is good enough.
const DEADLINE: Duration = Duration::from_millis(500);

/// A text by its lines, each with its line feed.
pub(super) struct Lines<'a> {
    text: &'a str,
    /// Where each line starts, and at the end where the text ends.
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let mut starts = vec![0];
        starts.extend(memchr::memchr_iter(b'\n', text.as_bytes()).map(|feed| feed + 1));
        if starts.last() != Some(&text.len()) {
            starts.push(text.len());
        }
        Self { text, starts }
    }

    pub(super) fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// The line with its line feed; the last one may have none.
    pub(super) fn get(&self, index: usize) -> &'a str {
        &self.text[self.starts[index]..self.starts[index + 1]]
    }

    fn range(&self, lines: Range<usize>) -> Vec<&'a str> {
        lines.map(|index| self.get(index)).collect()
    }

    /// The line that the byte at `at` is in; the end of the text is in the last one, or after it when that is complete.
    fn containing(&self, at: usize) -> usize {
        let line = self.starts.partition_point(|start| *start <= at) - 1;
        // Where the last line is not complete, what comes at the end belongs to it.
        let is_after = line > 0 && line == self.count() && !self.text.ends_with('\n');
        line - usize::from(is_after)
    }
}

/// Lines that took the place of other lines; one of both may be none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LineChange {
    pub(super) old: Range<usize>,
    pub(super) new: Range<usize>,
}

/// The lines that differ between `old` and `new`, which is `old` with `changes` made, in order.
///
/// Only the lines around the changes are compared, so a large file costs no more than reading it.
pub(super) fn line_changes(old: &Lines<'_>, new: &Lines<'_>, changes: &[Change]) -> Vec<LineChange> {
    let deadline = Instant::now() + DEADLINE;
    let mut found = Vec::new();
    // How much longer the new text is than the old one up to here, in bytes: never less than minus its length.
    let mut grown = 0isize;
    let mut changes = changes.iter().peekable();
    while let Some(first) = changes.next() {
        let begin = old.containing(first.range.start);
        let new_begin = new.containing(first.range.start.saturating_add_signed(grown));
        let mut last = first;
        grown += growth(first);
        // Changes that share a line are looked at together.
        while let Some(next) =
            changes.next_if(|next| old.containing(next.range.start) <= old.containing(last.range.end))
        {
            grown += growth(next);
            last = next;
        }
        let end = after(old, last.range.end);
        let new_end = after(new, last.range.end.saturating_add_signed(grown));
        compare(old, new, begin..end, new_begin..new_end, deadline, &mut found);
    }
    found
}

fn growth(change: &Change) -> isize {
    change.text.len().cast_signed() - change.range.len().cast_signed()
}

/// The line after the one that `at` is in.
fn after(lines: &Lines<'_>, at: usize) -> usize {
    (lines.containing(at) + 1).min(lines.count())
}

fn compare(
    old: &Lines<'_>,
    new: &Lines<'_>,
    old_lines: Range<usize>,
    new_lines: Range<usize>,
    deadline: Instant,
    found: &mut Vec<LineChange>,
) {
    let (old_texts, new_texts) = (old.range(old_lines.clone()), new.range(new_lines.clone()));
    for operation in capture_diff_slices_deadline(Algorithm::Myers, &old_texts, &new_texts, Some(deadline)) {
        let (tag, old_range, new_range) = operation.as_tag_tuple();
        if tag == similar::DiffTag::Equal {
            continue;
        }
        let change = LineChange {
            old: old_lines.start + old_range.start..old_lines.start + old_range.end,
            new: new_lines.start + new_range.start..new_lines.start + new_range.end,
        };
        match found.last_mut() {
            // What goes and what comes at the same place is one change.
            Some(last) if last.old.end == change.old.start && last.new.end == change.new.start => {
                last.old.end = change.old.end;
                last.new.end = change.new.end;
            }
            _ => found.push(change),
        }
    }
}
