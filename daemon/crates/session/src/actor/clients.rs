//! Clients that join a session at any time, and the dialogs that they answer.
//!
//! The actor does not read what it publishes, so it cannot know what an answer says so far. While a run is under way it
//! asks the run, which answers by a run message: when that is taken, exactly what the answer describes has been published,
//! and the client is attached at that moment.
//!
//! Nothing is kept for clients that may join later. The loop answers wherever it waits for a model, a tool, a key or a pause. The
//! question costs a running answer one check between deltas.

use agentd_protocol::{
    Json,
    command::{LookParams, Messages},
    daemon::InFlight,
    event::Event,
    message::Message,
    permissions::PermissionResponseParams,
    ui::{ExtensionUiRequest, UiResponse},
};
use tokio::sync::oneshot;

use super::{session_actor::Actor, state::LONG_ANSWER_BYTES};
use crate::{
    event_log::{Audience, LongContent, SubscriberId},
    messages::Attached,
    reply::{Reply, encode},
    ui::{EndedDialog, UiAbilities, UiMessage},
};

impl Actor {
    /// Attaches a subscriber: at once where nothing can be in flight or nothing was missed, else when the run has answered.
    pub(super) fn attach(
        &mut self,
        since_seq: Option<u64>,
        before: Option<SubscriberId>,
        joined: oneshot::Sender<Attached>,
    ) {
        if let Some(seq) = since_seq
            && let Some(subscriber) = self.feed.attach_since(seq)
        {
            self.prompt_results.listen_as(before, subscriber.id());
            let (state, pending_ui) = (self.state_at_joining(), self.pending_ui());
            // The client may have left; then the attachment is dropped, which detaches it.
            let _ = joined.send(Attached {
                subscriber,
                seq,
                replayed: true,
                state,
                in_flight: None,
                message: None,
                pending_ui,
            });
            return;
        }
        self.joining.subscribers.push((before, joined));
        if !self.run.ask() {
            self.attach_joining(None);
        }
    }

    /// Answers with the messages of the context and, as pi does, with the answer that streams, which only the run
    /// knows. Clients that attach by a snapshot have that answer already. While the feed has no room the run cannot be
    /// asked, so that only stored messages are given.
    pub(super) fn get_messages(&mut self, params: LookParams, reply: Reply) {
        if !params.names_sessions && self.feed.has_room() && self.run.ask() {
            self.joining.messages.push(reply);
        } else {
            self.answer_messages(None, reply);
        }
    }

    /// Attaches and answers everyone who waits for what is in flight.
    pub(super) fn show_in_flight(&mut self, in_flight: Option<InFlight>) {
        for reply in std::mem::take(&mut self.joining.messages) {
            let so_far = in_flight.as_ref().and_then(|shown| shown.message.clone());
            self.answer_messages(so_far, reply);
        }
        self.answer_activities(in_flight.as_ref());
        self.attach_joining(in_flight);
    }

    /// Answers `get_messages` without the answer in flight where that was asked for before the feed became full: the run's
    /// reply waits behind its events, and a client that reads must not wait for one that does not.
    pub(super) fn answer_messages_while_full(&mut self) {
        let asked = std::mem::take(&mut self.joining.messages);
        let (own, others): (Vec<_>, Vec<_>) =
            asked.into_iter().partition(|reply| self.feed.is_full(reply.subscriber));
        self.joining.messages = own;
        for reply in others {
            self.answer_messages(None, reply);
        }
    }

    fn answer_messages(&self, so_far: Option<Json<Message>>, reply: Reply) {
        let messages: Vec<_> = self.journal.messages().iter().cloned().chain(so_far).collect();
        let bytes: usize = messages.iter().map(Json::text_len).sum();
        if bytes > LONG_ANSWER_BYTES {
            reply.long(&self.feed, LongContent::Messages(messages));
        } else {
            reply.data(&self.feed, Messages { messages });
        }
    }

    /// Attaches everyone who waits, here and now.
    fn attach_joining(&mut self, in_flight: Option<InFlight>) {
        let in_flight = in_flight.filter(|shown| shown.message.is_some() || !shown.tools.is_empty());
        for (before, joined) in std::mem::take(&mut self.joining.subscribers) {
            if joined.is_closed() {
                continue;
            }
            let subscriber = self.feed.attach();
            self.prompt_results.listen_as(before, subscriber.id());
            let _ = joined.send(Attached {
                subscriber,
                seq: self.feed.last_seq(),
                replayed: false,
                state: self.state_at_joining(),
                in_flight: in_flight.clone(),
                message: self.feed.open_message(),
                pending_ui: self.pending_ui(),
            });
            self.tell_early_notices();
        }
    }

    pub(super) fn on_ui_message(&mut self, message: UiMessage) {
        match message {
            // A dialog that is asked in a closing session gets its default: nobody answers any more.
            UiMessage::Ask { .. } if self.closing => {}
            UiMessage::Ask { request, line, audience, asker, answer } => {
                self.notify_hooks(&request.method);
                self.dialogs.add(request, asker, answer);
                self.feed.publish_for(audience, line);
            }
            UiMessage::Withdraw { id } => {
                let ended = self.dialogs.withdraw(&id);
                self.tell_ended(ended);
            }
            UiMessage::Tell { line, asker } => self.feed.publish_for(asker.audience(), line),
        }
    }

    /// An answer of a client. The first one counts; one to a dialog that is over, that another session asks, or that is not for
    /// clients of these `abilities`, is ignored.
    pub(super) fn on_ui_response(&mut self, response: UiResponse, by: String, abilities: UiAbilities) {
        let ended = self.dialogs.answer(&response, &by, abilities);
        self.tell_ended(ended);
    }

    /// An answer to a question about a call. Unlike other answers, one that comes too late is told so.
    pub(super) fn permission_response(&mut self, params: PermissionResponseParams, reply: Reply) {
        match self.dialogs.decide(params) {
            Ok(ended) => {
                self.tell_ended([ended]);
                reply.done(&self.feed);
            }
            Err(failure) => reply.fail(&self.feed, failure),
        }
    }

    /// Gives up every dialog: each is answered by its default.
    pub(super) fn give_up_dialogs(&mut self) {
        let ended = self.dialogs.clear();
        self.tell_ended(ended);
    }

    /// The dialogs that nobody has answered yet.
    fn pending_ui(&self) -> Vec<ExtensionUiRequest> {
        self.dialogs.list()
    }

    fn tell_ended(&self, ended: impl IntoIterator<Item = EndedDialog>) {
        for EndedDialog { resolved, was_permission } in ended {
            let audience = if was_permission { Audience::Permissions } else { Audience::Counting };
            match encode(&Event::from(resolved)) {
                Ok(line) => self.feed.publish_for(audience, line),
                Err(error) => tracing::error!(%error, "cannot write an event"),
            }
        }
    }
}
