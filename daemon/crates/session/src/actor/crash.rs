//! After a crash, once the session is open: the turn that goes on, and the messages that the user has to release.

use agentd_protocol::{command::Disposition, ui::NotifyType};
use agentd_store::intent_log::QueuedRecord;
use tokio_util::sync::CancellationToken;

use super::session_actor::Actor;
use crate::{
    recovery::{AfterCrash, HeldMessages, ResumeQuestion},
    requests::CachedAnswer,
    run::{RunBeginning, RunMessage},
    ui::{Asker, Dialog, DialogAnswer, Notice},
};

const TITLE: &str = "Go on with the turn that a crash interrupted?";

const MESSAGE: &str = "The model is asked again with what is known. No tool is run again by itself.";

const GOES_ON: &str = "The turn that a crash interrupted goes on.";

/// The messages that are shown, and the characters of each.
const SHOWN: usize = 5;

const SHOWN_CHARS: usize = 300;

const HELD_TITLE: &str = "Deliver what waits in this session?";

const RELEASED: &str = "The messages wait; the next run delivers them.";

const KEPT: &str = "The messages are not delivered. clear_queue takes them back for good.";

impl Actor {
    /// Does what recovery left to be done. To be called once, before anything else.
    pub(super) fn after_crash(&mut self, after: AfterCrash) {
        match after {
            AfterCrash::Nothing => {}
            AfterCrash::GoesOn => self.go_on(),
            AfterCrash::Asks => self.ask_to_go_on(),
        }
    }

    fn go_on(&mut self) {
        self.tell_user(Notice::notify(GOES_ON, NotifyType::Info));
        self.start(RunBeginning::AfterCrash, None);
    }

    fn ask_to_go_on(&mut self) {
        let (ui, to_actor, cancel) = (self.ui(), self.to_actor.clone(), CancellationToken::new());
        self.going_on = ResumeQuestion(Some(cancel.clone()));
        self.tasks.spawn(async move {
            let is_there = tokio::select! {
                is_there = ui.somebody(Asker::Daemon) => is_there,
                () = cancel.cancelled() => false,
            };
            let yes = is_there
                && ui.ask(Asker::Daemon, Dialog::confirm(TITLE, MESSAGE), &cancel).await
                    == DialogAnswer::Confirmed(true);
            // Without the session nothing goes on.
            let _ = to_actor.send(RunMessage::GoOn(yes)).await;
        });
    }

    /// The user was asked.
    pub(super) fn on_go_on(&mut self, yes: bool) {
        if !self.going_on.give_up() {
            // Another prompt came before the answer: the intent log is that run's.
            return;
        }
        if yes && !self.closing && !self.run.is_active() && !self.compacting.is_asked_for() {
            self.go_on();
        } else if !self.run.is_active() {
            self.journal.intent_log().settle();
        }
    }

    /// Asks the user about the messages, once. To be called when somebody is there who answers.
    pub(super) fn ask_to_deliver(&mut self) {
        if self.held_back.messages.is_empty() || self.held_back.asked || self.closing {
            return;
        }
        self.held_back.asked = true;
        let dialog = Dialog::confirm(HELD_TITLE, shown(&self.held_back));
        let (ui, to_actor) = (self.ui(), self.to_actor.clone());
        self.tasks.spawn(async move {
            // The end of the session answers it, too.
            let answer = ui.ask(Asker::Daemon, dialog, &CancellationToken::new()).await;
            // Without the session nothing is delivered.
            let _ = to_actor.send(RunMessage::Deliverable(answer == DialogAnswer::Confirmed(true))).await;
        });
    }

    /// The user was asked. A no leaves them where they are: in the intent log.
    pub(super) fn on_deliverable(&mut self, yes: bool) {
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
