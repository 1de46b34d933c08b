use proptest::prelude::*;

use super::{super::super::apply::apply, *};

fn change(old: &str, gone: &str, come: &str) -> Change {
    let start = old.find(gone).unwrap();
    Change { range: start..start + gone.len(), text: come.to_owned() }
}

fn shown(old: &str, changes: &[Change]) -> Shown {
    show("src/a.txt", old, &apply(old, changes), changes)
}

fn numbered(count: usize) -> String {
    (1..=count).map(|number| format!("line {number}.\n")).collect()
}

#[test]
fn a_small_file_is_shown_whole() {
    let old = "one\ntwo\nthree\n";
    assert_eq!(
        shown(old, &[change(old, "two", "2\n2b")]),
        Shown {
            diff: " 1 one\n-2 two\n+2 2\n+3 2b\n 3 three".to_owned(),
            patch: Some(
                "--- src/a.txt\n+++ src/a.txt\n@@ -1,3 +1,4 @@\n one\n-two\n+2\n+2b\n three\n".to_owned()
            ),
            first_changed_line: Some(2),
        }
    );
}

#[test]
fn a_last_line_that_goes_with_the_feed_before_it() {
    let found = shown("one\ntwo", &[change("one\ntwo", "\ntwo", "")]);
    assert_eq!(found.diff, "-1 one\n-2 two\n+1 one");
    assert_eq!(
        found.patch.as_deref(),
        Some(
            "--- src/a.txt\n+++ src/a.txt\n@@ -1,2 +1,1 @@\n-one\n-two\n\\ No newline at end of file\n+one\n\\ No newline at end of file\n"
        )
    );
}

#[test]
fn far_lines_are_skipped_and_numbers_are_padded() {
    let old = numbered(30);
    let found = shown(&old, &[change(&old, "line 8.", "8"), change(&old, "line 25.\n", "")]);
    assert_eq!(
        found.diff,
        "    ...\n  4 line 4.\n  5 line 5.\n  6 line 6.\n  7 line 7.\n- 8 line 8.\n+ 8 8\n  9 line 9.\n 10 line 10.\n \
         11 line 11.\n 12 line 12.\n    ...\n 21 line 21.\n 22 line 22.\n 23 line 23.\n 24 line 24.\n-25 line 25.\n \
         26 line 26.\n 27 line 27.\n 28 line 28.\n 29 line 29.\n    ..."
    );
    let patch = found.patch.unwrap();
    assert!(patch.contains("@@ -4,9 +4,9 @@\n"), "{patch}");
    assert!(patch.contains("@@ -21,9 +21,8 @@\n"), "{patch}");
    assert_eq!(found.first_changed_line, Some(8));
}

#[test]
fn close_changes_share_a_hunk() {
    let old = numbered(20);
    let found = shown(&old, &[change(&old, "line 5.", "5"), change(&old, "line 14.", "14")]);
    assert_eq!(found.patch.unwrap().matches("@@ -").count(), 1);
    let found = shown(&old, &[change(&old, "line 5.", "5"), change(&old, "line 15.", "15")]);
    assert_eq!(found.patch.unwrap().matches("@@ -").count(), 2);
}

#[test]
fn ends_without_a_line_feed_are_told_in_the_patch() {
    let found = shown("a", &[change("a", "a", "a\n")]);
    assert_eq!(found.diff, "-1 a\n+1 a");
    assert_eq!(
        found.patch.unwrap(),
        "--- src/a.txt\n+++ src/a.txt\n@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+a\n"
    );
    let found = shown("a\nb", &[change("a\nb", "a", "x")]);
    assert_eq!(found.diff, "-1 a\n+1 x\n 2 b");
}

#[test]
fn a_file_can_become_empty() {
    let found = shown("a\n", &[change("a\n", "a\n", "")]);
    assert_eq!(found.diff, "-1 a");
    assert_eq!(found.patch.unwrap(), "--- src/a.txt\n+++ src/a.txt\n@@ -1,1 +0,0 @@\n-a\n");
    assert_eq!(found.first_changed_line, Some(1));
}

#[test]
fn huge_lines_are_cut_and_huge_patches_left_out() {
    let old = "é".repeat(MAX_PATCH);
    let found = shown(&old, &[Change { range: 0..2, text: "x".into() }]);
    assert_eq!(found.patch, None);
    assert!(found.diff.len() < 3 * MAX_LINE);
    assert!(found.diff.contains("... [2080768 more bytes]\n"), "{}", &found.diff[found.diff.len() - 100..]);
}

/// Makes a file out of `old` and the patch, as `patch` does.
fn patched(old: &str, patch: &str) -> String {
    let lines: Vec<&str> = old.split_inclusive('\n').collect();
    let mut result = String::new();
    let mut at = 0;
    for line in patch.split_inclusive('\n').skip(2) {
        if let Some(rest) = line.strip_prefix("@@ -") {
            let (start, count) = rest.split(' ').next().unwrap().split_once(',').unwrap();
            let (start, count): (usize, usize) = (start.parse().unwrap(), count.parse().unwrap());
            let start = if count == 0 { start } else { start - 1 };
            result.extend(lines[at..start].iter().copied());
            at = start;
            continue;
        }
        match line.split_at(1) {
            (" ", text) => {
                // A missing line feed is told by the line that follows.
                assert_eq!(lines[at].trim_end_matches('\n'), text.trim_end_matches('\n'));
                result.push_str(text);
                at += 1;
            }
            ("-", text) => {
                assert_eq!(lines[at].trim_end_matches('\n'), text.trim_end_matches('\n'));
                at += 1;
            }
            ("+", text) => result.push_str(text),
            ("\\", _) => {
                // After a removed line the new text has not ended yet.
                if at == lines.len() && !patch.ends_with(line) {
                    continue;
                }
                result.truncate(result.trim_end_matches('\n').len().max(result.len() - 1));
            }
            other => panic!("{other:?}"),
        }
    }
    result.extend(lines[at..].iter().copied());
    result
}

proptest! {
    /// The patch makes the new text out of the old one, and the numbers of the display are those of the lines.
    #[test]
    fn the_patch_makes_the_new_text(
        lines in prop::collection::vec("[ab]{0,2}", 0..40),
        cuts in prop::collection::vec((0usize..120, 0usize..12, "[ab\n]{0,5}"), 1..4),
    ) {
        let old: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let mut changes = Vec::new();
        let mut at = 0;
        for (skip, length, text) in cuts {
            let start = (at + skip).min(old.len());
            let end = (start + length).min(old.len());
            changes.push(Change { range: start..end, text });
            at = end + 1;
            if at > old.len() { break; }
        }
        // Whole lines only: how a patch tells missing line feeds has tests of its own.
        let new = apply(&old, &changes);
        prop_assume!(new.is_empty() || new.ends_with('\n'));
        let found = show("f", &old, &new, &changes);
        prop_assert_eq!(patched(&old, found.patch.as_deref().unwrap()), new.as_str());
        prop_assert_eq!(found.first_changed_line.is_some(), old != new);

        let old_lines: Vec<&str> = old.split('\n').collect();
        let new_lines: Vec<&str> = new.split('\n').collect();
        for row in found.diff.lines().filter(|row| !row.trim_start().starts_with("...")) {
            let (mark, rest) = row.split_at(1);
            let (number, text) = rest.trim_start().split_once(' ').unwrap();
            let number: usize = number.parse().unwrap();
            let of = if mark == "+" { &new_lines } else { &old_lines };
            prop_assert_eq!(of[number - 1], text);
        }
    }
}

/// A file that is written anew in one edit: the display ends after whole rows, and says how many are missing.
#[test]
fn a_very_long_display_is_cut() {
    let old = "old line\n".repeat(100_000);
    let new = "new line\n".repeat(100_000);
    let changes = [Change { range: 0..old.len(), text: new.clone() }];
    let Shown { diff, patch, first_changed_line } = show("f", &old, &new, &changes);
    assert!(diff.len() < MAX_DIFF + 100, "{}", diff.len());
    let mut rows = diff.lines().rev();
    let last = rows.next().unwrap();
    let shown = diff.lines().count() - 1;
    assert_eq!(last, format!("        ... [{} more lines of the diff]", 200_000 - shown));
    assert!(rows.all(|row| row.ends_with(" old line")));
    assert_eq!((patch, first_changed_line), (None, Some(1)));
}
