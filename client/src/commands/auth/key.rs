//! Where a key is read from: the terminal, without being shown there, or a pipe.

use std::{
    io::{self, BufRead, IsTerminal, Read, Write},
    os::fd::AsFd,
};

use agentd_protocol::secret::Secret;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::{
    exit::{self, Exit, Fault},
    render::one_line,
    signals::Signals,
};

/// The most that is read of a pipe; a key is far shorter.
const MAX_BYTES: u64 = 64 * 1024;

/// Reads a key: one typed line where stdin is a terminal, else everything that is piped in. Blanks and line breaks around
/// it are no part of it.
///
/// # Errors
/// When there is none, it cannot be read, or a signal comes before it.
pub(super) fn ask(provider: &str) -> Result<Secret, Fault> {
    let text = if io::stdin().is_terminal() { typed(provider)? } else { piped()? };
    let text = text.ok_or_else(|| Fault::usage("agentctl: the key is not text"))?;
    match text.trim() {
        "" => Err(Fault::usage(format!(
            "agentctl: no key was given, so nothing was stored. Type it when asked, or pipe it in: agentctl login {} < FILE",
            one_line(provider)
        ))),
        key => Ok(Secret::new(key)),
    }
}

fn broken(error: io::Error) -> Fault {
    Fault::new(Exit::Failed, format!("agentctl: cannot read the key: {error}"))
}

fn piped() -> Result<Option<String>, Fault> {
    let mut bytes = Vec::new();
    io::stdin().lock().take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(broken)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Fault::usage("agentctl: what was piped in is much too long for a key"));
    }
    Ok(String::from_utf8(bytes).ok())
}

fn typed(provider: &str) -> Result<Option<String>, Fault> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(broken)?;
    let line = runtime.block_on(async {
        let mut signals = Signals::listen().map_err(broken)?;
        let silence = Silence::start().map_err(broken)?;
        write!(exit::stderr(), "Key for {} (it is not shown): ", one_line(provider)).map_err(broken)?;
        let reading = tokio::task::spawn_blocking(|| {
            let mut line = Vec::new();
            io::stdin().lock().take(MAX_BYTES).read_until(b'\n', &mut line).map(|_| line)
        });
        let line = tokio::select! {
            exit = signals.next() => Err(Fault::new(exit, "")),
            read = reading => read.map_err(io::Error::other).and_then(|read| read).map_err(broken),
        };
        drop(silence);
        // The line break that was typed was not shown either. A closed stderr shows nothing anyway.
        let _ = writeln!(exit::stderr());
        line
    });
    // The thread that reads may wait there for ever.
    runtime.shutdown_background();
    Ok(String::from_utf8(line?).ok())
}

/// A terminal that does not show what is typed; it is as it was when this is dropped.
struct Silence(Termios);

impl Silence {
    fn start() -> io::Result<Self> {
        let stdin = io::stdin();
        let before = tcgetattr(stdin.as_fd())?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO);
        // What was typed ahead was shown: it is no secret of this prompt.
        tcsetattr(stdin.as_fd(), OptionalActions::Flush, &quiet)?;
        Ok(Self(before))
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        // It fails only when the terminal is gone.
        let _ = tcsetattr(io::stdin().as_fd(), OptionalActions::Now, &self.0);
    }
}
