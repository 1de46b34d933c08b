//! The lines of a report, before secrets are taken out of them.

use std::{
    fs,
    io::{self, Write},
    path::Path,
};

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};

use super::{Recordings, Session};
use crate::{commands::daemon, session_file::read_line};

/// The version of the format.
const VERSION: u32 = 1;

/// How much of the daemon's log goes into a report.
const LOG_LINES: usize = 200;

/// A line.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line<'a> {
    /// The first one: agentd knows a report by it.
    BugReport {
        version: u32,
        agentctl: &'a str,
        time: String,
        platform: Platform,
        session: &'a str,
        cwd: &'a str,
    },
    Diagnostics {
        diagnostics: &'a Value,
    },
    Doctor {
        #[serde(skip_serializing_if = "Option::is_none")]
        doctor: Option<&'a Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a str>,
    },
    /// A line of the session file; `text` where it is no JSON.
    Entry {
        #[serde(skip_serializing_if = "Option::is_none")]
        entry: Option<&'a RawValue>,
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<&'a str>,
    },
    Recording {
        file: &'a str,
        line: &'a str,
    },
    Log {
        line: &'a str,
    },
    /// Something that is missing.
    Problem {
        what: &'a str,
        error: String,
    },
}

/// The machine.
#[derive(Serialize)]
struct Platform {
    os: &'static str,
    arch: &'static str,
    kernel: Option<String>,
    distribution: Option<String>,
}

/// What a report is made of.
pub(super) struct Content<'a> {
    pub(super) session: &'a Session,
    pub(super) has_transcript: bool,
    /// What doctor says, and the diagnostics; or why nobody says it.
    pub(super) checks: Result<(Value, Value), String>,
    pub(super) recordings: Recordings,
    pub(super) log: Option<&'a Path>,
}

/// How much there is of what.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// `None` where the transcript is left out.
    pub(super) entries: Option<usize>,
    pub(super) recordings: usize,
    pub(super) log_lines: usize,
}

impl Content<'_> {
    /// Writes all lines. What cannot be read is a line that says so.
    ///
    /// # Errors
    /// Those of `out`.
    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<Counts> {
        let mut counts = Counts::default();
        let Session { id, cwd, .. } = self.session;
        put(
            out,
            &Line::BugReport {
                version: VERSION,
                agentctl: env!("CARGO_PKG_VERSION"),
                time: Timestamp::now().to_string(),
                platform: Platform::here(),
                session: id,
                cwd,
            },
        )?;
        match &self.checks {
            Ok((doctor, diagnostics)) => {
                put(out, &Line::Diagnostics { diagnostics })?;
                put(out, &Line::Doctor { doctor: Some(doctor), error: None })?;
            }
            Err(error) => put(out, &Line::Doctor { doctor: None, error: Some(error) })?,
        }
        if self.has_transcript {
            counts.entries = Some(self.entries(out)?);
        }
        for read in self.recordings.read() {
            match read {
                Ok((file, lines)) => {
                    counts.recordings += 1;
                    for line in &lines {
                        put(out, &Line::Recording { file: &file, line })?;
                    }
                }
                Err(error) => problem(out, "recordings", &error)?,
            }
        }
        match self.log.map(|path| daemon::log_tail(path, LOG_LINES)) {
            Some(Ok(Some(lines))) => {
                counts.log_lines = lines.len();
                lines.iter().try_for_each(|line| put(out, &Line::Log { line }))?;
            }
            Some(Err(error)) => problem(out, "log", &error)?,
            Some(Ok(None)) | None => {}
        }
        Ok(counts)
    }

    fn entries(&self, out: &mut dyn Write) -> io::Result<usize> {
        let mut lines = match self.session.lines() {
            Ok(lines) => lines,
            Err(error) => return problem(out, "session", &error).map(|()| 0),
        };
        let mut count = 0;
        let mut bytes = Vec::new();
        loop {
            match read_line(&mut lines, &mut bytes) {
                Ok(0) => return Ok(count),
                Ok(_) => {}
                Err(error) => return problem(out, "session", &error).map(|()| count),
            }
            let text = String::from_utf8_lossy(&bytes);
            let text = text.trim();
            if text.is_empty() {
                continue;
            }
            count += 1;
            match serde_json::from_str::<&RawValue>(text) {
                Ok(entry) => put(out, &Line::Entry { entry: Some(entry), text: None })?,
                Err(_) => put(out, &Line::Entry { entry: None, text: Some(text) })?,
            }
        }
    }
}

fn problem(out: &mut dyn Write, what: &str, error: &io::Error) -> io::Result<()> {
    put(out, &Line::Problem { what, error: error.to_string() })
}

fn put(out: &mut dyn Write, line: &Line<'_>) -> io::Result<()> {
    writeln!(out, "{}", to_raw_value(line)?)
}

impl Platform {
    fn here() -> Self {
        let text = |path: &str| fs::read_to_string(path).ok();
        let release = text("/etc/os-release");
        let pretty = release.as_deref().and_then(|text| {
            let line = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
            Some(line.trim_matches('"').to_owned())
        });
        Self {
            os: std::env::consts::OS,
            arch: std::env::consts::ARCH,
            kernel: text("/proc/sys/kernel/osrelease").map(|text| text.trim().to_owned()),
            distribution: pretty,
        }
    }
}
