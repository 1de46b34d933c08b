//! Commands that look into the folders below those that they are given, where they may meet files that rules keep from being read.

use super::options::may_be;
use crate::{
    shell::Word,
    wrapper::{FOUND_BY_FIND, FOUND_BY_XARGS},
};

/// Commands of git that show names, and nothing that is in files.
const GIT_NAMES: &[&str] = &[
    "branch",
    "check-ignore",
    "config",
    "describe",
    "for-each-ref",
    "ls-files",
    "ls-tree",
    "merge-base",
    "name-rev",
    "reflog",
    "remote",
    "rev-list",
    "rev-parse",
    "shortlog",
    "show-ref",
    "status",
    "tag",
    "version",
    "worktree",
];

/// Whether a word stands for names of files that other commands have found: what may be below these was judged with them.
fn is_found(word: &Word) -> bool {
    [FOUND_BY_FIND, FOUND_BY_XARGS].contains(&word.source.as_str()) && word.text().is_none()
}

/// Whether a command shows what is in the folders below, or copies it.
pub(crate) fn goes_deep(words: &[Word]) -> bool {
    let Some((name, arguments)) = words.split_first() else { return false };
    let Some(name) = name.text().and_then(|name| name.rsplit('/').next()) else { return false };
    match name {
        "cp" | "du" | "fd" | "fdfind" | "find" | "rg" | "rsync" | "tar" | "tree" | "zip" => true,
        "grep" | "egrep" | "fgrep" => arguments
            .iter()
            .any(|word| may_be(word, "rRd", &["recursive", "dereference-recursive", "directories"])),
        "ls" => arguments.iter().any(|word| may_be(word, "R", &["recursive"])),
        "git" => !arguments
            .iter()
            .find_map(|word| word.text().filter(|text| !text.starts_with('-')))
            .is_some_and(|subcommand| GIT_NAMES.contains(&subcommand) || is_plain_log(subcommand, arguments)),
        _ => false,
    }
}

/// Whether `git log` shows what is said of commits, and not what changed in files.
fn is_plain_log(subcommand: &str, arguments: &[Word]) -> bool {
    const OPTIONS: &[&str] = &[
        "--oneline",
        "--graph",
        "--all",
        "--decorate",
        "--stat",
        "--shortstat",
        "--name-only",
        "--name-status",
        "--no-merges",
        "--merges",
        "--reverse",
        "--follow",
        "--first-parent",
        "--no-pager",
        "-n",
        "-i",
        "--branches",
        "--tags",
        "--abbrev-commit",
    ];
    const VALUED: &[&str] = &[
        "--format=",
        "--pretty=",
        "--author=",
        "--since=",
        "--until=",
        "--after=",
        "--before=",
        "--grep=",
        "--date=",
        "--max-count=",
    ];
    subcommand == "log"
        && arguments.iter().all(|word| {
            word.text().is_some_and(|text| {
                let number = text.strip_prefix("-n").or_else(|| text.strip_prefix('-'));
                !text.starts_with('-')
                    || number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
                    || OPTIONS.contains(&text)
                    || VALUED.iter().any(|option| text.starts_with(option))
            })
        })
}

/// Where the words begin that may name files: a subcommand of git is none.
pub(crate) fn first_file(words: &[Word]) -> usize {
    match words {
        [name, subcommand, ..] if name.text() == Some("git") && !subcommand.may_be_option() => 2,
        _ => 1,
    }
}

/// Whether a command that goes deep may begin in the folder that it runs in.
pub(crate) fn begins_here(words: &[Word]) -> bool {
    let Some((name, arguments)) = words.split_first() else { return true };
    let names_folder =
        |word: &Word| !word.may_be_option() && word.text() != Some("!") && word.text() != Some("(");
    match name.text().and_then(|name| name.rsplit('/').next()) {
        Some("ls" | "du") => !arguments.iter().any(names_folder),
        Some("find") => !arguments.first().is_some_and(names_folder),
        Some("cp" | "rsync" | "zip") => false,
        // With options that take a value, it is not certain which word is the pattern.
        Some(name @ ("grep" | "egrep" | "fgrep" | "rg")) => {
            let flags = if name == "rg" { "nilLcwFosvxSuN" } else { "rRnilLcwEFPoHhsvx" };
            let is_plain = |word: &Word| {
                word.text().is_some_and(|text| {
                    text.strip_prefix("--").is_some_and(|option| option.contains('='))
                        || text
                            .strip_prefix('-')
                            .is_none_or(|letters| letters.chars().all(|letter| flags.contains(letter)))
                })
            };
            let (options, others): (Vec<&Word>, Vec<&Word>) =
                arguments.iter().partition(|word| word.may_be_option() && !is_found(word));
            others.len() < 2 || !options.into_iter().all(is_plain)
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<Word> {
        text.split_whitespace().map(Word::of).collect()
    }

    #[test]
    fn what_goes_deep_and_where_it_begins() {
        for (text, deep, here) in [
            ("ls src", false, false),
            ("ls -lR", true, true),
            ("grep -n foo a", false, false),
            ("grep -rn foo src", true, false),
            ("grep -rn foo", true, true),
            ("grep -rA 3 foo", true, true),
            ("rg foo", true, true),
            ("rg -n foo src --type=rust", true, false),
            ("rg -e foo src", true, true),
            ("rg -r a foo", true, true),
            ("find src -name x", true, false),
            ("find -name x", true, true),
            ("find ! -name x", true, true),
            ("git status", false, true),
            ("git log --oneline -5", false, true),
            ("git log -p", true, true),
            ("git diff", true, true),
            ("git -C x grep y", true, true),
            ("tree -L 2", true, true),
        ] {
            assert_eq!((goes_deep(&words(text)), begins_here(&words(text))), (deep, here), "{text}");
        }
    }
}
