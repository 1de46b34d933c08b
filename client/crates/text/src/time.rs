//! Times for people.

use std::time::Duration;

use jiff::{Timestamp, tz::TimeZone};

use crate::one_line;

/// The time between `time` (ISO 8601) and `now`: `now`, `5m`, `3h`, `2d`. A text that is no time comes back unchanged.
pub fn ago(time: &str, now: Timestamp) -> String {
    let Ok(then) = time.parse::<Timestamp>() else { return one_line(time) };
    let minutes = now.duration_since(then).as_mins().max(0);
    match minutes {
        0 => "now".into(),
        1..60 => format!("{minutes}m"),
        60..1440 => format!("{}h", minutes / 60),
        _ => format!("{}d", minutes / 1440),
    }
}

/// As [`ago`], with seconds for short times: `7s`, `5m`, `3h`, `2d`.
pub fn age(time: &str, now: Timestamp) -> String {
    match time.parse::<Timestamp>() {
        Ok(then) if now.duration_since(then).as_secs() < 60 => {
            format!("{}s", now.duration_since(then).as_secs().max(0))
        }
        Ok(_) | Err(_) => ago(time, now),
    }
}

/// The time of day: `14:04:42`.
pub fn clock(time: Timestamp, zone: &TimeZone) -> String {
    time.to_zoned(zone.clone()).strftime("%H:%M:%S").to_string()
}

/// A duration in the unit that fits: `12 ms`, `1.5 s`, `2 min 5 s`, `3 h 0 min`, `1 d 2 h`.
pub fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0 => format!("{} ms", time.as_millis()),
        1..60 => format!("{:.1} s", (time.as_millis() / 100) as f64 / 10.0),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-11-21T14:04:42.892Z".parse().unwrap()
    }

    #[test]
    fn how_long_ago() {
        for (time, expected, to_the_second) in [
            ("2026-11-21T14:04:42.892Z", "now", "0s"),
            ("2026-11-21T14:04:50Z", "now", "0s"),
            ("2026-11-21T14:04:02Z", "now", "40s"),
            ("2026-11-21T13:59:00Z", "5m", "5m"),
            ("2026-11-21T11:00:00.1Z", "3h", "3h"),
            ("2026-11-19T11:00:00Z", "2d", "2d"),
            ("yester\nday", "yester day", "yester day"),
        ] {
            assert_eq!(
                (ago(time, now()), age(time, now())),
                (expected.into(), to_the_second.into()),
                "{time}"
            );
        }
    }

    #[test]
    fn the_time_of_day() {
        assert_eq!(clock(now(), &TimeZone::UTC), "14:04:42");
        assert_eq!(clock(now(), &TimeZone::fixed(jiff::tz::offset(-2))), "12:04:42");
    }

    #[test]
    fn durations() {
        for (ms, expected) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1_550, "1.5 s"),
            (59_999, "59.9 s"),
            (125_000, "2 min 5 s"),
            (3_600_000, "1 h 0 min"),
            (90_000_000, "1 d 1 h"),
        ] {
            assert_eq!(duration(Duration::from_millis(ms)), expected);
        }
    }
}
