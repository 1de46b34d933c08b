//! The law of the shell parser: where a verdict allows a command, the real bash runs nothing but what the verdict has seen.
//!
//! Commands are put together from pieces that are hard to parse. Their programs do not exist, so that bash hands each one, with its
//! words, to `command_not_found_handle`, which writes them down.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use std::{
    collections::BTreeSet,
    env, fs,
    path::Path,
    process::{Command, Stdio},
};

use agentd_policy::{Policy, PolicyOptions, RuleLayer, RuleSource, Subject};
use agentd_protocol::settings::{PermissionAction, PermissionPreset, PermissionRule};
use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};

/// Writes a line for each program: its words, each behind a colon, in hexadecimal digits.
const HANDLER: &str = r#"command_not_found_handle() {
  local word text=
  for word in "$@"; do
    text+=:; local LC_ALL=C index
    for ((index = 0; index < ${#word}; index++)); do printf -v text '%s%02x' "$text" "'${word:index:1}"; done
  done
  builtin printf '%s\n' "$text" >> "$COMMANDS_SEEN"
  return "$RESULT"
}
"#;

const PIECES: &[&str] = &[
    "aa",
    "aa",
    "aa ",
    "aa x",
    "aa 'x y'",
    "bb",
    "cc",
    " ",
    " ",
    "  ",
    "\t",
    "\n",
    ";",
    "; ",
    " & ",
    "&",
    "&&",
    " && ",
    "||",
    "|",
    "|&",
    "(",
    ")",
    "{",
    "}",
    "{ ",
    "; }",
    "'",
    "'",
    "\"",
    "\"",
    "\\",
    "$",
    "`",
    "$(",
    "${",
    "<",
    ">",
    "> f ",
    ">>",
    "<<",
    "<<<",
    "<(",
    ">(",
    "&>",
    ">&",
    "2>",
    "1",
    "x",
    "y",
    "f",
    "#",
    " #",
    "!",
    "! ",
    "=",
    "X=",
    "X=1 ",
    "$X",
    "\"$X\"",
    "${X}",
    "${X:-",
    "~",
    "*",
    "?",
    "[",
    "]",
    "EOF",
    "\nEOF\n",
    "<<EOF\n",
    "<<'EOF'\n",
    "<<-EOF\n\t",
    "-",
    "\\\n",
    "$'",
    "\\'",
    "\\\"",
    "if ",
    "then ",
    "; fi",
    "for x in ",
    "; do ",
    "; done",
    "case x in ",
    "x) ",
    ";;",
    " esac",
    "time ",
    "[[ ",
    " ]]",
    "((",
    "))",
    "$((",
    "é",
    "a",
    "{a,b}",
    "{1..2}",
    "X=1; ",
    "${X%",
    "${X//",
    "[[ x =~ ",
    "${x[@]}",
    "\"${x[@]}\"",
    "$#",
    "declare x=",
    "$'\\x62b'",
    "\r",
    "<&",
    "-c",
    "\u{a0}",
    "env ",
    "nohup ",
    "sh -c '",
    "xargs ",
    ",",
    "..",
    "@",
    "%",
    "+",
    ":",
    "^",
    "\\n",
];

fn policy(cwd: &Path) -> Policy {
    let rule = |command: &str| PermissionRule {
        tool: "bash".to_owned(),
        command: Some(command.to_owned()),
        path: None,
        domain: None,
        action: PermissionAction::Allow,
        reason: None,
    };
    Policy::new(PolicyOptions {
        preset: PermissionPreset::Workspace,
        project_preset: None,
        layers: vec![RuleLayer { source: RuleSource::User, rules: vec![rule("aa *")] }],
        cwd: cwd.to_owned(),
        folders: Vec::new(),
        home: "/nowhere".into(),
    })
    .unwrap()
}

fn bash() -> Option<&'static str> {
    ["/bin/bash", "/usr/bin/bash"].into_iter().find(|path| Path::new(path).exists())
}

/// What bash ran: the words of each program. `None` if it did not end in time.
fn run(bash: &str, text: &str, cwd: &Path, seen: &Path, result: &str) -> Option<Vec<Vec<String>>> {
    // The limit of processor time ends loops.
    let script = format!("ulimit -t 2 -f 64\n{HANDLER}{text}");
    let status = Command::new(bash)
        .args(["--norc", "--noprofile", "-c", &script])
        .current_dir(cwd)
        .env_clear()
        .envs([("PATH", "/nowhere"), ("HOME", "/nowhere"), ("RESULT", result)])
        .env("COMMANDS_SEEN", seen)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    status.code()?;
    let text = fs::read_to_string(seen).unwrap_or_default();
    let word = |hex: &str| {
        let bytes = hex
            .as_bytes()
            .chunks(2)
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap_or(b'?'));
        String::from_utf8_lossy(&bytes.collect::<Vec<u8>>()).into_owned()
    };
    Some(text.lines().map(|line| line.split(':').skip(1).map(word).collect()).collect())
}

/// Checks one command; whether it was allowed.
fn check(bash: &str, text: &str, place: &Path, result: &str) -> Result<bool, String> {
    // Of its own: what a command left in the background may still write.
    let own = tempfile::tempdir_in(place).unwrap();
    let (cwd, seen) = (own.path().join("w"), own.path().join("seen"));
    fs::create_dir(&cwd).unwrap();
    let found = policy(&cwd).decide("bash", Subject::Command { text, folder: &cwd, variables: &[] });
    if found.action != PermissionAction::Allow {
        return Ok(false);
    }
    let Some(ran) = run(bash, text, &cwd, &seen, result) else { return Ok(false) };
    // `time` is a reserved word: what it times comes here without it.
    let timed = |words: &[String]| {
        words.strip_prefix(&["time".to_owned()]).map(|words| {
            let skipped = words.iter().take_while(|word| ["time", "-p", "--", "!"].contains(&word.as_str()));
            words[skipped.count()..].to_vec()
        })
    };
    let known: BTreeSet<Vec<String>> = found
        .parsed
        .iter()
        .flat_map(|command| [Some(command.words.clone()), timed(&command.words)])
        .flatten()
        .collect();
    // Words that are only known when it runs are shown as they are written.
    let is_static =
        !text.contains(['$', '`', '*', '?', '[', '{', '~']) && !text.contains("<(") && !text.contains(">(");
    for words in &ran {
        // Wrappers are judged by what they start, which does not get so far here. Behind a pipe, `time` is one, too.
        let is_wrapper =
            ["env", "nohup", "sh", "time", "xargs"].map(Some).contains(&words.first().map(String::as_str));
        if words.first().map(String::as_str) != Some("aa")
            && !(is_wrapper && (known.contains(words) || !is_static))
        {
            return Err(format!("bash ran {words:?}"));
        }
        if is_static && !known.contains(words) {
            return Err(format!("bash ran {words:?}, which is none of {known:?}"));
        }
    }
    let written: BTreeSet<String> = found
        .parsed
        .iter()
        .flat_map(|command| &command.redirections)
        .filter_map(|redirection| redirection.strip_prefix("> "))
        .map(|target| target.trim_start_matches("./").to_owned())
        .collect();
    for file in fs::read_dir(&cwd).unwrap() {
        let name = file.unwrap().file_name().to_string_lossy().into_owned();
        if !written.contains(&name) {
            return Err(format!("bash wrote {name:?}, and not only {written:?}"));
        }
    }
    Ok(true)
}

/// With the variable `CASES`, that many commands.
#[test]
fn bash_runs_what_was_seen_and_nothing_else() {
    let Some(bash) = bash() else { return println!("no bash here") };
    let cases = env::var("CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(4000);
    let place = tempfile::tempdir().unwrap();
    let place = place.path().canonicalize().unwrap();
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let pieces = prop::collection::vec(prop::sample::select(PIECES), 1..9);
    let allowed = std::cell::Cell::new(0);
    runner
        .run(&(pieces, "[01]"), |(pieces, result)| {
            let text = format!("aa{}", pieces.concat());
            match check(bash, &text, &place, &result) {
                Ok(was_allowed) => allowed.set(allowed.get() + u32::from(was_allowed)),
                Err(problem) => return Err(TestCaseError::fail(format!("{text:?}: {problem}"))),
            }
            Ok(())
        })
        .unwrap();
    println!("{} of {cases} commands were allowed", allowed.get());
    assert!(allowed.get() > cases / 100, "the law says nothing");
}

/// What the search found, and what is close to it.
#[test]
fn commands_that_once_deceived() {
    let Some(bash) = bash() else { return println!("no bash here") };
    let place = tempfile::tempdir().unwrap();
    let place = place.path().canonicalize().unwrap();
    for text in [
        "aa x\\\ny",
        "aa # '\nbb #'",
        "aa {x}> f",
        "aa <<EOF\nEOF\nbb\nEOF",
        "aa $'\\'' bb",
        "aa \"\\\"\" ; aa 'bb'",
        "aa 2>f x 1>g",
        "aa ;; bb",
        "aa>&-c",
        "aa>& -c",
        "aa -c<<EOF\nEOF",
        "aa <& -c",
        "aa 2>& 1-c",
        "aa ]]\\n",
        "aa>&aa\\'",
        "aa\n\\\nbb",
        "aa=\\\n bb",
        "x=(a b); aa \"${x[@]}\" > f",
        "aa {1..2} > f",
        "time ! aa x",
        "X=1; aa ${X%$(bb)}",
        "X=1; aa ${X//y<(bb)/}",
        "[[ x =~ y$(bb) ]]",
        "aa|time aa",
        "aa ${X%{a,b}; }aa",
        "aa ${X/{a}; bb; }aa",
        "aa \"${X%{a}\"; bb; \"}aa\"",
        "aa\n{}",
        "if aa; then {}; fi",
        "aa {{\n1=",
        "1=x",
        "aa; é=x",
        "2x+=1 aa",
        "aa\\\n 2>f",
        "aa x 2\\\n>f",
    ] {
        for result in ["0", "1"] {
            check(bash, text, &place, result).unwrap_or_else(|problem| panic!("{text:?}: {problem}"));
        }
    }
}
