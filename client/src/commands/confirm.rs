//! Yes-or-no questions to the person at the terminal.

use std::io::{self, BufRead, IsTerminal, Write};

use crate::exit::{self, Exit, Fault, Signals};

/// The answer that Enter alone gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EnterMeans {
    Yes,
    No,
}

/// Whether someone is there to answer.
pub(crate) fn possible() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks a question on stderr. The end of stdin means no.
///
/// # Errors
/// When the terminal cannot be used, and at a signal.
pub(crate) fn agreed(question: &str, enter: EnterMeans) -> Result<bool, Fault> {
    let broken = |error: io::Error| Fault::new(Exit::Failed, format!("agentctl: cannot ask: {error}"));
    let choice = if enter == EnterMeans::Yes { "[Y/n]" } else { "[y/N]" };
    let mut stderr = exit::stderr();
    // In one write, so that keys that the terminal echoes meanwhile do not stand in the middle of the question.
    let line = format!("{question} {choice} ");
    stderr.write_all(line.as_bytes()).and_then(|()| stderr.flush()).map_err(broken)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(broken)?;
    // Earlier calls to agentd have taken over the signals: without this, Ctrl-C would do nothing.
    let answer = runtime.block_on(async {
        let mut signals = Signals::listen().map_err(broken)?;
        let reading = tokio::task::spawn_blocking(|| {
            let mut answer = String::new();
            io::stdin().lock().read_line(&mut answer).map(|count| (count > 0).then_some(answer))
        });
        tokio::select! {
            exit = signals.next() => Err(Fault::new(exit, "")),
            read = reading => read.map_err(io::Error::other).and_then(|read| read).map_err(broken),
        }
    });
    // The reading thread may block forever.
    runtime.shutdown_background();
    Ok(answer?.is_some_and(|answer| is_yes(&answer, enter)))
}

fn is_yes(answer: &str, enter: EnterMeans) -> bool {
    match answer.trim().to_ascii_lowercase().as_str() {
        "" => enter == EnterMeans::Yes,
        answer => matches!(answer, "y" | "yes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enter_means_the_default() {
        for (answer, yes, no) in [
            ("\n", true, false),
            ("Y\n", true, true),
            ("yes", true, true),
            ("n\n", false, false),
            ("what\n", false, false),
        ] {
            assert_eq!(
                (is_yes(answer, EnterMeans::Yes), is_yes(answer, EnterMeans::No)),
                (yes, no),
                "{answer:?}"
            );
        }
    }
}
