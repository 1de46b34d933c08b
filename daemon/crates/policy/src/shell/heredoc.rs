//! Here-documents: whether the text between the delimiters is what the syntax tree takes it for.

/// The delimiter of a here-document as it is written after `<<`, quotes resolved, and whether it was quoted. `None` for one that is not
/// plain.
fn delimiter(start: &str) -> Option<(String, bool)> {
    let is_plain = |text: &str| {
        !text.is_empty()
            && text.chars().all(|character| character.is_ascii_alphanumeric() || "_-. ".contains(character))
    };
    let unquoted = |quote: char| start.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    let (text, quoted) = match (unquoted('\''), unquoted('"'), start.strip_prefix('\\')) {
        (Some(text), ..) | (_, Some(text), _) | (.., Some(text)) => (text, true),
        _ => (start, false),
    };
    (is_plain(text) && (quoted || !text.contains(' '))).then(|| (text.to_owned(), quoted))
}

/// A here-document that was checked.
pub(super) struct Heredoc {
    /// Whether its text is taken as it is: nothing in it is expanded.
    pub(super) is_literal: bool,
}

/// Checks a here-document: `start` as written after `<<`, the text up to the line `end`. `strips_tabs`: it begins with `<<-`.
pub(super) fn check(start: &str, body: &str, end: &str, strips_tabs: bool) -> Option<Heredoc> {
    let (delimiter, quoted) = delimiter(start)?;
    let line =
        |line: &str| if strips_tabs { line.trim_start_matches('\t') == delimiter } else { line == delimiter };
    // The grammar counts the tabs before the delimiter to the text.
    let body = if strips_tabs { body.trim_end_matches('\t') } else { body };
    if !line(end) || (!body.is_empty() && !body.ends_with('\n')) || body.lines().any(line) {
        return None;
    }
    // A continued line could join what looks like the end to the line before.
    if !quoted && body.contains("\\\n") {
        return None;
    }
    Some(Heredoc { is_literal: quoted })
}

/// Whether a piece of a here-document's text, outside of the expansions that the tree knows, expands to nothing else.
pub(super) fn is_plain(text: &str) -> bool {
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' => {
                characters.next();
            }
            '`' => return false,
            '$' => {
                let follows = characters.peek().copied().unwrap_or(' ');
                if follows.is_ascii_alphanumeric() || "_({[*@#?$!-'\"".contains(follows) {
                    return false;
                }
            }
            _ => {}
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delimiters() {
        assert!(check("EOF", "a\n", "EOF", false).is_some_and(|found| !found.is_literal));
        assert!(check("'E O'", "a\n", "E O", false).is_some_and(|found| found.is_literal));
        assert!(check("\\EOF", "a\n", "EOF", false).is_some_and(|found| found.is_literal));
        assert!(check("EOF", "a\n", "\tEOF", true).is_some());
        assert!(check("EOF", "a\nEOF\nb\n", "EOF", false).is_none(), "it ends before");
        assert!(check("EOF", "a\\\nEOF\n", "EOF", false).is_none());
        assert!(check("E\"O\"F", "a\n", "EOF", false).is_none());
        assert!(check("EOF", "a\n", "EOF ", false).is_none());
    }

    #[test]
    fn expansions() {
        assert!(is_plain("5 $ and \\$x and $."));
        assert!(!is_plain("$x") && !is_plain("$(a)") && !is_plain("`a`"));
    }
}
