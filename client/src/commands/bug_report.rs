//! `agentctl bug-report`: what a maintainer needs to look into a fault, in one file.

mod content;
mod recordings;
mod target;

use std::{
    io::{BufRead, Cursor},
    path::{Path, PathBuf},
};

use agentd_protocol::{command::NoParams, entry::SessionHeader};
use jiff::Timestamp;

use self::{content::Content, recordings::Recordings};
use super::{
    export::{self, Source},
    one_call,
};
use crate::{
    cli::BugReportOptions,
    connect::{Start, socket::Endpoint},
    exit::{Exit, Fault},
    render::{counted, one_line, short_id},
    rpc::{Diagnose, GetDiagnostics},
    session_file,
};

/// The variable that has agentd record.
const RECORD: &str = "AGENTD_RECORD";

/// Writes the report.
pub(crate) fn run(options: &BugReportOptions) -> Exit {
    one_call::conclude(report(options))
}

fn report(options: &BugReportOptions) -> Result<Exit, Fault> {
    if let Some(path) = &options.output {
        target::check(path)?;
    }
    let session = Session::find(&options.session)?;
    let path = options.output.clone().unwrap_or_else(|| default_name(&session.id, Timestamp::now()));
    target::check(&path)?;
    let recordings =
        if options.no_transcript { Recordings::default() } else { recordings(options, &session.id)? };
    let folder = Path::new(&session.cwd).is_dir().then(|| PathBuf::from(&session.cwd));
    let checks = checks(folder.clone());
    let log = Endpoint::find().ok().map(|endpoint| endpoint.log_file());
    let content = Content {
        session: &session,
        has_transcript: !options.no_transcript,
        checks: checks.map_err(|fault| fault.message),
        recordings,
        log: log.as_deref(),
    };
    let counts = target::write(&path, folder.as_deref(), |out| content.write(out))?;
    let transcript = match counts.entries {
        None => "no transcript".to_owned(),
        Some(count) => format!("the session ({})", counted(count, "line")),
    };
    let text = format!(
        "{}: versions, doctor and diagnostics, settings and models without secrets, {transcript}, {} of traffic, {} of the daemon's \
         log.\nWhat is known to be secret is [redacted]. Read it before you give it away: nobody knows what else in it is private.\n",
        one_line(&path.display().to_string()),
        counted(counts.recordings, "recording"),
        counted(counts.log_lines, "line"),
    );
    one_call::print(&text)
}

/// What doctor and the files that configure sessions say, as JSON.
fn checks(cwd: Option<PathBuf>) -> Result<(serde_json::Value, serde_json::Value), Fault> {
    let start = Start { args: vec!["--no-session".to_owned()], cwd };
    let (doctor, diagnostics) = one_call::converse_quietly(start, async |client| {
        Ok((client.call::<Diagnose>(&NoParams {}).await?, client.call::<GetDiagnostics>(&NoParams {}).await?))
    })?;
    let json = |error: serde_json::Error| {
        Fault::new(Exit::Failed, format!("agentctl: an answer cannot be written as JSON: {error}"))
    };
    Ok((
        serde_json::to_value(doctor).map_err(json)?,
        serde_json::to_value(diagnostics.diagnostics).map_err(json)?,
    ))
}

/// What was recorded of the session. What is named has to hold something; the folder of a variable may hold others'.
fn recordings(options: &BugReportOptions, id: &str) -> Result<Recordings, Fault> {
    let (place, is_named) = match (&options.recordings, std::env::var_os(RECORD)) {
        (Some(place), _) => (place.clone(), true),
        (None, Some(place)) if !place.is_empty() => (PathBuf::from(place), false),
        (None, _) => return Ok(Recordings::default()),
    };
    match Recordings::find(&place, id) {
        Ok(found) if found.is_empty() && is_named => {
            let text = format!(
                "Error: {} has no recording of session {}. `agentctl prompt --record DIR` makes them.",
                place.display(),
                one_line(id)
            );
            Err(Fault::new(Exit::Failed, text))
        }
        Err(error) if is_named => {
            Err(Fault::new(Exit::Failed, format!("Error: cannot read {}: {error}", place.display())))
        }
        Err(_) => Ok(Recordings::default()),
        Ok(found) => Ok(found),
    }
}

/// The session that the report is about.
struct Session {
    id: String,
    cwd: String,
    source: Source,
}

impl Session {
    fn find(given: &str) -> Result<Self, Fault> {
        let source = Source::find(given)?;
        let (id, cwd) = match &source {
            Source::Memory(session, _) => (session.id.clone(), session.cwd.clone()),
            Source::File(path) => {
                let mut input = export::open(path)?;
                let SessionHeader { id, cwd, .. } =
                    session_file::begin(&mut input).map_err(|error| export::unreadable(path, &error))?.header;
                (id, cwd)
            }
        };
        Ok(Self { id, cwd, source })
    }

    /// Its lines: of the file, whatever state it is in.
    fn lines(&self) -> std::io::Result<Box<dyn BufRead + '_>> {
        Ok(match &self.source {
            Source::File(path) => Box::new(session_file::open(path)?),
            Source::Memory(_, lines) => Box::new(Cursor::new(lines)),
        })
    }
}

fn default_name(id: &str, now: Timestamp) -> PathBuf {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let id: String = short_id(id).chars().map(allowed).collect();
    PathBuf::from(format!("agentd-bug-report-{id}-{}.jsonl", now.strftime("%Y%m%dT%H%M%SZ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_named_after_session_and_time() {
        let now = "2026-11-22T03:04:05Z".parse().unwrap();
        assert_eq!(
            default_name("0198c0de-1234", now),
            Path::new("agentd-bug-report-0198c0de-1234-20261122T030405Z.jsonl")
        );
        assert_eq!(default_name("../x", now), Path::new("agentd-bug-report-___x-20261122T030405Z.jsonl"));
    }
}
