//! The setting of undo.

use std::time::Duration;

use agentd_protocol::settings::UndoSettings;

/// The setting `undo` with its defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UndoLimits {
    /// The longest file that is kept, in bytes.
    pub max_file_bytes: u64,
    /// The most bytes of everything that is kept.
    pub max_total_bytes: u64,
    /// The age after which a checkpoint is removed.
    pub max_age: Duration,
    /// The most files and folders of an index.
    pub max_files: u64,
    /// Whether ignored files are left out.
    pub respects_ignore_files: bool,
}

impl UndoLimits {
    /// The limits that a setting names.
    #[must_use]
    pub fn of(settings: &UndoSettings) -> Self {
        Self {
            max_file_bytes: settings.max_file_bytes.unwrap_or(64 << 20),
            max_total_bytes: settings.max_total_bytes.unwrap_or(4 << 30),
            max_age: Duration::from_secs(settings.max_age_days.unwrap_or(30).saturating_mul(86400)),
            max_files: settings.max_files.unwrap_or(200_000),
            respects_ignore_files: settings.respect_ignore_files.unwrap_or(true),
        }
    }
}
