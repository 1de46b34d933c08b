//! What a session refuses because it, or what is asked of it, is too large.

use agentd_protocol::{command::Image, error::Failure};

use crate::context::IntakeLimits;

/// What a message takes of memory, in bytes: its text and its images as they came.
pub(crate) fn message_bytes(text: &str, images: &[Image]) -> u64 {
    let images: usize = images.iter().map(|image| image.data.len()).sum();
    (text.len() + images) as u64
}

impl IntakeLimits {
    /// Whether a message is one that may come in, by its size.
    pub(crate) fn takes(&self, text: &str, images: &[Image]) -> bool {
        self.check_message(message_bytes(text, images)).is_ok()
    }

    /// Whether a message of so many bytes may come in.
    pub(crate) fn check_message(&self, bytes: u64) -> Result<(), Failure> {
        let limit = self.message_bytes;
        if bytes <= limit {
            return Ok(());
        }
        let text = format!("The message has {bytes} bytes with its images; the limit is {limit}.");
        Err(Failure::limit(text, "limits.maxMessageBytes", "Put large content into files."))
    }

    /// Whether a message of so many bytes may wait beside others.
    pub(crate) fn check_queue(&self, bytes: u64, waiting: WaitingSize) -> Result<(), Failure> {
        let instead = "Wait until some are delivered, or take them back by clear_queue.";
        if waiting.messages >= self.queued_messages {
            let WaitingSize { messages, .. } = waiting;
            let text = format!("{messages} messages wait in this session already, as many as may.");
            return Err(Failure::limit(text, "limits.maxQueuedMessages", instead));
        }
        if waiting.bytes.saturating_add(bytes) > self.queued_bytes {
            let (there, limit) = (waiting.bytes, self.queued_bytes);
            let text =
                format!("{there} bytes of messages wait in this session; {bytes} more would pass {limit}.");
            return Err(Failure::limit(text, "limits.maxQueuedBytes", instead));
        }
        Ok(())
    }

    /// Whether a session of so many bytes takes more.
    pub(crate) fn check_session(&self, bytes: u64) -> Result<(), Failure> {
        let limit = self.session_bytes;
        if bytes < limit {
            return Ok(());
        }
        let text = format!("The session has {bytes} bytes of entries; from {limit} on it takes no message.");
        Err(Failure::limit(text, "limits.maxSessionBytes", "Go on in a new session, or in a fork of a part."))
    }
}

/// Messages that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct WaitingSize {
    /// How many.
    pub(crate) messages: u64,
    /// What they take together, in bytes.
    pub(crate) bytes: u64,
}

#[cfg(test)]
mod tests {
    use agentd_protocol::error::ErrorCode;

    use super::*;

    const LIMITS: IntakeLimits =
        IntakeLimits { message_bytes: 10, queued_messages: 2, queued_bytes: 15, session_bytes: 100 };

    #[track_caller]
    fn refused(result: Result<(), Failure>, setting: &str) {
        let failure = result.expect_err("a refusal");
        assert_eq!(failure.code, ErrorCode::LimitReached);
        assert!(failure.hint.as_deref().is_some_and(|hint| hint.contains(setting)), "{failure:?}");
    }

    #[test]
    fn what_fits_is_taken_and_what_is_over_names_its_setting() {
        assert_eq!(LIMITS.check_message(10), Ok(()));
        refused(LIMITS.check_message(11), "limits.maxMessageBytes");
        assert_eq!(LIMITS.check_queue(10, WaitingSize { messages: 1, bytes: 5 }), Ok(()));
        refused(LIMITS.check_queue(0, WaitingSize { messages: 2, bytes: 5 }), "limits.maxQueuedMessages");
        refused(LIMITS.check_queue(11, WaitingSize { messages: 1, bytes: 5 }), "limits.maxQueuedBytes");
        assert_eq!(LIMITS.check_session(99), Ok(()));
        refused(LIMITS.check_session(100), "limits.maxSessionBytes");
    }

    #[test]
    fn images_count_as_they_came() {
        let image = Image { kind: "image".into(), data: "abcd".into(), mime_type: "image/png".into() };
        assert_eq!(message_bytes("xyz", &[image.clone(), image]), 11);
    }
}
