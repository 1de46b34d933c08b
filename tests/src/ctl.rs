//! Programs that end by themselves: `agentctl`, or `agentd`, run to their end or watched on the way, on pipes or on a
//! terminal.

use std::{
    fs::{File, OpenOptions},
    io::{ErrorKind, Read, Write},
    os::unix::ffi::OsStrExt,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    process::{Signal, getpgrp, kill_process_group},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcgetpgrp, tcsetwinsize},
};

use crate::{DEADLINE, Home, binaries, processes};

/// The end of a program and its output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// The exit code; 128 + N after signal N.
    pub code: i32,
    /// All of stdout.
    pub stdout: String,
    /// All of stderr.
    pub stderr: String,
}

/// A running program, by default `agentctl`. Dropping it kills the program.
pub struct Ctl {
    child: Child,
    stdin: Option<ChildStdin>,
    chunks: Receiver<(Stream, Vec<u8>)>,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stream {
    Out,
    Err,
}

/// Runs `agentctl` with these arguments and nothing on stdin.
#[must_use]
pub fn run(home: &Home, args: &[&str]) -> Finished {
    Ctl::start(home, args).finish()
}

/// Runs `agentctl` with `input` on stdin.
#[must_use]
pub fn run_with_input(home: &Home, args: &[&str], input: &str) -> Finished {
    feed(command(home, args), input)
}

/// Runs a command with `input` on stdin.
#[must_use]
pub fn feed(command: Command, input: &str) -> Finished {
    let mut ctl = Ctl::start_with(command, Stdio::piped());
    let mut stdin = ctl.stdin.take().expect("a piped stdin");
    match stdin.write_all(input.as_bytes()) {
        Ok(()) => {}
        // The program may end before it has read its input.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
        Err(error) => panic!("the program does not take input: {error}"),
    }
    drop(stdin);
    ctl.finish()
}

/// The command of [`run`].
#[must_use]
pub fn command(home: &Home, args: &[&str]) -> Command {
    let mut command = home.command(binaries::agentctl());
    command.args(args);
    command
}

/// The command that runs `agentd`.
#[must_use]
pub fn agentd(home: &Home, args: &[&str]) -> Command {
    let mut command = home.command(binaries::agentd());
    command.args(args);
    command
}

impl Ctl {
    /// Starts `agentctl` with these arguments and nothing on stdin.
    #[must_use]
    pub fn start(home: &Home, args: &[&str]) -> Self {
        Self::start_with(command(home, args), Stdio::null())
    }

    /// Starts a command, with this stdin.
    #[must_use]
    pub fn start_with(mut command: Command, stdin: Stdio) -> Self {
        let mut child = command
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let (sender, chunks) = channel();
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let streams: [(Stream, Box<dyn Read + Send>); 2] = [
            (Stream::Out, Box::new(out.expect("a piped stdout"))),
            (Stream::Err, Box::new(err.expect("a piped stderr"))),
        ];
        for (stream, mut reader) in streams {
            let sender = sender.clone();
            thread::spawn(move || {
                let mut buffer = vec![0; 1 << 16];
                while let Ok(count @ 1..) = reader.read(&mut buffer) {
                    if sender.send((stream, buffer[..count].to_owned())).is_err() {
                        return;
                    }
                }
            });
        }
        let stdin = child.stdin.take();
        Self { child, stdin, chunks, stdout: Vec::new(), stderr: Vec::new() }
    }

    /// Waits until stdout holds `text`.
    pub fn wait_for_stdout(&mut self, text: &str) {
        self.wait_for(Stream::Out, text);
    }

    /// Waits until stderr holds `text`.
    pub fn wait_for_stderr(&mut self, text: &str) {
        self.wait_for(Stream::Err, text);
    }

    /// What has come on stdout while something was waited for.
    #[must_use]
    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// What has come on stderr while something was waited for.
    #[must_use]
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// Writes a line to stdin, which has to be piped.
    pub fn type_line(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("a piped stdin");
        stdin.write_all(format!("{line}\n").as_bytes()).expect("the program takes input");
    }

    /// Ends stdin, which has to be piped.
    pub fn end_input(&mut self) {
        self.stdin = None;
    }

    /// The process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        processes::signal(self.child.id(), signal);
    }

    /// Waits for the end.
    #[must_use]
    pub fn finish(mut self) -> Finished {
        use std::os::unix::process::ExitStatusExt;

        let end = Instant::now() + DEADLINE;
        while self.take(end) {}
        let status = self.child.wait().expect("the status of a child");
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
        Finished { code, stdout: text(&self.stdout), stderr: text(&self.stderr) }
    }

    fn wait_for(&mut self, stream: Stream, wanted: &str) {
        let end = Instant::now() + DEADLINE;
        loop {
            let seen = text(if stream == Stream::Out { &self.stdout } else { &self.stderr });
            if seen.contains(wanted) {
                return;
            }
            assert!(self.take(end), "{wanted:?} never came\n{}", self.seen());
        }
    }

    /// Takes the next output; `false` at the end of both streams.
    fn take(&mut self, end: Instant) -> bool {
        use std::sync::mpsc::RecvTimeoutError;

        match self.chunks.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok((Stream::Out, bytes)) => self.stdout.extend_from_slice(&bytes),
            Ok((Stream::Err, bytes)) => self.stderr.extend_from_slice(&bytes),
            Err(RecvTimeoutError::Disconnected) => return false,
            Err(RecvTimeoutError::Timeout) => panic!("nothing more within {DEADLINE:?}\n{}", self.seen()),
        }
        true
    }

    fn seen(&self) -> String {
        format!("stdout:\n{}\nstderr:\n{}", text(&self.stdout), text(&self.stderr))
    }
}

impl Drop for Ctl {
    fn drop(&mut self) {
        // Both fail only for a process that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn resize(terminal: &impl std::os::fd::AsFd, (columns, rows): (u16, u16)) {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(terminal, size).expect("a terminal has a size");
}

/// A running program whose three streams are one terminal. Dropping it kills the program.
pub struct Terminal {
    child: Child,
    keyboard: File,
    screen: Receiver<Vec<u8>>,
    shown: Vec<u8>,
}

impl Terminal {
    /// Starts a program as the foreground job of a new terminal.
    #[must_use]
    pub fn start(home: &Home, program: &std::path::Path, args: &[&str]) -> Self {
        Self::start_with(home, program, args, None, &[])
    }

    /// As [`Terminal::start`], with columns and rows, and more variables of the environment.
    #[must_use]
    pub fn start_with(
        home: &Home,
        program: &std::path::Path,
        args: &[&str],
        size: Option<(u16, u16)>,
        variables: &[(&str, &str)],
    ) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&master).and_then(|()| unlockpt(&master)).expect("a terminal of ours");
        let name = ptsname(&master, Vec::new()).expect("the name of a terminal");
        let slave =
            OpenOptions::new().read(true).write(true).open(std::ffi::OsStr::from_bytes(name.as_bytes()));
        let slave = slave.expect("the other side of a terminal");
        if let Some(size) = size {
            resize(&master, size);
        }
        let stream = || Stdio::from(slave.try_clone().expect("another descriptor"));
        // `setsid` of util-linux makes the terminal the controlling one, so that Ctrl-C reaches the foreground group.
        let mut command: Command = home.command("setsid");
        command
            .args(["--ctty", "--wait"])
            .arg(program)
            .args(args)
            .env("TERM", "xterm")
            .envs(variables.iter().copied());
        let child = command.stdin(stream()).stdout(stream()).stderr(stream()).spawn().expect("setsid starts");
        let keyboard = File::from(master);
        let mut reader = keyboard.try_clone().expect("another descriptor");
        let (sender, screen) = channel();
        thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            // The read fails once the other side is closed.
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                if sender.send(buffer[..count].to_owned()).is_err() {
                    return;
                }
            }
        });
        Self { child, keyboard, screen, shown: Vec::new() }
    }

    /// Waits until `text` was shown.
    pub fn wait_for(&mut self, text: &str) {
        let end = Instant::now() + DEADLINE;
        while !self.text().contains(text) {
            assert!(self.take(end), "{text:?} never came\n{}", self.text());
        }
    }

    /// Types keys, and waits for a text that comes after them; gives the time between.
    pub fn press_until(&mut self, keys: &str, text: &str) -> Duration {
        let shown = self.shown.len();
        let begun = Instant::now();
        self.press(keys);
        while !String::from_utf8_lossy(&self.shown[shown..]).contains(text) {
            assert!(self.take(begun + DEADLINE), "{text:?} never came after {keys:?}");
        }
        begun.elapsed()
    }

    /// The process of the program: `setsid` has become it.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Gives the terminal other columns and rows.
    pub fn resize(&self, size: (u16, u16)) {
        resize(&self.keyboard, size);
    }

    /// The bytes of the output until now.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.shown
    }

    /// Waits for the end; gives the exit code.
    pub fn wait_for_end(&mut self) -> i32 {
        let end = Instant::now() + DEADLINE;
        while self.take(end) {}
        self.child.wait().expect("the status of a child").code().unwrap_or(-1)
    }

    /// The output until now.
    #[must_use]
    pub fn shown(&self) -> String {
        self.text()
    }

    /// Sends a signal to the process group in the foreground.
    pub fn signal(&self, signal: Signal) {
        let group = tcgetpgrp(&self.keyboard).expect("a foreground group");
        assert_ne!(group, getpgrp(), "the group of a program of the terminal");
        kill_process_group(group, signal).expect("a group of ours");
    }

    /// Types keys.
    pub fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("a terminal takes keys");
    }

    /// Waits for the end. `stdout` holds all output.
    #[must_use]
    pub fn finish(mut self) -> Finished {
        let code = self.wait_for_end();
        Finished { code, stdout: self.text(), stderr: String::new() }
    }

    /// Takes the next output; `false` once the other side is closed.
    fn take(&mut self, end: Instant) -> bool {
        match self.screen.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(bytes) => self.shown.extend_from_slice(&bytes),
            Err(RecvTimeoutError::Disconnected) => return false,
            Err(RecvTimeoutError::Timeout) => panic!("nothing more within {DEADLINE:?}\n{}", self.text()),
        }
        true
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.shown).replace("\r\n", "\n")
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Both fail only for a process that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
