//! Puts the pieces of streamed tool calls together.

use std::hash::{BuildHasher, Hasher, RandomState};

use super::wire::incoming::CallDelta;

/// The tool calls of one answer.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Calls {
    calls: Vec<Call>,
}

#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Call {
    /// What the server numbers it by.
    number: Option<u64>,
    id: String,
    name: String,
    /// The block in the answer, once it is open.
    pub(super) block: Option<usize>,
    /// Arguments that came before the name.
    waiting: String,
}

/// What a piece of a call means.
pub(super) enum Step {
    /// The call is known now: open its block, then add the text.
    Open { call: usize, id: String, name: String, arguments: String },
    /// The arguments of an open block grow, perhaps by nothing.
    Extend { block: usize, arguments: String },
    /// Nothing can be said yet.
    Wait,
}

impl Calls {
    /// Adds a piece. Pieces belong together by `index`, then by id; without either, to the last call.
    pub(super) fn add(&mut self, piece: CallDelta) -> Step {
        let index = self.place(&piece);
        let call = &mut self.calls[index];
        let arguments = piece.function.arguments.unwrap_or_default();
        if let Some(block) = call.block {
            return Step::Extend { block, arguments };
        }
        if let Some(id) = piece.id.filter(|id| !id.is_empty()) {
            call.id = id;
        }
        if let Some(name) = piece.function.name {
            call.name = name;
        }
        call.waiting.push_str(&arguments);
        if call.name.is_empty() {
            return Step::Wait;
        }
        call.open(index)
    }

    /// Says which block a call became.
    pub(super) fn opened(&mut self, call: usize, block: usize) {
        if let Some(call) = self.calls.get_mut(call) {
            call.block = Some(block);
        }
    }

    /// Opens what never got a name, so that nothing the model said is lost.
    pub(super) fn nameless(&mut self) -> Vec<Step> {
        let waiting = self.calls.iter_mut().enumerate().filter(|(_, call)| call.block.is_none());
        waiting.map(|(index, call)| call.open(index)).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// The call that a piece belongs to; made if it is a new one.
    fn place(&mut self, piece: &CallDelta) -> usize {
        let id = piece.id.as_deref().filter(|id| !id.is_empty());
        let named = piece.function.name.as_deref().is_some_and(|name| !name.is_empty());
        let found = match (piece.index, id) {
            // Some servers give every call the same index; a new id with a name tells them apart.
            (Some(number), id) => self.calls.iter().rposition(|call| {
                call.number == Some(number)
                    && !(named && id.is_some_and(|id| !call.id.is_empty() && call.id != id))
            }),
            (None, Some(id)) => self.calls.iter().rposition(|call| call.id == id),
            (None, None) if named => None,
            (None, None) => self.calls.len().checked_sub(1),
        };
        found.unwrap_or_else(|| {
            self.calls.push(Call { number: piece.index, ..Call::default() });
            self.calls.len() - 1
        })
    }
}

impl Call {
    fn open(&mut self, index: usize) -> Step {
        if self.id.is_empty() {
            self.id = generated_id();
        }
        Step::Open {
            call: index,
            id: self.id.clone(),
            name: self.name.clone(),
            arguments: std::mem::take(&mut self.waiting),
        }
    }
}

/// An id for a call that the server gave none: ids must differ over a whole session.
fn generated_id() -> String {
    // Each `RandomState` has random keys, which is all the randomness this needs.
    format!("call_{:016x}", RandomState::new().build_hasher().finish())
}
