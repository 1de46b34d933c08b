//! When a service is ready: a line of its output, a port of this machine, or both.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use agentd_agent::ToolError;
use agentd_process::OutputListener;
use regex::{Regex, RegexBuilder};
use serde::Deserialize;
use tokio::{
    net::TcpStream,
    sync::watch,
    time::{sleep, timeout},
};

/// How long a service may take by default.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// How long it may take at most.
const MAX_TIMEOUT: Duration = Duration::from_secs(3600);

/// The most memory of a compiled expression: 1 MiB.
const MAX_REGEX: usize = 1 << 20;

/// The longest line that is looked at while it grows: 4 KiB. Of a longer one, the last so many bytes.
const MAX_LINE: usize = 4096;

/// The pause after the first attempt to connect; doubled after each, up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(25);

/// The longest pause between attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// How long nothing may follow an unfinished line that counts.
const SILENCE: Duration = Duration::from_millis(100);

/// How long one attempt may take.
const ATTEMPT: Duration = Duration::from_secs(2);

/// The argument `ready`.
#[derive(Debug, Deserialize)]
pub(super) struct ReadyArguments {
    log: Option<String>,
    port: Option<f64>,
    host: Option<String>,
    timeout: Option<f64>,
}

/// How a service shows that it is ready.
#[derive(Debug)]
pub(super) struct Readiness {
    log: Option<Regex>,
    port: Option<ReadyPort>,
    pub(super) timeout: Duration,
}

/// A port of this machine.
#[derive(Debug, Clone)]
struct ReadyPort {
    port: u16,
    hosts: Vec<IpAddr>,
}

impl Readiness {
    /// # Errors
    /// Names the field and what is wrong with it.
    pub(super) fn of(arguments: ReadyArguments) -> Result<Self, ToolError> {
        let ReadyArguments { log, port, host, timeout } = arguments;
        if log.is_none() && port.is_none() {
            return Err(ToolError(
                "Invalid ready: it needs log (a regular expression for a line of the output) or port."
                    .to_owned(),
            ));
        }
        if host.is_some() && port.is_none() {
            return Err(ToolError("Invalid ready: host needs a port.".to_owned()));
        }
        let log = log.map(|log| {
            let built = RegexBuilder::new(&log).size_limit(MAX_REGEX).build();
            built.map_err(|error| ToolError(format!("Invalid ready.log: {error}")))
        });
        let port = port.map(|port| {
            if !(1.0..=65535.0).contains(&port) || port.fract() != 0.0 {
                return Err(ToolError(
                    "Invalid ready.port: must be a whole number from 1 to 65535".to_owned(),
                ));
            }
            Ok(ReadyPort { port: port as u16, hosts: hosts(host.as_deref())? })
        });
        let timeout = match timeout {
            None => DEFAULT_TIMEOUT,
            Some(seconds) => Duration::try_from_secs_f64(seconds)
                .ok()
                .filter(|time| !time.is_zero() && *time <= MAX_TIMEOUT)
                .ok_or_else(|| {
                    ToolError(
                        "Invalid ready.timeout: must be a number of seconds, more than 0, at most 3600"
                            .to_owned(),
                    )
                })?,
        };
        Ok(Self { log: log.transpose()?, port: port.transpose()?, timeout })
    }

    /// Refuses a port that another program has: a connection would say nothing of the service.
    ///
    /// # Errors
    /// Names the port.
    pub(super) async fn check_port(&self) -> Result<(), ToolError> {
        let Some(port) = &self.port else { return Ok(()) };
        match port.connect().await {
            true => Err(ToolError(format!(
                "Port {} of this machine is taken already, so that nobody could tell when the service is ready. Choose another port, \
                 or end what uses it.",
                port.port
            ))),
            false => Ok(()),
        }
    }

    /// What hears the output until the expression matches, and what tells of that.
    pub(super) fn listener(&self) -> Option<(OutputListener, LineMatch)> {
        let mut lines = LineScan { pattern: self.log.clone()?, line: String::new() };
        let (found, is_found) = watch::channel(Found::Nothing);
        let mut pieces = 0;
        let listener = move |text: &str, current: &str| {
            if *found.borrow() == Found::Line {
                return;
            }
            pieces += 1;
            let now = lines.find(text, current, pieces);
            // The call may have been given up.
            let _ = found.send(now);
        };
        Some((Box::new(listener), LineMatch(is_found)))
    }

    /// Waits until the service is ready. Cancel safe.
    pub(super) async fn wait(&self, matched: Option<LineMatch>) {
        let matched = async {
            if let Some(LineMatch(matched)) = matched {
                until_found(matched).await;
            }
        };
        let connected = async {
            if let Some(port) = &self.port {
                port.connected().await;
            }
        };
        tokio::join!(matched, connected);
    }

    /// What is waited for, for a message.
    pub(super) fn shown(&self) -> String {
        let log = self.log.as_ref().map(|log| format!("a line that matches /{log}/"));
        let port = self.port.as_ref().map(|port| format!("port {}", port.port));
        [log, port].into_iter().flatten().collect::<Vec<_>>().join(" and ")
    }
}

/// The addresses of a host of this machine; without one, both of `localhost`.
fn hosts(host: Option<&str>) -> Result<Vec<IpAddr>, ToolError> {
    let both = || vec![IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
    let Some(host) = host else { return Ok(both()) };
    if host.eq_ignore_ascii_case("localhost") {
        return Ok(both());
    }
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    match bare.parse::<IpAddr>() {
        Ok(address) if address.is_loopback() => Ok(vec![address]),
        _ => Err(ToolError(format!(
            "Invalid ready.host: {host:?}. It must be an address of this machine: localhost, 127.0.0.1 or ::1"
        ))),
    }
}

impl ReadyPort {
    /// Whether something takes connections.
    async fn connect(&self) -> bool {
        for host in &self.hosts {
            let attempt = TcpStream::connect(SocketAddr::new(*host, self.port));
            if matches!(timeout(ATTEMPT, attempt).await, Ok(Ok(_))) {
                return true;
            }
        }
        false
    }

    /// Tries with growing pauses until something takes connections. Cancel safe.
    async fn connected(&self) {
        let mut pause = FIRST_PAUSE;
        while !self.connect().await {
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

/// Tells when a line of the output has matched.
pub(super) struct LineMatch(watch::Receiver<Found>);

/// What was found in the output so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Nothing,
    /// A line matches.
    Line,
    /// The unfinished line matches as it is after so many pieces, such as a prompt; what follows may change that.
    OpenLine(u64),
}

/// Waits until a line matches, or an unfinished one does and nothing follows. Cancel safe.
async fn until_found(mut found: watch::Receiver<Found>) {
    loop {
        let Ok(now) = found.wait_for(|found| *found != Found::Nothing).await.map(|found| *found) else {
            // The output ended without a match; the end of the process says so.
            return std::future::pending().await;
        };
        if now == Found::Line || timeout(SILENCE, found.wait_for(|found| *found != now)).await.is_err() {
            return;
        }
    }
}

/// Looks for an expression in lines that come in pieces.
struct LineScan {
    pattern: Regex,
    /// The beginning of the line that is not whole yet.
    line: String,
}

impl LineScan {
    /// What there is after a piece: a line that ends in `text`, the unfinished one after it, or that of a terminal's cursor.
    fn find(&mut self, text: &str, current: &str, pieces: u64) -> Found {
        let mut rest = text;
        while let Some((end, after)) = rest.split_once('\n') {
            self.extend(end);
            if self.pattern.is_match(self.line.trim_end_matches('\r')) {
                return Found::Line;
            }
            self.line.clear();
            rest = after;
        }
        self.extend(rest);
        let open = if current.is_empty() { &self.line } else { current };
        if !open.is_empty() && self.pattern.is_match(open) { Found::OpenLine(pieces) } else { Found::Nothing }
    }

    fn extend(&mut self, text: &str) {
        self.line.push_str(text);
        if self.line.len() > 2 * MAX_LINE {
            let mut from = self.line.len() - MAX_LINE;
            while !self.line.is_char_boundary(from) {
                from += 1;
            }
            self.line.drain(..from);
        }
    }
}

/// How waiting for a service ended.
pub(super) enum ReadyEnd {
    /// It is ready.
    Ready,
    /// It has ended before.
    Ended,
    /// It runs, and was not ready within its time.
    TimedOut,
    /// The call was stopped; the service runs.
    Stopped,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn readiness(arguments: Value) -> Result<Readiness, String> {
        Readiness::of(serde_json::from_value(arguments).unwrap()).map_err(|error| error.0)
    }

    #[test]
    fn mistakes_are_named() {
        for (arguments, says) in [
            (json!({}), "it needs log"),
            (json!({"host": "localhost", "log": "x"}), "host needs a port"),
            (json!({"log": "("}), "Invalid ready.log: "),
            (json!({"log": "(a{1000}){1000}"}), "Invalid ready.log: "),
            (json!({"port": 0}), "Invalid ready.port"),
            (json!({"port": 65536}), "Invalid ready.port"),
            (json!({"port": 80.5}), "Invalid ready.port"),
            (json!({"port": 80, "host": "example.org"}), "Invalid ready.host: \"example.org\""),
            (json!({"port": 80, "host": "10.0.0.1"}), "Invalid ready.host"),
            (json!({"port": 80, "timeout": 0}), "Invalid ready.timeout"),
            (json!({"port": 80, "timeout": 3601}), "Invalid ready.timeout"),
        ] {
            let error = readiness(arguments.clone()).expect_err("a refusal");
            assert!(error.contains(says), "{arguments}: {error}");
        }
        for host in ["localhost", "127.0.0.2", "::1", "[::1]"] {
            assert!(readiness(json!({"port": 80, "host": host})).is_ok(), "{host}");
        }
        assert_eq!(
            readiness(json!({"log": "up", "port": 80})).unwrap().shown(),
            "a line that matches /up/ and port 80"
        );
    }

    /// What was found after each of the pieces, up to the first line.
    fn found(pattern: &str, pieces: &[&str]) -> Found {
        let mut scan = LineScan { pattern: Regex::new(pattern).unwrap(), line: String::new() };
        let mut last = Found::Nothing;
        for piece in pieces {
            last = scan.find(piece, "", 1);
            if last == Found::Line {
                break;
            }
        }
        last
    }

    #[test]
    fn lines_are_found_however_they_are_cut() {
        use Found::{Line, Nothing, OpenLine};
        let listening = r"^Listening on \d+$";
        assert_eq!(found(listening, &["start\nListe", "ning on 30", "00\r\n"]), Line);
        assert_eq!(found(listening, &["start\nListe", "ning on 30"]), OpenLine(1));
        assert_eq!(found(listening, &["start\nListe", "ning on 30", "th\n"]), Nothing);
        assert_eq!(found("ready>", &["a\nrea", "dy>"]), OpenLine(1));
        assert_eq!(found(r"a\nb|^ab$", &["a\n", "b\n"]), Nothing);
        let mut scan = LineScan { pattern: Regex::new("password:").unwrap(), line: String::new() };
        assert_eq!((scan.find("x\n", "pass", 1), scan.find("", "password: ", 2)), (Nothing, OpenLine(2)));
        let long = "x".repeat(100_000);
        assert_eq!(found("yz$", &[&long, &long, "yz\n"]), Line);
    }

    #[tokio::test(start_paused = true)]
    async fn an_unfinished_line_counts_once_nothing_follows() {
        let (found, is_found) = watch::channel(Found::Nothing);
        let waits = tokio::spawn(until_found(is_found));
        for piece in 1..20 {
            found.send(Found::OpenLine(piece)).unwrap();
            sleep(SILENCE / 2).await;
            assert!(!waits.is_finished());
        }
        found.send(Found::Nothing).unwrap();
        sleep(SILENCE * 3).await;
        assert!(!waits.is_finished());
        found.send(Found::OpenLine(20)).unwrap();
        waits.await.unwrap();
    }

    /// Whether a line has `ab`: one that is finished, or the last one.
    fn lines_with(text: &str) -> bool {
        text.lines().any(|line| line.contains("ab"))
    }

    proptest! {
        #[test]
        fn a_match_does_not_depend_on_the_pieces(text in "[ab\n]{0,40}", cuts in proptest::collection::vec(0usize..41, 0..6)) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut from = 0;
            for cut in cuts {
                pieces.push(&text[from..cut]);
                from = cut;
            }
            pieces.push(&text[from..]);
            prop_assert_eq!(found("ab", &pieces) != Found::Nothing, lines_with(&text));
        }
    }
}
