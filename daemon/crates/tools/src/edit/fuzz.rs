//! The law of edits; see the crate's `fuzz.rs`.

use super::{
    apply::{apply, changes},
    diff::show,
    fuzzy, line_endings,
    matching::{Edit, EditProblem, find},
};

/// The most edits of one input.
const MOST_EDITS: usize = 4;

/// A file and edits of it, taken from any bytes: the number of edits; for each the position and the length of its old
/// text; then the file and the new texts, separated by FF.
struct Case {
    /// The file as it is.
    original: String,
    edits: Vec<Edit>,
}

impl Case {
    fn of(input: &[u8]) -> Option<Self> {
        let (first, rest) = input.split_first()?;
        let count = usize::from(first & 3) + 1;
        let (places, rest) = rest.split_at_checked(count * 3)?;
        let mut texts =
            rest.split(|byte| *byte == 0xff).map(|text| String::from_utf8_lossy(text).into_owned());
        let original = texts.next()?;
        let text = line_endings::normalize(&original).into_owned();
        // The old text as it is in the file, or in its plain form.
        let source = if first & 4 == 0 { text } else { fuzzy::plain(&text).into_owned() };
        let edits = places.chunks(3).take(MOST_EDITS).map(|place| {
            let from = usize::from(u16::from_be_bytes([place[0], place[1]])) % (source.len() + 1);
            let from = floor(&source, from);
            let to = floor(&source, (from + usize::from(place[2] & 63) + 1).min(source.len()));
            let new = texts.next().unwrap_or_default();
            Edit { old: source[from..to].to_owned(), new: line_endings::normalize(&new).into_owned() }
        });
        let edits = edits.collect();
        Some(Self { original, edits })
    }
}

/// Edits whose old texts are in the file exactly once, also in its plain form, and do not overlap, are made: the result
/// is that of replacing one text after the other. Unchanged lines keep their endings. Applying the patch to the old
/// file gives the new one.
pub(crate) fn edits(input: &[u8]) {
    let Some(Case { original, edits }) = Case::of(input) else { return };
    let text = line_endings::normalize(&original);
    assert!(!text.contains('\r'));
    let matches = match find(&text, &edits, || false) {
        Ok(matches) => matches,
        Err(problem) => return refused_for_a_reason(&text, &edits, &problem),
    };
    let changes = changes(&text, &edits, &matches);
    let mut end = 0;
    for change in &changes {
        assert!(end <= change.range.start && change.range.end <= text.len(), "changes in order");
        end = change.range.end;
    }
    let edited = apply(&text, &changes);
    if matches.plain.is_none() {
        assert_eq!(edited, one_after_the_other(&text, &edits), "{edits:?}");
    } else {
        // Changed lines are in their plain form; other lines are unchanged.
        let expected = one_after_the_other(&fuzzy::plain(&text), &edits);
        let plain = |text: &str| fuzzy::plain(text).into_owned();
        if edits.iter().all(|edit| {
            fuzzy::plain(&edit.old) == edit.old.as_str() && fuzzy::plain(&edit.new) == edit.new.as_str()
        }) && edits
            .iter()
            .all(|edit| !edit.new.ends_with(char::is_whitespace) && !edit.old.ends_with(char::is_whitespace))
        {
            assert_eq!(plain(&edited), plain(&expected), "{edits:?}");
        }
    }

    let written = line_endings::apply(&original, &changes);
    assert_eq!(line_endings::normalize(&written), edited, "the same but for line endings");
    if !original.replace("\r\n", "").contains(['\r', '\n']) && original.contains("\r\n") {
        assert!(!written.replace("\r\n", "").contains(['\r', '\n']), "CRLF stays CRLF: {written:?}");
    }
    let kept = common_start(&text, &edited);
    let same = text[..kept].matches('\n').count();
    let endings = |text: &str| -> Vec<bool> {
        let bytes = text.as_bytes();
        let ends = (0..bytes.len())
            .filter(|at| bytes[*at] == b'\n' || (bytes[*at] == b'\r' && bytes.get(at + 1) != Some(&b'\n')));
        ends.map(|at| at > 0 && bytes[at] == b'\n' && bytes[at - 1] == b'\r').collect()
    };
    let first_changed = changes.first().map_or(0, |change| text[..change.range.start].matches('\n').count());
    // An ending right before the change may have to stay apart from one that follows now.
    let touched = changes.first().is_some_and(|change| text[..change.range.start].ends_with('\n'));
    let before = same.min(first_changed).saturating_sub(usize::from(touched));
    assert_eq!(endings(&written)[..before], endings(&original)[..before], "endings before the first change");

    let shown = show("a.txt", &text, &edited, &changes);
    if let Some(patch) = shown.patch {
        assert_eq!(patched(&text, &patch), Some(edited), "{patch}");
    }
}

/// A refusal has the reason that it names.
fn refused_for_a_reason(text: &str, edits: &[Edit], problem: &EditProblem) {
    match problem {
        EditProblem::EmptyOld(index) => assert!(edits[*index].old.is_empty()),
        EditProblem::NotFound(index) => {
            assert!(!text.contains(&edits[*index].old) || edits.iter().any(|edit| !text.contains(&edit.old)))
        }
        EditProblem::Ambiguous(index, count) => {
            let old = fuzzy::plain(&edits[*index].old);
            let exact = text.matches(&edits[*index].old).count();
            let plain = if old.is_empty() { 0 } else { fuzzy::plain(text).matches(&*old).count() };
            assert!(
                *count > 1
                    && (exact > 1 || plain > 1 || fuzzy::plain(text).matches(&edits[*index].old).count() > 1)
            );
        }
        EditProblem::Overlap(one, other) => assert_ne!(one, other),
        other => panic!("{other:?}"),
    }
}

/// Replaces every old text, from the last to the first.
fn one_after_the_other(text: &str, edits: &[Edit]) -> String {
    let place = |edit: &Edit| text.find(&edit.old).or_else(|| text.find(&*fuzzy::plain(&edit.old)));
    let mut places: Vec<(usize, &Edit)> =
        edits.iter().filter_map(|edit| Some((place(edit)?, edit))).collect();
    assert_eq!(places.len(), edits.len());
    places.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    let mut result = text.to_owned();
    for (at, edit) in places {
        let length =
            if text[at..].starts_with(&edit.old) { edit.old.len() } else { fuzzy::plain(&edit.old).len() };
        result.replace_range(at..at + length, &edit.new);
    }
    result
}

fn common_start(one: &str, other: &str) -> usize {
    let same = one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count();
    floor(one, same)
}

/// The start of the character at `at`.
fn floor(text: &str, at: usize) -> usize {
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default()
}

/// Applies a unified diff to `old`; `None` when it does not fit.
fn patched(old: &str, patch: &str) -> Option<String> {
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let mut new = String::new();
    let mut at = 0;
    let mut rows = patch.split_inclusive('\n').skip(2).peekable();
    while let Some(row) = rows.next() {
        if let Some(place) = row.strip_prefix("@@ -") {
            let (start, count) = place.split_once(' ')?.0.split_once(',')?;
            let start = start.parse::<usize>().ok()? - usize::from(count != "0");
            new.extend(old.get(at..start)?.iter().copied());
            at = start;
            continue;
        }
        let lacks_feed = rows.peek().is_some_and(|next| next.starts_with('\\'));
        let line = row.get(1..)?;
        let line = if lacks_feed { line.strip_suffix('\n')? } else { line };
        match row.as_bytes()[0] {
            b' ' | b'-' if old.get(at) != Some(&line) => return None,
            b' ' => (at, _) = (at + 1, new.push_str(line)),
            b'-' => at += 1,
            b'+' => new.push_str(line),
            b'\\' => {}
            _ => return None,
        }
    }
    new.extend(old.get(at..)?.iter().copied());
    Some(new)
}
