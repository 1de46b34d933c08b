//! Markdown that others wrote, kept from swallowing what comes after it.

/// Beginnings of HTML that would take in what follows: blocks that only their own end ends, and what folds.
const SWALLOWING: &[&str] = &[
    "!", "?", "script", "pre", "style", "textarea", "details", "/details", "summary", "/summary", "template",
];

/// The text as it is, but for a code block that was left open, which is closed, and for HTML that would hide or swallow
/// the rest of the document, which shows as text.
pub(super) fn prose(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut open: Option<Fence> = None;
    for line in text.trim_end().lines() {
        match (&open, Fence::of(line)) {
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
struct Fence {
    mark: char,
    length: usize,
    /// Whether nothing follows: only then it can be an end.
    is_bare: bool,
}

impl Fence {
    fn of(line: &str) -> Option<Self> {
        let text = line.trim_start_matches(' ');
        if line.len() - text.len() > 3 {
            return None;
        }
        let mark = text.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let rest = text.trim_start_matches(mark);
        let length = text.len() - rest.len();
        // Backticks after backticks are code within a line.
        let begins = length >= 3 && !(mark == '`' && rest.contains('`'));
        begins.then(|| Self { mark, length, is_bare: rest.trim().is_empty() })
    }

    fn ends(self, begun: &Self) -> bool {
        self.is_bare && self.mark == begun.mark && self.length >= begun.length
    }
}

/// A line outside of code blocks.
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
    use super::*;

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
