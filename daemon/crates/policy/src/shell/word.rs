//! Words of a shell command: what bash makes of their quotes and escapes, and what is only known when it runs.

/// A word as it is written, and its value where that is known before the command runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// The word as it is written.
    pub source: String,
    /// What it stands for.
    pub value: WordValue,
}

/// What a word stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WordValue {
    /// Exactly this text, quotes and escapes resolved.
    Static(String),
    /// File names that match a pattern: one word or more, each beginning with this text, and none leading out of the folder that it
    /// names.
    Glob {
        /// The text before the pattern, quotes and escapes resolved.
        prefix: String,
    },
    /// One word, of which nothing is known.
    One,
    /// A pipe to a process that the shell starts.
    Pipe,
    /// Any number of any words.
    Dynamic,
}

impl Word {
    /// A word with a known text.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self { source: text.to_owned(), value: WordValue::Static(text.to_owned()) }
    }

    /// A word of which nothing is known.
    #[must_use]
    pub fn dynamic(source: &str) -> Self {
        Self { source: source.to_owned(), value: WordValue::Dynamic }
    }

    /// The text, if it is known.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            WordValue::Static(text) => Some(text),
            _ => None,
        }
    }

    /// Whether it can turn out to be an option, which begins with `-`.
    #[must_use]
    pub fn may_be_option(&self) -> bool {
        match &self.value {
            WordValue::Static(text) => text.starts_with('-'),
            WordValue::Glob { prefix } => prefix.is_empty() || prefix.starts_with('-'),
            WordValue::Pipe => false,
            WordValue::One | WordValue::Dynamic => true,
        }
    }
}

/// A part of a word, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WordPart {
    /// Text without quotes, escapes not yet resolved.
    Bare(String),
    /// Text that quotes protect, escapes resolved.
    Quoted(String),
    /// Text that is known when the command runs, within quotes that keep it one word.
    UnknownQuoted,
    /// Text that is known when the command runs, and then split into words.
    Unknown,
}

/// The value of a word that is made of `parts`; `None` if it is not understood.
///
/// Brace expansions, tildes other than `~` and `~/`, and patterns whose text is not safe are dynamic. `home` takes the place of a
/// tilde.
pub(super) fn value(parts: &[WordPart], home: &str) -> Option<WordValue> {
    let mut text = String::new();
    let mut pattern_at = None;
    let mut after_pattern = String::new();
    let (mut dynamic, mut one, mut braces) = (false, false, false);
    for (index, part) in parts.iter().enumerate() {
        match part {
            WordPart::Unknown => dynamic = true,
            WordPart::UnknownQuoted => one = true,
            WordPart::Quoted(quoted) => {
                text.push_str(quoted);
                after_pattern.push_str(quoted);
            }
            WordPart::Bare(source) => {
                let mut bare = bare_characters(source)?.into_iter().peekable();
                if index == 0 && bare.peek() == Some(&BareCharacter::Special('~')) {
                    bare.next();
                    match bare.peek() {
                        None if parts.len() == 1 => text.push_str(home),
                        Some(BareCharacter::Plain('/')) => text.push_str(home),
                        _ => dynamic = true,
                    }
                }
                let mut last = None;
                for character in bare {
                    match character {
                        BareCharacter::Plain(plain) => {
                            text.push(plain);
                            after_pattern.push(plain);
                            last = Some(plain);
                        }
                        BareCharacter::Special('*' | '?' | '[') => {
                            if pattern_at.is_none() {
                                pattern_at = Some(text.len());
                                after_pattern.clear();
                            }
                            after_pattern.push('*');
                            last = None;
                        }
                        // Expanded behind `=` and `:` in words that look like assignments.
                        BareCharacter::Special('~') => {
                            dynamic |= matches!(last, Some('=' | ':'));
                            text.push('~');
                            after_pattern.push('~');
                            last = Some('~');
                        }
                        BareCharacter::Special(brace) => {
                            braces = true;
                            text.push(brace);
                            after_pattern.push(brace);
                            last = Some(brace);
                        }
                    }
                }
            }
        }
    }
    // Braces without a list or a sequence in them are plain text.
    dynamic |= braces && text.contains('{') && (text.contains(',') || text.contains(".."));
    if dynamic || (one && pattern_at.is_some()) {
        return Some(WordValue::Dynamic);
    }
    if one {
        return Some(WordValue::One);
    }
    let Some(at) = pattern_at else { return Some(WordValue::Static(text)) };
    // `.*` matches `..`, and what follows a pattern may be `..` itself.
    let begins_part = text[..at].is_empty() || text[..at].ends_with('/') || text[..at].ends_with("/.");
    let leads_out = text[..at].ends_with('.') && (begins_part || &text[..at] == ".")
        || after_pattern.split('/').any(|part| part.starts_with('.'));
    if leads_out {
        return Some(WordValue::Dynamic);
    }
    Some(WordValue::Glob { prefix: text[..at].to_owned() })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BareCharacter {
    Plain(char),
    /// A pattern, a tilde or a brace.
    Special(char),
}

/// Resolves the escapes of a text without quotes. `None` if it has a character that ends or changes a word.
fn bare_characters(source: &str) -> Option<Vec<BareCharacter>> {
    let mut found = Vec::with_capacity(source.len());
    let mut characters = source.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next()? {
                '\n' => {}
                escaped => found.push(BareCharacter::Plain(escaped)),
            },
            '*' | '?' | '[' | '~' | '{' | '}' => found.push(BareCharacter::Special(character)),
            ' ' | '\t' | '\n' | '|' | '&' | ';' | '<' | '>' | '(' | ')' | '$' | '`' | '"' | '\'' => {
                return None;
            }
            plain => found.push(BareCharacter::Plain(plain)),
        }
    }
    Some(found)
}

/// The text between double quotes, escapes resolved; `None` if a part of it is an expansion.
pub(super) fn double_quoted(source: &str) -> Option<String> {
    let mut text = String::with_capacity(source.len());
    let mut characters = source.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next()? {
                '\n' => {}
                escaped @ ('$' | '`' | '"' | '\\') => text.push(escaped),
                other => text.extend(['\\', other]),
            },
            '$' | '`' | '"' => return None,
            plain => text.push(plain),
        }
    }
    Some(text)
}

/// The text of `$'…'`, between the quotes; `None` where bash would make something of it that is not certain.
pub(super) fn ansi_quoted(source: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(source.len());
    let mut characters = source.chars().peekable();
    let mut buffer = [0; 4];
    while let Some(character) = characters.next() {
        if character != '\\' {
            bytes.extend_from_slice(character.encode_utf8(&mut buffer).as_bytes());
            continue;
        }
        let byte = match characters.next()? {
            'a' => 7,
            'b' => 8,
            'e' | 'E' => 27,
            'f' => 12,
            'n' => b'\n',
            'r' => b'\r',
            't' => b'\t',
            'v' => 11,
            '\\' => b'\\',
            '\'' => b'\'',
            '"' => b'"',
            '?' => b'?',
            'x' => {
                let mut code = None;
                for _ in 0..2 {
                    let Some(digit) = characters.peek().and_then(|digit| digit.to_digit(16)) else { break };
                    characters.next();
                    code = Some(code.unwrap_or(0) * 16 + digit);
                }
                u8::try_from(code?).ok()?
            }
            digit @ '0'..='7' => {
                let mut code = digit.to_digit(8)?;
                for _ in 0..2 {
                    let Some(digit) = characters.peek().and_then(|digit| digit.to_digit(8)) else { break };
                    characters.next();
                    code = code * 8 + digit;
                }
                u8::try_from(code).ok()?
            }
            // Control characters, characters by their number, and what is no escape at all.
            _ => return None,
        };
        // A NUL ends the text early.
        if byte == 0 {
            return None;
        }
        bytes.push(byte);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bare(source: &str) -> Option<WordValue> {
        value(&[WordPart::Bare(source.to_owned())], "/home/u")
    }

    fn is(text: &str) -> Option<WordValue> {
        Some(WordValue::Static(text.to_owned()))
    }

    #[test]
    fn escapes_and_tildes() {
        assert_eq!(bare("r\\m"), is("rm"));
        assert_eq!(bare("a\\\nb"), is("ab"));
        assert_eq!(bare("\\*"), is("*"));
        assert_eq!(bare("~"), is("/home/u"));
        assert_eq!(bare("~/x"), is("/home/u/x"));
        assert_eq!(bare("a~"), is("a~"));
        assert_eq!(bare("{}"), is("{}"));
        assert_eq!(bare("-I{}"), is("-I{}"));
        for dynamic in ["~root", "~+", "a=~/x", "{a,b}", "{1..3}", ".*", "src/.*", "src/*/../x"] {
            assert_eq!(bare(dynamic), Some(WordValue::Dynamic), "{dynamic}");
        }
        assert_eq!(bare("a;b"), None);
        assert_eq!(bare("a\\"), None);
    }

    #[test]
    fn patterns_stay_below_their_folder() {
        let glob = |prefix: &str| Some(WordValue::Glob { prefix: prefix.to_owned() });
        assert_eq!(bare("src/*.rs"), glob("src/"));
        assert_eq!(bare("src/a?c/[xy]"), glob("src/a"));
        assert_eq!(bare("./*"), glob("./"));
        assert_eq!(bare("*.rs"), glob(""));
        assert_eq!(bare("a.*"), glob("a."));
        let tilde = [WordPart::Bare("~/".to_owned()), WordPart::Quoted(".ssh".to_owned())];
        assert_eq!(value(&tilde, "/home/u"), is("/home/u/.ssh"));
        let quoted = [WordPart::Quoted("~".to_owned()), WordPart::Bare("/x".to_owned())];
        assert_eq!(value(&quoted, "/home/u"), is("~/x"));
    }

    #[test]
    fn quoted_texts() {
        assert_eq!(double_quoted("a\\\"b\\$c\\d").as_deref(), Some("a\"b$c\\d"));
        assert_eq!(double_quoted("a$b"), None);
        assert_eq!(ansi_quoted("\\x72m\\n\\'").as_deref(), Some("rm\n'"));
        assert_eq!(ansi_quoted("\\162\\155").as_deref(), Some("rm"));
        assert_eq!(ansi_quoted("a\\0b"), None);
        assert_eq!(ansi_quoted("\\u0072m"), None);
    }
}
