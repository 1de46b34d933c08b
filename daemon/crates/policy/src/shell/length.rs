//! How much of a text the parser has to take apart.

/// The bytes of `text` outside of here-documents in which nothing is expanded; all of them where a here-document has no end.
///
/// A rough look at the lines, for a bound of time alone: what seems to be a here-document may stand in quotes.
pub(super) fn parsed_bytes(text: &str) -> usize {
    let mut count = 0;
    let mut lines = text.split_inclusive('\n');
    while let Some(line) = lines.next() {
        count += line.len();
        let Some(delimiter) = delimiter(line) else { continue };
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

struct Delimiter<'a> {
    word: &'a str,
    is_quoted: bool,
}

/// The delimiter of the first here-document that begins in a line.
fn delimiter(line: &str) -> Option<Delimiter<'_>> {
    let (at, _) = line.match_indices("<<").find(|(at, _)| {
        let around = (line.as_bytes().get(at.wrapping_sub(1)), line.as_bytes().get(at + 2));
        around.0 != Some(&b'<') && around.1 != Some(&b'<')
    })?;
    let rest = line[at + 2..].trim_start_matches('-').trim_start_matches([' ', '\t']);
    let unquoted = rest.trim_start_matches(['\'', '"', '\\']);
    let end = unquoted.find(|character: char| !(character.is_alphanumeric() || "_-.".contains(character)));
    let word = &unquoted[..end.unwrap_or(unquoted.len())];
    (!word.is_empty()).then_some(Delimiter { word, is_quoted: unquoted.len() < rest.len() })
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
            ("cat << 'A B'\nx\nA\n", 15),
        ] {
            assert_eq!(parsed_bytes(text), expected, "{text:?}");
        }
    }
}
