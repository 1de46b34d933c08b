//! Builds a long list of which the beginning is kept and all is counted.

use agentd_protocol::tool::{ToolResult, TruncatedBy, Truncation};
use serde_json::{Map, Value, json};

use crate::{limits::MAX_BYTES, truncate::format_size};

/// Keeps as many lines as fit into [`MAX_BYTES`], and counts the others. Memory does not grow with the input.
#[derive(Debug, Default)]
pub(crate) struct List {
    text: String,
    /// The number of kept lines.
    kept: u64,
    lines: u64,
    /// Bytes of all lines, with the line feeds between them.
    bytes: u64,
    is_full: bool,
}

impl List {
    /// Adds a line, without its line feed.
    pub(crate) fn push(&mut self, line: &str) {
        let gap = u64::from(self.lines > 0);
        self.lines += 1;
        self.bytes += gap + line.len() as u64;
        if self.is_full || self.bytes > MAX_BYTES as u64 {
            self.is_full = true;
            return;
        }
        if gap > 0 {
            self.text.push('\n');
        }
        self.text.push_str(line);
        self.kept = self.lines;
    }

    /// Adds all lines of another list.
    pub(crate) fn append(&mut self, other: &Self) {
        if other.kept > 0 {
            other.text.split('\n').for_each(|line| self.push(line));
        }
        if other.is_full {
            // Lines that the other list dropped do not fit here either.
            let gap = u64::from(self.lines > 0 && other.kept == 0);
            self.lines += other.lines - other.kept;
            self.bytes += gap + other.bytes - other.text.len() as u64;
            self.is_full = true;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lines == 0
    }

    fn truncation(&self) -> Option<Truncation> {
        self.is_full.then(|| Truncation {
            content: self.text.clone(),
            truncated: true,
            truncated_by: Some(TruncatedBy::Bytes),
            total_lines: self.lines,
            total_bytes: self.bytes,
            output_lines: self.kept,
            output_bytes: self.text.len() as u64,
            last_line_partial: false,
            first_line_exceeds_limit: self.kept == 0,
            // Lines have no limit.
            max_lines: MAX_LINES,
            max_bytes: MAX_BYTES as u64,
        })
    }

    /// The call's result: the kept lines, the notices below them, and the same facts for programs.
    pub(crate) fn into_result(self, notices: Notices) -> ToolResult {
        self.into_result_with(notices, [])
    }

    /// The same with notices that follow that of the byte limit.
    pub(crate) fn into_result_with(
        self,
        mut notices: Notices,
        last: impl IntoIterator<Item = String>,
    ) -> ToolResult {
        if let Some(truncation) = self.truncation() {
            notices.add(format!("{} limit reached", format_size(MAX_BYTES as u64)));
            notices.detail("truncation", json!(truncation));
        }
        notices.texts.extend(last);
        let mut text = self.text;
        if !notices.texts.is_empty() {
            text.push_str(&format!("\n\n[{}]", notices.texts.join(". ")));
        }
        ToolResult {
            details: (!notices.details.is_empty()).then_some(Value::Object(notices.details)),
            ..ToolResult::text(text)
        }
    }
}

/// The limit of lines where there is none: the largest whole number that every JSON parser accepts.
const MAX_LINES: u64 = (1 << 53) - 1;

/// Notices about what was left out: for the model (one bracket at the end) and for programs (`details`).
#[derive(Debug, Default)]
pub(crate) struct Notices {
    texts: Vec<String>,
    details: Map<String, Value>,
}

impl Notices {
    pub(crate) fn add(&mut self, text: impl Into<String>) {
        self.texts.push(text.into());
    }

    pub(crate) fn detail(&mut self, key: &str, value: impl Into<Value>) {
        self.details.insert(key.to_owned(), value.into());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::truncate::{TextLimits, truncate_head};

    fn check(lines: &[String]) -> Result<(), TestCaseError> {
        let mut list = List::default();
        lines.iter().for_each(|line| list.push(line));
        let whole = lines.join("\n");
        let expected = truncate_head(&whole, TextLimits { lines: usize::MAX, bytes: MAX_BYTES });
        prop_assert_eq!(list.is_full, expected.truncated);
        prop_assert_eq!(&list.text, &expected.content);
        if let Some(found) = list.truncation() {
            prop_assert_eq!(found.total_bytes, expected.total_bytes);
            prop_assert_eq!(found.total_lines, lines.len() as u64);
            prop_assert_eq!(found.output_lines, expected.output_lines);
        }
        // Any split gives the same list.
        for cut in [0, lines.len() / 3, lines.len()] {
            let mut parts = List::default();
            for part in [&lines[..cut], &lines[cut..]] {
                let mut list = List::default();
                part.iter().for_each(|line| list.push(line));
                parts.append(&list);
            }
            prop_assert_eq!(
                (&parts.text, parts.kept, parts.lines, parts.bytes),
                (&list.text, list.kept, list.lines, list.bytes)
            );
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn what_is_kept_is_what_truncation_of_the_whole_keeps(
            sizes in prop::collection::vec(prop_oneof![0usize..40, 20_000usize..60_000], 1..12),
        ) {
            check(&sizes.iter().map(|size| "é".repeat(size / 2)).collect::<Vec<_>>())?;
        }
    }

    #[test]
    fn notices_stand_in_one_bracket() {
        let mut list = List::default();
        list.push("a");
        list.push(&"b".repeat(MAX_BYTES));
        let mut notices = Notices::default();
        notices.add("2 results limit reached");
        notices.detail("resultLimitReached", 2);
        let result = list.into_result(notices);
        let details = result.details.clone().unwrap();
        assert_eq!(
            result,
            ToolResult {
                details: Some(details.clone()),
                ..ToolResult::text("a\n\n[2 results limit reached. 50.0KB limit reached]".to_owned())
            }
        );
        assert_eq!(
            (&details["resultLimitReached"], &details["truncation"]["outputLines"]),
            (&json!(2), &json!(1))
        );
    }
}
