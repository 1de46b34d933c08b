//! Marks of Markdown around texts. Pure.

/// Whether a class is that of the numbers beside lines of code.
pub(super) fn is_gutter(classes: &str) -> bool {
    classes.split_whitespace().any(|class| {
        matches!(
            class,
            "lineno"
                | "linenos"
                | "line-number"
                | "line-numbers"
                | "gutter"
                | "linenumber"
                | "hljs-ln-numbers"
        )
    })
}

/// A text between two marks.
pub(super) fn wrapped(text: &str, mark: &str) -> String {
    // A mark within the same mark ends it.
    if text.is_empty() || text.contains(mark) { text.to_owned() } else { format!("{mark}{text}{mark}") }
}

/// Code within a line.
pub(super) fn inline_code(text: &str) -> String {
    let text = text.replace('\n', " ");
    let ticks = "`".repeat(longest_run(&text, '`') + 1);
    if ticks.len() == 1 { format!("`{text}`") } else { format!("{ticks} {text} {ticks}") }
}

/// The most of a character in a row.
pub(super) fn longest_run(text: &str, wanted: char) -> usize {
    let (mut longest, mut run) = (0, 0);
    for character in text.chars() {
        run = if character == wanted { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}
