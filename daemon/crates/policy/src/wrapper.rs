//! Commands that start the command in their arguments: `env`, `xargs`, `find -exec`, `sh -c`, `sudo` and others.

mod shell;
mod started;

pub(crate) use self::started::{Inner, Wrapped};
use self::{
    shell::shell,
    started::{NOT_KNOWN, unknown},
};
use crate::shell::{Assignment, Word, WordValue};

/// How a word is written that stands for names which `find` puts there: no word with an expansion looks so.
pub(crate) const FOUND_BY_FIND: &str = "{}";
/// The same for `xargs`, which reads them.
pub(crate) const FOUND_BY_XARGS: &str = "…";

const OTHER_USER: Option<&str> = Some("it runs as another user");
const OWN_MEANING: Option<&str> = Some("it changes what other commands mean, or runs text as a command");

/// Options of a wrapper: those without a value, and those with one.
struct Options {
    plain: &'static [&'static str],
    valued: &'static [&'static str],
}

/// Whether a command is a wrapper, and what it starts. `None`: it is none.
pub(crate) fn unwrap(words: &[Word]) -> Option<Wrapped> {
    let name = words.first()?.text()?;
    let name = name.rsplit('/').next()?;
    let simple = |plain, valued, asks| Some(after_options(words, &Options { plain, valued }, 0, asks));
    match name {
        "command" => match words.get(1).and_then(Word::text) {
            Some("-v" | "-V") => None,
            _ => simple(&["-p"], &[], None),
        },
        "builtin" | "nohup" | "busybox" => simple(&[], &[], None),
        // Its redirections are all that it is about.
        "exec" if words.len() == 1 => None,
        "exec" => simple(&["-c", "-l", "-cl"], &["-a"], None),
        "time" => simple(&["-p"], &[], None).map(timed),
        "coproc" => simple(&[], &[], Some("it runs beside the others")),
        "setsid" => simple(&["-c", "-f", "-w", "--fork", "--wait", "--ctty"], &[], None),
        "nice" => simple(&[], &["-n", "--adjustment"], None),
        "ionice" => simple(&["-t"], &["-c", "-n", "--class", "--classdata"], None),
        "stdbuf" => simple(&[], &["-i", "-o", "-e", "--input", "--output", "--error"], None),
        "timeout" => Some(after_options(
            words,
            &Options {
                plain: &["--preserve-status", "--foreground", "-v", "--verbose"],
                valued: &["-s", "-k", "--signal", "--kill-after"],
            },
            1,
            None,
        )),
        "watch" => {
            simple(&["-d", "-t", "-e", "-g", "-c", "-x", "-b"], &["-n"], Some("it repeats the command"))
                .map(joined)
        }
        "sudo" | "doas" => simple(
            &["-n", "-E", "-H", "-S", "-A", "-k", "-b", "-P"],
            &["-u", "-g", "-p", "-C", "-D", "--user", "--group"],
            OTHER_USER,
        ),
        "env" => Some(env(words)),
        "xargs" => Some(xargs(words)),
        "find" => find(words),
        "sh" | "bash" | "dash" => Some(shell(words)),
        "zsh" | "ksh" | "ash" | "fish" => {
            Some(Wrapped { asks: Some("its shell has rules of its own"), ..shell(words) })
        }
        "eval" | "trap" => {
            let texts: Option<Vec<&str>> = words[1..].iter().map(Word::text).collect();
            let text = match (name, texts) {
                ("trap", Some(texts)) => texts.first().map(|text| (*text).to_owned()),
                (_, Some(texts)) => Some(texts.join(" ")),
                _ => None,
            };
            Some(Wrapped { inner: text.map(Inner::Text).into_iter().collect(), asks: OWN_MEANING })
        }
        "source" | "." | "alias" | "enable" | "hash" | "bind" | "complete" | "compgen" | "shopt"
        | "mapfile" | "readarray" | "let" | "getopts" | "fc" | "history" => {
            Some(Wrapped { inner: Vec::new(), asks: OWN_MEANING })
        }
        _ => None,
    }
}

/// The command behind the options of a wrapper, and behind `operands` words that belong to it.
fn after_options(words: &[Word], options: &Options, operands: usize, asks: Option<&'static str>) -> Wrapped {
    let mut at = 1;
    while let Some(word) = words.get(at) {
        let Some(text) = word.text() else { return unknown() };
        if text == "--" {
            at += 1;
            break;
        }
        if !text.starts_with('-') || text == "-" {
            break;
        }
        let is_joined = |option: &&&str| {
            let value = text.strip_prefix(**option);
            value.is_some_and(|value| {
                if option.starts_with("--") { value.starts_with('=') } else { !value.is_empty() }
            })
        };
        let is_number =
            words[0].text() == Some("nice") && text[1..].bytes().all(|byte| byte.is_ascii_digit());
        if options.plain.contains(&text)
            || options.valued.iter().any(|option| is_joined(&option))
            || is_number
        {
            at += 1;
        } else if options.valued.contains(&text) {
            if words.get(at + 1).is_none_or(|value| value.value == WordValue::Dynamic) {
                return unknown();
            }
            at += 2;
        } else {
            return Wrapped { asks: NOT_KNOWN, ..rest(words, at + 1, Vec::new(), asks) };
        }
    }
    if words.iter().skip(at).take(operands).any(|word| word.text().is_none()) {
        return unknown();
    }
    let mut assignments = Vec::new();
    at += operands;
    if asks == OTHER_USER {
        at = take_assignments(words, at, &mut assignments);
    }
    rest(words, at, assignments, asks)
}

fn rest(words: &[Word], at: usize, assignments: Vec<Assignment>, asks: Option<&'static str>) -> Wrapped {
    match words.get(at..) {
        Some(inner @ [_, ..]) => {
            Wrapped { inner: vec![Inner::Words { words: inner.to_vec(), assignments, at }], asks }
        }
        _ => unknown(),
    }
}

/// Passes over words such as `A=1`.
fn take_assignments(words: &[Word], mut at: usize, assignments: &mut Vec<Assignment>) -> usize {
    while let Some((name, _)) = words.get(at).and_then(|word| word.source.split_once('=')) {
        let text = words[at].text();
        // With quotes the name may be another than what is written.
        let name = text.and_then(|text| text.split_once('=')).map_or(name, |(name, _)| name);
        assignments.push(Assignment { name: name.to_owned(), exported: true });
        at += 1;
    }
    at
}

fn env(words: &[Word]) -> Wrapped {
    let mut at = 1;
    while let Some(text) = words.get(at).and_then(Word::text) {
        match text {
            "--" => {
                at += 1;
                break;
            }
            "-" | "-i" | "--ignore-environment" | "-0" | "-v" => at += 1,
            "-u" | "--unset" if words.get(at + 1).is_some_and(|name| name.text().is_some()) => at += 2,
            _ if text.starts_with("--unset=") || (text.starts_with("-u") && text.len() > 2) => at += 1,
            "-S" | "--split-string" => {
                return split(words.get(at + 1).and_then(Word::text), words, at + 2);
            }
            _ if text.starts_with("-S") => return split(Some(&text[2..]), words, at + 1),
            _ if text.starts_with("--split-string=") => {
                return split(text.strip_prefix("--split-string="), words, at + 1);
            }
            // A folder to go to, and options of later versions.
            _ if text.starts_with('-') => return unknown(),
            _ => break,
        }
    }
    let mut assignments = Vec::new();
    let at = take_assignments(words, at, &mut assignments);
    rest(words, at, assignments, None)
}

/// `env -S TEXT`: split at blanks. A text with quotes, escapes or variables is not understood.
fn split(text: Option<&str>, words: &[Word], at: usize) -> Wrapped {
    let Some(text) = text.filter(|text| !text.contains(['$', '\\', '"', '\'', '#'])) else {
        return unknown();
    };
    let mut all = vec![Word::of("env")];
    all.extend(text.split_ascii_whitespace().map(Word::of));
    all.extend(words.get(at..).unwrap_or_default().iter().cloned());
    if all.len() == 1 {
        return unknown();
    }
    Wrapped { inner: vec![Inner::Words { words: all, assignments: Vec::new(), at }], asks: None }
}

fn xargs(words: &[Word]) -> Wrapped {
    let (mut at, mut replaced) = (1, None);
    while let Some(text) = words.get(at).and_then(Word::text) {
        match text {
            "-0" | "-r" | "-t" | "-x" | "--null" | "--no-run-if-empty" | "--verbose" | "-0r" | "-r0" => {
                at += 1
            }
            "-n" | "-P" | "-L" | "-s" | "-d" | "-E"
                if words.get(at + 1).is_some_and(|value| value.text().is_some()) =>
            {
                at += 2;
            }
            "-I" => {
                replaced = words.get(at + 1).and_then(Word::text);
                if replaced.is_none() {
                    return unknown();
                }
                at += 2;
            }
            _ if text.starts_with("-I") => {
                replaced = Some(&text[2..]);
                at += 1;
            }
            _ if [
                "-n",
                "-P",
                "-L",
                "-s",
                "-d",
                "--max-args=",
                "--max-procs=",
                "--max-lines=",
                "--delimiter=",
            ]
            .into_iter()
            .any(|option| text.starts_with(option)) =>
            {
                at += 1;
            }
            // A file of arguments, a terminal for the command, and others.
            _ if text.starts_with('-') => {
                return Wrapped { asks: NOT_KNOWN, ..rest(words, at + 1, Vec::new(), None) };
            }
            _ => break,
        }
    }
    let mut wrapped = rest(words, at, Vec::new(), None);
    for inner in &mut wrapped.inner {
        if let Inner::Words { words, .. } = inner {
            match replaced {
                Some(replaced) if !replaced.is_empty() => replace(words, replaced, FOUND_BY_XARGS),
                _ => words.push(Word::dynamic(FOUND_BY_XARGS)),
            }
        }
    }
    wrapped
}

/// Words that have a text in them which is replaced when the command runs.
fn replace(words: &mut [Word], replaced: &str, by: &str) {
    for word in words {
        let Some(text) = word.text().filter(|text| text.contains(replaced)) else { continue };
        // With more around it, it can be another file than the one that was found.
        word.source = if text == replaced { by.to_owned() } else { text.replace(replaced, "{…}") };
        word.value = WordValue::One;
    }
}

/// `find` with expressions that start programs.
fn find(words: &[Word]) -> Option<Wrapped> {
    let starts = |word: &Word| matches!(word.text(), Some("-exec" | "-execdir" | "-ok" | "-okdir"));
    if !words.iter().any(starts) {
        return None;
    }
    let (mut inner, mut own) = (Vec::new(), vec![words[0].clone()]);
    let mut left = words[1..].iter();
    while let Some(word) = left.next() {
        if !starts(word) {
            own.push(word.clone());
            continue;
        }
        let mut command = Vec::new();
        loop {
            match left.next() {
                None => return Some(unknown()),
                Some(end) if end.text() == Some(";") => break,
                Some(end)
                    if end.text() == Some("+")
                        && command.last().is_some_and(|last: &Word| last.source.contains("{}")) =>
                {
                    break;
                }
                Some(word) => command.push(word.clone()),
            }
        }
        replace(&mut command, "{}", FOUND_BY_FIND);
        inner.push(Inner::Words { words: command, assignments: Vec::new(), at: 0 });
    }
    inner.push(Inner::Own(own));
    Some(Wrapped { inner, asks: None })
}

/// A command whose words are joined to a text for a shell.
fn joined(mut wrapped: Wrapped) -> Wrapped {
    for inner in &mut wrapped.inner {
        if let Inner::Words { words, .. } = inner
            && let Some(texts) = words.iter().map(Word::text).collect::<Option<Vec<&str>>>()
        {
            *inner = Inner::Text(texts.join(" "));
        }
    }
    wrapped
}

/// What `time` times: it is a reserved word, and others may stand behind it.
fn timed(mut wrapped: Wrapped) -> Wrapped {
    for inner in &mut wrapped.inner {
        if let Inner::Words { words, at, .. } = inner {
            let reserved = words.iter().take_while(|word| word.source == "!").count();
            words.drain(..reserved);
            *at += reserved;
        }
    }
    wrapped
}
