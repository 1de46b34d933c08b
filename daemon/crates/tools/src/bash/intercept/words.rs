//! Reads a command as a list of plain words, where it certainly is one.

/// A command that consists of words alone, perhaps with its output in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Simple {
    /// The words as the program gets them, the program first. Never empty.
    pub(in super::super) words: Vec<String>,
    /// The file of `> FILE`.
    pub(in super::super) output: Option<String>,
    /// Whether it reads a here-document (`<< END`) without expansions.
    pub(in super::super) has_text: bool,
}

/// A token of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Word { text: String, is_quoted: bool },
    Output,
    Text,
}

/// Reads a command. `None` for everything that needs a shell or is not known here: pipes, lists, variables, globs,
/// comments, jobs, …
pub(in super::super) fn simple(command: &str) -> Option<Simple> {
    let command = command.trim();
    let (line, below) = command.split_once('\n').map_or((command, None), |(line, below)| (line, Some(below)));
    let mut tokens = tokens(line)?.into_iter();
    let mut words = Vec::new();
    let mut output = None;
    let mut end = None;
    while let Some(token) = tokens.next() {
        match token {
            Token::Word { text, .. } => words.push(text),
            Token::Output if output.is_none() => match tokens.next()? {
                Token::Word { text, .. } => output = Some(text),
                Token::Output | Token::Text => return None,
            },
            Token::Text if end.is_none() => match tokens.next()? {
                Token::Word { text, is_quoted } => end = Some((text, is_quoted)),
                Token::Output | Token::Text => return None,
            },
            Token::Output | Token::Text => return None,
        }
    }
    let has_text = end.is_some();
    match (end, below) {
        (None, None) => {}
        (Some((end, is_quoted)), Some(below)) => {
            let is_replaced = |text: &str| text.contains(['$', '`', '\\']);
            // The end word is on the last line, and on no line before.
            let text = below.strip_suffix(end.as_str())?;
            if !(text.is_empty() || text.ends_with('\n'))
                || text.lines().any(|line| line == end)
                || (!is_quoted && is_replaced(text))
            {
                return None;
            }
        }
        (Some(_), None) | (None, Some(_)) => return None,
    }
    let first = words.first()?;
    // Excludes assignments, functions and reserved words.
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '+');
    (!first.is_empty() && first.chars().all(is_name)).then_some(Simple { words, output, has_text })
}

fn tokens(line: &str) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    // The current word; a quoted one may be empty.
    let mut word: Option<(String, bool)> = None;
    let mut chars = line.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            ' ' | '\t' => tokens.extend(finished(&mut word)),
            '\'' => {
                let (text, is_quoted) = word.get_or_insert_default();
                *is_quoted = true;
                loop {
                    match chars.next()? {
                        '\'' => break,
                        inner => text.push(inner),
                    }
                }
            }
            '"' => {
                let (text, is_quoted) = word.get_or_insert_default();
                *is_quoted = true;
                loop {
                    match chars.next()? {
                        '"' => break,
                        '$' | '`' | '!' => return None,
                        '\\' => match chars.next()? {
                            escaped @ ('"' | '\\' | '$' | '`') => text.push(escaped),
                            other => text.extend(['\\', other]),
                        },
                        inner => text.push(inner),
                    }
                }
            }
            '\\' => {
                let (text, is_quoted) = word.get_or_insert_default();
                *is_quoted = true;
                text.push(chars.next()?);
            }
            '>' => {
                // A number before `>` would be a descriptor.
                if word.as_ref().is_some_and(|(text, _)| text.bytes().all(|byte| byte.is_ascii_digit()))
                    || chars.peek().is_some_and(|next| matches!(next, '>' | '&' | '|' | '('))
                {
                    return None;
                }
                tokens.extend(finished(&mut word));
                tokens.push(Token::Output);
            }
            '<' => {
                if word.is_some()
                    || chars.next_if_eq(&'<').is_none()
                    || chars.peek().is_some_and(|next| matches!(next, '<' | '-'))
                {
                    return None;
                }
                tokens.push(Token::Text);
            }
            '#' | '~' if word.is_some() => word.get_or_insert_default().0.push(char),
            // A lone `~` is the home directory, which tools know, too; `~user` is not.
            '~' if chars.peek().is_none_or(|next| matches!(next, '/' | ' ')) => {
                word.get_or_insert_default().0.push(char);
            }
            '|' | '&' | ';' | '(' | ')' | '{' | '}' | '$' | '`' | '*' | '?' | '[' | ']' | '!' | '#' | '~'
            | '^' => {
                return None;
            }
            control if control.is_control() => return None,
            plain => word.get_or_insert_default().0.push(plain),
        }
    }
    tokens.extend(finished(&mut word));
    Some(tokens)
}

fn finished(word: &mut Option<(String, bool)>) -> Option<Token> {
    word.take().map(|(text, is_quoted)| Token::Word { text, is_quoted })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(command: &str, words: &[&str], output: Option<&str>, has_text: bool) {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        let expected = Simple { words, output: output.map(str::to_owned), has_text };
        assert_eq!(simple(command), Some(expected), "{command:?}");
    }

    #[test]
    fn words_are_read_as_the_shell_does() {
        check("cat a.txt", &["cat", "a.txt"], None, false);
        check("  cat\t'a b' \"c d\" e\\ f \n", &["cat", "a b", "c d", "e f"], None, false);
        check("grep 'a|b' \"x\\\"y\\n\" ''", &["grep", "a|b", "x\"y\\n", ""], None, false);
        check("ls ~ ~/src a~b c#d", &["ls", "~", "~/src", "a~b", "c#d"], None, false);
        check("echo hi > out.txt", &["echo", "hi"], Some("out.txt"), false);
        check("echo hi >out.txt", &["echo", "hi"], Some("out.txt"), false);
        check("cat > a <<'END'\n$x\nEND\n", &["cat"], Some("a"), true);
        check("cat << END > a\nplain\n\nEND", &["cat"], Some("a"), true);
        check("cat <<END >a\nEND", &["cat"], Some("a"), true);
    }

    #[test]
    fn what_is_more_is_left_to_the_shell() {
        for command in [
            "",
            " ",
            "cat a | head",
            "cat a; ls",
            "cat a && ls",
            "cat a &",
            "cat $x",
            "cat `x`",
            "cat \"$x\"",
            "cat *.rs",
            "cat a?",
            "cat [ab]",
            "cat {a,b}",
            "(cat a)",
            "cat a # b",
            "cat < a",
            "cat a 2>b",
            "cat a >> b",
            "cat a >& b",
            "cat a >| b",
            "cat a > b > c",
            "cat 'a",
            "cat \"a",
            "cat a\\",
            "A=b cat c",
            "cat a\nls",
            "cat ~user/a",
            "!cat a",
            "echo \"a!b\"",
            "cat <<< a",
            "cat <<-E\nE",
            "cat <<E\n$x\nE",
            "cat <<E\na\nE\nls",
            "cat <<E\nE\nE",
            "cat <<E",
            "cat <<E\nno end",
            "> a",
            "cat > ",
            "^a^b",
            "''",
            "cat >(x)",
            "cat <(x)",
        ] {
            assert_eq!(simple(command), None, "{command:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Bash reads the same words.
        #[test]
        fn bash_sees_the_same_words(
            rest in prop_oneof!["[a-c '\"\\\\$`~#!*?=;&|<>(){}\\[\\]^-]{0,8}", "[a-c ~#=\\\\-]{0,9}('[a-c $\\\\]{0,4}'|\"[a-c ;'\\\\]{0,4}\"| ){0,3}"],
        ) {
            let command = format!("printf {rest}");
            let Some(Simple { words, output: None, has_text: false }) = simple(&command) else { return Ok(()) };
            let shown = Command::new("bash")
                .args(["-c", &format!("printf() {{ builtin printf '%s\\0' \"$@\"; }}\n{command}")])
                .env_clear()
                .env("HOME", "~")
                .output()
                .unwrap();
            let seen = String::from_utf8(shown.stdout).unwrap();
            // Without arguments the format is printed once, with an empty string.
            let expected: String = match &words[1..] {
                [] => "\0".into(),
                arguments => arguments.iter().flat_map(|word| [word.as_str(), "\0"]).collect(),
            };
            prop_assert_eq!(seen, expected, "{}", command);
        }
    }
}
