//! What commands share that ask a daemon of our own one thing and print the answer.

use std::{
    io::{self, IsTerminal, Write},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use agentd_protocol::terminal_text::Shown;
use serde::Serialize;

use crate::{
    connect::{Daemon, Start},
    exit::{self, Exit, Fault, tell},
    output::Output,
    rpc::{Call, CallError, Client},
    signals::Signals,
};

/// How long a daemon that has answered may take to end. It has nothing to store.
const CLOSE_GRACE: Duration = Duration::from_secs(2);

/// How long it may take when the user wants out at once, or when its output is closed already.
const HURRIED_GRACE: Duration = Duration::from_millis(300);

/// Starts `agentd --stdio --no-session` here, makes one call, and ends it. What agentd says on stderr goes to ours.
///
/// # Errors
/// A refusal, with its hint, exits with 1; a daemon that is missing or breaks down with 3. A signal ends the call without
/// a word.
pub(crate) fn call<C: Call>(params: &C::Params) -> Result<C::Data, Fault> {
    call_with::<C>(&[], params, Output::start)
}

/// As [`call`], for answers that say themselves what is wrong with the user's files: what agentd says on stderr is passed
/// on only where there is no answer.
///
/// # Errors
/// As [`call`].
pub(crate) fn call_quietly<C: Call>(params: &C::Params) -> Result<C::Data, Fault> {
    call_quietly_with::<C>(&[], params)
}

/// As [`call_quietly`], with more flags for agentd.
///
/// # Errors
/// As [`call`].
pub(crate) fn call_quietly_with<C: Call>(flags: &[&str], params: &C::Params) -> Result<C::Data, Fault> {
    let kept = Kept::default();
    let answer = call_with::<C>(flags, params, || Output::start_with(io::stdout(), kept.clone()));
    if answer.is_err() {
        // A stderr that cannot be written has no reader.
        let _ = exit::stderr().write_all(&kept.take());
    }
    answer
}

/// What agentd said on stderr, kept until it is known whether anybody needs it.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Kept {
    /// More is not kept.
    const MOST: usize = 64 * 1024;

    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.bytes())
    }
}

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut kept = self.bytes();
        let room = Self::MOST.saturating_sub(kept.len());
        kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn call_with<C: Call>(
    flags: &[&str],
    params: &C::Params,
    output: impl FnOnce() -> io::Result<Output>,
) -> Result<C::Data, Fault> {
    let args = ["--no-session"].iter().chain(flags).map(|flag| (*flag).to_owned()).collect();
    converse_with(Start { args, cwd: None }, output, async |client: &Client| client.call::<C>(params).await)
}

/// Starts `agentd --stdio`, makes several calls, and ends it. What agentd says on stderr goes to ours.
///
/// # Errors
/// As [`call`].
pub(crate) fn converse<T>(
    start: Start,
    work: impl AsyncFnOnce(&Client) -> Result<T, CallError>,
) -> Result<T, Fault> {
    converse_with(start, Output::start, work)
}

/// As [`converse`]; what agentd says on stderr is passed on only where there is no answer.
///
/// # Errors
/// As [`call`].
pub(crate) fn converse_quietly<T>(
    start: Start,
    work: impl AsyncFnOnce(&Client) -> Result<T, CallError>,
) -> Result<T, Fault> {
    let kept = Kept::default();
    let answer = converse_with(start, || Output::start_with(io::stdout(), kept.clone()), work);
    if answer.is_err() {
        // A stderr that cannot be written has no reader.
        let _ = exit::stderr().write_all(&kept.take());
    }
    answer
}

fn converse_with<T>(
    start: Start,
    output: impl FnOnce() -> io::Result<Output>,
    work: impl AsyncFnOnce(&Client) -> Result<T, CallError>,
) -> Result<T, Fault> {
    let broken = |error: io::Error| Fault::new(Exit::Failed, format!("agentctl: cannot start: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(broken)?;
    let answer = runtime.block_on(async {
        let mut signals = Signals::listen().map_err(broken)?;
        let output = output().map_err(broken)?;
        let daemon = Daemon::start(start, output.sender())?;
        let asked = tokio::select! {
            biased;
            exit = signals.next() => Err(Interrupted::Signal(exit)),
            answer = work(&daemon.client) => answer.map_err(Interrupted::Call),
        };
        let answer = tokio::select! {
            answer = end(daemon, asked) => answer,
            // Dropping the daemon kills it.
            exit = signals.next() => Err(Fault::new(exit, "")),
        };
        // What agentd had to say comes before what is said about it. A stderr that cannot be written has no reader.
        let _ = tokio::time::timeout(HURRIED_GRACE, output.finish()).await;
        answer
    });
    // The writing thread may hang on a stderr that nobody reads.
    runtime.shutdown_background();
    answer
}

/// Why there is no answer.
enum Interrupted {
    Signal(Exit),
    Call(CallError),
}

/// Ends the daemon; the answer, or what to tell the user.
async fn end<T>(daemon: Daemon, asked: Result<T, Interrupted>) -> Result<T, Fault> {
    let fault = match asked {
        Ok(answer) => {
            daemon.close(CLOSE_GRACE).await;
            return Ok(answer);
        }
        Err(Interrupted::Signal(exit)) => Fault::new(exit, ""),
        Err(Interrupted::Call(CallError::Ended { .. })) => {
            return Err(daemon.not_started(HURRIED_GRACE).await);
        }
        Err(Interrupted::Call(error)) => fault(&error),
    };
    daemon.close(HURRIED_GRACE).await;
    Err(fault)
}

/// A call without an answer, as the end of the program.
pub(crate) fn fault(error: &CallError) -> Fault {
    match error {
        CallError::Refused { error, hint, .. } => {
            let hint = hint.as_deref().map(|hint| format!("\n{hint}")).unwrap_or_default();
            Fault::new(Exit::Failed, format!("Error: {error}{hint}"))
        }
        CallError::TurnedAway { .. } | CallError::Ended { .. } | CallError::Unreadable { .. } => {
            Fault::new(Exit::NoDaemon, format!("agentctl: {error}"))
        }
    }
}

/// Tells the user what went wrong, if anything did. The end of a command's `run`.
pub(crate) fn conclude(outcome: Result<Exit, Fault>) -> Exit {
    match outcome {
        Ok(exit) => exit,
        Err(fault) => {
            if !fault.message.is_empty() {
                tell(&fault.message);
            }
            fault.exit
        }
    }
}

/// Prints a text that ends with a line feed to stdout; a terminal gets nothing of it that steers, but for colours. A reader who has
/// left is no fault, but an exit of its own.
///
/// # Errors
/// When stdout cannot be written for another reason.
pub(crate) fn print(text: &str) -> Result<Exit, Fault> {
    if !io::stdout().is_terminal() {
        return write(text.as_bytes());
    }
    let mut shown = Shown::default();
    write(&[shown.clean(text.as_bytes()), shown.finish()].concat())
}

/// Writes to stdout as it is.
fn write(bytes: &[u8]) -> Result<Exit, Fault> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(Exit::Answered),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::OutputClosed),
        Err(error) => Err(Fault::new(Exit::Failed, format!("agentctl: cannot write to stdout: {error}"))),
    }
}

/// Prints the data of an answer to stdout as one line of JSON (`--json`).
///
/// # Errors
/// When stdout cannot be written.
pub(crate) fn print_json(data: &impl Serialize) -> Result<Exit, Fault> {
    let text = serde_json::to_string(data).map_err(|error| {
        Fault::new(Exit::Failed, format!("agentctl: the answer cannot be written as JSON: {error}"))
    })?;
    write(format!("{text}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_keep_their_hint() {
        let refused =
            CallError::Refused { error: "No key".into(), code: None, hint: Some("Do this.".into()) };
        assert_eq!(fault(&refused), Fault::new(Exit::Failed, "Error: No key\nDo this."));
        assert_eq!(fault(&CallError::Ended { command: "x" }).exit, Exit::NoDaemon);
    }

    #[test]
    fn a_signal_says_nothing() {
        assert_eq!(conclude(Err(Fault::new(Exit::Interrupted, ""))), Exit::Interrupted);
        assert_eq!(conclude(Ok(Exit::Answered)), Exit::Answered);
    }
}
