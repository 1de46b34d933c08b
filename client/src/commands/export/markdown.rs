//! Markdown that no content can break out of: our own pieces, and texts of models and users.

use crate::render::one_line;

/// The text as a code block. The fence is longer than every row of backticks in the text.
pub(super) fn fence(language: &str, text: &str) -> String {
    let fence = "`".repeat(longest_row(text).max(2) + 1);
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}{language}\n{text}{end}{fence}\n")
}

/// The text as code within a line.
pub(super) fn code(text: &str) -> String {
    let text = one_line(text);
    let ticks = "`".repeat(longest_row(&text) + 1);
    // A backtick at an end would join the fence. Readers remove one space on each side.
    let blank = if text.starts_with('`') || text.ends_with('`') || text.is_empty() { " " } else { "" };
    format!("{ticks}{blank}{text}{blank}{ticks}")
}

/// The text as plain words within a line, with all markup escaped.
pub(super) fn words(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in one_line(text).chars() {
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

/// The beginnings of HTML that hides or swallows what follows.
const SWALLOWING: &[&str] = &[
    "!", "?", "script", "pre", "style", "textarea", "details", "/details", "summary", "/summary", "template",
];

/// The text unchanged, except that an open code block is closed, and HTML that would hide or swallow the rest of the
/// document is escaped.
pub(super) fn prose(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut open: Option<CodeFence> = None;
    for line in text.trim_end().lines() {
        match (&open, CodeFence::of(line)) {
            (None, Some(fence)) => {
                open = Some(fence);
                out.push_str(line);
            }
            (Some(begun), Some(fence)) if fence.ends(begun) => {
                open = None;
                out.push_str(line);
            }
            (Some(_), _) => out.push_str(line),
            (None, None) => out.push_str(&tamed(line)),
        }
        out.push('\n');
    }
    if let Some(fence) = open {
        out.extend(std::iter::repeat_n(fence.mark, fence.length));
        out.push('\n');
    }
    out
}

/// A line that begins or ends a code block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CodeFence {
    mark: char,
    length: usize,
    /// Whether nothing follows the fence: only then it can be an end.
    is_bare: bool,
}

impl CodeFence {
    fn of(line: &str) -> Option<Self> {
        let text = line.trim_start_matches(' ');
        if line.len() - text.len() > 3 {
            return None;
        }
        let mark = text.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let rest = text.trim_start_matches(mark);
        let length = text.len() - rest.len();
        // A line with more backticks after the fence is inline code.
        let begins = length >= 3 && !(mark == '`' && rest.contains('`'));
        begins.then(|| Self { mark, length, is_bare: rest.trim().is_empty() })
    }

    fn ends(self, begun: &Self) -> bool {
        self.is_bare && self.mark == begun.mark && self.length >= begun.length
    }
}

/// A line outside of code blocks, with swallowing HTML escaped.
fn tamed(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut in_code = false;
    for (at, c) in line.char_indices() {
        if c == '`' && !line[..at].ends_with('`') {
            in_code = !in_code;
        }
        if c == '<' && !in_code && swallows(&line[at + 1..]) {
            out.push_str("&lt;");
        } else {
            out.push(c);
        }
    }
    out
}

fn swallows(rest: &str) -> bool {
    SWALLOWING.iter().any(|name| rest.get(..name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name)))
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

    #[test]
    fn markdown_stays_as_it_is() {
        for text in
            ["# A\n\n* b `<details>` <b>c</b>\n", "```html\n<details>\n```\n", "~~~\n```\n~~~\n", "a < b\n"]
        {
            assert_eq!(prose(text), text);
        }
        assert_eq!(prose("a\n\n\n"), "a\n");
        assert_eq!(prose(""), "");
    }

    #[test]
    fn open_blocks_are_closed() {
        assert_eq!(prose("````rust\nlet x;\n```"), "````rust\nlet x;\n```\n````\n");
        assert_eq!(prose("~~~\n```\n~~~ x"), "~~~\n```\n~~~ x\n~~~\n");
        assert_eq!(prose("```a`b"), "```a`b\n");
    }

    #[test]
    fn html_that_swallows_the_rest_is_text() {
        assert_eq!(
            prose("<!-- a\n<Details open>\nx </details>"),
            "&lt;!-- a\n&lt;Details open>\nx &lt;/details>\n"
        );
        assert_eq!(prose("<é"), "<é\n");
    }
}
