//! Puts the pieces of streamed tool calls together.

use super::{call_id::of_place, wire::incoming::CallDelta};

/// The tool calls of one answer.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Calls {
    calls: Vec<Call>,
}

#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
struct Call {
    /// What the server numbers it by.
    number: Option<u64>,
    id: String,
    name: String,
    block: Option<usize>,
    /// Arguments that came before the name.
    waiting: String,
}

/// What a piece of a call means.
pub(super) enum Step {
    /// The call is known now: open its block, then add the text.
    Open { call: usize, id: String, name: String, arguments: String },
    /// The arguments of an open block grow.
    Extend { block: usize, arguments: String },
    /// Nothing can be said yet.
    Wait,
}

impl Calls {
    /// Adds a piece of an answer with the id `answer`. Pieces belong together by number and id; without either, to the last
    /// call.
    pub(super) fn add(&mut self, piece: CallDelta, answer: &str) -> Step {
        // The API itself writes "null" where it has no id.
        let id = piece.id.filter(|id| !id.is_empty() && id != "null");
        let name = piece.function.name.filter(|name| !name.is_empty());
        let arguments = piece.function.arguments.unwrap_or_default();
        let place = self.place(piece.index, id.as_deref(), name.is_some());
        let call = &mut self.calls[place];
        if let Some(block) = call.block {
            return Step::Extend { block, arguments };
        }
        call.id = id.unwrap_or_else(|| std::mem::take(&mut call.id));
        call.name = name.unwrap_or_else(|| std::mem::take(&mut call.name));
        call.waiting.push_str(&arguments);
        if call.name.is_empty() { Step::Wait } else { self.open(place, answer) }
    }

    /// Says which block a call became.
    pub(super) fn opened(&mut self, call: usize, block: usize) {
        if let Some(call) = self.calls.get_mut(call) {
            call.block = Some(block);
        }
    }

    /// Opens what never got a name, so that nothing the model said is lost.
    pub(super) fn nameless(&mut self, answer: &str) -> Vec<Step> {
        let waiting: Vec<usize> =
            (0..self.calls.len()).filter(|place| self.calls[*place].block.is_none()).collect();
        waiting.into_iter().map(|place| self.open(place, answer)).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    fn open(&mut self, place: usize, answer: &str) -> Step {
        let call = &mut self.calls[place];
        if call.id.is_empty() {
            call.id = of_place(answer, place);
        }
        Step::Open {
            call: place,
            id: call.id.clone(),
            name: call.name.clone(),
            arguments: std::mem::take(&mut call.waiting),
        }
    }

    /// The call that a piece belongs to; made if it is a new one.
    fn place(&mut self, number: Option<u64>, id: Option<&str>, is_named: bool) -> usize {
        let found = match (number, id) {
            // Whole calls may all have the same number; a new id with a name tells them apart.
            (Some(_), id) => self.calls.iter().rposition(|call| {
                let is_other = is_named && id.is_some_and(|id| !call.id.is_empty() && call.id != id);
                call.number == number && !is_other
            }),
            (None, Some(id)) => self.calls.iter().rposition(|call| call.id == id),
            (None, None) if is_named => None,
            (None, None) => self.calls.len().checked_sub(1),
        };
        found.unwrap_or_else(|| {
            self.calls.push(Call { number, ..Call::default() });
            self.calls.len() - 1
        })
    }
}
