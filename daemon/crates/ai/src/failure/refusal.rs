//! Refusals of a model: the stop reasons that mean one, and the model's own words.

use super::{Failure, FailureKind};
use crate::http::Server;

/// The part of a refusal's words that becomes the `errorMessage`, in characters. The answer's content has all of them.
const MAX_SHOWN: usize = 2000;

/// The message of a refusal without words (the text is pi's).
const WORDLESS: &str = "The model refused to complete the request";

/// Whether a stop reason means a refusal by the model or a filter. Gateways pass on the reasons of other APIs, so one list serves all.
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

/// A refusal in words of the model that are apart from its text.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Refusal {
    said: String,
}

impl Refusal {
    /// Adds a piece of it.
    pub(crate) fn add(&mut self, piece: &str) {
        // Keeps no more than can be shown: a character has at most four bytes.
        if self.said.len() <= MAX_SHOWN * 4 {
            self.said.push_str(piece);
        }
    }

    /// Replaces the pieces by the whole text.
    pub(crate) fn set(&mut self, whole: &str) {
        if !whole.is_empty() {
            self.said.clear();
            self.add(whole);
        }
    }

    /// The failure of the answer of `server`; `None` without any words.
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

    /// The message of a refusal without words.
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
