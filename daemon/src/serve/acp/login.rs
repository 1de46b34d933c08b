//! `agentd acp login`: what an editor runs in a terminal, so that the user logs in there.

use std::{
    ffi::OsString,
    io::{self, Write},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use super::super::runtime::{FAILED, fail};

const QUESTION: &str = "Which provider? Its name (anthropic, openai, …; `agentctl models --all` lists them) asks for a key; with --oauth \
                        after it, you log in with an account.\nProvider: ";

/// Asks for the provider unless `words` name it, and goes on as `agentctl login`.
#[must_use]
pub fn log_in(words: Vec<String>) -> ExitCode {
    let words = if words.is_empty() {
        match ask() {
            Ok(words) if words.is_empty() => {
                return fail("Error: no provider was named: nothing is stored.", FAILED);
            }
            Ok(words) => words,
            Err(error) => return fail(&format!("Error: the provider cannot be asked for: {error}"), FAILED),
        }
    } else {
        words
    };
    let program = agentctl(std::env::current_exe().ok().as_deref());
    // Only comes back when the program cannot be started.
    let error = Command::new(&program).arg("login").args(words).exec();
    fail(
        &format!(
            "Error: cannot start {}: {error}. Log in by `agentctl login`.",
            Path::new(&program).display()
        ),
        FAILED,
    )
}

fn ask() -> io::Result<Vec<String>> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(QUESTION.as_bytes())?;
    stdout.flush()?;
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    Ok(line.split_whitespace().map(str::to_owned).collect())
}

/// `agentctl`: beside this program, else on the search path.
fn agentctl(this: Option<&Path>) -> OsString {
    let beside: Option<PathBuf> = this.map(|this| this.with_file_name("agentctl"));
    beside.filter(|path| path.is_file()).map_or_else(|| "agentctl".into(), PathBuf::into_os_string)
}
