//! Finds the functions that agentd calls from its start to the end of a first prompt, and writes them to `daemon/start_functions.ld`, by which the
//! linker puts them side by side. It needs releases that keep their names. What the compiler puts into its callers depends on what else is built, so
//! give it that of `cargo build --release`, after `strip = "none"` for agentd in `Cargo.toml`, and that of agentd alone:
//!
//! ```sh
//! cargo rustc --release -p agentd --bin agentd -- -C strip=none
//! cargo run -p agentd-e2e --bin start_functions -- FOLDER/target/release/agentd target/release/agentd
//! ```
//!
//! `callgrind` sees the calls. In the names, what is different for each version of a dependency and of the compiler is left open; what has become of
//! the names since the last time only costs memory.

// A failure ends the program with a panic, as in a test.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::{
    collections::BTreeSet,
    env, fs,
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use agentd_e2e::{Daemon, Home, MockServer, Reply, sse};
use serde_json::json;

const HEAD: &str = "/* The functions that agentd calls from its start to the end of a first prompt, for the linker to put them side by side: a page of the \
    program\n   that is read has many of them then, instead of one. Written by tests/src/bin/start_functions.rs. */\n\nSECTIONS {\n  .text.start : {\n";

const FOOT: &str = "  }\n}\nINSERT BEFORE .text;\n";

fn main() -> ExitCode {
    let programs: Vec<PathBuf> = env::args_os().skip(1).map(PathBuf::from).collect();
    if programs.is_empty() {
        let _ = writeln!(
            io::stderr(),
            "The programs are missing: releases of agentd that were built with strip = none."
        );
        return ExitCode::from(2);
    }
    let (mut at_start, mut with_prompt) = (BTreeSet::new(), BTreeSet::new());
    for program in programs {
        let program = program.canonicalize().expect("the program");
        let called = functions(&program, |daemon| {
            daemon.done(json!({"type": "get_state"}));
        });
        assert!(called.len() > 1_000, "{} functions: {} has no names", called.len(), program.display());
        at_start.extend(called);
        with_prompt.extend(functions(&program, |daemon| {
            daemon.prompt("Go on.");
            daemon.done(json!({"type": "get_messages"}));
        }));
    }
    let later: Vec<&String> = with_prompt.difference(&at_start).collect();
    let mut script = HEAD.to_owned();
    for function in at_start.iter().chain(later.iter().copied()) {
        script.push_str(&format!("    *(.text.{function})\n"));
    }
    script.push_str(FOOT);
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../daemon/start_functions.ld");
    fs::write(place, script).expect("the file of functions");
    let _ = writeln!(
        io::stderr(),
        "{} functions of the start, and {} more of a prompt with a command.",
        at_start.len(),
        later.len()
    );
    ExitCode::SUCCESS
}

/// The patterns of the functions that are called while `work` is done.
fn functions(program: &Path, work: impl FnOnce(&mut Daemon)) -> BTreeSet<String> {
    let server = MockServer::start([
        Reply::stream(sse::calls(&[("call_1", "bash", json!({"command": "true"}))])),
        Reply::stream(sse::answer("Done.")),
    ]);
    let home = Home::with_model(&server);
    let calls = home.root().join("calls");
    let mut command = home.command("valgrind");
    command.args(["--tool=callgrind", "--demangle=no"]);
    command.arg(format!("--callgrind-out-file={}", calls.display()));
    command.arg(program).arg("--stdio");
    let mut daemon = Daemon::start_command(command);
    work(&mut daemon);
    let ended = daemon.close();
    assert!(ended.status.success(), "{}", ended.stderr);
    let calls = fs::read_to_string(calls).expect("what callgrind saw");
    calls.lines().filter_map(function_of).map(pattern).collect()
}

/// The function that a line of callgrind's names: `fn=(12) name` or `cfn=(12) name`, with `'2` behind the name of one that calls itself.
fn function_of(line: &str) -> Option<&str> {
    let (_, name) = line.trim_start_matches('c').strip_prefix("fn=(")?.split_once(") ")?;
    let name = name.split_once('\'').map_or(name, |(name, _)| name);
    name.starts_with("_R").then_some(name)
}

/// The name with the hashes of crates left open: `Cs4X4t9plMPHF_9addr2line` is the crate `addr2line`.
fn pattern(name: &str) -> String {
    let mut pattern = String::with_capacity(name.len());
    let mut rest = name;
    while let Some((before, hash)) = rest.split_once("Cs") {
        pattern.push_str(before);
        let end = hash.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(hash.len());
        match hash.get(end..).and_then(|behind| behind.strip_prefix('_')) {
            Some(behind) => {
                pattern.push_str("Cs*_");
                rest = behind;
            }
            None => {
                pattern.push_str("Cs");
                rest = hash;
            }
        }
    }
    pattern + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_of_crates_are_left_open() {
        assert_eq!(pattern("_RNvNtCs4X4t9plMPHF_9addr2line3foo"), "_RNvNtCs*_9addr2line3foo");
        assert_eq!(pattern("_RNvC5CrateCs"), "_RNvC5CrateCs");
        assert_eq!(function_of("cfn=(12) _RNv3foo'2"), Some("_RNv3foo"));
        assert_eq!(function_of("fn=(1) _RNv3foo"), Some("_RNv3foo"));
        assert_eq!(function_of("fn=(1)"), None);
        assert_eq!(function_of("fn=(3) malloc"), None);
    }
}
