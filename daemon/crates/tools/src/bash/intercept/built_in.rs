//! The built-in rules: plain commands that only read, list, search or replace files, and the tools that do the same.
//!
//! A command that uses anything beyond the tool has no suggestion.

use serde_json::{Map, Value, json};

use super::words::{Simple, simple};

/// What to call instead of a command.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Suggestion {
    /// The tool.
    pub(super) tool: &'static str,
    /// Its arguments, as JSON; words in angle brackets stand for values that the command does not contain.
    pub(super) arguments: String,
}

/// The tool call that does what a command does, if there is one.
pub(super) fn suggestion(command: &str) -> Option<Suggestion> {
    let simple = simple(command)?;
    let (program, arguments) = simple.words.split_first()?;
    if let Some(path) = &simple.output {
        return writes(program, arguments, path, &simple);
    }
    if simple.has_text {
        return None;
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match program.as_str() {
        "cat" => cat(&arguments),
        "head" => head(&arguments),
        "tail" => tail(&arguments),
        "grep" => grep(&arguments, Dialect::Basic),
        "egrep" => grep(&arguments, Dialect::Extended),
        "fgrep" => grep(&arguments, Dialect::Literal),
        "rg" => grep(&arguments, Dialect::Rust),
        "find" => find(&arguments),
        "fd" => fd(&arguments),
        "ls" => ls(&arguments),
        "sed" => sed(&arguments),
        _ => None,
    }
}

fn call(tool: &'static str, arguments: Value) -> Option<Suggestion> {
    Some(Suggestion { tool, arguments: arguments.to_string() })
}

/// `echo … > FILE`, `printf … > FILE`, `cat > FILE << END`.
fn writes(program: &str, arguments: &[String], path: &str, simple: &Simple) -> Option<Suggestion> {
    let makes_text = match program {
        "echo" | "printf" => !simple.has_text,
        "cat" => simple.has_text && arguments.is_empty(),
        _ => false,
    };
    if !makes_text || path.is_empty() || path.starts_with("/dev/") || path.starts_with("/proc/") {
        return None;
    }
    call("write", json!({ "path": path, "content": "<the text>" }))
}

/// A word that names a file and is no option.
fn file<'a>(word: &&'a str) -> Option<&'a str> {
    (!word.is_empty() && !word.starts_with('-')).then_some(*word)
}

fn cat(arguments: &[&str]) -> Option<Suggestion> {
    match arguments {
        [path] | ["-n", path] => call("read", json!({ "path": file(path)? })),
        _ => None,
    }
}

fn number(text: &str) -> Option<u64> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The count of `-n N`, `-nN` or `-N`, and the file.
fn counted<'a>(arguments: &[&'a str]) -> Option<(&'a str, &'a str)> {
    match arguments {
        ["-n" | "--lines", count, path] => Some((count, file(path)?)),
        [option, path] => {
            let count = option.strip_prefix("-n").or_else(|| option.strip_prefix("--lines="));
            Some((count.or_else(|| option.strip_prefix('-'))?, file(path)?))
        }
        _ => None,
    }
}

fn head(arguments: &[&str]) -> Option<Suggestion> {
    let (count, path) = match arguments {
        [path] => (10, file(path)?),
        _ => counted(arguments).and_then(|(count, path)| Some((number(count)?, path)))?,
    };
    call("read", json!({ "path": path, "limit": count }))
}

fn tail(arguments: &[&str]) -> Option<Suggestion> {
    let (count, path) = counted(arguments)?;
    match count.strip_prefix('+') {
        Some(first) => call("read", json!({ "path": path, "offset": number(first)? })),
        None => {
            number(count)?;
            let text =
                json!({ "path": path, "offset": "<line>" }).to_string().replace("\"<line>\"", "<line>");
            let how = "(an offset past the end is answered with the number of lines)";
            Some(Suggestion { tool: "read", arguments: format!("{text} {how}") })
        }
    }
}

/// The syntax of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dialect {
    Basic,
    Extended,
    Literal,
    Rust,
}

fn grep(arguments: &[&str], mut dialect: Dialect) -> Option<Suggestion> {
    let of_ripgrep = dialect == Dialect::Rust;
    let mut call_with = Map::new();
    let (mut pattern, mut path, mut recursive) = (None, None, of_ripgrep);
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match *word {
            "-e" if pattern.is_none() => pattern = Some(*words.next()?),
            "-C" => drop(call_with.insert("context".into(), number(words.next()?)?.into())),
            "-g" if of_ripgrep => drop(call_with.insert("glob".into(), (*words.next()?).into())),
            option if option.starts_with("--") => {
                let (name, value) = option.split_once('=')?;
                let key = match name {
                    "--include" if !of_ripgrep => "glob",
                    "--glob" if of_ripgrep => "glob",
                    _ => return None,
                };
                call_with.insert(key.into(), value.into());
            }
            option if option.len() > 1 && option.starts_with('-') => {
                for letter in option[1..].chars() {
                    match letter {
                        'n' | 'H' | 'I' | 's' if !(of_ripgrep && letter != 'n') => {}
                        'r' | 'R' if !of_ripgrep => recursive = true,
                        'i' => drop(call_with.insert("ignoreCase".into(), true.into())),
                        'F' => dialect = Dialect::Literal,
                        'E' if !of_ripgrep => dialect = Dialect::Extended,
                        _ => return None,
                    }
                }
            }
            word if pattern.is_none() => pattern = Some(word),
            word if path.is_none() => path = file(&word).map(Some)?,
            // More than one path.
            _ => return None,
        }
    }
    let pattern = pattern.filter(|pattern| !pattern.is_empty() && means_the_same(pattern, dialect))?;
    // Without a path, grep reads its input.
    let path = path.or_else(|| recursive.then_some("."))?;
    let mut all = Map::new();
    all.insert("pattern".into(), pattern.into());
    all.insert("path".into(), path.into());
    if dialect == Dialect::Literal {
        all.insert("literal".into(), true.into());
    }
    all.append(&mut call_with);
    call("grep", Value::Object(all))
}

/// Whether a pattern means the same to the tool as to the program.
fn means_the_same(pattern: &str, dialect: Dialect) -> bool {
    match dialect {
        Dialect::Literal | Dialect::Rust => true,
        Dialect::Basic => !pattern.contains(['+', '?', '|', '(', ')', '{', '}', '\\']),
        Dialect::Extended => !pattern.contains('\\'),
    }
}

/// `find [PATH] [-type f] -name GLOB [-type f]`.
fn find(arguments: &[&str]) -> Option<Suggestion> {
    let (path, tests) = match arguments {
        [path, tests @ ..] if file(path).is_some() => (*path, tests),
        tests => (".", tests),
    };
    let pattern = match tests {
        ["-name", pattern] | ["-type", "f", "-name", pattern] | ["-name", pattern, "-type", "f"] => pattern,
        _ => return None,
    };
    call("find", json!({ "pattern": pattern, "path": path }))
}

/// `fd PATTERN [PATH]`: a plain word matches anywhere in names.
fn fd(arguments: &[&str]) -> Option<Suggestion> {
    let (pattern, place) = match arguments {
        ["-g" | "--glob", pattern, place @ ..] => ((*pattern).to_owned(), place),
        [pattern, place @ ..] if file(pattern).is_some() => {
            let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
            if !pattern.chars().all(is_plain) {
                return None;
            }
            (format!("*{pattern}*"), place)
        }
        _ => return None,
    };
    let path = match place {
        [] => ".",
        [path] => file(path)?,
        _ => return None,
    };
    call("find", json!({ "pattern": pattern, "path": path }))
}

fn ls(arguments: &[&str]) -> Option<Suggestion> {
    let is_plain = |word: &&&str| {
        word.len() > 1 && word.starts_with('-') && word[1..].chars().all(|letter| "aA1Fp".contains(letter))
    };
    let options = arguments.iter().take_while(is_plain).count();
    match &arguments[options..] {
        [] => call("ls", json!({})),
        [path] => call("ls", json!({ "path": file(path)? })),
        _ => None,
    }
}

/// `sed -i … FILE`.
fn sed(arguments: &[&str]) -> Option<Suggestion> {
    let in_place = |word: &&str| {
        let letters = word.strip_prefix('-').unwrap_or_default();
        word.starts_with("--in-place")
            || letters.split('i').next().is_some_and(|before| {
                letters.contains('i') && before.chars().all(|letter| "nEsrz".contains(letter))
            })
    };
    if !arguments.iter().any(in_place) {
        return None;
    }
    let path = arguments.last().and_then(file)?;
    call("edit", json!({ "path": path, "edits": [{ "oldText": "<text>", "newText": "<text>" }] }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(command: &str, tool: &str, arguments: &str) {
        let seen = suggestion(command).unwrap_or_else(|| panic!("{command:?} is let through"));
        assert_eq!((seen.tool, seen.arguments.as_str()), (tool, arguments), "{command:?}");
    }

    #[test]
    fn plain_commands_have_their_tool() {
        check("cat a.txt", "read", r#"{"path":"a.txt"}"#);
        check("cat -n 'a b'", "read", r#"{"path":"a b"}"#);
        check("head a", "read", r#"{"path":"a","limit":10}"#);
        check("head -n 20 a", "read", r#"{"path":"a","limit":20}"#);
        check("head -50 a", "read", r#"{"path":"a","limit":50}"#);
        check("tail -n +7 a", "read", r#"{"path":"a","offset":7}"#);
        let how =
            r#"{"path":"a","offset":<line>} (an offset past the end is answered with the number of lines)"#;
        check("tail -n 20 a", "read", how);
        check("tail -20 a", "read", how);
        check("grep -rn 'fn main' src", "grep", r#"{"pattern":"fn main","path":"src"}"#);
        check("grep -ri todo", "grep", r#"{"pattern":"todo","path":".","ignoreCase":true}"#);
        check("grep -F 'a(' x.c", "grep", r#"{"pattern":"a(","path":"x.c","literal":true}"#);
        check("grep -rE 'a|b' --include='*.rs' .", "grep", r#"{"pattern":"a|b","path":".","glob":"*.rs"}"#);
        check("rg 'a+' -g '*.rs'", "grep", r#"{"pattern":"a+","path":".","glob":"*.rs"}"#);
        check("rg -C 3 x src", "grep", r#"{"pattern":"x","path":"src","context":3}"#);
        check("find . -name '*.rs'", "find", r#"{"pattern":"*.rs","path":"."}"#);
        check("find -type f -name x", "find", r#"{"pattern":"x","path":"."}"#);
        check("fd main src", "find", r#"{"pattern":"*main*","path":"src"}"#);
        check("fd -g '*.rs'", "find", r#"{"pattern":"*.rs","path":"."}"#);
        check("ls", "ls", "{}");
        check("ls -a1 src", "ls", r#"{"path":"src"}"#);
        let edit = r#"{"path":"a","edits":[{"oldText":"<text>","newText":"<text>"}]}"#;
        for command in ["sed -i 's/a/b/' a", "sed -Ei.bak 's/a/b/' a", "sed --in-place -e 's/a/b/' a"] {
            check(command, "edit", edit);
        }
        let write = r#"{"path":"a","content":"<the text>"}"#;
        for command in ["echo hi > a", "printf '%s' hi > a", "cat > a <<'END'\n$x\nEND"] {
            check(command, "write", write);
        }
    }

    #[test]
    fn what_tools_do_not_do_runs() {
        for command in [
            "cat",
            "cat a b",
            "cat -A a",
            "cat a | sort",
            "cat -",
            "head -c 5 a",
            "head a b",
            "tail a",
            "tail -f a",
            "tail -n x a",
            "grep x",
            "grep -c x a",
            "grep -v x a",
            "grep -r 'a\\|b' .",
            "grep -r 'f()' .",
            "grep x a b",
            "grep -rl x .",
            "grep -A 3 x a",
            "rg -l x",
            "rg --files",
            "find . -name x -delete",
            "find . -mtime 1",
            "find . -type d -name x",
            "fd 'a.*b'",
            "fd -e rs",
            "fd a b c",
            "ls -l",
            "ls a b",
            "ls *.rs",
            "sed 's/a/b/' a",
            "sed -n 5p a",
            "sed -n -e i a",
            "sed -i",
            "echo hi",
            "echo hi > /dev/null",
            "echo hi >> a",
            "cat a > b",
            "cat <<E\nE",
            "sort a > b",
            "git status",
            "command cat a",
            "/bin/cat a",
        ] {
            assert_eq!(suggestion(command), None, "{command:?}");
        }
    }
}
