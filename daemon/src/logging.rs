//! Diagnostics: to stderr, never to stdout, which belongs to the protocol; without the secrets that the process knows of, and
//! without what could steer a terminal, whether it is one or a file that somebody looks at later.

use std::{
    backtrace::{Backtrace, BacktraceStatus},
    io::{self, Write},
    panic::PanicHookInfo,
    thread,
};

use agentd_auth::scrub;
use agentd_protocol::terminal_text::harmless;
use tracing_subscriber::{EnvFilter, fmt};

/// Sends log lines to stderr. `filter` is the value of `AGENTD_LOG`, such as `debug` or `agentd_session=trace`; the
/// default is `warn`. What a panic says goes there, too.
pub fn start(filter: Option<&str>) {
    let filter = EnvFilter::try_new(filter.unwrap_or("warn")).unwrap_or_else(|_| EnvFilter::new("warn"));
    // A second call (several daemons in one test process) keeps the first setting.
    let _ = fmt()
        .with_env_filter(filter)
        .with_writer(|| LogLines(Clean(io::stderr())))
        .with_target(false)
        // Colours would have to be told from what is in names and messages.
        .with_ansi(false)
        .try_init();
    std::panic::set_hook(Box::new(|info| complain(&describe(info))));
}

/// One line for whoever looks at stderr, without the secrets that are known.
pub fn complain(message: &str) {
    // With stderr closed there is nobody to tell.
    let _ = writeln!(Clean(io::stderr()), "{message}");
}

/// Takes secrets, and what steers a terminal, out of what is written: the one way to stderr. Each piece is one whole message: so the
/// log writes, and no secret is cut in two.
struct Clean<W>(W);

impl<W: Write> Write for Clean<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        self.0.write_all(harmless(&scrub(&text)).as_bytes())?;
        Ok(line.len())
    }

    /// In one piece, which formatting alone would not give.
    fn write_fmt(&mut self, text: std::fmt::Arguments<'_>) -> io::Result<()> {
        self.write_all(text.to_string().as_bytes())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Indents what follows a line break within a line of the log, so that no name or message passes for a line of its own.
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

/// As the standard library says it.
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
    fn nothing_that_is_said_steers_a_terminal() {
        let mut out = Vec::new();
        let name = "a\u{1b}]52;c;eA==\u{7}\u{9b}2J\u{202e}b";
        writeln!(Clean(&mut out), "Warning: {name}\nhint").unwrap();
        LogLines(Clean(&mut out)).write_all(format!("WARN {name}\nERROR forged\n").as_bytes()).unwrap();
        let clean = "a ]52;c;eA==  2J b";
        let expected = format!("Warning: {clean}\nhint\nWARN {clean}\n    ERROR forged\n");
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn lines_and_panics_hold_no_secret() {
        register_secret("hush-of-the-log-1");
        let mut out = Vec::new();
        let (whole, start, end) = ("hush-of-the-log-1", "hush-of-the", "-log-1");
        writeln!(Clean(&mut out), "hush-of {whole}").unwrap();
        // The pieces of one message are one.
        writeln!(Clean(&mut out), "{start}{end}").unwrap();
        let said = Arc::new(Mutex::new(String::new()));
        let heard = Arc::clone(&said);
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| *heard.lock().unwrap() = describe(info)));
        let panicked = std::panic::catch_unwind(|| panic!("of {whole}"));
        std::panic::set_hook(before);
        assert!(panicked.is_err());
        writeln!(Clean(&mut out), "{}", said.lock().unwrap()).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with("hush-of [redacted]\n[redacted]\nthread '"), "{text}");
        assert!(text.contains("logging.rs:") && text.contains("of [redacted]"), "{text}");
    }
}
