//! Finds the old texts of edits.

use std::borrow::Cow;

use memchr::memmem;

use super::fuzzy;

/// One replacement, with line feeds as its only line endings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Edit {
    /// The text to find.
    pub(super) old: String,
    /// The text to put there.
    pub(super) new: String,
}

/// The matches of all edits, in the order of the file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EditMatches<'a> {
    /// The plain form of the file's text when the matches are in that; `None` when they are in the text itself.
    pub(super) plain: Option<Cow<'a, str>>,
    /// One for each edit.
    pub(super) places: Vec<EditMatch>,
}

/// The match of one edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EditMatch {
    /// The index of the edit.
    pub(super) edit: usize,
    /// The first byte of its old text.
    pub(super) start: usize,
    /// The byte after it.
    pub(super) end: usize,
}

/// Finds every old text of `edits` in `text`. Each must occur once, and none may overlap another.
///
/// Old texts are searched as they are. If one occurs only in its plain form, all are searched in the plain form of the
/// text. Occurrences are always counted in the plain form, because texts that look the same to the model count.
///
/// # Errors
/// The first problem in the order of the edits; overlaps come last. `stop` is asked before each search.
pub(super) fn find<'a>(
    text: &'a str,
    edits: &[Edit],
    stop: impl Fn() -> bool,
) -> Result<EditMatches<'a>, EditProblem> {
    if let Some(index) = edits.iter().position(|edit| edit.old.is_empty()) {
        return Err(EditProblem::EmptyOld(index));
    }
    let plain_text = fuzzy::plain(text);
    let mut exact = Vec::with_capacity(edits.len());
    for edit in edits {
        if stop() {
            return Err(EditProblem::Aborted);
        }
        exact.push(position(text, &edit.old));
    }
    let all_exact = exact.iter().all(Option::is_some);
    let mut places = Vec::with_capacity(edits.len());
    for (index, edit) in edits.iter().enumerate() {
        if stop() {
            return Err(EditProblem::Aborted);
        }
        let plain_old = fuzzy::plain(&edit.old);
        let (start, length) = if all_exact {
            exact[index].map(|start| (start, edit.old.len()))
        } else {
            // The old text itself may still occur, such as with a space at its end.
            let found = position(&plain_text, &edit.old).map(|start| (start, edit.old.len()));
            found.or_else(|| position(&plain_text, &plain_old).map(|start| (start, plain_old.len())))
        }
        .ok_or(EditProblem::NotFound(index))?;
        let searched = if all_exact { text } else { &plain_text };
        let wanted = &searched[start..start + length];
        let as_found = count(&searched[start..], wanted);
        // If the plain form is the text itself, the count is complete: do not search large texts twice.
        let is_counted = (!all_exact || matches!(plain_text, Cow::Borrowed(_))) && *wanted == *plain_old;
        let count = if is_counted { as_found } else { as_found.max(count(&plain_text, &plain_old)) };
        if count > 1 {
            return Err(EditProblem::Ambiguous(index, count));
        }
        places.push(EditMatch { edit: index, start, end: start + length });
    }
    places.sort_by_key(|place| place.start);
    let mut pairs = places.iter().zip(places.iter().skip(1));
    if let Some((first, second)) = pairs.find(|(first, second)| first.end > second.start) {
        return Err(EditProblem::Overlap(first.edit, second.edit));
    }
    Ok(EditMatches { plain: (!all_exact).then_some(plain_text), places })
}

fn position(text: &str, wanted: &str) -> Option<usize> {
    // A text of spaces has an empty plain form.
    if wanted.is_empty() { None } else { memmem::find(text.as_bytes(), wanted.as_bytes()) }
}

fn count(text: &str, wanted: &str) -> usize {
    if wanted.is_empty() { 0 } else { memmem::find_iter(text.as_bytes(), wanted.as_bytes()).count() }
}

/// The problem of a call's edits. Edits are named by their index in the call, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EditProblem {
    /// The old text is empty.
    EmptyOld(usize),
    /// The file does not have the old text.
    NotFound(usize),
    /// The file has the old text this often.
    Ambiguous(usize, usize),
    /// Two edits want to change the same text.
    Overlap(usize, usize),
    /// The file would stay as it is.
    NoChange,
    /// The file changed while the edit was made.
    Changed,
    /// The run was aborted.
    Aborted,
}

impl EditProblem {
    /// The message for a call with `edits` edits of the file that the model calls `path`.
    pub(super) fn message(self, path: &str, edits: usize) -> String {
        let single = edits == 1;
        match self {
            Self::EmptyOld(_) if single => format!("oldText must not be empty in {path}."),
            Self::EmptyOld(index) => format!("edits[{index}].oldText must not be empty in {path}."),
            Self::NotFound(_) if single => format!(
                "Could not find the exact text in {path}. The old text must match exactly including all \
                 whitespace and newlines."
            ),
            Self::NotFound(index) => format!(
                "Could not find edits[{index}] in {path}. The oldText must match exactly including all \
                 whitespace and newlines."
            ),
            Self::Ambiguous(_, count) if single => format!(
                "Found {count} occurrences of the text in {path}. The text must be unique. Please provide more \
                 context to make it unique."
            ),
            Self::Ambiguous(index, count) => format!(
                "Found {count} occurrences of edits[{index}] in {path}. Each oldText must be unique. Please \
                 provide more context to make it unique."
            ),
            Self::Overlap(first, second) => format!(
                "edits[{first}] and edits[{second}] overlap in {path}. Merge them into one edit or target \
                 disjoint regions."
            ),
            Self::NoChange if single => format!(
                "No changes made to {path}. The replacement produced identical content. This might indicate an \
                 issue with special characters or the text not existing as expected."
            ),
            Self::NoChange => {
                format!("No changes made to {path}. The replacements produced identical content.")
            }
            Self::Changed => format!(
                "Could not edit file: {path}. It was changed by something else while the edit was being made, and \
                 nothing was written. Read the file again, then repeat the edit."
            ),
            Self::Aborted => crate::blocking::aborted().0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the plain form was needed; and the edit, start and end of each match, in the order of the file.
    type Found = (bool, Vec<(usize, usize, usize)>);

    fn found(text: &str, olds: &[&str]) -> Result<Found, EditProblem> {
        let edits: Vec<Edit> =
            olds.iter().map(|old| Edit { old: (*old).to_owned(), new: String::new() }).collect();
        let matches = find(text, &edits, || false)?;
        let places = matches.places.iter().map(|place| (place.edit, place.start, place.end)).collect();
        Ok((matches.plain.is_some(), places))
    }

    #[test]
    fn exact_texts_are_found_where_they_are() {
        assert_eq!(found("one two\nthree\n", &["three", "two"]), Ok((false, vec![(1, 4, 7), (0, 8, 13)])));
        assert_eq!(found("a  \nb", &["a  \nb"]), Ok((false, vec![(0, 0, 5)])));
    }

    #[test]
    fn texts_that_look_the_same_are_found_too() {
        assert_eq!(
            found("say \u{201c}hi\u{201d}  \nnext", &["say \"hi\"\nnext"]),
            Ok((true, vec![(0, 0, 13)]))
        );
        assert_eq!(found("a \u{2014} b", &["a - b"]), Ok((true, vec![(0, 0, 5)])));
        // One edit that needs the plain form applies it to all.
        assert_eq!(found("x\u{2019}s\nabc  \nd", &["abc", "x's"]), Ok((true, vec![(1, 0, 3), (0, 4, 7)])));
        // A space in the middle of a line is kept even at the end of the old text.
        assert_eq!(found("\u{2019}x\nfoo bar", &["'x", "foo "]), Ok((true, vec![(0, 0, 2), (1, 3, 7)])));
    }

    #[test]
    fn every_old_text_must_be_there_once() {
        assert_eq!(found("abc", &["abc", ""]), Err(EditProblem::EmptyOld(1)));
        assert_eq!(found("abc", &["abc", "x"]), Err(EditProblem::NotFound(1)));
        assert_eq!(found("a b a", &["b", "a"]), Err(EditProblem::Ambiguous(1, 2)));
        // Texts that look the same count, even if only one is exact.
        assert_eq!(found("it's\nit\u{2019}s\n", &["it's"]), Err(EditProblem::Ambiguous(0, 2)));
        assert_eq!(found("x \n y", &["   "]), Err(EditProblem::NotFound(0)));
        assert_eq!(found("x  y  z", &["  "]), Err(EditProblem::Ambiguous(0, 2)));
        assert_eq!(found("x  y", &["  "]), Ok((false, vec![(0, 1, 3)])));
        // A single letter, and the same letter below an accent.
        assert_eq!(found("e e\u{301}", &["e"]), Err(EditProblem::Ambiguous(0, 2)));
    }

    #[test]
    fn overlaps_are_named_in_the_order_of_the_file() {
        assert_eq!(found("abcdef", &["cde", "abc"]), Err(EditProblem::Overlap(1, 0)));
        assert_eq!(found("abcdef", &["def", "abc"]), Ok((false, vec![(1, 0, 3), (0, 3, 6)])));
    }

    #[test]
    fn a_stop_is_obeyed() {
        let edits = [Edit { old: "a".into(), new: String::new() }];
        assert_eq!(find("a", &edits, || true), Err(EditProblem::Aborted));
    }
}
