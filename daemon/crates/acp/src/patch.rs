//! Pure. The hunks of a unified diff as pairs of old and new text.

/// The text around one change, before and after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hunk {
    /// The first line of the new text, from 1.
    pub(crate) line: u32,
    pub(crate) old: String,
    pub(crate) new: String,
}

/// Reads the hunks of a unified diff of one file. Lines that are no part of a hunk are skipped.
pub(crate) fn hunks(patch: &str) -> Vec<Hunk> {
    let mut hunks: Vec<Hunk> = Vec::new();
    // Which of the two texts the line before belongs to.
    let (mut in_old, mut in_new) = (false, false);
    for line in patch.split_inclusive('\n') {
        if let Some(head) = line.strip_prefix("@@ ") {
            let line = head.split_once('+').map(|(_, new)| new.split([',', ' ']).next().unwrap_or_default());
            let line = line.and_then(|line| line.parse().ok()).unwrap_or(1).max(1);
            hunks.push(Hunk { line, old: String::new(), new: String::new() });
            continue;
        }
        let Some(hunk) = hunks.last_mut() else { continue };
        let Some((kind, text)) = line.split_at_checked(1) else { continue };
        match kind {
            " " | "\n" => {
                let text = if kind == "\n" { "\n" } else { text };
                hunk.old.push_str(text);
                hunk.new.push_str(text);
                (in_old, in_new) = (true, true);
            }
            "-" => {
                hunk.old.push_str(text);
                (in_old, in_new) = (true, false);
            }
            "+" => {
                hunk.new.push_str(text);
                (in_old, in_new) = (false, true);
            }
            // `\ No newline at end of file`: the line before has no LF.
            "\\" => {
                for (text, is_meant) in [(&mut hunk.old, in_old), (&mut hunk.new, in_new)] {
                    if is_meant && text.ends_with('\n') {
                        text.pop();
                    }
                }
            }
            _ => {}
        }
    }
    hunks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hunks_have_both_texts() {
        let patch = "--- a.rs\n+++ a.rs\n@@ -1,3 +1,3 @@\n one\n-two\n+zwei\n three\n@@ -10,2 +10,1 @@ fn x()\n ten\n-eleven\n";
        let hunk = |line, old: &str, new: &str| Hunk { line, old: old.into(), new: new.into() };
        assert_eq!(
            hunks(patch),
            [hunk(1, "one\ntwo\nthree\n", "one\nzwei\nthree\n"), hunk(10, "ten\neleven\n", "ten\n")]
        );
    }

    #[test]
    fn a_last_line_without_its_end_stays_without() {
        let patch = "@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n";
        assert_eq!(hunks(patch), [Hunk { line: 1, old: "a".into(), new: "b".into() }]);
        let only_new = "@@ -1 +1,2 @@\n a\n-b\n+b\n+c\n\\ No newline at end of file\n";
        assert_eq!(hunks(only_new), [Hunk { line: 1, old: "a\nb\n".into(), new: "a\nb\nc".into() }]);
    }

    #[test]
    fn a_new_file_has_no_old_text() {
        let patch = "--- /dev/null\n+++ a\n@@ -0,0 +1,1 @@\n+x\n";
        assert_eq!(hunks(patch), [Hunk { line: 1, old: String::new(), new: "x\n".into() }]);
    }

    #[test]
    fn text_that_is_no_diff_has_no_hunks() {
        assert_eq!(hunks("hello\n+x\n"), []);
        assert_eq!(hunks(""), []);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read(text in "(@@ |[-+ \\\\]|\\n|[a-c0-9,é]){0,60}") {
            hunks(&text);
        }
    }
}
