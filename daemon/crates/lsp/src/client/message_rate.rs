//! How much a server may say. Pure.

use std::time::{Duration, Instant};

/// The span that is counted over.
const SPAN: Duration = Duration::from_secs(60);

/// Bytes in that span: 128 MiB. The largest real answers are some MiB.
const MAX_BYTES: u64 = 128 << 20;

/// Messages in that span. A server that indexes a large project sends some thousand.
const MAX_MESSAGES: u64 = 200_000;

/// Counts what a server sends.
#[derive(Debug)]
pub(super) struct MessageRate {
    since: Instant,
    bytes: u64,
    messages: u64,
}

impl MessageRate {
    pub(super) fn new(now: Instant) -> Self {
        Self { since: now, bytes: 0, messages: 0 }
    }

    /// Counts a message.
    ///
    /// # Errors
    /// It is too much: why the server is ended.
    pub(super) fn count(&mut self, bytes: u64, now: Instant) -> Result<(), String> {
        if now.duration_since(self.since) >= SPAN {
            *self = Self::new(now);
        }
        self.bytes = self.bytes.saturating_add(bytes);
        self.messages += 1;
        let seconds = SPAN.as_secs();
        if self.bytes > MAX_BYTES {
            return Err(format!("it sent more than {} MiB within {seconds} s", MAX_BYTES >> 20));
        }
        if self.messages > MAX_MESSAGES {
            return Err(format!("it sent more than {MAX_MESSAGES} messages within {seconds} s"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_too_much_and_the_same_over_time_is_not() {
        let now = Instant::now();
        let mut rate = MessageRate::new(now);
        for second in 0..100 {
            let at = now + Duration::from_secs(second * 30);
            assert_eq!(rate.count(MAX_BYTES / 2, at), Ok(()));
        }
        let mut rate = MessageRate::new(now);
        assert_eq!(rate.count(MAX_BYTES, now), Ok(()));
        assert_eq!(rate.count(1, now).unwrap_err(), "it sent more than 128 MiB within 60 s");
        let mut rate = MessageRate::new(now);
        let error = (0..=MAX_MESSAGES).find_map(|_| rate.count(1, now).err()).unwrap();
        assert_eq!(error, "it sent more than 200000 messages within 60 s");
    }
}
