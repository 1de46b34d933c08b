//! What a run knows of its last turn, for the boundaries at which extensions are asked.

use agentd_protocol::message::StopReason;

/// What the end of a turn says besides its messages.
#[derive(Debug, Default)]
pub(super) struct TurnBoundary {
    /// The entry of the turn's answer.
    pub(super) answer: Option<String>,
    /// The entries of its results.
    pub(super) results: Vec<String>,
    /// Whether the model is asked once more.
    pub(super) goes_on: bool,
    /// How the last turn ended.
    pub(super) outcome: Option<StopReason>,
}

/// A message that is part of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TurnRole {
    Answer,
    Result,
}

impl TurnBoundary {
    /// A message of the turn was stored.
    pub(super) fn stored(&mut self, role: Option<TurnRole>, entry: &str) {
        match role {
            Some(TurnRole::Answer) => {
                self.answer = Some(entry.to_owned());
                self.results.clear();
            }
            Some(TurnRole::Result) => self.results.push(entry.to_owned()),
            None => {}
        }
    }

    pub(super) fn take_goes_on(&mut self) -> bool {
        std::mem::take(&mut self.goes_on)
    }
}
