//! The turn that a crash interrupted goes on: by itself, or because the user says so.

use agentd_protocol::ui::NotifyType;
use tokio_util::sync::CancellationToken;

use crate::{
    actor::Actor,
    run::RunBeginning,
    run_message::RunMessage,
    ui::{Asker, Dialog, DialogAnswer, Notice},
};

const TITLE: &str = "Go on with the turn that a crash interrupted?";
const MESSAGE: &str = "The model is asked again with what is known. No tool is run again by itself.";
const GOES_ON: &str = "The turn that a crash interrupted goes on.";

/// What becomes of a turn that a crash interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterCrash {
    /// There was none, or it is over.
    Nothing,
    /// The user is asked.
    Asks,
    /// It goes on.
    GoesOn,
}

/// The question to the user whether a turn goes on, while it is open.
#[derive(Default)]
pub(crate) struct ResumeQuestion(Option<CancellationToken>);

impl ResumeQuestion {
    /// The answer does not matter any more; true when it was open.
    pub(crate) fn give_up(&mut self) -> bool {
        self.0.take().inspect(CancellationToken::cancel).is_some()
    }
}

impl Actor {
    /// Does what recovery left to be done. To be called once, before anything else.
    pub(crate) fn after_crash(&mut self, after: AfterCrash) {
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
    pub(crate) fn on_go_on(&mut self, yes: bool) {
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
}
