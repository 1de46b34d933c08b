//! Refusals of a model: how providers call them, and what the model said.

use super::{Failure, FailureKind};
use crate::http::Server;

/// How much of what a model said becomes the `errorMessage`, in characters. The answer's content has all of it.
const MAX_SHOWN: usize = 2000;

/// Without a word of the model (the text is the reference's).
const WORDLESS: &str = "The model refused to complete the request";

/// Whether a stop reason says that the model, or a filter before or behind it, refused. Gateways pass on the words of others, so the
/// list is one for all APIs.
pub(crate) fn is_refusal(reason: &str) -> bool {
    let reason = reason.to_ascii_lowercase();
    matches!(
        reason.as_str(),
        "refusal"
            | "sensitive"
            | "content_filter"
            | "content_filtered"
            | "guardrail_intervened"
            | "safety"
            | "image_safety"
            | "prohibited_content"
            | "image_prohibited_content"
            | "blocklist"
            | "spii"
            | "recitation"
            | "image_recitation"
            | "jailbreak"
            | "model_armor"
    )
}

/// A refusal that a model gives in words of its own, apart from its text.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Refusal {
    said: String,
}

impl Refusal {
    /// Adds a piece of it.
    pub(crate) fn add(&mut self, piece: &str) {
        // What is never shown is not kept: a character has at most four bytes.
        if self.said.len() <= MAX_SHOWN * 4 {
            self.said.push_str(piece);
        }
    }

    /// Takes the whole of it in the place of the pieces.
    pub(crate) fn set(&mut self, whole: &str) {
        if !whole.is_empty() {
            self.said.clear();
            self.add(whole);
        }
    }

    /// What the refusal means for the answer of `server`; `None` where nothing was said.
    pub(crate) fn failure(&self, server: &Server) -> Option<Failure> {
        let failure = Self::failure_saying(&self.said)?;
        Some(server.failure(failure.kind, failure.message))
    }

    /// [`Self::failure`] of a refusal in these words.
    pub(crate) fn failure_saying(said: &str) -> Option<Failure> {
        if said.is_empty() {
            return None;
        }
        let said = said.trim();
        let text = match said.char_indices().nth(MAX_SHOWN) {
            _ if said.is_empty() => WORDLESS.to_owned(),
            Some((end, _)) => format!("The model refused: {}…", &said[..end]),
            None => format!("The model refused: {said}"),
        };
        Some(Failure::new(FailureKind::ModelRefusal, text))
    }

    /// A refusal without a word.
    pub(crate) fn wordless() -> &'static str {
        WORDLESS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(pieces: &[&str]) -> Option<String> {
        let mut refusal = Refusal::default();
        pieces.iter().for_each(|piece| refusal.add(piece));
        Refusal::failure_saying(&refusal.said).map(|failure| failure.message)
    }

    #[test]
    fn what_is_said_is_shown_up_to_a_length() {
        assert_eq!(message(&[]), None);
        assert_eq!(message(&["I ", "can't."]).as_deref(), Some("The model refused: I can't."));
        assert_eq!(message(&[" \n"]).as_deref(), Some(WORDLESS));
        let long = message(&vec!["é"; 20_000]).unwrap();
        assert_eq!(long, format!("The model refused: {}…", "é".repeat(MAX_SHOWN)));
    }

    #[test]
    fn the_whole_takes_the_place_of_the_pieces() {
        let mut refusal = Refusal::default();
        refusal.add("I can");
        refusal.set("I cannot.");
        refusal.set("");
        assert_eq!(refusal.said, "I cannot.");
    }
}
