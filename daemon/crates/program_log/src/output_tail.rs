//! The end of what a program said, for the error that tells of its end.

use std::sync::{Arc, Mutex, PoisonError};

use agentd_protocol::text_bounds;

/// The bytes that are told.
const KEPT: usize = 2000;

/// The end of what a program wrote to its standard error, or printed. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct OutputTail(Arc<Mutex<String>>);

impl OutputTail {
    /// Adds what the program wrote.
    pub fn push(&self, text: &str) {
        let mut tail = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tail.push_str(text);
        // Not at every piece: cutting copies what is kept.
        if tail.len() > 2 * KEPT {
            *tail = text_bounds::tail(&tail, KEPT).to_owned();
        }
    }

    /// The last 2000 bytes, without space around them.
    #[must_use]
    pub fn text(&self) -> String {
        let tail = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        text_bounds::tail(&tail, KEPT).trim().to_owned()
    }

    /// What was the matter, with what the program said last.
    #[must_use]
    pub fn explain(&self, what: String) -> String {
        match self.text().as_str() {
            "" => what,
            said => format!("{what}; it said: {said}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_told_and_little_is_kept() {
        let tail = OutputTail::default();
        assert_eq!(tail.explain("It ended".into()), "It ended");
        for number in 0..1000 {
            tail.push(&format!("line {number}\n"));
            assert!(tail.0.lock().unwrap().len() <= 2 * KEPT + 10);
        }
        assert!(tail.text().len() <= KEPT && tail.text().ends_with("line 999"));
        assert!(tail.explain("It ended".into()).starts_with("It ended; it said: "));
    }
}
