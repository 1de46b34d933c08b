//! Reads the files of recordings, and the bug reports that hold some.

use std::{
    io,
    path::{Path, PathBuf},
};

use agentd_safe_open::{AcceptedOwner, LinkPolicy, OpenRules};
use serde::Deserialize;

use super::format::{RecordedRequest, RecordingLine, VERSION, is_request};
use crate::failure::{Failure, FailureKind};

/// The location of an exchange in a file.
#[derive(Debug, Clone)]
pub(super) struct ExchangeLocation {
    /// The file, or the part of a bug report, as errors name it.
    pub(super) name: String,
    path: PathBuf,
    /// Its first line, from 0, among the lines of recordings in that file.
    line: usize,
}

/// The reason why a recording cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// A file cannot be read.
    #[error("cannot replay {path}: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file is not a recording.
    #[error("cannot replay {path}: line {line} is no line of a recording: {reason}")]
    NoRecording {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The problem.
        reason: String,
    },
    /// The format has another version.
    #[error(
        "cannot replay {path}: it has version {found} of the format, and this agentd reads version {VERSION}"
    )]
    OtherVersion {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
    /// There are no recordings.
    #[error("cannot replay {path}: no recordings (files that end in .jsonl) are there")]
    Empty {
        /// The folder.
        path: PathBuf,
    },
}

/// A line of a bug report that holds a line of a recording.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ReportLine {
    Recording {
        file: String,
        line: String,
    },
    #[serde(other)]
    Other,
}

/// The exchanges in a file, by their first lines.
pub(super) fn exchanges(path: &Path) -> Result<Vec<(ExchangeLocation, RecordedRequest)>, ReplayError> {
    let text = text(path)?;
    let mut found = Vec::new();
    for (nth, (name, line)) in lines(path, &text).enumerate() {
        let reason = |error: serde_json::Error| ReplayError::NoRecording {
            path: path.to_owned(),
            line: nth + 1,
            reason: error.to_string(),
        };
        // The other lines are read when they are replayed.
        if !is_request(&line) {
            if nth == 0 {
                let reason = "a recording begins with a line of type \"request\"".to_owned();
                return Err(ReplayError::NoRecording { path: path.to_owned(), line: 1, reason });
            }
            continue;
        }
        #[derive(Deserialize)]
        struct Version {
            version: u32,
        }
        let Version { version } = serde_json::from_str(&line).map_err(reason)?;
        if version != VERSION {
            return Err(ReplayError::OtherVersion { path: path.to_owned(), found: version });
        }
        if let RecordingLine::Request(sent) = RecordingLine::parse(&line).map_err(reason)? {
            found.push((ExchangeLocation { name, path: path.to_owned(), line: nth }, *sent));
        }
    }
    Ok(found)
}

/// The user names a recording explicitly, so links and files of other owners are allowed.
const RECORDING: OpenRules<'_> =
    OpenRules::new(LinkPolicy::Followed).owner(AcceptedOwner::Anybody).max_bytes(MAX_RECORDING_BYTES);

/// The largest file of recordings: 1 GiB. It is in memory while it is read.
const MAX_RECORDING_BYTES: u64 = 1 << 30;

fn text(path: &Path) -> Result<String, ReplayError> {
    let unreadable = |source| ReplayError::Unreadable { path: path.to_owned(), source };
    let bytes = RECORDING.read_present(path).map_err(|error| unreadable(error.into_problem().into()))?;
    String::from_utf8(bytes).map_err(|error| unreadable(io::Error::other(error)))
}

/// The lines of recordings in a file, each with the name of where it is. A torn last line is none.
fn lines<'a>(path: &Path, text: &'a str) -> impl Iterator<Item = (String, std::borrow::Cow<'a, str>)> {
    let name = path.display().to_string();
    let is_report = text.starts_with("{\"type\":\"bug_report\"");
    text.split_inclusive('\n').filter(|line| line.ends_with('\n')).filter_map(move |line| {
        let line = line.trim_end_matches('\n');
        if !is_report {
            return Some((name.clone(), line.into()));
        }
        match serde_json::from_str(line) {
            Ok(ReportLine::Recording { file, line }) => Some((format!("{name} ({file})"), line.into())),
            Ok(ReportLine::Other) | Err(_) => None,
        }
    })
}

/// An exchange: the request, and the lines after it.
pub(super) fn read_exchange(
    place: &ExchangeLocation,
) -> Result<(RecordedRequest, Vec<RecordingLine>), Failure> {
    let broken = |what: String| {
        Failure::new(FailureKind::Fatal, format!("The recording {} cannot be played: {what}.", place.name))
    };
    let text = text(&place.path).map_err(|error| broken(error.to_string()))?;
    let mut sent = None;
    let mut rest = Vec::new();
    for (_, line) in lines(&place.path, &text).skip(place.line) {
        match RecordingLine::parse(&line).map_err(|error| broken(error.to_string()))? {
            RecordingLine::Request(_) if sent.is_some() => break,
            RecordingLine::Request(first) => sent = Some(*first),
            line => rest.push(line),
        }
    }
    sent.map(|sent| (sent, rest)).ok_or_else(|| broken("its request is gone".to_owned()))
}
