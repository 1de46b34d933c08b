//! The built-in list of commands that only look: they read files and show something, and neither write nor start programs.

use crate::shell::{Word, WordValue};

/// Commands that only look whatever their arguments are.
const ALWAYS: &[&str] = &[
    "[",
    "arch",
    "b2sum",
    "base64",
    "basename",
    "break",
    "cat",
    "cd",
    "cksum",
    "cmp",
    "column",
    "comm",
    "continue",
    "cut",
    "df",
    "diff",
    "dirname",
    "du",
    "echo",
    "egrep",
    "exit",
    "expr",
    "false",
    "fgrep",
    "fmt",
    "fold",
    "free",
    "grep",
    "groups",
    "head",
    "hexdump",
    "id",
    "join",
    "jq",
    "ls",
    "lsblk",
    "lscpu",
    "md5sum",
    "nl",
    "nproc",
    "od",
    "paste",
    "popd",
    "ps",
    "pushd",
    "pwd",
    "readlink",
    "realpath",
    "return",
    "rev",
    "seq",
    "sha1sum",
    "sha256sum",
    "sha512sum",
    "sleep",
    "stat",
    "strings",
    "sum",
    "tac",
    "tail",
    "times",
    "tr",
    "true",
    "tty",
    "type",
    "uname",
    "uptime",
    "wc",
    "which",
    "whoami",
    ":",
];

/// Commands that open no file that an argument names.
const PURE: &[&str] = &[
    "[", "arch", "basename", "break", "continue", "date", "dirname", "echo", "exit", "expr", "export",
    "false", "free", "groups", "hostname", "id", "lscpu", "nproc", "printf", "ps", "pwd", "read", "return",
    "seq", "set", "sleep", "test", "times", "tr", "true", "tty", "type", "uname", "unset", "uptime", "wait",
    "which", "whoami", ":",
];

/// Commands that look into folders below those that they are given.
const DEEP: &[&str] =
    &["cp", "du", "find", "git", "grep", "ls", "rg", "rsync", "tar", "tree", "zip", "egrep", "fgrep"];

/// Commands that only look unless they have one of these options: letters of short ones, and long ones, which may be shortened.
const UNLESS: &[(&str, &str, &[&str])] = &[
    ("file", "Cm", &["compile", "magic-file"]),
    ("rg", "z", &["pre", "hostname-bin", "search-zip"]),
    ("sort", "oT", &["output", "compress-program", "temporary-directory"]),
    ("tree", "o", &["output"]),
];

/// Expressions of `find` that write, delete or start programs. Those that start programs are looked into beforehand.
const FIND_ACTIONS: &[&str] = &[
    "-delete",
    "-exec",
    "-execdir",
    "-ok",
    "-okdir",
    "-fprint",
    "-fprint0",
    "-fprintf",
    "-fls",
    "-files0-from",
];

/// Whether a command with these words only looks.
pub(crate) fn only_looks(words: &[Word]) -> bool {
    let Some((name, arguments)) = words.split_first() else { return true };
    let Some(name) = name.text() else { return false };
    if ALWAYS.contains(&name) {
        return name != "[" || test(arguments);
    }
    if let Some((_, letters, long)) = UNLESS.iter().find(|row| row.0 == name) {
        return !arguments.iter().any(|word| may_be(word, letters, long));
    }
    match name {
        "command" => {
            arguments.first().and_then(Word::text).is_some_and(|option| matches!(option, "-v" | "-V"))
        }
        // With variables these are no simple commands, and judged by them.
        "export" | "declare" | "typeset" | "readonly" | "local" | "unset" => arguments.is_empty(),
        "date" => date(arguments),
        "find" => !arguments.iter().any(|word| match word.text() {
            Some(text) => FIND_ACTIONS.contains(&text),
            None => word.may_be_option(),
        }),
        "git" => git(arguments),
        "hostname" => arguments.iter().all(|word| is_one_of(word, &["-f", "-s", "-i", "-I", "-d"])),
        "printf" => arguments.first().is_some_and(|format| {
            format.text().map_or(!format.may_be_option(), |text| !text.starts_with("-v"))
        }),
        "read" => arguments.iter().all(|word| {
            word.text().is_some_and(|text| {
                text == "-r" || text.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_')
            })
        }),
        "sed" => sed(arguments),
        "set" => !arguments.is_empty() && set(arguments),
        "test" => test(arguments),
        "uniq" | "xxd" => one_file(arguments, if name == "xxd" { "r" } else { "" }),
        "wait" => arguments.is_empty(),
        _ => false,
    }
}

/// Whether a command with this name opens files that its arguments name.
pub(crate) fn opens_arguments(name: &str) -> bool {
    !PURE.contains(&name)
}

/// Whether a command with this name looks into the folders below.
pub(crate) fn goes_deep(name: &str) -> bool {
    DEEP.contains(&name)
}

fn is_one_of(word: &Word, texts: &[&str]) -> bool {
    word.text().is_some_and(|text| texts.contains(&text))
}

/// Whether a word may be one of these options. A long one may be shortened, or have its value behind `=`.
fn may_be(word: &Word, letters: &str, long: &[&str]) -> bool {
    let Some(text) = word.text() else { return word.may_be_option() };
    if let Some(given) = text.strip_prefix("--") {
        let given = given.split('=').next().unwrap_or_default();
        return !given.is_empty() && long.iter().any(|option| option.starts_with(given));
    }
    text.strip_prefix('-').is_some_and(|given| given.chars().any(|letter| letters.contains(letter)))
}

/// `date` shows the time, unless `-s` or a word without `+` sets it.
fn date(arguments: &[Word]) -> bool {
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.text() {
            Some("-d" | "-r") => {
                if words.next().is_none_or(|value| value.value == WordValue::Dynamic) {
                    return false;
                }
            }
            Some(text) => {
                let shows = text.starts_with('+')
                    || ["-u", "-R", "--utc", "--iso-8601"].contains(&text)
                    || ["-I", "--date=", "--iso-8601=", "--rfc-3339="]
                        .into_iter()
                        .any(|option| text.starts_with(option));
                if !shows {
                    return false;
                }
            }
            None => return false,
        }
    }
    true
}

/// `set -e` and the like. Others change how the text is read, or `$1` and the like.
fn set(arguments: &[Word]) -> bool {
    let mut words = arguments.iter().map(Word::text);
    while let Some(word) = words.next() {
        let takes_name = match word {
            Some("-e" | "-u" | "-eu" | "+e" | "+u") => false,
            Some("-o" | "-eo" | "-uo" | "-euo" | "+o") => true,
            _ => return false,
        };
        if takes_name && !matches!(words.next(), Some(Some("pipefail" | "errexit" | "nounset"))) {
            return false;
        }
    }
    true
}

/// Tests whose form is certain: `-v` evaluates what it is given.
fn test(arguments: &[Word]) -> bool {
    const UNARY: &[&str] = &[
        "-e", "-f", "-d", "-n", "-z", "-r", "-w", "-x", "-s", "-L", "-h", "-p", "-S", "-b", "-c", "-t", "-O",
        "-G",
    ];
    const BINARY: &[&str] = &["=", "==", "!=", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef"];
    let arguments = match arguments.split_last() {
        Some((last, rest)) if last.text() == Some("]") => rest,
        _ => arguments,
    };
    let arguments = match arguments.split_first() {
        Some((first, rest)) if first.text() == Some("!") => rest,
        _ => arguments,
    };
    let splits =
        arguments.iter().any(|word| matches!(word.value, WordValue::Dynamic | WordValue::Glob { .. }));
    !splits
        && match arguments {
            [] | [_] => true,
            [operator, _] => is_one_of(operator, UNARY),
            [_, operator, _] => is_one_of(operator, BINARY),
            _ => false,
        }
}

/// `sed -n` with lines to print.
fn sed(arguments: &[Word]) -> bool {
    let [option, script, files @ ..] = arguments else { return false };
    let prints = |script: &str| {
        let Some(address) = script.strip_suffix('p') else { return false };
        address.split(',').all(|part| {
            let is_pattern = part.len() > 1
                && part
                    .strip_prefix('/')
                    .and_then(|rest| rest.strip_suffix('/'))
                    .is_some_and(|rest| !rest.contains(['/', '\\', '\n']));
            is_pattern || part == "$" || (!part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
        })
    };
    option.text() == Some("-n") && script.text().is_some_and(prints) && !files.iter().any(Word::may_be_option)
}

/// Commands whose second file is written.
fn one_file(arguments: &[Word], refused: &str) -> bool {
    let mut files = 0;
    for word in arguments {
        match word.text() {
            Some(text) if text.starts_with('-') && text.len() > 1 => {
                // A value that stands apart from its option counts as a file: asking too often does no harm.
                if may_be(word, refused, &["revert"]) {
                    return false;
                }
            }
            Some(_) => files += 1,
            None => return false,
        }
    }
    files <= 1
}

/// Subcommands of git that only look, whatever their arguments but for those of [`git`].
const GIT_LOOKS: &[&str] = &[
    "annotate",
    "blame",
    "cat-file",
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
fn git(arguments: &[Word]) -> bool {
    let mut words = arguments.iter();
    let subcommand = loop {
        match words.next().map(Word::text) {
            Some(Some("--no-pager")) => {}
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
            rest.is_empty()
                || begins(&["-l", "--list", "-n"])
                    && !rest.iter().any(|word| word.may_be_option() && !begins(&["-l", "--list", "-n"]))
        }
        "remote" => only(&["-v", "--verbose"]) || (begins(&["get-url"]) && rest.len() == 2),
        "stash" => begins(&["list", "show"]),
        "reflog" => rest.is_empty() || begins(&["show"]),
        "worktree" => begins(&["list"]),
        "config" => begins(&["--get", "--get-all", "--get-regexp", "--list", "-l"]),
        _ => GIT_LOOKS.contains(&subcommand),
    }
}
