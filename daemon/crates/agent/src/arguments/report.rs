//! Tells the model what is wrong with its arguments.

use std::fmt::Write as _;

use agentd_protocol::number;
use serde_json::Value;

use super::{validator::Misfit, work::MAX_STEPS};

/// How many misfits are told one by one. An array of a thousand bad items teaches no more than the first few.
const MAX_MISFITS: usize = 50;

/// The text for arguments that do not fit; its frame is what clients and models know.
pub(super) fn failure(tool_name: &str, misfits: &[Misfit], received: &Value) -> String {
    let mut text = format!("Validation failed for tool \"{tool_name}\":\n");
    for Misfit { path, message } in misfits.iter().take(MAX_MISFITS) {
        let path = if path.is_empty() { "root".to_owned() } else { path.join(".") };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  - {path}: {message}");
    }
    let untold = misfits.len().saturating_sub(MAX_MISFITS);
    if untold > 0 {
        let _ = writeln!(text, "  - root: and {untold} more");
    }
    let mut received = received.clone();
    number::normalize(&mut received);
    let _ = write!(text, "\nReceived arguments:\n{received:#}");
    text
}

/// The text for arguments that would take too much work to check.
pub(super) fn too_much(tool_name: &str) -> String {
    format!(
        "Validation failed for tool \"{tool_name}\":\n  - root: too large or too deeply nested to be checked against the tool's \
         schema (more than {MAX_STEPS} steps); send less at once"
    )
}
