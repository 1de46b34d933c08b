//! AttachQueue a session at any time: what it is at one point of its events, and every event from there.
//!
//! The actor does not read what it publishes, so it cannot know what an answer says so far. While a run is under way it
//! asks the run, and the run answers by a step: when that is taken, exactly what the answer describes has been published,
//! and whoever asked is attached at that moment.

use agentd_protocol::{
    Json,
    command::{LookParams, Messages},
    daemon::InFlight,
    message::Message,
    session::SessionState,
    ui::ExtensionUiRequest,
};
use tokio::sync::oneshot;

use crate::{actor::Actor, feed::Subscriber, reply::Reply};

/// What a subscriber that joins gets.
pub struct Attached {
    /// Gives every event after `seq`, none twice, none missing.
    pub subscriber: Subscriber,
    /// The number of the last event before those; 0 before the first.
    pub seq: u64,
    /// Whether `seq` is what was asked for, so that nothing was missed.
    pub replayed: bool,
    /// The state: at `seq`, or, where missed events follow, at the last event of all.
    pub state: SessionState,
    /// What was being produced at `seq`; `None` when nothing was, and where missed events follow.
    pub in_flight: Option<InFlight>,
    /// Questions to the user that nobody has answered yet: at `seq`, or, where missed events follow, as of now, so that they
    /// may be among those, too.
    pub pending_ui: Vec<ExtensionUiRequest>,
}

/// Who waits until the run has said what is in flight, or is over.
#[derive(Default)]
pub(crate) struct AttachQueue {
    /// To be attached.
    subscribers: Vec<oneshot::Sender<Attached>>,
    /// To be told the messages, with the answer so far.
    messages: Vec<Reply>,
}

impl AttachQueue {
    pub(crate) fn is_empty(&self) -> bool {
        self.subscribers.is_empty() && self.messages.is_empty()
    }
}

impl Actor {
    /// Attaches a subscriber: at once where nothing can be in flight or nothing was missed, else when the run has answered.
    pub(crate) fn attach(&mut self, since_seq: Option<u64>, joined: oneshot::Sender<Attached>) {
        if let Some(seq) = since_seq
            && let Some(subscriber) = self.feed.attach_since(seq)
        {
            let (state, pending_ui) = (self.state(), self.pending_ui());
            // Whoever asked may have left; what is sent is dropped then, and with it detached.
            let _ =
                joined.send(Attached { subscriber, seq, replayed: true, state, in_flight: None, pending_ui });
            return;
        }
        self.joining.subscribers.push(joined);
        if !self.run.ask() {
            self.attach_joining(None);
        }
    }

    /// Answers with the messages of the context, the answer that streams included: the run knows that one. Whoever joined in
    /// the middle of it has it already. While there is no room for what the run says it cannot be asked, and the messages are
    /// those that are stored.
    pub(crate) async fn get_messages(&mut self, params: LookParams, reply: Reply) {
        if !params.names_sessions && self.feed.has_room() && self.run.ask() {
            self.joining.messages.push(reply);
        } else {
            self.answer_messages(None, reply).await;
        }
    }

    /// Attaches and answers everyone who waits for what is in flight.
    pub(crate) async fn show_in_flight(&mut self, in_flight: Option<InFlight>) {
        for reply in std::mem::take(&mut self.joining.messages) {
            let so_far = in_flight.as_ref().and_then(|shown| shown.message.clone());
            self.answer_messages(so_far, reply).await;
        }
        self.attach_joining(in_flight);
    }

    async fn answer_messages(&self, so_far: Option<Json<Message>>, reply: Reply) {
        let messages: Vec<_> = self.journal.messages().iter().cloned().chain(so_far).collect();
        let bytes = messages.iter().map(|message| message.text().len()).sum();
        self.answer_list(bytes, reply, move || Ok(Messages { messages })).await;
    }

    /// Attaches everyone who waits, here and now.
    fn attach_joining(&mut self, in_flight: Option<InFlight>) {
        let in_flight = in_flight.filter(|shown| shown.message.is_some() || !shown.tools.is_empty());
        for joined in std::mem::take(&mut self.joining.subscribers) {
            if joined.is_closed() {
                continue;
            }
            let _ = joined.send(Attached {
                subscriber: self.feed.attach(),
                seq: self.feed.last_seq(),
                replayed: false,
                state: self.state(),
                in_flight: in_flight.clone(),
                pending_ui: self.pending_ui(),
            });
        }
    }
}
