//! A terminal of which every screen is kept.

use std::{
    io::Read,
    path::PathBuf,
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use portable_pty::{CommandBuilder, PtySize, native_pty_system};

use crate::outcome::{About as _, Outcome, fail};

use super::{
    frames::{self, COLUMNS, Frames, ROWS},
    ids::Ids,
};

/// Output that follows within this time belongs to the same screen.
const SAME_SCREEN: Duration = Duration::from_millis(8);
/// The longest time in which a program of a story writes nothing.
const SILENCE: Duration = Duration::from_secs(60);

/// A terminal in a folder, in which programs run one after another.
pub(crate) struct Recorder {
    /// Where programs run.
    pub(crate) folder: PathBuf,
    /// All variables that they get.
    pub(crate) environment: Vec<(String, String)>,
    /// A path in the output, and the one that is shown in its place.
    shown_home: (String, String),
    parser: vt100::Parser,
    frames: Frames,
    ids: Ids,
}

impl Recorder {
    pub(crate) fn new(
        folder: PathBuf,
        environment: Vec<(String, String)>,
        shown_home: (String, String),
    ) -> Self {
        let parser = frames::terminal();
        Self { folder, environment, shown_home, parser, frames: Frames::default(), ids: Ids::default() }
    }

    /// Shows the screen as it is for a while.
    pub(crate) fn pause(&mut self, time: Duration) {
        self.frames.show(frames::rows(self.parser.screen()), time);
    }

    /// Empties the screen.
    pub(crate) fn clear(&mut self) {
        self.parser.process(b"\x1b[2J\x1b[H");
    }

    /// Draws a command line as if it were typed.
    pub(crate) fn type_line(&mut self, line: &str) {
        const KEY: Duration = Duration::from_millis(35);
        self.parser.process(b"\x1b[32m$\x1b[0m ");
        self.pause(Duration::from_millis(500));
        let mut encoded = [0; 4];
        for key in line.chars() {
            self.parser.process(key.encode_utf8(&mut encoded).as_bytes());
            self.pause(KEY);
        }
        self.pause(Duration::from_millis(400));
        self.parser.process(b"\r\n");
    }

    /// Runs a program to its end, and keeps what it shows.
    ///
    /// # Errors
    /// When it cannot be started, is silent for a minute, or fails.
    pub(crate) fn run(&mut self, program: &str, args: &[&str]) -> Outcome<()> {
        let size = PtySize { rows: ROWS, cols: COLUMNS, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).about("a terminal")?;
        let mut command = CommandBuilder::new(program);
        command.args(args);
        command.cwd(&self.folder);
        command.env_clear();
        for (name, value) in &self.environment {
            command.env(name, value);
        }
        let mut child = pair.slave.spawn_command(command).about(program)?;
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader().about("a terminal")?;
        let (sender, output) = mpsc::channel();
        thread::spawn(move || {
            let mut buffer = [0; 1 << 14];
            // The read fails once the program has closed the terminal.
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                if sender.send(buffer[..count].to_owned()).is_err() {
                    return;
                }
            }
        });
        let mut last = Instant::now();
        loop {
            let mut bytes = match output.recv_timeout(SILENCE) {
                Ok(bytes) => bytes,
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    child.kill().about(program)?;
                    return fail(format!("{program} wrote nothing for {SILENCE:?}:\n{}", self.text()));
                }
            };
            // The screen before was there until now.
            self.pause(frames::rounded(last.elapsed()));
            last = Instant::now();
            while let Ok(more) = output.recv_timeout(SAME_SCREEN) {
                bytes.extend(more);
            }
            let bytes = replace(
                &self.ids.replace(&bytes),
                self.shown_home.0.as_bytes(),
                self.shown_home.1.as_bytes(),
            );
            self.parser.process(&bytes);
        }
        let status = child.wait().about(program)?;
        if status.success() { Ok(()) } else { fail(format!("{program}: {status:?}:\n{}", self.text())) }
    }

    /// Everything that was shown.
    pub(crate) fn finish(self) -> Frames {
        self.frames
    }

    fn text(&self) -> String {
        self.parser.screen().contents()
    }
}

/// Puts one piece of text in the place of another.
fn replace(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&first, after)) = rest.split_first() {
        if let Some(after) = rest.strip_prefix(from) {
            out.extend(to);
            rest = after;
        } else {
            out.push(first);
            rest = after;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_path_is_replaced() {
        assert_eq!(super::replace(b"/tmp/x/a /tmp/x /tmp", b"/tmp/x", b"/home"), b"/home/a /home /tmp");
    }
}
