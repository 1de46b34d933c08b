//! Messages in the intent log of a session that is the project's, or lies outside of the agent directory: they wait only when the user says so.

use agentd_protocol::{command::Disposition, ui::NotifyType};
use agentd_store::intent_log::QueuedRecord;
use tokio_util::sync::CancellationToken;

use super::Origin;
use crate::{
    actor::Actor,
    requests::CachedAnswer,
    run_message::RunMessage,
    ui::{Asker, Dialog, DialogAnswer, Notice},
};
/// How many of the messages are shown, and how much of each, in characters.
const SHOWN: usize = 5;
const SHOWN_CHARS: usize = 300;

const TITLE: &str = "Deliver what waits in this session?";
const RELEASED: &str = "The messages wait; the next run delivers them.";
const KEPT: &str = "The messages are not delivered. clear_queue takes them back for good.";

/// The messages, until the user has decided.
#[derive(Default)]
pub(crate) struct HeldMessages {
    messages: Vec<QueuedRecord>,
    /// Decides whether messages that are found later are held back, too.
    origin: Origin,
    /// Somebody was asked.
    asked: bool,
}

impl HeldMessages {
    pub(crate) fn new(messages: Vec<QueuedRecord>, origin: Origin) -> Self {
        Self { messages, origin, asked: false }
    }

    /// Keeps these where they are to be held back; gives them back where they are to wait at once.
    pub(crate) fn take_in(&mut self, messages: Vec<QueuedRecord>) -> Vec<QueuedRecord> {
        if self.origin == Origin::User {
            return messages;
        }
        self.messages = messages;
        Vec::new()
    }

    /// The messages.
    pub(crate) fn messages(&self) -> &[QueuedRecord] {
        &self.messages
    }

    /// Nothing comes of them any more; true when there were some.
    pub(crate) fn forget(&mut self) -> bool {
        !std::mem::take(&mut self.messages).is_empty()
    }
}

impl Actor {
    /// Asks the user about the messages, once. To be called when somebody is there who answers.
    pub(crate) fn ask_to_deliver(&mut self) {
        if self.held_back.messages.is_empty() || self.held_back.asked || self.closing {
            return;
        }
        self.held_back.asked = true;
        let dialog = Dialog::confirm(TITLE, shown(&self.held_back));
        let (ui, to_actor) = (self.ui(), self.to_actor.clone());
        self.tasks.spawn(async move {
            // The end of the session answers it, too.
            let answer = ui.ask(Asker::Daemon, dialog, &CancellationToken::new()).await;
            // Without the session nothing is delivered.
            let _ = to_actor.send(RunMessage::Deliverable(answer == DialogAnswer::Confirmed(true))).await;
        });
    }

    /// The user was asked. A no leaves them where they are: in the intent log.
    pub(crate) fn on_deliverable(&mut self, yes: bool) {
        if self.held_back.messages.is_empty() || self.closing {
            return;
        }
        if !yes {
            return self.tell_user(Notice::notify(KEPT, NotifyType::Info));
        }
        let messages = std::mem::take(&mut self.held_back.messages);
        for key in self.queues.release(messages, &self.feed) {
            // Nobody waits for an answer yet.
            let _ = self.requests.answer(key, CachedAnswer::Accepted(Disposition::Queued));
        }
        self.tell_user(Notice::notify(RELEASED, NotifyType::Info));
    }
}

/// The messages, as far as a question can show them.
fn shown(HeldMessages { messages, origin, .. }: &HeldMessages) -> String {
    let from = format!("Be careful: {}. What waits:", origin.doubt());
    let text = |message: &QueuedRecord| -> String {
        let cut = message.text.chars().nth(SHOWN_CHARS).map_or("", |_| "…");
        format!("- {}{cut}", message.text.chars().take(SHOWN_CHARS).collect::<String>())
    };
    let more = messages.len().saturating_sub(SHOWN);
    let lines = messages.iter().take(SHOWN).map(text);
    let more = (more > 0).then(|| format!("and {more} more"));
    [from].into_iter().chain(lines).chain(more).collect::<Vec<_>>().join("\n")
}
