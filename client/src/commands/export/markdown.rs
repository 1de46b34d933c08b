//! Pieces of Markdown that no content can break out of.

/// The text as a code block. Its fence is longer than every row of backticks in it.
pub(super) fn fence(language: &str, text: &str) -> String {
    let fence = "`".repeat(longest_row(text).max(2) + 1);
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}{language}\n{text}{end}{fence}\n")
}

/// The text as code within a line.
pub(super) fn code(text: &str) -> String {
    let text = crate::render::one_line(text);
    let ticks = "`".repeat(longest_row(&text) + 1);
    // A backtick at an end would join the fence; blanks on both sides are taken away by readers.
    let blank = if text.starts_with('`') || text.ends_with('`') || text.is_empty() { " " } else { "" };
    format!("{ticks}{blank}{text}{blank}{ticks}")
}

/// The text as plain words within a line: nothing in it is markup.
pub(super) fn words(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in crate::render::one_line(text).chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '&' => escaped.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '|' | '~' | '!' => escaped.extend(['\\', c]),
            c => escaped.push(c),
        }
    }
    escaped
}

fn longest_row(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn code_cannot_be_left() {
        assert_eq!(fence("sh", "ls"), "```sh\nls\n```\n");
        assert_eq!(fence("", "a\n````\nb\n"), "`````\na\n````\nb\n`````\n");
        assert_eq!(fence("", ""), "```\n```\n");
        for (text, expected) in
            [("a b", "`a b`"), ("a`b", "``a`b``"), ("`", "`` ` ``"), ("", "`  `"), ("a\nb", "`a b`")]
        {
            assert_eq!(code(text), expected);
        }
        assert_eq!(words("a_b <c> #1\n`d`"), "a\\_b &lt;c> \\#1 \\`d\\`");
    }

    proptest! {
        #[test]
        fn no_line_of_the_text_ends_its_fence(text in "[`a\n ~]{0,60}") {
            let block = fence("text", &text);
            let lines: Vec<&str> = block.lines().collect();
            let (last, inner) = lines[1..].split_last().unwrap();
            prop_assert!(inner.iter().all(|line| !line.trim().starts_with(last)));
            prop_assert_eq!(inner.join("\n"), text.strip_suffix('\n').unwrap_or(&text));
        }
    }
}
