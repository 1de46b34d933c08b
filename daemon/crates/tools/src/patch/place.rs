//! Finds the places of hunks in a text, by their old lines. Pure.
//!
//! A hunk is looked for at the line that its head states, moved as far as the hunk before it was, and then at the nearest place where its
//! old lines stand. Hunks are in the order of the text.

use std::{borrow::Cow, ops::Range};

use agentd_protocol::text_bounds;
use memchr::memmem::{Finder, FinderRev};

use super::parse::{Hunk, LineMark};
use crate::edit::{Change, apply, normalized_text};

/// Lines around the stated one that are compared with a hunk that does not fit, to say what is there instead.
const NEAR: usize = 100;

/// Lines of such a hunk that are compared.
const COMPARED: usize = 200;

/// The longest line that an error quotes, in bytes.
const QUOTED: usize = 200;

/// A hunk that has no place in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Misfit {
    /// Its number, from 1.
    number: usize,
    head: String,
    why: MisfitReason,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum MisfitReason {
    /// Its old lines stand nowhere; where most of them do, this line is the first that differs: `None` for the end of the text.
    Differs { line: usize, expected: String, found: Option<String> },
    /// Its old lines stand here, before the end of the hunk before it.
    TooEarly { line: usize },
    /// Its old lines stand here, and only one of both texts ends with a line feed there, or only the diff ends there.
    OtherEnd { line: usize },
    /// Its old lines stand at two places, and none is nearer.
    TwoPlaces { first: usize, second: usize },
    /// It has no old lines, and no number of a line in the text.
    NoLine { count: usize },
}

impl Misfit {
    /// The error for a hunk of `file`. Lines of the text are quoted where `quotes` says so.
    pub(super) fn message(&self, file: &str, quotes: bool) -> String {
        let quoted = |line: &str| format!("{:?}", text_bounds::head(line, QUOTED));
        let why = match &self.why {
            MisfitReason::Differs { line, expected, found: Some(found) } if quotes => {
                format!("line {line} is {}, where the diff has {}", quoted(found), quoted(expected))
            }
            MisfitReason::Differs { line, expected, found: Some(_) } => {
                format!("line {line} is not {}", quoted(expected))
            }
            MisfitReason::Differs { line, expected, found: None } => {
                format!("the file has no line {line}, where the diff has {}", quoted(expected))
            }
            MisfitReason::TooEarly { line } => format!(
                "its lines stand at line {line}, which is not behind the hunk before it: put hunks in the order of the file, and hunks that \
                 overlap together"
            ),
            MisfitReason::OtherEnd { line } => format!(
                "its lines stand at line {line}, but the end of the file is another one than \"\\ No newline at end of file\" says"
            ),
            MisfitReason::TwoPlaces { first, second } => format!(
                "its lines stand at line {first} and at line {second}, and none of both is nearer to the stated line: put more lines of \
                 context around the change"
            ),
            MisfitReason::NoLine { count } => format!(
                "it has no old lines to be found by, and states none of the {count} lines of the file: put lines of context around the change"
            ),
        };
        let advice = match self.why {
            MisfitReason::Differs { .. } => ". Read the file and make the diff of what it has now",
            _ => "",
        };
        format!("Hunk {} of {file} ({}) has no place: {why}{advice}.", self.number, self.head)
    }
}

/// The changes of `text` that `hunks` make. `text` has line feeds only.
///
/// # Errors
/// The first hunk that has no place, or two.
pub(super) fn place(text: &str, hunks: &[Hunk]) -> Result<Vec<Change>, Misfit> {
    let mut walk = Walk::new(text);
    let mut changes = Vec::new();
    let mut is_closed = walk.is_closed;
    for (index, hunk) in hunks.iter().enumerate() {
        let found =
            walk.find(hunk).map_err(|why| Misfit { number: index + 1, head: hunk.head.clone(), why })?;
        add_changes(hunk, found.start, &mut changes);
        if found.end == walk.text.len() && (hunk.old_is_open || hunk.new_is_open) {
            is_closed = !hunk.new_is_open;
        }
    }
    if !(walk.is_closed && is_closed) {
        rewrite_end(&walk, is_closed, &mut changes);
    }
    changes.retain(|change| text.get(change.range.clone()) != Some(change.text.as_str()));
    Ok(changes)
}

/// Adds the changes of a hunk whose old lines begin at `at`.
fn add_changes(hunk: &Hunk, mut at: usize, changes: &mut Vec<Change>) {
    let mut open: Option<Change> = None;
    for line in &hunk.lines {
        let text = with_feed(&line.text);
        if line.mark == LineMark::Same {
            changes.extend(open.take());
            at += text.len();
            continue;
        }
        let change = open.get_or_insert_with(|| Change { range: at..at, text: String::new() });
        if line.mark == LineMark::Gone {
            at += text.len();
            change.range.end = at;
        } else {
            change.text.push_str(&text);
        }
    }
    changes.extend(open);
}

/// A line of a diff as it is in a text with line feeds only.
fn with_feed(line: &str) -> String {
    let mut text = normalized_text(line.strip_suffix('\r').unwrap_or(line)).into_owned();
    text.push('\n');
    text
}

/// Gives the text its end. The changes are of `walk.text`, which ends with a line feed in any case, and become changes of the text itself.
fn rewrite_end(walk: &Walk<'_>, is_closed: bool, changes: &mut Vec<Change>) {
    let Some(mut start) =
        changes.last().filter(|last| last.range.end == walk.text.len()).map(|last| last.range.start)
    else {
        return;
    };
    let mut changed = apply(&walk.text, changes);
    // An empty last line is there by its line feed alone.
    let ends_with_empty_line = changed == "\n" || changed.ends_with("\n\n");
    if !is_closed && changed.ends_with('\n') && !ends_with_empty_line {
        changed.pop();
    }
    // The line feed before is a part of it, since that one may come or go.
    merge(changes, &mut start);
    start = start.saturating_sub(1);
    merge(changes, &mut start);
    let grown: isize =
        changes.iter().map(|it| it.text.len().cast_signed() - it.range.len().cast_signed()).sum();
    let end = walk.text.len() - usize::from(!walk.is_closed);
    let text = changed.get(start.saturating_add_signed(grown)..).unwrap_or_default().to_owned();
    changes.push(Change { range: start..end, text });
}

/// Takes the changes away that reach to `start`, and moves it to where they begin.
fn merge(changes: &mut Vec<Change>, start: &mut usize) {
    while let Some(last) = changes.pop_if(|last| last.range.end >= *start) {
        *start = last.range.start;
    }
}

/// A text, and how far hunks have come in it.
struct Walk<'a> {
    /// With a line feed at its end, unless it is empty.
    text: Cow<'a, str>,
    /// Whether the text itself ends so.
    is_closed: bool,
    /// The end of the hunk before, and its line, from 0.
    at: usize,
    line: usize,
    /// How many lines below its stated line the hunk before stands.
    shift: isize,
}

impl<'a> Walk<'a> {
    fn new(text: &'a str) -> Self {
        let is_closed = text.is_empty() || text.ends_with('\n');
        let text = if is_closed { Cow::Borrowed(text) } else { Cow::Owned(format!("{text}\n")) };
        Self { text, is_closed, at: 0, line: 0, shift: 0 }
    }

    /// The place of the next hunk.
    fn find(&mut self, hunk: &Hunk) -> Result<Range<usize>, MisfitReason> {
        let old: String = hunk.old_lines().map(with_feed).collect();
        let found = if old.is_empty() { self.find_line(hunk) } else { self.find_text(hunk, &old) }?;
        let line = self.line + count_lines(&self.text[self.at..found]);
        if let Some(stated) = hunk.line {
            let stated = stated.saturating_sub(usize::from(!old.is_empty()));
            self.shift = line.cast_signed() - stated.cast_signed();
        }
        self.at = found + old.len();
        self.line = line + count_lines(&old);
        Ok(found..self.at)
    }

    /// The place of a hunk that only adds: behind its line.
    fn find_line(&self, hunk: &Hunk) -> Result<usize, MisfitReason> {
        let none = || MisfitReason::NoLine { count: count_lines(&self.text) };
        let line = hunk.line.and_then(|line| line.checked_add_signed(self.shift)).ok_or_else(none)?;
        let at = self.start_of(line).filter(|_| line >= self.line).ok_or_else(none)?;
        if self.fits_end(hunk, at) { Ok(at) } else { Err(MisfitReason::OtherEnd { line: line + 1 }) }
    }

    /// The nearest place of old lines.
    fn find_text(&self, hunk: &Hunk, old: &str) -> Result<usize, MisfitReason> {
        let fits = |at: usize| self.starts_line(at) && self.fits_end(hunk, at + old.len());
        let stated = hunk.line.map(|line| line.saturating_sub(1).saturating_add_signed(self.shift));
        let line = stated.unwrap_or(0).max(self.line);
        let near = self.start_of(line).unwrap_or(self.text.len());
        if stated.is_some() && self.text[near..].starts_with(old) && fits(near) {
            return Ok(near);
        }
        let below = first_fit(&self.text, near, old, &fits);
        let line_of = |at: usize| self.line + count_lines(&self.text[self.at..at]);
        let (first, second) = match stated {
            Some(_) => (last_fit(&self.text, self.at..near, old, &fits), below),
            None => (below, below.and_then(|below| first_fit(&self.text, below + 1, old, &fits))),
        };
        match (first, second) {
            (None, None) => Err(self.misfit(hunk, old, line)),
            (Some(at), None) | (None, Some(at)) => Ok(at),
            (Some(first), Some(second)) => {
                let (one, other) = (line_of(first), line_of(second));
                match stated.map(|_| line.abs_diff(one).cmp(&line.abs_diff(other))) {
                    Some(std::cmp::Ordering::Less) => Ok(first),
                    Some(std::cmp::Ordering::Greater) => Ok(second),
                    _ => Err(MisfitReason::TwoPlaces { first: one + 1, second: other + 1 }),
                }
            }
        }
    }

    fn starts_line(&self, at: usize) -> bool {
        at == 0 || self.text.as_bytes().get(at - 1) == Some(&b'\n')
    }

    /// Whether old lines may end at this place, as far as the diff says that the file ends there.
    fn fits_end(&self, hunk: &Hunk, end: usize) -> bool {
        let is_at_end = !(hunk.old_is_open || hunk.new_is_open) || end == self.text.len();
        is_at_end && !(hunk.old_is_open && self.is_closed)
    }

    /// The start of a line, from 0, that is not before the end of the hunk before; the end of the text counts as one.
    fn start_of(&self, line: usize) -> Option<usize> {
        let Some(lines) = line.checked_sub(self.line).filter(|lines| *lines > 0) else {
            return Some(self.at);
        };
        let mut feeds = memchr::memchr_iter(b'\n', &self.text.as_bytes()[self.at..]);
        feeds.nth(lines - 1).map(|feed| self.at + feed + 1)
    }

    /// Says what is in the text where the old lines should be. `line`: where they were expected.
    fn misfit(&self, hunk: &Hunk, old: &str, line: usize) -> MisfitReason {
        let number = |at: usize| count_lines(&self.text[..at]) + 1;
        let starts = |at: usize| self.starts_line(at);
        if let Some(at) = first_fit(&self.text, self.at, old, &starts) {
            return MisfitReason::OtherEnd { line: number(at) };
        }
        if let Some(at) = last_fit(&self.text, 0..self.at, old, &starts) {
            return MisfitReason::TooEarly { line: number(at) };
        }
        let old: Vec<&str> = old.split_terminator('\n').take(COMPARED).collect();
        let first = line.saturating_sub(NEAR).max(self.line);
        let begin = self.start_of(first).unwrap_or(self.at);
        let first = self.line + count_lines(&self.text[self.at..begin]);
        let lines: Vec<&str> = self.text[begin..].split_terminator('\n').take(2 * NEAR + COMPARED).collect();
        let same = |at: usize| old.iter().zip(&lines[at..]).filter(|(one, other)| one == other).count();
        let nearness = |at: usize| std::cmp::Reverse((first + at).abs_diff(line));
        let best = (0..lines.len()).max_by_key(|at| (same(*at), nearness(*at))).unwrap_or(0);
        let differs = |at: &usize| lines.get(best + at) != old.get(*at);
        let at = (0..old.len()).find(differs).unwrap_or(0);
        let text = |lines: &[&str], at: usize| lines.get(at).map(|line| (*line).to_owned());
        let expected = text(&old, at).unwrap_or_else(|| hunk.head.clone());
        MisfitReason::Differs { line: first + best + at + 1, expected, found: text(&lines, best + at) }
    }
}

fn count_lines(text: &str) -> usize {
    memchr::memchr_iter(b'\n', text.as_bytes()).count()
}

/// The first place from `from` on where `old` stands and fits.
fn first_fit(text: &str, mut from: usize, old: &str, fits: &dyn Fn(usize) -> bool) -> Option<usize> {
    let finder = Finder::new(old);
    loop {
        let at = from + finder.find(text.as_bytes().get(from..)?)?;
        if fits(at) {
            return Some(at);
        }
        from = at + 1;
    }
}

/// The last place within `places` where `old` begins and fits.
fn last_fit(text: &str, places: Range<usize>, old: &str, fits: &dyn Fn(usize) -> bool) -> Option<usize> {
    let finder = FinderRev::new(old);
    let mut end = places.end;
    loop {
        // What begins before `end` ends before this.
        let until = (end + old.len()).saturating_sub(1).min(text.len());
        let at = places.start + finder.rfind(text.as_bytes().get(places.start..until)?)?;
        if fits(at) {
            return Some(at);
        }
        end = at;
    }
}

#[cfg(test)]
mod tests;
