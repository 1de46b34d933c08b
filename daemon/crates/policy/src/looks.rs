//! The built-in list of commands that only look: they read files and show something, and neither write nor start programs.

mod awk;
mod deep;
mod git;
mod lists;
mod options;
mod sed;

pub(crate) use deep::{begins_here, first_file, goes_deep};
use git::git;
pub(crate) use lists::{ListedFiles, listed_files};
use options::{FIND_ACTIONS, is_one_of, may_be};

use crate::shell::{Word, WordValue};

/// Commands that only look whatever their arguments are.
const ALWAYS: &[&str] = &[
    "[",
    "arch",
    "b2sum",
    "basename",
    "break",
    "cal",
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
    "exa",
    "exit",
    "expand",
    "expr",
    "eza",
    "factor",
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
    "last",
    "ls",
    "lsblk",
    "lscpu",
    "md5sum",
    "nl",
    "nproc",
    "numfmt",
    "od",
    "paste",
    "pgrep",
    "popd",
    "pr",
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
    "tsort",
    "tty",
    "type",
    "uname",
    "unexpand",
    "uptime",
    "w",
    "wc",
    "which",
    "who",
    "whoami",
    "yes",
    ":",
];

/// Commands that open no file that an argument names.
const PURE: &[&str] = &[
    "[", "arch", "basename", "break", "continue", "date", "dirname", "echo", "exit", "expr", "export",
    "false", "free", "groups", "hostname", "id", "lscpu", "nproc", "printf", "ps", "pwd", "read", "return",
    "seq", "set", "sleep", "test", "times", "tr", "true", "tty", "type", "uname", "unset", "uptime", "wait",
    "which", "whoami", ":",
];

/// Commands that only look unless they have one of these options: letters of short ones, and long ones, which may be shortened.
const UNLESS: &[(&str, &str, &[&str])] = &[
    // Its output is a file on some systems.
    ("base64", "o", &["output"]),
    ("fd", "xXl", &["exec", "exec-batch", "list-details"]),
    ("fdfind", "xXl", &["exec", "exec-batch", "list-details"]),
    ("file", "Cm", &["compile", "magic-file"]),
    ("rg", "z", &["pre", "hostname-bin", "search-zip"]),
    ("shuf", "o", &["output"]),
    ("sort", "oT", &["output", "compress-program", "temporary-directory"]),
    ("tree", "oR", &["output"]),
];

/// Programs that say which version is installed. Those that a file of the project can put another program in the place of, such as
/// `cargo` and `go`, are none.
const TELLS_VERSION: &[&str] =
    &["clang", "cmake", "g++", "gcc", "node", "npm", "perl", "python", "python3", "ruby"];

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
        "exec" => arguments.is_empty(),
        "export" | "declare" | "typeset" | "readonly" | "local" | "unset" => arguments.is_empty(),
        "date" => date(arguments),
        "find" => !arguments.iter().any(|word| match word.text() {
            Some(text) => FIND_ACTIONS.contains(&text),
            None => word.may_be_option(),
        }),
        "git" => git(arguments),
        "hostname" => arguments.iter().all(|word| is_one_of(word, &["-f", "-s", "-i", "-I", "-d"])),
        "printf" => arguments.first().is_some_and(|format| {
            format.text().map_or(!format.may_be_option(), |text| {
                let format = if text == "--" { arguments.get(1).and_then(Word::text) } else { Some(text) };
                format.is_some_and(|format| !format.starts_with("-v") && !sets_variables(format))
            })
        }),
        "read" => arguments.iter().all(|word| {
            word.text().is_some_and(|text| {
                let is_name = !text.ends_with("_proxy");
                text == "-r"
                    || is_name && text.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_')
            })
        }),
        "sed" => sed::only_looks(arguments),
        "awk" | "gawk" | "mawk" | "nawk" => awk::only_looks(arguments),
        "tar" | "unzip" => lists_archive(name, arguments),
        // A program of this name only, in the version that is installed.
        _ if arguments.len() == 1 && TELLS_VERSION.contains(&name) => {
            is_one_of(&arguments[0], &["--version"])
        }
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

/// Whether a format of `printf` has `%n`, which sets the variable that an argument names.
fn sets_variables(format: &str) -> bool {
    let mut rest = format;
    while let Some((_, conversion)) = rest.split_once('%') {
        let conversion = conversion.trim_start_matches(|character: char| {
            "#-+ '*.hlLjzt".contains(character) || character.is_ascii_digit()
        });
        if conversion.starts_with('n') {
            return true;
        }
        // The second of two is no conversion.
        rest = conversion.strip_prefix('%').unwrap_or(conversion);
    }
    false
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

/// `tar -t` and `unzip -l` of one archive, which is a file: what has a colon is on another host.
fn lists_archive(name: &str, arguments: &[Word]) -> bool {
    let [option, archive, members @ ..] = arguments else { return false };
    let is_listing = option.text().is_some_and(|text| {
        let letters = text.trim_start_matches('-');
        match name {
            "tar" => {
                letters.starts_with('t')
                    && letters.ends_with('f')
                    && letters.chars().all(|letter| "tvzjJf".contains(letter))
            }
            _ => text == "-l",
        }
    });
    is_listing
        && archive.text().is_some_and(|text| !text.starts_with('-') && !text.contains(':'))
        && !members.iter().any(Word::may_be_option)
}

/// Commands whose second file is written.
fn one_file(arguments: &[Word], refused: &str) -> bool {
    let (mut files, mut options_end) = (0, false);
    for word in arguments {
        match word.text() {
            Some("--") if !options_end => options_end = true,
            Some(_) if options_end => files += 1,
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
