use proptest::prelude::*;
use similar::TextDiff;

use super::*;
use crate::patch::parse::parse;

fn hunks(diff: &str) -> Vec<Hunk> {
    let mut files = parse(&format!("--- x\n+++ x\n{diff}")).unwrap();
    files.remove(0).hunks
}

fn patched(text: &str, diff: &str) -> Result<String, String> {
    let changes = place(text, &hunks(diff)).map_err(|misfit| misfit.message("x", true))?;
    Ok(apply(text, &changes))
}

#[test]
fn hunks_are_found_by_their_lines() {
    let change = "@@ -3,3 +3,3 @@\n a\n-b\n+c\n a\n";
    for (text, diff, expected) in [
        ("1\n2\na\nb\na\n", change, "1\n2\na\nc\na\n"),
        // Lines before it came or went.
        ("0\n1\n2\na\nb\na\n", change, "0\n1\n2\na\nc\na\n"),
        ("a\nb\na\n", change, "a\nc\na\n"),
        // The stated line comes first, and then the nearest one.
        ("a\nb\na\nb\na\n", change, "a\nb\na\nc\na\n"),
        ("a\nb\na\n1\na\nb\na\n", "@@ -2,3 +2,3 @@\n a\n-b\n+c\n a\n", "a\nc\na\n1\na\nb\na\n"),
        // A hunk is looked for as far away as the hunk before it was.
        (
            "0\n1\nx\nb\nb\nb\ny\n",
            "@@ -2,1 +2,1 @@\n-x\n+X\n@@ -4,1 +4,1 @@\n-b\n+c\n",
            "0\n1\nX\nb\nc\nb\ny\n",
        ),
        // Without numbers it must be clear.
        ("1\nb\n2\n", "@@\n-b\n+c\n", "1\nc\n2\n"),
        // Only new lines.
        ("1\n2\n", "@@ -1,0 +2,1 @@\n+x\n", "1\nx\n2\n"),
        ("1\n2\n", "@@ -0,0 +1,1 @@\n+x\n", "x\n1\n2\n"),
        ("1\n2\n", "@@ -2,0 +3,1 @@\n+x\n", "1\n2\nx\n"),
        ("", "@@ -0,0 +1,1 @@\n+x\n", "x\n"),
        ("", "@@ -0,0 +1,1 @@\n+x\n\\ No newline at end of file\n", "x"),
        // A line that contains another one is none.
        ("xa\nab\na\n", "@@ -9,1 +9,1 @@\n-a\n+c\n", "xa\nab\nc\n"),
    ] {
        assert_eq!(patched(text, diff).as_deref(), Ok(expected), "{text:?} {diff:?}");
    }
}

#[test]
fn the_end_of_a_text_is_as_the_diff_says() {
    let open = "\\ No newline at end of file\n";
    for (text, diff, expected) in [
        ("a\nb", format!("@@ -2 +2 @@\n-b\n{open}+b\n"), "a\nb\n"),
        ("a\nb\n", format!("@@ -2 +2 @@\n-b\n+b\n{open}"), "a\nb"),
        ("a\nb", format!("@@ -2 +2,2 @@\n-b\n{open}+b\n+c\n{open}"), "a\nb\nc"),
        ("a\nb", format!("@@ -1,2 +1 @@\n-a\n b\n{open}"), "b"),
        ("a\nb", format!("@@ -1,2 +1 @@\n-a\n-b\n{open}+c\n{open}"), "c"),
        ("a\nb\nc", format!("@@ -1,3 +1 @@\n a\n-b\n-c\n{open}"), "a\n"),
        // A diff that does not say how the file ends leaves its end as it is.
        ("a\nb", "@@ -2 +2 @@\n-b\n+c\n".to_owned(), "a\nc"),
        ("a\nb", "@@ -2 +2,2 @@\n b\n+c\n".to_owned(), "a\nb\nc"),
        ("a\nb\nc", "@@ -2,2 +2 @@\n b\n-c\n".to_owned(), "a\nb"),
        ("a\nb", "@@ -1,2 +0,0 @@\n-a\n-b\n".to_owned(), ""),
        ("a\nb\nc", "@@ -2 +1,0 @@\n-b\n@@ -3 +2,0 @@\n-c\n".to_owned(), "a"),
        // An empty line has its line feed: without it there would be no such line.
        ("a", "@@ -1 +1 @@\n-a\n+\n".to_owned(), "\n"),
        ("a\nb", "@@ -2 +2 @@\n-b\n+\n".to_owned(), "a\n\n"),
        ("a\n\nb", "@@ -3 +2,0 @@\n-b\n".to_owned(), "a\n\n"),
    ] {
        assert_eq!(patched(text, &diff).as_deref(), Ok(expected), "{text:?} {diff:?}");
    }
}

#[test]
fn hunks_without_a_place_are_told() {
    let open = "\\ No newline at end of file\n";
    for (text, diff, says) in [
        (
            "1\n2\n3\n",
            "@@ -1,3 +1,2 @@\n 1\n-x\n 3\n",
            "Hunk 1 of x (@@ -1,3 +1,2 @@) has no place: line 2 is \"2\", where the diff has \"x\"",
        ),
        ("0\n1\n2\n3\n", "@@ -1,3 +1,2 @@\n 1\n-x\n 3\n", "line 3 is \"2\", where the diff has \"x\""),
        ("1\n2\n", "@@ -1,3 +1,2 @@\n 1\n 2\n-3\n", "the file has no line 3, where the diff has \"3\""),
        ("", "@@ -1 +1 @@\n-a\n+b\n", "the file has no line 1"),
        ("b\n1\nb\n", "@@ -2 +2 @@\n-b\n+c\n", "stand at line 1 and at line 3"),
        ("b\nb\n", "@@\n-b\n+c\n", "stand at line 1 and at line 2"),
        (
            "1\n2\n",
            "@@ -2 +2 @@\n-2\n+x\n@@ -1 +1 @@\n-1\n+y\n",
            "Hunk 2 of x (@@ -1 +1 @@) has no place: its lines stand at line 1, which is not behind",
        ),
        (
            "1\n2\n",
            &format!("@@ -2 +2 @@\n-2\n{open}+3\n"),
            "stand at line 2, but the end of the file is another one",
        ),
        (
            "1\n2\n",
            &format!("@@ -1 +1 @@\n-1\n+3\n{open}"),
            "stand at line 1, but the end of the file is another one",
        ),
        ("1\n2\n", "@@ -3,0 +4 @@\n+x\n", "states none of the 2 lines"),
        ("1\n2\n", "@@\n+x\n", "has no old lines to be found by"),
    ] {
        let error = patched(text, diff).unwrap_err();
        assert!(error.contains(says), "{text:?} {diff:?}: {error}");
    }
    let misfit = place("secret\n", &hunks("@@ -1 +1 @@\n-x\n+y\n")).unwrap_err();
    assert_eq!(
        misfit.message("x", false),
        "Hunk 1 of x (@@ -1 +1 @@) has no place: line 1 is not \"x\". Read the file and make the diff of what it has now."
    );
}

/// Lines of a text, and whether the last one has a line feed.
fn text() -> impl Strategy<Value = String> {
    (prop::collection::vec("[ab]{0,2}", 0..14), any::<bool>()).prop_map(|(lines, is_closed)| {
        let text = lines.join("\n");
        if is_closed && !text.is_empty() { text + "\n" } else { text }
    })
}

fn diff(old: &str, new: &str, context: usize) -> String {
    TextDiff::from_lines(old, new).unified_diff().context_radius(context).header("x", "x").to_string()
}

proptest! {
    /// A diff from one text to another makes the other of the one.
    #[test]
    fn a_diff_makes_the_new_text_of_the_old_one(old in text(), new in text(), context in 0usize..4) {
        let diff = diff(&old, &new, context);
        prop_assume!(!diff.is_empty());
        let hunks = parse(&diff).unwrap().remove(0).hunks;
        let changes = place(&old, &hunks).map_err(|misfit| TestCaseError::fail(misfit.message("x", true)))?;
        prop_assert_eq!(apply(&old, &changes), new, "{}", diff);
    }

    /// Lines that came before all hunks move them.
    #[test]
    fn lines_that_came_before_do_not_matter(
        old in prop::collection::vec(0u8..4, 1..12), new in prop::collection::vec(0u8..4, 1..12), more in 1usize..6, context in 1usize..4,
    ) {
        // Every line is another one, so that no hunk stands twice.
        let text = |lines: &[u8]| -> String {
            lines.iter().enumerate().map(|(at, kind)| format!("{kind}:{at}\n")).collect()
        };
        let (old, new) = (text(&old), text(&new));
        let diff = diff(&old, &new, context);
        prop_assume!(!diff.is_empty());
        let hunks = parse(&diff).unwrap().remove(0).hunks;
        let before = "before\n".repeat(more);
        let moved = format!("{before}{old}");
        let changes = place(&moved, &hunks).map_err(|misfit| TestCaseError::fail(misfit.message("x", true)))?;
        prop_assert_eq!(apply(&moved, &changes), format!("{before}{new}"), "{}", diff);
    }

    /// Wherever hunks are found, changes are in order, lie in the text, and hold the lines that the hunks take away.
    #[test]
    fn changes_are_in_order(old in text(), other in text(), new in text(), context in 0usize..3) {
        let diff = diff(&other, &new, context);
        prop_assume!(!diff.is_empty());
        let hunks = parse(&diff).unwrap().remove(0).hunks;
        let Ok(changes) = place(&old, &hunks) else { return Ok(()) };
        let mut end = 0;
        for change in &changes {
            prop_assert!(end <= change.range.start && change.range.end <= old.len());
            end = change.range.end;
        }
        let marked = |mark| hunks.iter().flat_map(|hunk| &hunk.lines).filter(move |line| line.mark == mark).count();
        let lines = |text: &str| text.lines().count();
        let expected = lines(&old) + marked(LineMark::Come) - marked(LineMark::Gone);
        prop_assert_eq!(lines(&apply(&old, &changes)), expected, "{}", diff);
    }
}
