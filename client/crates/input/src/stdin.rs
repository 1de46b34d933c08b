//! What is piped in.

use std::{
    io::{self, IsTerminal, Read},
    sync::mpsc,
    thread,
    time::Duration,
};

use crate::InputError;

/// The most that is read: 40 MiB, which still fits a line of the wire when escaped.
const MAX_BYTES: u64 = 40 << 20;

/// How long a silent pipe is waited for before the user is told what we wait for.
const PATIENCE: Duration = Duration::from_secs(2);

/// Reads stdin to its end and trims it; empty when it is a terminal. Blocks; when nothing has come for two seconds,
/// `waiting` may tell the user what is waited for.
///
/// # Errors
/// When it cannot be read or holds too much.
pub fn read_stdin(waiting: impl FnOnce()) -> Result<String, InputError> {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        return Ok(String::new());
    }
    let (sender, receiver) = mpsc::channel();
    thread::Builder::new()
        .name("stdin".into())
        // The receiver waits for as long as this takes.
        .spawn(move || drop(sender.send(read(stdin.lock()))))
        .map_err(InputError::Stdin)?;
    let read = receiver.recv_timeout(PATIENCE).or_else(|_| {
        waiting();
        receiver.recv()
    });
    read.unwrap_or_else(|_| Err(io::Error::other("the reading thread ended"))).map_err(InputError::Stdin)
}

fn read(input: impl Read) -> io::Result<String> {
    let mut bytes = Vec::new();
    input.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(io::Error::other(format!(
            "it holds more than {} MiB: put it into a file and ask about the file",
            MAX_BYTES >> 20
        )));
    }
    Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_is_trimmed_and_bounded() {
        assert_eq!(read(&b" \n a \xFFb\n\n"[..]).unwrap(), "a \u{FFFD}b");
        assert!(read(io::repeat(b'x')).unwrap_err().to_string().contains("more than 40 MiB"));
    }
}
