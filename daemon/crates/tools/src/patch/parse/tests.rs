use proptest::prelude::*;

use super::*;

fn hunk(head: &str, line: Option<usize>, lines: &[&str]) -> Hunk {
    let line_of = |line: &&str| {
        let (mark, text) = line.split_at(1);
        let mark = match mark {
            " " => LineMark::Same,
            "-" => LineMark::Gone,
            _ => LineMark::Come,
        };
        HunkLine { mark, text: text.to_owned() }
    };
    let lines = lines.iter().map(line_of).collect();
    Hunk { head: head.to_owned(), line, lines, old_is_open: false, new_is_open: false }
}

fn change(name: &str, hunks: Vec<Hunk>) -> FileDiff {
    FileDiff { target: DiffTarget::Change(name.to_owned()), hunks, sets_mode: false }
}

#[test]
fn a_diff_of_git_names_files_and_hunks() {
    let diff = "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@ fn x()\n one\n-two\n+2\n three\n@@ -9 +9,2 @@\n nine\n+ten\n\
                diff --git a/new b/new\nnew file mode 100755\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+n\n\
                diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-g\n\
                diff --git a/from b/to\nsimilarity index 100%\nrename from from\nrename to to\n\
                diff --git a/empty b/empty\nnew file mode 100644\nindex 0..0\n";
    let file = |target, hunks, sets_mode| FileDiff { target, hunks, sets_mode };
    let expected = [
        change(
            "x",
            vec![
                hunk("@@ -1,3 +1,3 @@ fn x()", Some(1), &[" one", "-two", "+2", " three"]),
                hunk("@@ -9 +9,2 @@", Some(9), &[" nine", "+ten"]),
            ],
        ),
        file(DiffTarget::Create("new".into()), vec![hunk("@@ -0,0 +1 @@", Some(0), &["+n"])], true),
        file(DiffTarget::Remove("gone".into()), vec![hunk("@@ -1 +0,0 @@", Some(1), &["-g"])], false),
        file(DiffTarget::Rename { from: "from".into(), to: "to".into() }, vec![], false),
        file(DiffTarget::Create("empty".into()), vec![], false),
    ];
    assert_eq!(parse(diff).unwrap(), expected);
}

#[test]
fn what_stands_around_a_diff_is_skipped() {
    let plain = "--- x\n+++ x\n@@ -1 +1 @@\n-a\n+b\n";
    let expected = parse(plain).unwrap();
    for diff in [
        format!("```diff\n{plain}```\n"),
        format!("Here it is:\n\n{plain}"),
        format!("{plain}-- \n2.43.0\n\n"),
        format!("{plain}\n\n"),
        plain.replace('\n', "\r\n"),
        plain.trim_end().to_owned(),
    ] {
        assert_eq!(parse(&diff).unwrap(), expected, "{diff:?}");
    }
}

#[test]
fn wrong_counts_and_lost_spaces_do_not_matter() {
    let lines = &[" a", "-b", "+c", " ", "+d"];
    for head in ["@@ -1,3 +1,4 @@", "@@ -1,1 +1,1 @@", "@@ -1,9 +1,9 @@", "@@ ... @@", "@@"] {
        let diff = format!("--- x\n+++ x\n{head}\n a\n-b\n+c\n\n+d\n--- y\n+++ y\n@@ -1 +1 @@\n-1\n+2\n");
        let files = parse(&diff).unwrap();
        assert_eq!(files.len(), 2, "{head}");
        let lines_of_first = hunk(head, files[0].hunks[0].line, lines);
        assert_eq!(files[0], change("x", vec![lines_of_first]), "{head}");
    }
}

#[test]
fn lines_that_look_like_names_are_lines_where_the_counts_say_so() {
    let files = parse("--- x\n+++ x\n@@ -1,2 +1,2 @@\n--- old\n+++ new\n same\n").unwrap();
    assert_eq!(
        files,
        [change("x", vec![hunk("@@ -1,2 +1,2 @@", Some(1), &["--- old", "+++ new", " same"])])]
    );
}

#[test]
fn the_end_without_a_line_feed_is_known_of_both_texts() {
    let open = |diff: &str| {
        let files = parse(&format!("--- x\n+++ x\n{diff}")).unwrap();
        (files[0].hunks[0].old_is_open, files[0].hunks[0].new_is_open)
    };
    assert_eq!(open("@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n"), (true, false));
    assert_eq!(open("@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n"), (false, true));
    assert_eq!(open("@@ -1,2 +1 @@\n-b\n a\n\\ No newline at end of file\n"), (true, true));
}

#[test]
fn what_cannot_be_read_is_told() {
    for (diff, says) in [
        ("hello", "names no file"),
        ("@@ -1 +1 @@\n-a\n+b\n", "Line 1 of the diff begins a hunk of no file"),
        ("--- x\n+++ x\n-a\n+b\n", "Line 3 of the diff belongs to no hunk"),
        (
            "--- x\n+++ x\n@@ -1,3 +1,3 @@\n a\nb\n c\n",
            "Line 5 of the diff begins with none of space, + and -",
        ),
        ("--- x\n+++ x\n", "changes no line of x"),
        ("--- x\n+++ x\n@@ -1 +1 @@\n a\n", "changes no line of x"),
        ("--- x\n+++ x\n@@ -1 +1 @@\n", "has no lines"),
        ("--- x\n+++ x\n@@ -1 +1 @@\n\\ No newline\n", "the end of a line that is not there"),
        ("--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-a\n", "names no file"),
        ("--- /dev/null\n+++ x\n@@ -1 +1 @@\n-a\n+b\n", "all of its lines must begin with +"),
        ("--- x\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+b\n", "all of its lines must begin with -"),
        ("diff --git a/x b/x\nold mode 100644\nnew mode 100755\n", "use bash to change its mode"),
        ("diff --git a/x b/x\nnew file mode 120000\n", "x is a symbolic link"),
        ("diff --git a/x b/x\nindex 1..2\nBinary files a/x and b/x differ\n", "x is no text in the diff"),
        ("diff --git a/x b/y\nrename from x\n", "only one of rename from and rename to"),
        ("diff --git a/x b/y\ncopy from x\ncopy to y\n--- a/x\n+++ b/y\n", "y is copied"),
    ] {
        let error = parse(diff).unwrap_err();
        assert!(error.contains(says), "{diff:?}: {error}");
    }
}

proptest! {
    /// Any text is read, or refused with a sentence.
    #[test]
    fn any_text_is_read(text in "(@@ |@@ -1,2 \\+3 @@|--- |\\+\\+\\+ |diff --git |rename (from|to) |[-+ \\\\\"]|\n|[a-c0-9/é\r]){0,60}") {
        for file in parse(&text).unwrap_or_default() {
            prop_assert!(file.hunks.iter().all(|hunk| !hunk.lines.is_empty()));
        }
    }
}
