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
    parse_written(text).or_else(|| text.parse::<Timestamp>().ok().map(Timestamp::as_millisecond))
}

/// [`parse_timestamp`] of exactly the form that [`iso_timestamp`] writes, of the years 0 to 9999; in a tenth of the time.
pub(crate) fn parse_written(text: &str) -> Option<i64> {
    let bytes: &[u8; 24] = text.as_bytes().try_into().ok()?;
    let is_formed = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':'), (19, b'.'), (23, b'Z')]
        .iter()
        .all(|(at, sign)| bytes[*at] == *sign);
    let number = |from: usize, to: usize| {
        bytes[from..to]
            .iter()
            .try_fold(0_i64, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + i64::from(byte - b'0')))
    };
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second, ms) = (number(11, 13)?, number(14, 16)?, number(17, 19)?, number(20, 23)?);
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days_of_month = match month {
        2 => 28 + i64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !is_formed || !(1..=days_of_month).contains(&day) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    // Years that begin in March, so that the day of a leap year is the last one.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year.div_euclid(4) - year.div_euclid(100)
        + year.div_euclid(400)
        + (month * 153 + 2) / 5
        + day
        - 1
        - DAYS_BEFORE_1970;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + ms)
}

/// The days from 1 March of the year 0 to 1 January 1970.
const DAYS_BEFORE_1970: i64 = 719_468;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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

    proptest! {
        #[test]
        fn what_was_written_is_read_quickly(ms in -62_167_219_200_000..=253_402_300_799_999_i64) {
            prop_assert_eq!(parse_written(&iso_timestamp(ms)), Some(ms));
        }

        #[test]
        fn nothing_else_is_read_quickly(at in 0..24_usize, byte in 0x20..0x7f_u8, ms in 0..253_402_300_799_999_i64) {
            let mut text = iso_timestamp(ms).into_bytes();
            text[at] = byte;
            let text = String::from_utf8(text).unwrap();
            if let Some(ms) = parse_written(&text) {
                prop_assert_eq!(iso_timestamp(ms), text);
            }
        }
    }
}
