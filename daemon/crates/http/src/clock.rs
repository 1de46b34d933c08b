//! The clocks of servers, where they are known to differ from that of this machine: a signature is good for minutes only.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use reqwest::Url;

/// The difference of two clocks at which a server refuses a signature: AWS allows five minutes.
const TOLERANCE: Duration = Duration::from_secs(4 * 60);

/// The known clocks of servers. An unknown server has the time of this machine.
#[derive(Debug, Default)]
pub struct Clocks {
    /// By host and port: the seconds that the server's clock is ahead.
    ahead: Mutex<HashMap<String, i64>>,
}

/// The error of this machine's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockSkew {
    /// The seconds that the server's clock is ahead of ours.
    seconds: i64,
}

impl Clocks {
    /// The time of the server at `url`.
    #[must_use]
    pub fn now(&self, url: &Url) -> SystemTime {
        let ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner).get(&place(url)).copied();
        shifted(SystemTime::now(), ahead.unwrap_or_default())
    }

    /// Learns the server's time from the header `Date` of its answer, which came at `now`. The difference, where it is so large that a
    /// signature is refused for it.
    pub fn learn(&self, url: &Url, date: &str, now: SystemTime) -> Option<ClockSkew> {
        let server = httpdate::parse_http_date(date).ok()?;
        let seconds = match server.duration_since(now) {
            Ok(ahead) => i64::try_from(ahead.as_secs()).ok()?,
            Err(behind) => -i64::try_from(behind.duration().as_secs()).ok()?,
        };
        if seconds.unsigned_abs() < TOLERANCE.as_secs() {
            return None;
        }
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner).insert(place(url), seconds);
        Some(ClockSkew { seconds })
    }
}

impl std::fmt::Display for ClockSkew {
    /// Such as `the clock of this machine is 2 h 5 min behind`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let minutes = (self.seconds.unsigned_abs() + 30) / 60;
        let (days, hours, minutes) = (minutes / 1440, minutes / 60 % 24, minutes % 60);
        let parts = [(days, "d"), (hours, "h"), (minutes, "min")];
        let parts: Vec<String> = parts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, unit)| format!("{count} {unit}"))
            .collect();
        let way = if self.seconds > 0 { "behind" } else { "ahead" };
        write!(f, "the clock of this machine is {} {way}", parts.join(" "))
    }
}

fn place(url: &Url) -> String {
    format!("{}:{}", url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or_default())
}

fn shifted(time: SystemTime, seconds: i64) -> SystemTime {
    let by = Duration::from_secs(seconds.unsigned_abs());
    let shifted = if seconds < 0 { time.checked_sub(by) } else { time.checked_add(by) };
    shifted.unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_remembered_for_each_server() {
        let clocks = Clocks::default();
        let (a, b) = (Url::parse("https://a/x").unwrap(), Url::parse("https://a:444/").unwrap());
        let now = SystemTime::now();
        let date = |seconds: i64| httpdate::fmt_http_date(shifted(now, seconds));
        assert_eq!(clocks.learn(&a, &date(30), now), None);
        assert_eq!(clocks.learn(&a, "soon", now), None);
        let skew = clocks.learn(&a, &date(-7530), now).unwrap();
        assert!((-7531..=-7530).contains(&skew.seconds), "{skew:?}");
        assert_eq!(skew.to_string(), "the clock of this machine is 2 h 6 min ahead");
        assert_eq!(
            ClockSkew { seconds: 2 * 86_400 + 60 }.to_string(),
            "the clock of this machine is 2 d 1 min behind"
        );
        let seconds = |url: &Url| now.duration_since(clocks.now(url)).map_or(0, |behind| behind.as_secs());
        assert!((7520..=7531).contains(&seconds(&a)), "{}", seconds(&a));
        assert_eq!(seconds(&b), 0);
    }
}
