//! ISO time stamps as JavaScript writes them.

use jiff::Timestamp;

/// The time stamp of entries and headers: UTC, milliseconds, `Z`; such as `2026-11-21T03:28:11.123Z`.
///
/// A time outside of the years -9999 to 9999 is written as the epoch.
#[must_use]
pub fn iso_timestamp(unix_ms: i64) -> String {
    let time = Timestamp::from_millisecond(unix_ms).unwrap_or(Timestamp::UNIX_EPOCH);
    format!("{time:.3}")
}

/// Unix milliseconds of an ISO time stamp; `None` when it is none.
#[must_use]
pub fn parse_timestamp(text: &str) -> Option<i64> {
    text.parse::<Timestamp>().ok().map(Timestamp::as_millisecond)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_milliseconds_always() {
        assert_eq!(iso_timestamp(1_795_231_691_123), "2026-11-21T03:28:11.123Z");
        assert_eq!(iso_timestamp(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(iso_timestamp(i64::MAX), "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn reads_what_programs_write() {
        assert_eq!(parse_timestamp("2026-11-21T03:28:11.123Z"), Some(1_795_231_691_123));
        assert_eq!(parse_timestamp("2026-11-21T04:28:11+01:00"), Some(1_795_231_691_000));
        assert_eq!(parse_timestamp("yesterday"), None);
        assert_eq!(parse_timestamp(""), None);
    }
}
