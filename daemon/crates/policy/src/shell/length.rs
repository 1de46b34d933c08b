//! How much of a text the parser has to take apart.

/// The bytes of `text` outside of here-documents in which nothing is expanded; all of them where a here-document has no end.
///
/// Only what certainly is a here-document is left out: behind anything but plain words and simple quotes nothing is.
pub(super) fn parsed_bytes(text: &str) -> usize {
    let mut count = 0;
    let mut quotes = Quotes::Outside;
    let mut lines = text.split_inclusive('\n');
    while let Some(line) = lines.next() {
        count += line.len();
        let delimiter = delimiter(line).filter(|found| quotes.after(&line[..found.at]) == Quotes::Outside);
        quotes = quotes.after(line);
        let Some(delimiter) = delimiter else { continue };
        let mut body = 0;
        let mut is_expanded = false;
        loop {
            let Some(next) = lines.next() else { return text.len() };
            let is_end = next.trim_end_matches('\n').trim_start_matches('\t') == delimiter.word;
            if is_end {
                count += next.len();
                break;
            }
            body += next.len();
            is_expanded |= !delimiter.is_quoted && next.contains(['$', '`', '\\']);
        }
        if is_expanded {
            count += body;
        }
    }
    count
}

/// Where a place is, as far as the quotes before it are simple.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quotes {
    Outside,
    Single,
    Double,
    /// Escapes, expansions, comments, groups: it takes a parser to tell.
    Uncertain,
}

impl Quotes {
    /// Behind a text that begins here.
    fn after(self, text: &str) -> Self {
        let mut before = ' ';
        text.chars().fold(self, |place, character| {
            let is_behind_dollar = std::mem::replace(&mut before, character) == '$';
            match (place, character) {
                (Self::Single, '\'') | (Self::Double, '"') => Self::Outside,
                (Self::Double, '\\' | '$' | '`') | (Self::Outside, '\\' | '#' | '`' | '(') => Self::Uncertain,
                (Self::Outside, '\'' | '"' | '{') if is_behind_dollar => Self::Uncertain,
                (Self::Outside, '\'') => Self::Single,
                (Self::Outside, '"') => Self::Double,
                (place, _) => place,
            }
        })
    }
}

struct Delimiter<'a> {
    /// Where its operator begins in the line.
    at: usize,
    word: &'a str,
    is_quoted: bool,
}

/// The delimiter of the first here-document that begins in a line: a name, perhaps in quotes.
fn delimiter(line: &str) -> Option<Delimiter<'_>> {
    let (at, _) = line.match_indices("<<").find(|(at, _)| {
        let around = (line.as_bytes().get(at.wrapping_sub(1)), line.as_bytes().get(at + 2));
        around.0 != Some(&b'<') && around.1 != Some(&b'<')
    })?;
    let rest = &line[at + 2..];
    let rest = rest.strip_prefix('-').unwrap_or(rest).trim_start_matches([' ', '\t']);
    let quote = ['\'', '"'].into_iter().find(|quote| rest.starts_with(*quote));
    let unquoted = quote.map_or(rest, |_| &rest[1..]);
    let end = unquoted.find(|character: char| !(character.is_ascii_alphanumeric() || character == '_'));
    let (word, behind) = unquoted.split_at(end.unwrap_or(unquoted.len()));
    let behind = quote.map_or(Some(behind), |quote| behind.strip_prefix(quote))?;
    let is_whole = behind.is_empty() || behind.starts_with([' ', '\t', '\n', ';', '|', '&', '>']);
    (!word.is_empty() && is_whole).then_some(Delimiter { at, word, is_quoted: quote.is_some() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_nothing_is_expanded_in_do_not_count() {
        for (text, expected) in [
            ("ls | head", 9),
            ("cat > a <<'E'\n$x ` y\nE\nls", 14 + 2 + 2),
            ("cat <<-E >a\n\tplain\n\tE\n", 12 + 3),
            ("cat <<E\n$x\nE\n", 13),
            ("cat <<E\nno end", 14),
            ("cat <<< word\nls\n", 16),
            ("cat << 'A B'\nx\nA\n", 17),
            ("cat > \"a b\" <<'E'\nx\nE\n", 18 + 2),
            ("echo 'a' \"b\"\ncat <<E\nx\nE\n", 13 + 8 + 2),
        ] {
            assert_eq!(parsed_bytes(text), expected, "{text:?}");
        }
    }

    #[test]
    fn what_may_be_no_here_document_counts() {
        for begin in [
            ": \"<<'E'\"",
            "# <<'E'",
            "echo \\\" \" <<'E'",
            "echo '\ncat <<'E'",
            "echo $((1<<E))",
            "(cat <<'E'",
            "echo ${x#<<'E'}",
            "cat <<E'F'",
            "echo \"$(x)\"\ncat <<'E'",
            "echo '\"' \"\ncat <<'E'",
        ] {
            let text = format!("{begin}\nls|ls\nE\n");
            assert_eq!(parsed_bytes(&text), text.len(), "{text:?}");
        }
    }
}
