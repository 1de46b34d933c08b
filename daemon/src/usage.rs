//! `agentd --usage`: what was spent, for `agentctl usage`. The request comes on stdin; stdout gets one line.
//!
//! The sums come from the session files. What was read of each stands in an index, `usage-index.json` in the agent directory: the next
//! request reads only files that changed since, from where they grew. Sessions write nothing for it.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, BufRead, Write},
    path::{Path, PathBuf},
};

use agentd_config::{AgentDir, Environment, NoAgentDir};
use agentd_files::replace::Replacement;
use agentd_protocol::usage_report::{UsageGrouping, UsageReport, UsageRequest, UsageRow, UsageSum};
use agentd_safe_open::{LinkPolicy, OpenRules};
use agentd_store::{UsagePart, UsageScan, is_own_file};
use jiff::{Timestamp, ToSpan, tz::TimeZone};
use serde::{Deserialize, Serialize};

use crate::fsck::{FsckError, folders};

/// The form of the index.
const VERSION: u32 = 2;

/// The agent of sessions that are no subagent's.
const MAIN_AGENT: &str = "main";

/// A larger index is not read.
const MAX_INDEX_BYTES: u64 = 512 << 20;

/// Only the user may look into it.
const MODE: u32 = 0o600;

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum UsageError {
    /// The folder of the user's sessions is unknown.
    #[error(transparent)]
    NoAgentDir(#[from] NoAgentDir),
    /// Stdin holds no request.
    #[error("--usage is for agentctl usage, which says on stdin what to show: {0}")]
    Request(#[source] serde_json::Error),
    /// A folder of sessions cannot be read.
    #[error(transparent)]
    Folder(#[from] FsckError),
    /// Stdin or stdout failed.
    #[error("what was found cannot be passed on: {0}")]
    Io(#[from] io::Error),
}

/// Answers one request.
///
/// # Errors
/// [`UsageError`].
pub fn run(environment: &Environment, compat: bool, cwd: &Path) -> Result<(), UsageError> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    let request: UsageRequest = serde_json::from_str(&line).map_err(UsageError::Request)?;
    let agent_dir = AgentDir::find(environment, compat, cwd)?;
    let mut days = LocalDays::of(TimeZone::system());
    let path = agent_dir.path().join("usage-index.json");
    let mut unreadable = Vec::new();
    let (index, is_changed) = Index::read(&path, &days.zone_name).brought_up(
        session_files(&agent_dir, environment, cwd)?,
        &mut days,
        &mut unreadable,
    );
    if is_changed && let Err(error) = index.write(&path) {
        // The sums are right all the same.
        unreadable.push(format!("{}: {error}", path.display()));
    }
    let since = request.days.map(|count| days.days_ago(count.saturating_sub(1)));
    let report = report(&index, request.by, since, unreadable);
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, &report).map_err(io::Error::from)?;
    out.write_all(b"\n")?;
    Ok(out.flush()?)
}

/// All files that may be sessions.
fn session_files(
    agent_dir: &AgentDir,
    environment: &Environment,
    cwd: &Path,
) -> Result<Vec<PathBuf>, UsageError> {
    let mut files = Vec::new();
    let mut left = folders(agent_dir, environment, cwd)?;
    while let Some(folder) = left.pop() {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(source) => return Err(FsckError::Folder { path: folder, source }.into()),
        };
        for entry in entries {
            let path = entry?.path();
            match path.extension() {
                Some(end) if end == "jsonl" => files.push(path),
                // The sessions of a session's subagents.
                Some(end) if end == "agents" && path.is_dir() => left.push(path),
                _ => {}
            }
        }
    }
    Ok(files)
}

/// What was read of each session file.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Index {
    version: u32,
    /// The time zone of the days.
    zone: String,
    files: BTreeMap<PathBuf, UsageScan>,
}

impl Index {
    fn empty(zone: &str) -> Self {
        Self { version: VERSION, zone: zone.to_owned(), files: BTreeMap::new() }
    }

    /// The index at `path`; an empty one where there is none that can be used. It is made again from the files.
    fn read(path: &Path, zone: &str) -> Self {
        let read = OpenRules::new(LinkPolicy::Refused).max_bytes(MAX_INDEX_BYTES).read(path);
        let index = read.ok().flatten().and_then(|text| serde_json::from_slice::<Self>(&text).ok());
        index
            .filter(|index| index.version == VERSION && index.zone == zone)
            .unwrap_or_else(|| Self::empty(zone))
    }

    fn write(&self, path: &Path) -> io::Result<()> {
        let folder = path.parent().unwrap_or(Path::new("."));
        let mut new = Replacement::create(folder, ".usage-index-", ".tmp", MODE)?;
        new.file_mut().write_all(&serde_json::to_vec(self)?)?;
        new.commit(path).map(drop)
    }

    /// Reads what is new of these files, which are all that there are; true when something was.
    fn brought_up(
        mut self,
        files: Vec<PathBuf>,
        days: &mut LocalDays,
        unreadable: &mut Vec<String>,
    ) -> (Self, bool) {
        let (mut new, mut is_changed) = (Self::empty(&self.zone), false);
        for path in files {
            // Gone in this instant, or another user's.
            let Ok(metadata) = fs::metadata(&path) else { continue };
            if !is_own_file(&path) {
                continue;
            }
            let before = self.files.remove(&path);
            let scan = match before {
                Some(scan) if scan.is_current(&metadata) => scan,
                before => {
                    is_changed = true;
                    match UsageScan::read(&path, before, &mut |ms| days.day_of(ms)) {
                        Ok(scan) => scan,
                        Err(error) => {
                            unreadable.push(format!("{}: {error}", path.display()));
                            continue;
                        }
                    }
                }
            };
            new.files.insert(path, scan);
        }
        (new, is_changed || !self.files.is_empty())
    }
}

/// The calendar days of a time zone.
struct LocalDays {
    zone: TimeZone,
    zone_name: String,
    /// The last day that was looked up, and the milliseconds in which it lies.
    last: Option<(i64, i64, String)>,
}

impl LocalDays {
    fn of(zone: TimeZone) -> Self {
        let zone_name = match zone.iana_name() {
            Some(name) => name.to_owned(),
            None => zone.to_offset(Timestamp::now()).to_string(),
        };
        Self { zone, zone_name, last: None }
    }

    fn day_of(&mut self, ms: i64) -> String {
        if let Some((from, to, day)) = &self.last
            && (*from..*to).contains(&ms)
        {
            return day.clone();
        }
        let Ok(time) = Timestamp::from_millisecond(ms) else { return String::new() };
        let date = time.to_zoned(self.zone.clone()).date();
        let bounds = date.to_zoned(self.zone.clone()).and_then(|from| Ok((from.clone(), from.tomorrow()?)));
        let day = date.to_string();
        if let Ok((from, to)) = bounds {
            let (from, to) = (from.timestamp().as_millisecond(), to.timestamp().as_millisecond());
            self.last = Some((from, to, day.clone()));
        }
        day
    }

    fn days_ago(&self, count: u32) -> String {
        let today = Timestamp::now().to_zoned(self.zone.clone()).date();
        let day = today.checked_sub(i64::from(count).days());
        day.unwrap_or(jiff::civil::Date::MIN).to_string()
    }
}

/// The sums of an index.
fn report(index: &Index, by: UsageGrouping, since: Option<String>, unreadable: Vec<String>) -> UsageReport {
    let main = MAIN_AGENT.to_owned();
    let mut rows: BTreeMap<&str, UsageRow> = BTreeMap::new();
    let mut total = UsageSum::default();
    for scan in index.files.values() {
        let counts = |part: &&UsagePart| since.as_deref().is_none_or(|since| part.day.as_str() >= since);
        let mut keys: Vec<&str> = Vec::new();
        for part in scan.sums.iter().filter(counts) {
            let key = match by {
                UsageGrouping::Day => &part.day,
                UsageGrouping::Model => &part.model,
                UsageGrouping::Session => &scan.id,
                UsageGrouping::Project => &scan.cwd,
                UsageGrouping::Agent if scan.agent.is_empty() => &main,
                UsageGrouping::Agent => &scan.agent,
            };
            let row = rows.entry(key).or_insert_with(|| UsageRow {
                key: key.clone(),
                title: if by == UsageGrouping::Session { scan.title.clone() } else { None },
                ..UsageRow::default()
            });
            add(&mut row.sum, part);
            add(&mut total, part);
            if !keys.contains(&key.as_str()) {
                row.sum.sessions += 1;
                keys.push(key);
            }
        }
        total.sessions += u64::from(!keys.is_empty());
    }
    let mut rows: Vec<UsageRow> = rows.into_values().collect();
    if by != UsageGrouping::Day {
        rows.sort_by(|a, b| {
            b.sum.cost_usd.total_cmp(&a.sum.cost_usd).then(b.sum.tokens.total.cmp(&a.sum.tokens.total))
        });
    }
    UsageReport { by, since, rows, total, files: index.files.len() as u64, unreadable }
}

fn add(sum: &mut UsageSum, part: &UsagePart) {
    sum.cost_usd += part.cost;
    sum.tokens.input += part.tokens.input;
    sum.tokens.output += part.tokens.output;
    sum.tokens.cache_read += part.tokens.cache_read;
    sum.tokens.cache_write += part.tokens.cache_write;
    sum.tokens.total += part.tokens.total;
    sum.answers += part.answers;
    sum.tool_calls += part.tool_calls;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_time_zone() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        let mut days = LocalDays::of(zone);
        let at = |text: &str| text.parse::<Timestamp>().unwrap().as_millisecond();
        assert_eq!(days.day_of(at("2026-01-01T21:59:59Z")), "2026-01-01");
        assert_eq!(days.day_of(at("2026-01-01T22:00:00Z")), "2026-01-02");
        assert_eq!(days.day_of(at("2026-01-01T23:00:00Z")), "2026-01-02");
        assert_eq!(days.day_of(i64::MAX), "");
        assert_eq!(days.zone_name, "+02");
    }
}
