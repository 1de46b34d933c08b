//! Finds the lines that differ.

use std::{
    ops::Range,
    time::{Duration, Instant},
};

use similar::{Algorithm, capture_diff_slices_deadline};

use super::super::apply::Change;

/// How long one edit may search for the shortest difference; after that a longer one is used.
const DEADLINE: Duration = Duration::from_millis(500);

/// A text by lines, each with its line feed.
pub(super) struct Lines<'a> {
    text: &'a str,
    /// The start of each line, and the end of the text.
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

    /// The line that the byte at `at` is in. The end of the text is in the last line, or after it when that line has a
    /// line feed.
    fn containing(&self, at: usize) -> usize {
        let line = self.starts.partition_point(|start| *start <= at) - 1;
        // If the last line has no line feed, text at the end belongs to it.
        let is_after = line > 0 && line == self.count() && !self.text.ends_with('\n');
        line - usize::from(is_after)
    }
}

/// Old lines and the new lines in their place; one of both may be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LineChange {
    pub(super) old: Range<usize>,
    pub(super) new: Range<usize>,
}

/// The lines that differ between `old` and `new`, which is `old` with `changes` made, in order.
///
/// Compares only the lines around the changes, so a large file costs no more than reading it.
pub(super) fn line_changes(old: &Lines<'_>, new: &Lines<'_>, changes: &[Change]) -> Vec<LineChange> {
    let deadline = Instant::now() + DEADLINE;
    let mut found = Vec::new();
    // By how many bytes the new text is longer than the old one up to here.
    let mut grown = 0isize;
    let mut changes = changes.iter().peekable();
    while let Some(first) = changes.next() {
        let begin = old.containing(first.range.start);
        let new_begin = new.containing(first.range.start.saturating_add_signed(grown));
        let mut last = first;
        grown += growth(first);
        // Compare changes that share a line together.
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

/// The line after the one with `at`.
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
            // Lines removed and added at the same position are one change.
            Some(last) if last.old.end == change.old.start && last.new.end == change.new.start => {
                last.old.end = change.old.end;
                last.new.end = change.new.end;
            }
            _ => found.push(change),
        }
    }
}
