//! Shell commands in the texts of slash commands: `` !`git status` ``, and code blocks that begin with ```` ```! ````. Pure.

use std::ops::Range;

use super::substitute::substitute;

/// Where a text has a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CommandPlace {
    /// What the output takes the place of.
    pub(super) whole: Range<usize>,
    /// The command itself.
    pub(super) command: Range<usize>,
}

/// The commands of a text, from the first to the last. One in a line stands at its beginning or after a blank, and ends with it; other code
/// blocks have none.
pub(super) fn command_places(text: &str) -> Vec<CommandPlace> {
    let mut places = Vec::new();
    let mut block: Option<Block> = None;
    let mut from = 0;
    for line in text.split_inclusive('\n') {
        let at = from;
        from += line.len();
        let content = line.trim_end_matches('\n');
        if let Some(open) = &block {
            if fence(content).is_some_and(|(fence, info)| info.is_empty() && open.is_closed_by(fence)) {
                let lines = open.content..at;
                if open.is_command && !text[lines.clone()].trim().is_empty() {
                    places.push(CommandPlace { whole: open.whole..at + content.len(), command: lines });
                }
                block = None;
            }
        } else if let Some((fence, info)) = fence(content) {
            block = Some(Block {
                fence: fence.to_owned(),
                is_command: info == "!" && fence.starts_with('`'),
                whole: at,
                content: from,
            });
        } else {
            in_line(content, at, &mut places);
        }
    }
    places
}

/// A code block that is open.
struct Block {
    /// The characters that began it.
    fence: String,
    is_command: bool,
    /// Where its first line begins.
    whole: usize,
    /// Where its second line begins.
    content: usize,
}

impl Block {
    fn is_closed_by(&self, fence: &str) -> bool {
        fence.len() >= self.fence.len() && fence.as_bytes()[0] == self.fence.as_bytes()[0]
    }
}

/// The characters that begin or end a code block, and what stands behind them.
fn fence(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    let first = line.chars().next().filter(|first| matches!(first, '`' | '~'))?;
    let length = line.len() - line.trim_start_matches(first).len();
    let info = line[length..].trim();
    // Three backticks that close in their own line are code in a line.
    (length >= 3 && !(first == '`' && info.contains('`'))).then(|| (&line[..length], info))
}

fn in_line(line: &str, at: usize, places: &mut Vec<CommandPlace>) {
    let mut rest = 0;
    while let Some(found) = line[rest..].find("!`") {
        let begin = rest + found;
        let command = begin + 2;
        let is_free = line[..begin].chars().next_back().is_none_or(char::is_whitespace);
        let Some(length) = line[command..].find('`') else { return };
        if is_free && !line[command..command + length].trim().is_empty() {
            let range = at + command..at + command + length;
            places.push(CommandPlace { whole: at + begin..range.end + 1, command: range });
            rest = command + length + 1;
        } else {
            rest = command;
        }
    }
}

/// A command with arguments in their places. `Err` for one that would get an argument which a shell might understand as more than a word.
pub(super) fn with_arguments(command: &str, arguments: &[String], limit: usize) -> Result<String, Refused> {
    /// In the place of an argument that must not be there; no file of a command has it, or the command is refused, too.
    const MARK: char = '\u{1}';
    let checked: Vec<String> = arguments
        .iter()
        .map(|argument| match argument.chars().all(is_plain) {
            true => argument.clone(),
            false => MARK.to_string(),
        })
        .collect();
    let filled = substitute(command, &checked, limit).ok_or(Refused::Long)?;
    if filled.contains(MARK) { Err(Refused::Argument) } else { Ok(filled.trim().to_owned()) }
}

/// Why a command does not run with some arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// An argument has characters that mean something to a shell.
    Argument,
    /// The command becomes too long.
    Long,
}

/// Whether a character means nothing to a shell within a word or between two.
fn is_plain(letter: char) -> bool {
    letter.is_alphanumeric() || " _-./:@%+=,~^".contains(letter)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn commands(text: &str) -> Vec<(&str, &str)> {
        let places = command_places(text);
        places.into_iter().map(|place| (&text[place.whole], &text[place.command])).collect()
    }

    #[test]
    fn commands_stand_alone_in_a_line_or_in_blocks_of_their_own() {
        for (text, expected) in [
            ("", vec![]),
            ("!`git status`", vec![("!`git status`", "git status")]),
            ("- Now: !`a b`, and !`c`.\n!`d`", vec![("!`a b`", "a b"), ("!`c`", "c"), ("!`d`", "d")]),
            ("Say `hello!`, x!`no`, (!`no`) and !`` and !` `", vec![]),
            ("!`open", vec![]),
            ("!`a\nb`", vec![]),
            ("```\n!`no`\n```\n!`yes`", vec![("!`yes`", "yes")]),
            ("~~~ sh\n```\n!`no`\n~~~\n", vec![]),
            ("a\n```!\nx\ny\n```\nb", vec![("```!\nx\ny\n```", "x\ny\n")]),
            ("````!\n```\n````", vec![("````!\n```\n````", "```\n")]),
            ("```!\n \n```\n```! sh\nno\n```\n```!\nopen", vec![]),
            ("```!`x` ```", vec![]),
        ] {
            assert_eq!(commands(text), expected, "{text:?}");
        }
    }

    #[test]
    fn arguments_are_words_and_never_more() {
        let check = |command: &str, arguments: &[&str], expected: Result<&str, Refused>| {
            let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
            let filled = with_arguments(command, &arguments, 1000);
            assert_eq!(filled.as_deref(), expected.as_deref(), "{command}");
        };
        check("git diff $1", &["HEAD~1", "$(no)"], Ok("git diff HEAD~1"));
        check(" gh view \"$ARGUMENTS\" ", &["a b", "c.rs"], Ok("gh view \"a b c.rs\""));
        check("git log ${1:-main}", &[], Ok("git log main"));
        check("git log", &["; rm -rf /"], Ok("git log"));
        for argument in
            ["$(x)", "`x`", "a;b", "a|b", "a&b", "a>b", "a\nb", "it's", "\"", "\\", "*", "#1", "!x", "{a,b}"]
        {
            check("git diff $1", &[argument], Err(Refused::Argument));
            check("git diff \"$@\"", &["x", argument], Err(Refused::Argument));
        }
        check("git diff $1", &[&"x".repeat(1000)], Err(Refused::Long));
    }

    proptest! {
        #[test]
        fn places_follow_each_other_and_are_never_empty(text in "[!` ~a\n]{0,60}") {
            let mut end = 0;
            for place in command_places(&text) {
                prop_assert!(end <= place.whole.start && place.whole.end <= text.len());
                prop_assert!(place.whole.start <= place.command.start && place.command.end <= place.whole.end);
                prop_assert!(!text[place.command.clone()].trim().is_empty());
                end = place.whole.end;
            }
        }
    }
}
