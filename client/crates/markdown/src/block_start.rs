//! The beginnings of blocks. All take a line without its indentation.

use crate::text::is_blank;

/// The most blanks behind a list mark that belong to it.
const MAX_MARK_BLANKS: usize = 4;

/// The level and the text of an ATX heading.
pub(crate) fn heading(line: &str) -> Option<(usize, &str)> {
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    let text = &line[level..];
    if !(1..=6).contains(&level) || !(text.is_empty() || text.starts_with(' ')) {
        return None;
    }
    let text = text.trim_matches(' ');
    let open = text.trim_end_matches('#');
    let is_closed = open.len() < text.len() && (open.is_empty() || open.ends_with(' '));
    Some((level, if is_closed { open.trim_end_matches(' ') } else { text }))
}

/// The level of the heading that a line of `=` or `-` makes of the paragraph above.
pub(crate) fn underline(line: &str) -> Option<usize> {
    let line = line.trim_end_matches(' ');
    let is_all = |mark: u8| !line.is_empty() && line.bytes().all(|byte| byte == mark);
    if is_all(b'=') {
        Some(1)
    } else if is_all(b'-') {
        Some(2)
    } else {
        None
    }
}

/// Whether a line is a rule.
pub(crate) fn is_rule(line: &str) -> bool {
    let Some(mark @ (b'-' | b'*' | b'_')) = line.bytes().next() else { return false };
    line.bytes().all(|byte| byte == mark || byte == b' ')
        && line.bytes().filter(|byte| *byte == mark).count() >= 3
}

/// The fence of a code block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FenceMark {
    mark: u8,
    length: usize,
}

impl FenceMark {
    /// The fence that a line opens, and the words behind it.
    pub(crate) fn opening(line: &str) -> Option<(Self, &str)> {
        let mark = *line.as_bytes().first()?;
        if !matches!(mark, b'`' | b'~') {
            return None;
        }
        let length = line.bytes().take_while(|byte| *byte == mark).count();
        let words = line[length..].trim_matches(' ');
        let fits = length >= 3 && !(mark == b'`' && words.contains('`'));
        fits.then_some((Self { mark, length }, words))
    }

    /// Whether a line closes it.
    pub(crate) fn is_closed_by(self, line: &str) -> bool {
        let length = line.bytes().take_while(|byte| *byte == self.mark).count();
        length >= self.length && is_blank(&line[length..])
    }
}

/// The mark of a list's item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListMark {
    /// `-`, `*`, `+`, or what is behind a number: `.`, `)`.
    pub(crate) mark: u8,
    pub(crate) number: Option<u32>,
    /// The columns up to the item's content.
    pub(crate) width: usize,
    pub(crate) is_empty: bool,
}

impl ListMark {
    /// The mark that a line begins with.
    pub(crate) fn of(line: &str) -> Option<Self> {
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        let mark = *line.as_bytes().get(digits)?;
        let number = match (digits, mark) {
            (0, b'-' | b'*' | b'+') => None,
            (1..=9, b'.' | b')') => Some(line[..digits].parse().ok()?),
            _ => return None,
        };
        let after = &line[digits + 1..];
        let is_empty = is_blank(after);
        let blanks = after.len() - after.trim_start_matches(' ').len();
        if blanks == 0 && !is_empty {
            return None;
        }
        let blanks = if is_empty || blanks > MAX_MARK_BLANKS { 1 } else { blanks };
        Some(Self { mark, number, width: digits + 1 + blanks, is_empty })
    }
}

/// Names of tags that begin a block.
const BLOCK_TAGS: &[&str] = &[
    "address",
    "article",
    "aside",
    "blockquote",
    "body",
    "caption",
    "center",
    "col",
    "colgroup",
    "dd",
    "details",
    "dialog",
    "dir",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "frame",
    "frameset",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "head",
    "header",
    "hr",
    "html",
    "iframe",
    "legend",
    "li",
    "link",
    "main",
    "menu",
    "nav",
    "ol",
    "optgroup",
    "option",
    "p",
    "param",
    "pre",
    "script",
    "search",
    "section",
    "style",
    "summary",
    "table",
    "tbody",
    "td",
    "textarea",
    "tfoot",
    "th",
    "thead",
    "title",
    "tr",
    "track",
    "ul",
];

/// Whether a line begins a block of HTML. One of a tag that is not a block's may not interrupt a paragraph.
pub(crate) fn is_html(line: &str, in_paragraph: bool) -> bool {
    let Some(inner) = line.strip_prefix('<') else { return false };
    if inner.starts_with("!--") || inner.starts_with('?') || inner.starts_with("!DOCTYPE") {
        return true;
    }
    let name = inner.strip_prefix('/').unwrap_or(inner);
    let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(name.len());
    let (name, after) = name.split_at(end);
    if name.is_empty() {
        return false;
    }
    let ends_name = after.is_empty() || after.starts_with([' ', '>']) || after.starts_with("/>");
    if ends_name && BLOCK_TAGS.iter().any(|tag| name.eq_ignore_ascii_case(tag)) {
        return true;
    }
    // A tag alone in its line.
    let tag_end = after.find('>');
    !in_paragraph && ends_name && tag_end.is_some_and(|end| is_blank(&after[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginnings_are_told_apart() {
        assert_eq!([heading("## a b ##"), heading("#a"), heading("#######")], [Some((2, "a b")), None, None]);
        assert_eq!([heading("# a#"), heading("#")], [Some((1, "a#")), Some((1, ""))]);
        assert_eq!([underline("== "), underline("-"), underline("=-")], [Some(1), Some(2), None]);
        assert_eq!(
            [is_rule("***"), is_rule("- - -"), is_rule("--"), is_rule("-*-")],
            [true, true, false, false]
        );
        assert!(is_html("<div class='a'>", true) && is_html("<!-- a", true) && is_html("<x-y>", false));
        assert!(!is_html("<x-y>", true) && !is_html("<https://a.b>", false) && !is_html("<b>a</b>", false));
    }

    #[test]
    fn fences_are_closed_by_their_like() {
        let (fence, words) = FenceMark::opening("````rust x").unwrap();
        assert_eq!(words, "rust x");
        assert!(fence.is_closed_by("`````  ") && !fence.is_closed_by("```") && !fence.is_closed_by("```` a"));
        assert!(FenceMark::opening("```a```").is_none() && FenceMark::opening("``").is_none());
    }

    #[test]
    fn list_marks() {
        let mark = |line| ListMark::of(line).map(|mark| (mark.number, mark.width, mark.is_empty));
        assert_eq!(
            [mark("- a"), mark("12) a"), mark("-"), mark("-     a")],
            [
                Some((None, 2, false)),
                Some((Some(12), 4, false)),
                Some((None, 2, true)),
                Some((None, 2, false))
            ]
        );
        assert_eq!([mark("-a"), mark("1234567890. a"), mark("a")], [None; 3]);
    }
}
