//! The lines of a report, before secrets are taken out of them.

use std::{
    fs,
    io::{self, BufRead, Cursor, Write},
    path::{Path, PathBuf},
};

use agentd_protocol::entry::SessionHeader;
use agentd_safe_open::{AcceptedOwner, LinkPolicy, OpenRules};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};

use crate::{
    commands::{
        export::{self, SessionSource},
        logs,
    },
    exit::Fault,
    session_file::{self, read_line},
};

const VERSION: u32 = 1;

/// How many lines of the daemon's log go into a report.
const LOG_LINES: usize = 200;

/// A line of a report.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ReportLine<'a> {
    /// The first line, by which agentd knows a report.
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
    /// A line of the session file; `text` where it is not JSON.
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
    /// A part that is missing.
    Problem {
        what: &'a str,
        error: String,
    },
}

#[derive(Serialize)]
struct Platform {
    os: &'static str,
    arch: &'static str,
    kernel: Option<String>,
    distribution: Option<String>,
}

/// The parts of a report.
pub(super) struct Content<'a> {
    pub(super) session: &'a ReportedSession,
    pub(super) has_transcript: bool,
    /// The answers of doctor and diagnostics, or the error instead of them.
    pub(super) checks: Result<(Value, Value), String>,
    pub(super) recordings: Recordings,
    pub(super) log: Option<&'a Path>,
}

/// The size of each part.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// `None` without a transcript.
    pub(super) entries: Option<usize>,
    pub(super) recordings: usize,
    pub(super) log_lines: usize,
}

impl Content<'_> {
    /// Writes all lines. A part that cannot be read becomes a line with the error.
    ///
    /// # Errors
    /// Those of `out`.
    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<Counts> {
        let mut counts = Counts::default();
        let ReportedSession { id, cwd, .. } = self.session;
        put(
            out,
            &ReportLine::BugReport {
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
                put(out, &ReportLine::Diagnostics { diagnostics })?;
                put(out, &ReportLine::Doctor { doctor: Some(doctor), error: None })?;
            }
            Err(error) => put(out, &ReportLine::Doctor { doctor: None, error: Some(error) })?,
        }
        if self.has_transcript {
            counts.entries = Some(self.entries(out)?);
        }
        for read in self.recordings.read() {
            match read {
                Ok((file, lines)) => {
                    counts.recordings += 1;
                    for line in &lines {
                        put(out, &ReportLine::Recording { file: &file, line })?;
                    }
                }
                Err(error) => problem(out, "recordings", &error)?,
            }
        }
        match self.log.map(|path| logs::tail(path, LOG_LINES)) {
            Some(Ok(Some(lines))) => {
                counts.log_lines = lines.len();
                lines.iter().try_for_each(|line| put(out, &ReportLine::Log { line }))?;
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
                Ok(entry) => put(out, &ReportLine::Entry { entry: Some(entry), text: None })?,
                Err(_) => put(out, &ReportLine::Entry { entry: None, text: Some(text) })?,
            }
        }
    }
}

fn problem(out: &mut dyn Write, what: &str, error: &io::Error) -> io::Result<()> {
    put(out, &ReportLine::Problem { what, error: error.to_string() })
}

fn put(out: &mut dyn Write, line: &ReportLine<'_>) -> io::Result<()> {
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

/// The session of the report.
pub(super) struct ReportedSession {
    pub(super) id: String,
    pub(super) cwd: String,
    source: SessionSource,
}

impl ReportedSession {
    pub(super) fn find(given: Option<&str>) -> Result<Self, Fault> {
        let source = SessionSource::find(given)?;
        let (id, cwd) = match &source {
            SessionSource::Memory(session, _) => (session.id.clone(), session.cwd.clone()),
            SessionSource::File(path) => {
                let mut input = export::open(path)?;
                let SessionHeader { id, cwd, .. } =
                    session_file::begin(&mut input).map_err(|error| export::unreadable(path, &error))?.header;
                (id, cwd)
            }
        };
        Ok(Self { id, cwd, source })
    }

    /// The lines of the session file, whatever its state.
    fn lines(&self) -> io::Result<Box<dyn BufRead + '_>> {
        Ok(match &self.source {
            SessionSource::File(path) => Box::new(session_file::open(path)?),
            SessionSource::Memory(_, lines) => Box::new(Cursor::new(lines)),
        })
    }
}

/// The largest file of recordings that is read: 1 GiB, as in agentd.
const MAX_BYTES: u64 = 1 << 30;

/// The recorded exchanges of one session with providers.
#[derive(Debug, Default)]
pub(super) struct Recordings {
    files: Vec<PathBuf>,
    session: String,
}

/// The line that names the session of an exchange.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum RecordingLine {
    Request {
        #[serde(default)]
        session: String,
    },
    #[serde(other)]
    Other,
}

impl Recordings {
    /// Searches a folder of recordings, or one file of them.
    ///
    /// # Errors
    /// When it, or a file in it, cannot be read.
    pub(super) fn find(path: &Path, session: &str) -> io::Result<Self> {
        let mut files = Vec::new();
        if fs::metadata(path)?.is_dir() {
            for entry in fs::read_dir(path)? {
                let file = entry?.path();
                if file.extension().is_some_and(|end| end == "jsonl") {
                    files.push(file);
                }
            }
            files.sort();
        } else {
            files.push(path.to_owned());
        }
        let mut found = Self { files: Vec::new(), session: session.to_owned() };
        for path in files {
            if !found.lines(&path)?.is_empty() {
                found.files.push(path);
            }
        }
        Ok(found)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Each file by its name, with its lines of the session.
    pub(super) fn read(&self) -> impl Iterator<Item = io::Result<(String, Vec<String>)>> {
        self.files.iter().map(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Ok((name, self.lines(path)?))
        })
    }

    /// The lines of the session's exchanges, without a last line that is still being written.
    fn lines(&self, path: &Path) -> io::Result<Vec<String>> {
        let rules = OpenRules::new(LinkPolicy::Followed).owner(AcceptedOwner::Anybody).max_bytes(MAX_BYTES);
        let bytes = rules.read_present(path).map_err(|error| io::Error::from(error.into_problem()))?;
        let text = String::from_utf8_lossy(&bytes);
        let mut is_ours = false;
        let whole = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
        let ours = whole.filter(|line| {
            if let Ok(RecordingLine::Request { session }) = serde_json::from_str(line) {
                is_ours = session == self.session;
            }
            is_ours
        });
        Ok(ours.map(str::to_owned).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_of_the_session_and_of_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let request = |session: &str| format!("{{\"type\":\"request\",\"session\":\"{session}\"}}\n");
        let end = "{\"type\":\"end\"}\n";
        let file = |name: &str, text: String| fs::write(folder.path().join(name), text).unwrap();
        file("2.jsonl", format!("{}{end}{}{end}", request("b"), request("a")));
        file("1.jsonl", format!("{}{end}{{\"type\":\"torn", request("a")));
        file("3.jsonl", format!("{}{end}", request("b")));
        file("4.txt", request("a"));
        let found = Recordings::find(folder.path(), "a").unwrap();
        let read: Vec<_> = found.read().map(Result::unwrap).collect();
        let names: Vec<_> = read.iter().map(|(name, lines)| (name.as_str(), lines.len())).collect();
        assert_eq!(names, [("1.jsonl", 2), ("2.jsonl", 2)]);
        assert!(Recordings::find(&folder.path().join("3.jsonl"), "a").unwrap().is_empty());
        assert!(Recordings::find(&folder.path().join("none"), "a").is_err());
    }
}
