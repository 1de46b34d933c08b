//! The commands of git that only look.

use super::options::{is_one_of, may_be};
use crate::shell::Word;

/// Subcommands of git that only look, whatever their arguments but for those of [`git`].
const GIT_LOOKS: &[&str] = &[
    "annotate",
    "blame",
    "cat-file",
    "check-attr",
    "check-ignore",
    "cherry",
    "count-objects",
    "describe",
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "for-each-ref",
    "grep",
    "log",
    "ls-files",
    "ls-tree",
    "merge-base",
    "name-rev",
    "rev-list",
    "rev-parse",
    "shortlog",
    "show",
    "show-ref",
    "status",
    "whatchanged",
];

/// `git`: a subcommand that looks, without options that write, or start other programs than those that the user configured.
pub(super) fn git(arguments: &[Word]) -> bool {
    let mut words = arguments.iter();
    let subcommand = loop {
        match words.next().map(Word::text) {
            Some(Some("--no-pager")) => {}
            Some(Some("--version")) => return arguments.len() == 1,
            Some(Some("-C")) if words.next().is_some_and(|folder| folder.text().is_some()) => {}
            Some(Some(text)) if !text.starts_with('-') => break text,
            _ => return false,
        }
    };
    let rest: Vec<&Word> = words.collect();
    let options_end = rest.iter().position(|word| word.text() == Some("--")).unwrap_or(rest.len());
    let refused = |word: &&Word| {
        may_be(
            word,
            "O",
            &[
                "output",
                "ext-diff",
                "textconv",
                "filters",
                "exec",
                "open-files-in-pager",
                "parseopt",
                "paginate",
                "help",
                "contents",
            ],
        )
    };
    if rest[..options_end].iter().any(refused) {
        return false;
    }
    let only = |options: &[&str]| {
        rest.iter().all(|word| {
            word.text().is_some_and(|text| {
                options.contains(&text)
                    || options.iter().any(|option| option.ends_with('=') && text.starts_with(option))
            })
        })
    };
    let begins = |first: &[&str]| rest.first().is_some_and(|word| is_one_of(word, first));
    match subcommand {
        // With these, further words are patterns of what is listed, or a commit.
        "branch"
            if begins(&[
                "--contains",
                "--no-contains",
                "--merged",
                "--no-merged",
                "--points-at",
                "--list",
            ]) =>
        {
            rest[1..].iter().all(|word| !word.may_be_option() || is_one_of(word, &["-a", "-r", "-v", "-vv"]))
        }
        "branch" => only(&[
            "-a",
            "-r",
            "-v",
            "-vv",
            "--all",
            "--remotes",
            "--list",
            "-l",
            "--show-current",
            "--sort=",
        ]),
        "tag" => {
            let lists = |word: &Word| {
                word.text().is_some_and(|text| {
                    matches!(text, "-l" | "--list" | "-n" | "-i" | "--ignore-case")
                        || (text.starts_with("-n") && text[2..].bytes().all(|byte| byte.is_ascii_digit()))
                        || [
                            "--sort=",
                            "--format=",
                            "--contains=",
                            "--merged=",
                            "--no-merged=",
                            "--points-at=",
                        ]
                        .into_iter()
                        .any(|option| text.starts_with(option))
                })
            };
            // How a list is sorted or written makes no list of it: with a name, such a command makes a tag.
            let shapes = |word: &Word| {
                word.text().is_some_and(|text| {
                    ["-i", "--ignore-case"].contains(&text)
                        || text.starts_with("--sort=")
                        || text.starts_with("--format=")
                })
            };
            let (options, names): (Vec<&Word>, Vec<&Word>) =
                rest.iter().copied().partition(|word| word.may_be_option());
            options.iter().all(|word| lists(word))
                && (names.is_empty() || options.iter().any(|word| !shapes(word)))
        }
        "remote" => only(&["-v", "--verbose"]) || (begins(&["get-url"]) && rest.len() == 2),
        "stash" => begins(&["list", "show"]),
        "reflog" => rest
            .first()
            .is_none_or(|word| word.text().is_some_and(|text| text == "show" || text.starts_with('-'))),
        "version" => rest.is_empty(),
        "worktree" => begins(&["list"]),
        "config" => config(&rest),
        _ => GIT_LOOKS.contains(&subcommand),
    }
}

/// `git config` that reads: one name alone, or with an option that says so.
fn config(rest: &[&Word]) -> bool {
    const READS: &[&str] = &["--get", "--get-all", "--get-regexp", "--list", "-l"];
    const PLAIN: &[&str] = &[
        "--global",
        "--local",
        "--system",
        "--worktree",
        "--show-origin",
        "--show-scope",
        "--name-only",
        "-z",
        "--null",
        "--bool",
        "--int",
        "--path",
        "--includes",
    ];
    let (options, names): (Vec<&&Word>, Vec<&&Word>) = rest.iter().partition(|word| word.may_be_option());
    let reads = options.iter().any(|word| is_one_of(word, READS));
    let is_known = |word: &&&Word| is_one_of(word, READS) || is_one_of(word, PLAIN);
    // Without a dot it is no name, but a subcommand of later versions.
    let is_name = |word: &&Word| word.text().is_some_and(|text| text.contains('.'));
    options.iter().all(is_known) && (reads || matches!(names[..], [name] if is_name(name)))
}
