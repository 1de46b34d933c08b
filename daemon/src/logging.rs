//! Diagnostics on stderr; stdout belongs to the protocol. Registered secrets and terminal control characters are removed, also where
//! stderr is a file that is read later.

use std::{
    backtrace::{Backtrace, BacktraceStatus},
    io::{self, Write},
    panic::PanicHookInfo,
    thread,
};

use agentd_auth::scrub;
use agentd_protocol::terminal_text::harmless;
use tracing_subscriber::{EnvFilter, fmt};

/// Starts the log on stderr. `filter` is the value of `AGENTD_LOG`, such as `debug` or `agentd_session=trace`; the default is
/// `warn`. Messages of panics go there, too.
pub fn start(filter: Option<&str>) {
    let filter = EnvFilter::try_new(filter.unwrap_or("warn")).unwrap_or_else(|_| EnvFilter::new("warn"));
    // A second call (several daemons in one test process) keeps the first setting.
    let _ = fmt()
        .with_env_filter(filter)
        .with_writer(|| LogLines(CleanWriter(io::stderr())))
        .with_target(false)
        // Colours could not be told from control characters in names and messages.
        .with_ansi(false)
        .try_init();
    std::panic::set_hook(Box::new(|info| complain(&describe(info))));
}

/// Writes one message for the user to stderr, without registered secrets.
pub fn complain(message: &str) {
    // Stderr may be closed.
    let _ = writeln!(CleanWriter(io::stderr()), "{message}");
}

/// Removes secrets and control characters from everything that goes to stderr. Each write is one whole message, so no secret is cut
/// in two.
struct CleanWriter<W>(W);

impl<W: Write> Write for CleanWriter<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        self.0.write_all(harmless(&scrub(&text)).as_bytes())?;
        Ok(line.len())
    }

    /// Formats first, so that the message is one write.
    fn write_fmt(&mut self, text: std::fmt::Arguments<'_>) -> io::Result<()> {
        self.write_all(text.to_string().as_bytes())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Indents the lines after the first of a log entry, so that no name or message passes for an entry of its own.
struct LogLines<W>(W);

impl<W: Write> Write for LogLines<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        if text.contains(&b'\n') {
            let text = String::from_utf8_lossy(text).replace('\n', "\n    ");
            self.0.write_all(format!("{text}\n").as_bytes())?;
        } else {
            self.0.write_all(line)?;
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The message of a panic, as the standard library formats it.
fn describe(info: &PanicHookInfo<'_>) -> String {
    let thread = thread::current();
    let place = info.location().map(ToString::to_string).unwrap_or_default();
    let payload = info.payload();
    let what = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let what = what.unwrap_or("it does not say why");
    let mut text = format!("thread '{}' panicked at {place}:\n{what}", thread.name().unwrap_or("<unnamed>"));
    let backtrace = Backtrace::capture();
    if backtrace.status() == BacktraceStatus::Captured {
        text.push_str(&format!("\n{backtrace}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use agentd_auth::register_secret;

    use super::*;

    #[test]
    fn nothing_on_stderr_controls_a_terminal() {
        let mut out = Vec::new();
        let name = "a\u{1b}]52;c;eA==\u{7}\u{9b}2J\u{202e}b";
        writeln!(CleanWriter(&mut out), "Warning: {name}\nhint").unwrap();
        LogLines(CleanWriter(&mut out)).write_all(format!("WARN {name}\nERROR forged\n").as_bytes()).unwrap();
        let clean = "a ]52;c;eA==  2J b";
        let expected = format!("Warning: {clean}\nhint\nWARN {clean}\n    ERROR forged\n");
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn lines_and_panics_hold_no_secret() {
        register_secret("hush-of-the-log-1");
        let mut out = Vec::new();
        let (whole, start, end) = ("hush-of-the-log-1", "hush-of-the", "-log-1");
        writeln!(CleanWriter(&mut out), "hush-of {whole}").unwrap();
        // The arguments of one message are one write.
        writeln!(CleanWriter(&mut out), "{start}{end}").unwrap();
        let said = Arc::new(Mutex::new(String::new()));
        let heard = Arc::clone(&said);
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| *heard.lock().unwrap() = describe(info)));
        let panicked = std::panic::catch_unwind(|| panic!("of {whole}"));
        std::panic::set_hook(before);
        assert!(panicked.is_err());
        writeln!(CleanWriter(&mut out), "{}", said.lock().unwrap()).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with("hush-of [redacted]\n[redacted]\nthread '"), "{text}");
        assert!(text.contains("logging.rs:") && text.contains("of [redacted]"), "{text}");
    }
}
