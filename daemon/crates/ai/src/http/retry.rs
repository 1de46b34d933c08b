//! Decides when a failed request is sent again, and after which pause (with jitter). Pure.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    time::{Duration, SystemTime},
};

use reqwest::{
    StatusCode,
    header::{HeaderMap, RETRY_AFTER},
};

use crate::HttpRetries;

/// The pause before the first retry when the server names none; it doubles with each retry.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// The longest pause that the server did not ask for.
const LONGEST_PAUSE: Duration = Duration::from_secs(8);

/// The advice of a failed attempt about the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RetryAdvice {
    /// Whether another attempt may work.
    pub(super) retry: bool,
    /// The pause that the server asked for.
    pub(super) delay: Option<Duration>,
}

/// The decision after a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RetryPause {
    /// Send again after this time.
    For(Duration),
    /// Do not send again.
    GiveUp,
    /// Do not send again, since the server asks for more time than the limit allows.
    TooLong(Duration),
}

impl RetryAdvice {
    /// The advice of an answer: of the header `x-should-retry` first, then of the status.
    pub(super) fn of(status: StatusCode, headers: &HeaderMap) -> Self {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
        let retry = match text("x-should-retry") {
            Some("true") => true,
            Some("false") => false,
            _ => matches!(status.as_u16(), 408 | 409 | 429) || status.is_server_error(),
        };
        let milliseconds = text("retry-after-ms").and_then(seconds).map(|thousand| thousand / 1000);
        let delay = milliseconds.or_else(|| {
            let text = text(RETRY_AFTER.as_str())?;
            seconds(text).or_else(|| until(text, SystemTime::now()))
        });
        Self { retry, delay }
    }

    /// Decides after an attempt; `sent` is the number of retries so far.
    pub(super) fn pause(&self, sent: u32, limits: &HttpRetries) -> RetryPause {
        if !self.retry {
            return RetryPause::GiveUp;
        }
        if let Some(asked) =
            self.delay.filter(|asked| !limits.max_delay.is_zero() && *asked > limits.max_delay)
        {
            return RetryPause::TooLong(asked);
        }
        if sent >= limits.max {
            return RetryPause::GiveUp;
        }
        RetryPause::For(self.delay.unwrap_or_else(|| backoff(sent)))
    }
}

/// The pause before retry number `sent` + 1: [`FIRST_PAUSE`] doubled with each retry up to [`LONGEST_PAUSE`], minus a random jitter of up to
/// a quarter, so that many clients do not come at once.
fn backoff(sent: u32) -> Duration {
    let full = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(sent.min(16))).min(LONGEST_PAUSE);
    // Each `RandomState` has random keys: random enough for jitter.
    let jitter = RandomState::new().build_hasher().finish() % 1000;
    full.mul_f64(1.0 - 0.25 * (jitter as f64 / 1000.0))
}

/// A number of seconds, fractions allowed.
fn seconds(text: &str) -> Option<Duration> {
    let seconds: f64 = text.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// The time from `now` to a date in HTTP's form; zero for a past date.
fn until(text: &str, now: SystemTime) -> Option<Duration> {
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice(status: u16, headers: &[(&'static str, &str)]) -> RetryAdvice {
        let headers = headers
            .iter()
            .map(|(name, value)| (reqwest::header::HeaderName::from_static(name), value.parse().unwrap()));
        RetryAdvice::of(StatusCode::from_u16(status).unwrap(), &headers.collect())
    }

    #[test]
    fn the_servers_word_comes_before_the_status() {
        for (status, retry) in
            [(408, true), (409, true), (429, true), (500, true), (529, true), (400, false), (401, false)]
        {
            assert_eq!(advice(status, &[]), RetryAdvice { retry, delay: None }, "{status}");
            assert!(advice(status, &[("x-should-retry", "true")]).retry);
            assert!(!advice(status, &[("x-should-retry", "false")]).retry);
        }
    }

    #[test]
    fn the_pause_is_read_in_each_of_its_forms() {
        let delay = |headers: &[(&'static str, &str)]| advice(429, headers).delay;
        assert_eq!(delay(&[("retry-after", "3")]), Some(Duration::from_secs(3)));
        assert_eq!(delay(&[("retry-after", "0.5")]), Some(Duration::from_millis(500)));
        assert_eq!(delay(&[("retry-after", "3"), ("retry-after-ms", "40")]), Some(Duration::from_millis(40)));
        assert_eq!(delay(&[("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT")]), Some(Duration::ZERO));
        for odd in ["-1", "soon", "NaN", "1e30", ""] {
            assert_eq!(delay(&[("retry-after", odd)]), None, "{odd}");
        }
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:07 GMT").unwrap();
        assert_eq!(until("Sun, 06 Nov 1994 08:49:37 GMT", now), Some(Duration::from_secs(30)));
    }

    #[test]
    fn retries_and_their_pauses_are_limited() {
        let limits = HttpRetries { max: 2, max_delay: Duration::from_secs(60), first_byte_timeout: None };
        let asked = |seconds| RetryAdvice { retry: true, delay: Some(Duration::from_secs(seconds)) };
        assert_eq!(asked(60).pause(1, &limits), RetryPause::For(Duration::from_secs(60)));
        assert_eq!(asked(60).pause(2, &limits), RetryPause::GiveUp);
        assert_eq!(asked(61).pause(0, &limits), RetryPause::TooLong(Duration::from_secs(61)));
        assert_eq!(
            asked(61).pause(0, &HttpRetries { max_delay: Duration::ZERO, ..limits }),
            RetryPause::For(Duration::from_secs(61))
        );
        assert_eq!(
            RetryAdvice { retry: false, delay: Some(Duration::ZERO) }.pause(0, &limits),
            RetryPause::GiveUp
        );
        for (sent, full) in [(0, 500), (1, 1000), (4, 8000), (40, 8000)] {
            let pause = backoff(sent).as_millis();
            assert!((full * 3 / 4..=full).contains(&pause), "{sent}: {pause}");
        }
    }
}
