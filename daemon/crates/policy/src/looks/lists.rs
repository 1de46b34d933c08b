//! Commands that list files below the folders they are given, for `xargs` behind them.

use super::options::FIND_ACTIONS;
use crate::shell::Word;

/// Files whose names a command puts out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListedFiles {
    /// Those below the folders that it names, which it is judged by.
    Judged,
    /// Those below the folder that it runs in, which it says the names of alone.
    Here,
}

/// The files whose names are the output of a pipeline of these commands; `None` where it is, or may be, anything else.
pub(crate) fn listed_files<'a>(mut commands: impl Iterator<Item = &'a [Word]>) -> Option<ListedFiles> {
    let first = commands.next().filter(|words| lists(words))?;
    let shows_names = matches!(first[0].text(), Some("ls" | "git"));
    commands.all(passes_lines).then_some(if shows_names { ListedFiles::Here } else { ListedFiles::Judged })
}

fn lists(words: &[Word]) -> bool {
    let Some(texts) = words.iter().map(Word::text).collect::<Option<Vec<&str>>>() else { return false };
    let Some((name, arguments)) = texts.split_first() else { return false };
    let has = |options: &[&str]| arguments.iter().any(|argument| options.contains(argument));
    match *name {
        "find" => !arguments.iter().any(|text| FIND_ACTIONS.contains(text) || text.starts_with("-printf")),
        "git" => {
            let leads_out = |text: &&str| text.starts_with('/') || text.contains("..") || text.contains(":/");
            arguments.first() == Some(&"ls-files") && !arguments.iter().any(leads_out)
        }
        "fd" | "fdfind" => !has(&["--format"]),
        "rg" => has(&["-l", "--files", "--files-with-matches", "--files-without-match"]),
        "grep" | "egrep" | "fgrep" => {
            has(&["--files-with-matches", "--files-without-match"])
                || arguments.iter().any(|text| {
                    text.strip_prefix('-').is_some_and(|letters| {
                        letters.contains(['l', 'L'])
                            && letters.chars().all(|letter| "lLrRiEFPwnZ".contains(letter))
                    })
                })
        }
        "ls" => arguments.iter().all(|text| text.starts_with('-')),
        _ => false,
    }
}

/// Whether a command puts out lines of its input, and nothing else.
fn passes_lines(words: &[Word]) -> bool {
    let Some(texts) = words.iter().map(Word::text).collect::<Option<Vec<&str>>>() else { return false };
    let Some((name, arguments)) = texts.split_first() else { return false };
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    match *name {
        "sort" => arguments.iter().all(|text| ["-u", "-r", "-n", "-z", "-V", "-f", "-ru"].contains(text)),
        "uniq" | "cat" | "tac" => arguments.is_empty(),
        "head" | "tail" => arguments
            .iter()
            .all(|text| ["-n", "-z"].contains(text) || is_number(text.trim_start_matches(['-', '+', 'n']))),
        "grep" | "egrep" | "fgrep" => {
            let is_option = |text: &&&str| text.starts_with('-');
            let letters = arguments.iter().filter(is_option).flat_map(|text| text[1..].chars());
            letters.into_iter().all(|letter| "vinEFPwxz".contains(letter))
                && arguments.iter().filter(|text| !is_option(text)).count() == 1
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_and_what_is_none() {
        let is = |pipeline: &str| {
            let commands: Vec<Vec<Word>> = pipeline
                .split('|')
                .map(|command| command.split_whitespace().map(Word::of).collect())
                .collect();
            listed_files(commands.iter().map(Vec::as_slice)).is_some()
        };
        for lists in [
            "find . -name x",
            "git ls-files | grep -v x | head -n 5",
            "rg -l foo src | sort -u | head -3",
            "grep -rl foo .",
            "ls -1 | tail -n +2",
        ] {
            assert!(is(lists), "{lists}");
        }
        for other in [
            "find . -printf /etc/x",
            "cat list",
            "echo /etc/x",
            "rg foo",
            "grep foo list",
            "ls sub",
            "git ls-files ..",
            "find . | sed s/a/b/",
            "find . | grep -o x",
            "find . | grep x list",
            "find . | head list",
        ] {
            assert!(!is(other), "{other}");
        }
    }
}
