//! What servers say of a change, in the result of the call.

use std::{path::PathBuf, time::Duration};

use agentd_protocol::{message::ContentBlock, tool::ToolResult};
use serde_json::{Map, Value, json};

use crate::{
    diagnostics::Diagnostic,
    report::{diagnostic_line, diagnostics_json},
    session::SessionServers,
};

/// New diagnostics that a result tells.
const MAX_TOLD: usize = 20;

/// What a change brought.
#[derive(Default)]
pub(crate) struct EditReport {
    /// By file, the worst first; the changed file before others.
    pub(crate) new: Vec<(PathBuf, Diagnostic)>,
    /// The servers that were asked.
    pub(crate) servers: Vec<String>,
    /// Whether all of them had finished.
    pub(crate) is_complete: bool,
    pub(crate) waited: Duration,
}

/// A result with what servers said of the change.
pub(crate) fn with_report(
    servers: &SessionServers,
    mut result: ToolResult,
    report: &EditReport,
) -> ToolResult {
    let told = &report.new[..report.new.len().min(MAX_TOLD)];
    let mut meta = json!({
        "servers": report.servers,
        "items": diagnostics_json(servers, told),
        "complete": report.is_complete,
        "waitedMs": u64::try_from(report.waited.as_millis()).unwrap_or(u64::MAX),
    });
    let left_out = report.new.len() - told.len();
    if left_out > 0 {
        meta["leftOut"] = left_out.into();
    }
    if !told.is_empty() {
        let lines: Vec<String> = told.iter().map(|(path, it)| diagnostic_line(servers, path, it)).collect();
        let mut text = format!("New diagnostics of {}:\n{}", report.servers.join(", "), lines.join("\n"));
        if left_out > 0 {
            text.push_str(&format!("\n[{left_out} more; use lsp with action diagnostics]"));
        }
        match result.content.last_mut() {
            Some(ContentBlock::Text { text: last, .. }) => {
                last.push_str("\n\n");
                last.push_str(&text);
            }
            _ => result.content.extend(ToolResult::text(text).content),
        }
    }
    result.details = with_meta(result.details, meta);
    result
}

/// Details with the diagnostics among what clients are told of the content.
fn with_meta(details: Option<Value>, diagnostics: Value) -> Option<Value> {
    let mut details = match details {
        None => Map::new(),
        Some(Value::Object(details)) => details,
        other => return other,
    };
    let meta = details.entry("meta").or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(meta) = meta {
        meta.insert("diagnostics".to_owned(), diagnostics);
    }
    Some(Value::Object(details))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_details_of_a_result_stay() {
        let with = |details| with_meta(details, json!(1));
        assert_eq!(with(None), Some(json!({"meta": {"diagnostics": 1}})));
        assert_eq!(
            with(Some(json!({"diff": "d", "meta": {"artifactId": "a"}}))),
            Some(json!({"diff": "d", "meta": {"artifactId": "a", "diagnostics": 1}}))
        );
        assert_eq!(with(Some(json!(3))), Some(json!(3)));
    }
}
