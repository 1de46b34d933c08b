//! What stands below the conversation.

use ratatui_core::text::Line;

/// What stands below the conversation.
#[derive(Debug, Default)]
pub(super) struct Below {
    pub(super) rows: Vec<Line<'static>>,
    /// Column and row of the cursor among them.
    pub(super) cursor: Option<(usize, usize)>,
}
