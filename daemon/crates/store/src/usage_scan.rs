//! What a session file's entries spent, by day and model; read once, and from there on only what is new.

use std::{
    collections::BTreeMap,
    fs::Metadata,
    io::{self, Read as _, Seek as _, SeekFrom},
    os::unix::fs::{FileExt as _, MetadataExt as _},
    path::Path,
};

use agentd_protocol::{
    entry::EntryBody, message::Usage, prompt_text::typed_words, session::TokenStats,
    subagent::SUBAGENT_SESSION_ENTRY,
};
use memchr::memmem;
use serde::{Deserialize, Serialize};

use crate::{
    Entry, EntryKind, Header, Role,
    fork::user_text,
    io::open_named,
    lines::each_line,
    spending::{Spending, is_own, spending},
    time::parse_timestamp,
};

/// Longer lines are passed over.
const MAX_LINE_BYTES: usize = 64 << 20;

/// The length of a title, in characters.
const TITLE_CHARS: usize = 80;

/// What the entries of one session file spent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UsageScan {
    /// The file's size, time of change in nanoseconds, and inode when it was read.
    stamp: (u64, i128, u64),
    /// Where the next line begins.
    offset: u64,
    /// The session's id; empty for a file that is no session.
    pub id: String,
    /// The folder that it works in.
    pub cwd: String,
    /// Its name, else its first message.
    pub title: Option<String>,
    /// The name of the agent, in the session of a subagent; empty in others.
    pub agent: String,
    /// When the header says that it began.
    begun: Option<i64>,
    /// The model of the last answer, as `provider/id`: summaries are counted to it.
    model: String,
    /// What was spent, by day and model.
    pub sums: Vec<UsagePart>,
}

/// What was spent on one day with one model.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UsagePart {
    /// The day.
    pub day: String,
    /// The model, as `provider/id`.
    pub model: String,
    /// US dollars.
    pub cost: f64,
    /// Tokens.
    pub tokens: TokenStats,
    /// Answers.
    pub answers: u64,
    /// Tool calls that have a result.
    pub tool_calls: u64,
}

fn stamp(of: &Metadata) -> (u64, i128, u64) {
    (of.len(), i128::from(of.mtime()) * 1_000_000_000 + i128::from(of.mtime_nsec()), of.ino())
}

impl UsageScan {
    /// Whether the file is as it was when it was read.
    #[must_use]
    pub fn is_current(&self, file: &Metadata) -> bool {
        self.stamp == stamp(file)
    }

    /// Reads a session file, or what was added to it since `before`. A file that is no session has no sums. `day_of` names the local
    /// day of a time in Unix milliseconds.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read(
        path: &Path,
        before: Option<Self>,
        day_of: &mut dyn FnMut(i64) -> String,
    ) -> io::Result<Self> {
        let mut file = open_named(path)?;
        let metadata = file.metadata()?;
        let grown = |before: &Self| {
            let mut last = [0];
            before.stamp.2 == metadata.ino()
                && before.offset > 0
                && metadata.len() >= before.offset
                && file.read_exact_at(&mut last, before.offset - 1).is_ok_and(|()| last == *b"\n")
        };
        let mut scan = before.filter(grown).unwrap_or_default();
        scan.stamp = stamp(&metadata);
        let mut sums: BTreeMap<(String, String), UsagePart> =
            scan.sums.drain(..).map(|part| ((part.day.clone(), part.model.clone()), part)).collect();
        file.seek(SeekFrom::Start(scan.offset))?;
        // What is written meanwhile is for the next time.
        let mut rest = file.take(metadata.len() - scan.offset);
        let (begin, mut whole, mut is_session) = (scan.offset, 0, scan.offset > 0);
        let mut passed_over = false;
        each_line(&mut rest, MAX_LINE_BYTES, &mut |line| {
            whole = line.place.byte + line.place.bytes;
            let Some(bytes) = line.content.bytes() else { return };
            if !is_session && !passed_over {
                match std::str::from_utf8(bytes).ok().and_then(Header::parse) {
                    Some(header) => {
                        is_session = true;
                        scan.begin(&header);
                    }
                    None => passed_over = true,
                }
            } else if is_session {
                scan.line(bytes, &mut sums, day_of);
            }
        })?;
        // A line without its end may grow.
        scan.offset = if is_session { (begin + whole + 1).min(metadata.len()) } else { 0 };
        scan.sums = sums.into_values().collect();
        Ok(scan)
    }

    fn begin(&mut self, header: &Header) {
        self.id = header.id().to_owned();
        self.cwd = header.cwd().to_owned();
        self.begun = parse_timestamp(&header.typed().timestamp);
    }

    fn line(
        &mut self,
        bytes: &[u8],
        sums: &mut BTreeMap<(String, String), UsagePart>,
        day_of: &mut dyn FnMut(i64) -> String,
    ) {
        // Most lines say nothing of it, and are not read.
        let says = |word: &str| memmem::find(bytes, word.as_bytes()).is_some();
        let is_untitled = self.title.is_none() && says("\"user\"");
        if !(says("\"usage\"")
            || says("\"toolResult\"")
            || says("\"session_info\"")
            || says(SUBAGENT_SESSION_ENTRY)
            || is_untitled)
        {
            return;
        }
        let text = String::from_utf8_lossy(bytes);
        let Some(entry) = Entry::parse(&text) else { return };
        match entry.kind() {
            EntryKind::Message(Role::User) if self.title.is_none() => {
                self.title =
                    user_text(&entry).map(|text| title(&typed_words(&text))).filter(|text| !text.is_empty());
            }
            EntryKind::SessionInfo => self.name(&entry),
            EntryKind::Custom => {
                if let Some(EntryBody::Custom { custom_type, data: Some(data) }) = entry.body()
                    && custom_type == SUBAGENT_SESSION_ENTRY
                {
                    self.agent = data["agent"].as_str().unwrap_or_default().to_owned();
                }
            }
            _ => {}
        }
        if !is_own(&entry, self.begun) {
            return;
        }
        let Some(spent) = spending(&entry) else { return };
        if spent.is_answer {
            self.model = format!("{}/{}", spent.provider, spent.model);
        }
        let day = entry.timestamp_ms().map(day_of).unwrap_or_default();
        let key = (day, self.model.clone());
        let part = sums.entry(key).or_insert_with_key(|(day, model)| UsagePart {
            day: day.clone(),
            model: model.clone(),
            ..UsagePart::default()
        });
        part.add(&spent);
    }

    fn name(&mut self, entry: &Entry) {
        #[derive(Deserialize)]
        struct Named {
            name: Option<String>,
        }
        let named = agentd_protocol::parse_json::<Named>(entry.frame()).ok();
        if let Some(name) = named.and_then(|named| named.name).filter(|name| !name.trim().is_empty()) {
            self.title = Some(title(&name));
        }
    }
}

impl UsagePart {
    fn add(&mut self, spent: &Spending) {
        let Usage { input, output, cache_read, cache_write, cost, .. } = &spent.usage;
        self.cost += cost.total;
        self.tokens.input += input;
        self.tokens.output += output;
        self.tokens.cache_read += cache_read;
        self.tokens.cache_write += cache_write;
        self.tokens.total += input + output + cache_read + cache_write;
        self.answers += u64::from(spent.is_answer);
        self.tool_calls += u64::from(spent.is_tool_result);
    }
}

fn title(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(TITLE_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Write as _};

    use super::*;

    const HEADER: &str =
        r#"{"type":"session","version":3,"id":"s1","timestamp":"2026-01-02T00:00:00.000Z","cwd":"/p"}"#;

    fn answer(id: &str, day: &str, model: &str, cost: f64) -> String {
        format!(
            r#"{{"type":"message","id":"{id}","parentId":null,"timestamp":"2026-01-{day}T10:00:00.000Z","message":{{"role":"assistant","provider":"p","model":"{model}","content":[],"stopReason":"stop","usage":{{"input":1,"output":2,"cacheRead":3,"cacheWrite":4,"totalTokens":10,"cost":{{"total":{cost}}}}}}}}}"#
        )
    }

    fn day(ms: i64) -> String {
        crate::iso_timestamp(ms)[..10].to_owned()
    }

    fn facts(scan: &UsageScan) -> Vec<(&str, &str, f64, u64)> {
        scan.sums.iter().map(|part| (&*part.day, &*part.model, part.cost, part.answers)).collect()
    }

    #[test]
    fn a_file_is_read_once_and_then_from_where_it_grew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        let user = r#"{"type":"message","id":"u","parentId":null,"timestamp":"2026-01-02T09:00:00.000Z","message":{"role":"user","content":" Fix\n it "}}"#;
        let lines = [HEADER, "no json", user, &answer("0", "01", "m", 9.0), &answer("1", "02", "m", 0.5), ""];
        fs::write(&path, lines.join("\n")).unwrap();
        let first = UsageScan::read(&path, None, &mut day).unwrap();
        // The entry that is older than the header belongs to the session that this one was forked from.
        assert_eq!(facts(&first), [("2026-01-02", "p/m", 0.5, 1)]);
        assert_eq!(
            (first.id.as_str(), first.cwd.as_str(), first.title.as_deref()),
            ("s1", "/p", Some("Fix it"))
        );
        assert!(first.is_current(&fs::metadata(&path).unwrap()));
        let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
        let name = r#"{"type":"session_info","id":"n","parentId":null,"timestamp":"2026-01-03T00:00:00.000Z","name":"Mending"}"#;
        let compaction = r#"{"type":"compaction","id":"c","parentId":null,"timestamp":"2026-01-03T10:00:00.000Z","summary":"s","usage":{"input":1,"cost":{"total":0.125}}}"#;
        write!(
            file,
            "{}\n{compaction}\n{name}\n{}",
            answer("2", "03", "m", 0.25),
            &answer("3", "03", "m", 1.0)[..50]
        )
        .unwrap();
        assert!(!first.is_current(&fs::metadata(&path).unwrap()));
        let grown = UsageScan::read(&path, Some(first), &mut day).unwrap();
        assert_eq!(facts(&grown), [("2026-01-02", "p/m", 0.5, 1), ("2026-01-03", "p/m", 0.375, 1)]);
        assert_eq!(grown.title.as_deref(), Some("Mending"));
        // The torn line is read when it is whole; another file of that name is read from its beginning.
        writeln!(file, "{}", &answer("3", "03", "m", 1.0)[50..]).unwrap();
        let whole = UsageScan::read(&path, Some(grown), &mut day).unwrap();
        assert_eq!(whole.sums, UsageScan::read(&path, None, &mut day).unwrap().sums);
        assert_eq!(facts(&whole)[1], ("2026-01-03", "p/m", 1.375, 2));
        fs::remove_file(&path).unwrap();
        fs::write(&path, [HEADER, &answer("9", "09", "x", 2.0), ""].join("\n")).unwrap();
        let other = UsageScan::read(&path, Some(whole), &mut day).unwrap();
        assert_eq!(facts(&other).last(), Some(&("2026-01-09", "p/x", 2.0, 1)));
    }

    #[test]
    fn what_is_no_session_has_no_sums() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        for text in ["", "\n", "{}\n", "[1]\n\0\0\0", &format!("{}\n", answer("1", "02", "m", 0.5))] {
            fs::write(&path, text).unwrap();
            let scan = UsageScan::read(&path, None, &mut day).unwrap();
            assert!(scan.id.is_empty() && scan.sums.is_empty(), "{text:?}");
        }
        assert!(UsageScan::read(&folder.path().join("b.jsonl"), None, &mut day).is_err());
    }
}
