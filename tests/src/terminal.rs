//! A program in a terminal of its own: what it shows there, and what is typed.

use std::{
    fs::{File, OpenOptions},
    io::{Read, Write},
    os::unix::ffi::OsStrExt,
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread,
    time::Instant,
};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::{DEADLINE, Home, ctl::Finished};

/// A running program whose three streams are one terminal. It is killed when the test forgets it.
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
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&master).and_then(|()| unlockpt(&master)).expect("a terminal of ours");
        let name = ptsname(&master, Vec::new()).expect("the name of a terminal");
        let slave =
            OpenOptions::new().read(true).write(true).open(std::ffi::OsStr::from_bytes(name.as_bytes()));
        let slave = slave.expect("the other side of a terminal");
        let stream = || Stdio::from(slave.try_clone().expect("another descriptor"));
        // util-linux makes the terminal the controlling one, so that Ctrl-C reaches the foreground group.
        let mut command: Command = home.command("setsid");
        command.args(["--ctty", "--wait"]).arg(program).args(args).env("TERM", "xterm");
        let child = command.stdin(stream()).stdout(stream()).stderr(stream()).spawn().expect("setsid starts");
        let keyboard = File::from(master);
        let mut reader = keyboard.try_clone().expect("another descriptor");
        let (sender, screen) = channel();
        thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            // It ends with an error once nobody has the other side open.
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

    /// What was shown until now.
    #[must_use]
    pub fn shown(&self) -> String {
        self.text()
    }

    /// Types.
    pub fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("a terminal takes keys");
    }

    /// Waits for the end. Everything shown stands in `stdout`.
    #[must_use]
    pub fn finish(mut self) -> Finished {
        let end = Instant::now() + DEADLINE;
        while self.take(end) {}
        let code = self.child.wait().expect("the status of a child").code().unwrap_or(-1);
        Finished { code, stdout: self.text(), stderr: String::new() }
    }

    /// Takes what is shown next; false once nobody can show anything any more.
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
        // Both fail only for a process that is gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
