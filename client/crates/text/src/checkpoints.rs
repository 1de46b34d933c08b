//! What of a call's changes is not kept for undo, as a line.

use agentd_protocol::checkpoints::Checkpoint;

use crate::one_line;

/// The line about what cannot be undone; `None` where everything can.
pub fn unkept(checkpoint: &Checkpoint) -> Option<String> {
    let first = checkpoint.skipped.first()?;
    let more = match checkpoint.skipped.len() - 1 {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    Some(format!("Cannot be undone: {}: {}{more}", one_line(&first.path), one_line(&first.why)))
}
