//! Prompts as lines of the file, and the lines of one text as one row. Pure.

use std::collections::HashMap;

use agentd_protocol::prompt_history::PromptHistoryEntry;
use serde::{Deserialize, Serialize};

/// The longest prompt that is kept: 32 KiB. A longer one is a pasted document, which nobody recalls by Up.
pub const MOST_PROMPT_BYTES: usize = 32 << 10;

/// The most rows that are kept.
pub(crate) const MOST_ROWS: usize = 20_000;

/// The most bytes of prompts that are kept: 16 MiB.
pub(crate) const MOST_BYTES: usize = 16 << 20;

/// A prompt to record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPrompt {
    /// What the user typed, [`normalized`].
    pub prompt: String,
    /// When, in milliseconds since 1970.
    pub created_at: i64,
    /// The session's folder.
    pub cwd: Option<String>,
    /// The session.
    pub session_id: Option<String>,
}

/// A text as it is kept: with LF, without blanks at the ends of lines, and without blank lines around it. `None` if it is not kept: it is
/// blank, longer than [`MOST_PROMPT_BYTES`], or begins with a blank, by which a user keeps it out of the history.
#[must_use]
pub fn normalized(text: &str) -> Option<String> {
    if text.starts_with([' ', '\t']) || text.len() > MOST_PROMPT_BYTES {
        return None;
    }
    let lines: Vec<&str> = text.trim().lines().map(str::trim_end).collect();
    let kept = lines.join("\n");
    (!kept.is_empty()).then_some(kept)
}

/// A line of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Row {
    pub(crate) prompt: String,
    /// 0 where it is not known.
    #[serde(default)]
    pub(crate) created_at: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cwd: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) session_id: Option<String>,
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub(crate) use_count: u64,
}

fn one() -> u64 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_one(count: &u64) -> bool {
    *count == 1
}

impl From<NewPrompt> for Row {
    fn from(NewPrompt { prompt, created_at, cwd, session_id }: NewPrompt) -> Self {
        Self { prompt, created_at, cwd, session_id, use_count: 1 }
    }
}

impl Row {
    /// Reads a line. A text alone is what earlier versions of the interactive client wrote.
    fn parse(line: &[u8]) -> Option<Self> {
        if line.first() == Some(&b'"') {
            let prompt = normalized(&serde_json::from_slice::<String>(line).ok()?)?;
            return Some(Self { prompt, created_at: 0, cwd: None, session_id: None, use_count: 1 });
        }
        serde_json::from_slice(line).ok()
    }

    /// The row's name, made from its text: 16 hexadecimal digits (FNV-1a).
    pub(crate) fn id(&self) -> String {
        let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
        for byte in self.prompt.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        format!("{hash:016x}")
    }

    pub(crate) fn into_entry(self) -> PromptHistoryEntry {
        PromptHistoryEntry {
            id: self.id(),
            prompt: self.prompt,
            created_at: self.created_at,
            cwd: self.cwd,
            session_id: self.session_id,
            use_count: self.use_count,
        }
    }
}

/// The rows of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Rows {
    /// Each text once, the last used one last.
    pub(crate) rows: Vec<Row>,
    /// The number of lines that they were read from.
    pub(crate) lines: usize,
    /// Whether there were lines that are no prompts, other than one that was cut off at the end.
    pub(crate) is_damaged: bool,
}

impl Rows {
    /// Reads a file's content. What was cut off at its end, by a kill or a full disk, is left out.
    pub(crate) fn parse(content: &[u8]) -> Self {
        let mut all = Self::default();
        let mut places: HashMap<String, usize> = HashMap::new();
        let mut rows: Vec<Option<Row>> = Vec::new();
        let mut rest = content;
        while !rest.is_empty() {
            let end = rest.iter().position(|byte| *byte == b'\n');
            let (line, is_cut) = (&rest[..end.unwrap_or(rest.len())], end.is_none());
            rest = end.map_or(&[], |end| &rest[end + 1..]);
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            all.lines += 1;
            let Some(mut row) = Row::parse(line) else {
                all.is_damaged |= !is_cut;
                continue;
            };
            if let Some(before) = places.get(&row.prompt).and_then(|place| rows[*place].take()) {
                row.use_count = row.use_count.saturating_add(before.use_count);
            }
            places.insert(row.prompt.clone(), rows.len());
            rows.push(Some(row));
        }
        all.rows = rows.into_iter().flatten().collect();
        all
    }

    /// Drops the oldest rows above the limits.
    pub(crate) fn trim(&mut self, most_rows: usize, most_bytes: usize) {
        let mut bytes = 0_usize;
        let newest = self.rows.iter().rev().take(most_rows);
        let kept = newest
            .take_while(|row| {
                bytes = bytes.saturating_add(row.prompt.len());
                bytes <= most_bytes
            })
            .count();
        self.rows.drain(..self.rows.len() - kept);
    }
}

/// Rows as the lines of a file.
///
/// # Errors
/// Never for rows that were read or recorded; serde's.
pub(crate) fn to_lines(rows: &[Row]) -> serde_json::Result<Vec<u8>> {
    let mut lines = Vec::new();
    for row in rows {
        serde_json::to_writer(&mut lines, row)?;
        lines.push(b'\n');
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn row(prompt: &str, created_at: i64) -> Row {
        Row { prompt: prompt.to_owned(), created_at, cwd: None, session_id: None, use_count: 1 }
    }

    #[test]
    fn texts_are_kept_in_one_form() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(normalized(text).as_deref(), expected, "{text:?}")
        };
        check("Hi", Some("Hi"));
        check("\n\nHi  \r\n there\t\r\n\r\n", Some("Hi\n there"));
        check(" a secret", None);
        check("\ta secret", None);
        check("", None);
        check("\n \n", None);
        check(&"x".repeat(MOST_PROMPT_BYTES), Some(&"x".repeat(MOST_PROMPT_BYTES)));
        check(&"x".repeat(MOST_PROMPT_BYTES + 1), None);
    }

    #[test]
    fn lines_of_one_text_are_one_row() {
        let content = b"{\"prompt\":\"a\",\"createdAt\":1,\"cwd\":\"/x\"}\n\"old form\"\n{\"prompt\":\"b\",\"createdAt\":2,\"useCount\":5}\n\
            {\"prompt\":\"a\",\"createdAt\":3,\"sessionId\":\"s\"}\n{\"prompt\":\"cut o";
        let rows = Rows::parse(content);
        assert_eq!((rows.lines, rows.is_damaged), (5, false));
        let shown: Vec<_> =
            rows.rows.iter().map(|row| (row.prompt.as_str(), row.created_at, row.use_count)).collect();
        assert_eq!(shown, [("old form", 0, 1), ("b", 2, 5), ("a", 3, 2)]);
        assert_eq!((rows.rows[2].cwd.as_deref(), rows.rows[2].session_id.as_deref()), (None, Some("s")));
        assert!(Rows::parse(b"not JSON\n\"a\"\n").is_damaged);
        assert_eq!(Rows::parse(b"\n\n"), Rows::default());
    }

    #[test]
    fn the_oldest_go_first() {
        let mut rows = Rows { rows: ["aaaa", "bb", "cc"].map(|text| row(text, 0)).into(), ..Rows::default() };
        rows.trim(10, 5);
        assert_eq!(rows.rows.iter().map(|row| row.prompt.as_str()).collect::<Vec<_>>(), ["bb", "cc"]);
        rows.trim(1, 100);
        assert_eq!(rows.rows[0].prompt, "cc");
        rows.trim(1, 0);
        assert!(rows.rows.is_empty());
    }

    #[test]
    fn ids_stay_the_same() {
        assert_eq!(row("", 1).id(), "cbf29ce484222325");
        assert_eq!(row("a", 1).id(), "af63dc4c8601ec8c");
    }

    proptest! {
        #[test]
        fn rows_survive_the_file(texts in prop::collection::vec("\\PC{1,20}", 0..20), cut in 0..400_usize) {
            let written: Vec<Row> = texts.iter().enumerate().map(|(at, text)| row(text, at as i64)).collect();
            let mut lines = to_lines(&written).unwrap();
            let whole = Rows::parse(&lines);
            prop_assert!(!whole.is_damaged);
            prop_assert_eq!(whole.rows.iter().map(|row| row.use_count).sum::<u64>(), texts.len() as u64);
            // Whatever is cut off, all before it is there.
            lines.truncate(lines.len().saturating_sub(cut));
            let complete = lines.iter().filter(|byte| **byte == b'\n').count();
            let torn = Rows::parse(&lines);
            prop_assert!(!torn.is_damaged);
            prop_assert!(torn.rows.iter().map(|row| row.use_count).sum::<u64>() >= complete as u64);
        }
    }
}
