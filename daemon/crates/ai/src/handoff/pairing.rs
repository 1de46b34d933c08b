//! Sees to it that every tool call is answered exactly once, right after the answer that made it.

use std::borrow::Cow;

use super::{AssistantPart, Part, ToolAnswer, Turn};

/// Stands in for a result that is not there (the text is the reference's).
const NO_RESULT: &str = "No result provided";

/// Collects turns; while calls wait for results, everything else waits too.
#[derive(Default)]
pub(super) struct Pairing<'a> {
    turns: Vec<Turn<'a>>,
    calls: Vec<Call<'a>>,
    held: Vec<Turn<'a>>,
}

struct Call<'a> {
    original_id: &'a str,
    id: Cow<'a, str>,
    name: &'a str,
    result: Option<(Vec<Part<'a>>, bool)>,
}

impl<'a> Pairing<'a> {
    /// Adds a prompt or a system message: after the results of calls that still wait.
    pub(super) fn aside(&mut self, turn: Turn<'a>) {
        if self.calls.is_empty() {
            self.turns.push(turn);
        } else {
            self.held.push(turn);
        }
    }

    /// Adds an answer.
    pub(super) fn answer(&mut self, mut parts: Vec<AssistantPart<'a>>) {
        self.close();
        if parts.is_empty() {
            return;
        }
        for part in &mut parts {
            if let AssistantPart::ToolCall { original_id, id, name, .. } = part {
                make_unique(id, &self.calls);
                self.calls.push(Call { original_id, id: id.clone(), name, result: None });
            }
        }
        self.turns.push(Turn::Assistant(parts));
    }

    /// Adds a result; one that nobody waits for is dropped.
    pub(super) fn result(&mut self, call_id: &str, parts: Vec<Part<'a>>, is_error: bool) {
        let waiting = |call: &&mut Call<'_>| call.result.is_none() && call.original_id == call_id;
        match self.calls.iter_mut().find(waiting) {
            Some(call) => call.result = Some((parts, is_error)),
            None => tracing::debug!(call_id, "a tool result without its call is kept from the model"),
        }
        if self.calls.iter().all(|call| call.result.is_some()) {
            self.close();
        }
    }

    pub(super) fn finish(mut self) -> Vec<Turn<'a>> {
        self.close();
        self.turns
    }

    /// Answers the calls that still wait, then lets go on what waited for them.
    fn close(&mut self) {
        if !self.calls.is_empty() {
            let answers = self.calls.drain(..).map(|call| {
                let (parts, is_error) =
                    call.result.unwrap_or_else(|| (vec![Part::Text(NO_RESULT.into())], true));
                ToolAnswer { call_id: call.id, tool_name: call.name, parts, is_error }
            });
            self.turns.push(Turn::Results(answers.collect()));
        }
        self.turns.append(&mut self.held);
    }
}

/// Changes `id` if another call of the answer has it already.
fn make_unique(id: &mut Cow<'_, str>, others: &[Call<'_>]) {
    let taken = |id: &str| others.iter().any(|call| call.id == id);
    if !taken(id) {
        return;
    }
    let unique = (2..).map(|number| format!("{id}_{number}")).find(|candidate| !taken(candidate));
    if let Some(unique) = unique {
        *id = Cow::Owned(unique);
    }
}
