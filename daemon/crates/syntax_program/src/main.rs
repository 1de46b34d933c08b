//! `agentd-syntax`: finds code by its structure, for the daemon that starts it. Requests come on stdin, answers go to stdout.
//!
//! It reads no files, opens no connections and ends with its input.

mod engine;
mod grammar;
mod serve;

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

/// What the program says to somebody who starts it by hand. Its manual page is made of it.
const HELP: &str = "\
agentd-syntax - finds and rewrites code by its structure, for agentd

Usage: agentd-syntax
       agentd-syntax --version

A part of agentd, which starts it for the tools ast_grep and ast_edit and looks for it beside itself. There is nothing to do with it by
hand: it reads requests, a line of JSON each, and writes answers. It reads no files.";

fn main() -> ExitCode {
    let done = match std::env::args().nth(1).as_deref() {
        None => serve::serve(io::stdin().lock(), io::stdout()),
        Some("--version") => {
            writeln!(io::stdout(), "{} {}", agentd_syntax::PROGRAM, env!("CARGO_PKG_VERSION"))
        }
        Some(_) => writeln!(io::stdout(), "{HELP}"),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nobody is left to be told if this fails, too.
            let _ = writeln!(io::stderr(), "{}: {error}", agentd_syntax::PROGRAM);
            ExitCode::FAILURE
        }
    }
}
