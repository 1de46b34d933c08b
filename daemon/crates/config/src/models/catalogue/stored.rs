//! The catalogue that an update stored: a line with format and checksum, a line with the index, then the packed models.

use std::{
    fs::{self, Metadata},
    io::{self, ErrorKind},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, PoisonError, Weak},
};

use agentd_protocol::{
    model_list::{CatalogueInfo, CatalogueKind},
    resources::{Diagnostic, DiagnosticKind, DiagnosticLevel},
};
use agentd_safe_open::{LinkPolicy, OpenRules};
use serde::{Deserialize, Serialize};

use super::{Catalogue, CatalogueProvider};
use crate::{AgentDir, private_file::replace_private};

/// Why a stored catalogue is not used.
pub(in crate::models) type StoredCatalogueProblem = Box<Diagnostic>;

/// Why a catalogue was not taken, or not removed. Nothing is changed then.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    /// The text is no catalogue.
    #[error("{}", show(faults, *more))]
    Invalid {
        /// The first faults, with their positions.
        faults: Vec<CatalogueFault>,
        /// The number of further faults.
        more: usize,
    },
    /// The file system does not let it be stored or removed.
    #[error("{}: {source}", path.display())]
    Io {
        /// The stored catalogue.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// A fault in a catalogue, with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogueFault {
    /// The line, from 1.
    pub line: u32,
    /// The place in the JSON, such as `models[3].cost.input`; empty for the whole.
    pub place: String,
    /// The fault.
    pub what: String,
}

fn show(faults: &[CatalogueFault], more: usize) -> String {
    let mut lines: Vec<String> = faults
        .iter()
        .map(|CatalogueFault { line, place, what }| match place.as_str() {
            "" => format!("line {line}: {what}"),
            place => format!("line {line}: {place}: {what}"),
        })
        .collect();
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    lines.join("\n")
}

const MAGIC: &str = "agentd model catalogue";

/// Counted up when an older agentd could not read what a newer one writes.
const VERSION: u32 = 1;

/// More is no catalogue that an update stored: packed, the largest one is a small part of this.
const MAX_BYTES: u64 = 64 << 20;

/// The index, as it is stored.
#[derive(Serialize, Deserialize)]
pub(super) struct Index {
    pub(super) source: Option<String>,
    pub(super) date: Option<String>,
    pub(super) updated_at: String,
    /// Sorted by id.
    pub(super) providers: Vec<Row>,
    /// Places in `providers`.
    pub(super) preferred: Vec<usize>,
}

/// A provider in the index.
#[derive(Serialize, Deserialize)]
pub(super) struct Row {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) default: String,
    pub(super) apis: Vec<(String, usize)>,
    pub(super) ids: Vec<u32>,
    pub(super) names_levels: bool,
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) unpacked: usize,
}

/// The effective catalogue: the stored one, else the built-in one. One that is in memory already is shared. Reads the file when
/// it has changed; unpacks nothing.
///
/// # Errors
/// When the stored one cannot be used; the diagnostic names the file and the remedy.
pub(in crate::models) fn load(agent_dir: &AgentDir) -> Result<Arc<Catalogue>, StoredCatalogueProblem> {
    static LOADED: Mutex<Vec<Loaded>> = Mutex::new(Vec::new());

    let path = agent_dir.catalogue_file();
    let unreadable = |error: io::Error| problem(&path, format!("cannot be read: {error}"));
    let stamp = match fs::metadata(&path) {
        Ok(about) => stamp(&about),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Catalogue::builtin()),
        Err(error) => return Err(unreadable(error)),
    };
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    let same = loaded.iter().find(|loaded| loaded.path == path && loaded.stamp == stamp);
    if let Some(catalogue) = same.and_then(|loaded| loaded.catalogue.upgrade()) {
        return Ok(catalogue);
    }
    let bytes = read(&path).map_err(unreadable)?;
    let catalogue = Arc::new(parse(&bytes).map_err(|what| problem(&path, what))?);
    loaded.retain(|loaded| loaded.path != path && loaded.catalogue.strong_count() > 0);
    loaded.push(Loaded { path, stamp, catalogue: Arc::downgrade(&catalogue) });
    Ok(catalogue)
}

/// Goes back to the built-in catalogue. Says whether there was a stored one.
pub(super) fn remove(agent_dir: &AgentDir) -> Result<bool, CatalogueError> {
    let path = agent_dir.catalogue_file();
    match fs::remove_file(&path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(source) => Err(CatalogueError::Io { path, source }),
    }
}

/// Puts a catalogue into the place of the stored one, whole or not at all.
pub(super) fn store(agent_dir: &AgentDir, bytes: &[u8]) -> Result<(), CatalogueError> {
    let path = agent_dir.catalogue_file();
    replace_private(&path, bytes).map_err(|source| CatalogueError::Io { path, source })
}

/// The bytes of the file.
pub(super) fn written(index: &Index, packed: &[u8]) -> serde_json::Result<Vec<u8>> {
    let mut body = serde_json::to_vec(index)?;
    body.push(b'\n');
    body.extend_from_slice(packed);
    Ok(with_checksum(&body))
}

/// The file that holds `body`.
pub(super) fn with_checksum(body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("{MAGIC} {VERSION} {:016x}\n", checksum(body)).into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// Reads what [`written`] gave.
pub(super) fn parse(bytes: &[u8]) -> Result<Catalogue, String> {
    let (head, body) = split_line(bytes).ok_or("is no stored catalogue")?;
    let head = std::str::from_utf8(head).ok().and_then(|head| head.strip_prefix(MAGIC));
    let mut words = head.ok_or("is no stored catalogue")?.split_whitespace();
    let version: Option<u32> = words.next().and_then(|word| word.parse().ok());
    match version {
        Some(VERSION) => {}
        Some(newer) if newer > VERSION => {
            return Err(format!(
                "was stored by a newer agentd: its format is {newer}, this one reads {VERSION}"
            ));
        }
        _ => return Err("is no stored catalogue".into()),
    }
    if words.next() != Some(format!("{:016x}", checksum(body)).as_str()) {
        return Err("is damaged: its checksum is wrong".into());
    }
    let damaged = "is damaged: its index and its models do not agree";
    let (index, packed) = split_line(body).ok_or(damaged)?;
    let index: Index = serde_json::from_slice(index).map_err(|error| format!("is damaged: {error}"))?;
    let fits = index.providers.iter().all(|row| row.start <= row.end && row.end <= packed.len())
        && index.providers.is_sorted_by(|a, b| a.id < b.id)
        && index.preferred.iter().all(|place| *place < index.providers.len());
    if !fits {
        return Err(damaged.into());
    }
    Ok(Catalogue {
        providers: index.providers.into_iter().map(provider).collect(),
        preferred: index.preferred,
        packed: packed.to_vec().into(),
        info: CatalogueInfo {
            kind: CatalogueKind::Updated,
            source: index.source,
            date: index.date,
            updated_at: Some(index.updated_at),
        },
    })
}

fn provider(row: Row) -> CatalogueProvider {
    CatalogueProvider {
        id: row.id.into(),
        name: row.name.into(),
        default: row.default.into(),
        apis: row.apis.into_iter().map(|(api, count)| (api.into(), count)).collect(),
        names_levels: row.names_levels,
        ids: row.ids.into(),
        packed: row.start..row.end,
        unpacked: row.unpacked,
        models: Mutex::default(),
        config: OnceLock::new(),
    }
}

fn split_line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = bytes.iter().position(|byte| *byte == b'\n')?;
    Some((&bytes[..at], &bytes[at + 1..]))
}

/// FNV-1a: detects damage, not malice. A program that can write this file can write `models.json`, too.
fn checksum(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// A catalogue that was read. While it is in use, it is not read again.
struct Loaded {
    path: PathBuf,
    stamp: Stamp,
    catalogue: Weak<Catalogue>,
}

/// Tells one state of a file from another: each update makes a new file.
type Stamp = (u64, u64, u64, i64, i64);

fn stamp(about: &Metadata) -> Stamp {
    (about.dev(), about.ino(), about.len(), about.mtime(), about.mtime_nsec())
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let read = OpenRules::new(LinkPolicy::Followed).max_bytes(MAX_BYTES).read(path);
    read.map_err(|error| io::Error::from(error.into_problem()))?.ok_or_else(|| io::ErrorKind::NotFound.into())
}

fn problem(path: &Path, what: impl std::fmt::Display) -> StoredCatalogueProblem {
    let hint = "the built-in catalogue is used: `agentctl models --update FILE` stores another one, \
                `agentctl models --reset-catalogue` removes this one";
    let message = format!("The updated model catalogue {what}");
    let diagnostic = Diagnostic::warning(DiagnosticKind::Models, message).at(path);
    Box::new(diagnostic.level(DiagnosticLevel::Error).hint(hint))
}
