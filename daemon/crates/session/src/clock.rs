//! The time of day.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since the Unix epoch; 0 for a clock that is set before it.
pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// The same without a sign, as some fields of the protocol have it.
pub(crate) fn unix_ms() -> u64 {
    u64::try_from(now_ms()).unwrap_or_default()
}
