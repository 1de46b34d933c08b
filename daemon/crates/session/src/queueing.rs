//! Messages that wait: taken in, taken back, and kept over a crash by the intent log.

use agentd_agent::queue::{QueueKind, Ticket};
use agentd_protocol::{
    command::{Disposition, Image},
    message::ImageContent,
    session::InterruptMode,
};
use agentd_store::intent_log::{IntentRecord, QueuedRecord};

use crate::{
    actor::Actor,
    commands::shutting_down,
    journal::store_failure,
    queues::Delivered,
    reply::Reply,
    requests::{CachedAnswer, PendingRequest},
    run_slot::{FinishedRun, NextUserMessage},
};

impl Actor {
    /// Lets a message wait, once the intent log knows of it.
    pub(crate) async fn take_queued(
        &mut self,
        kind: QueueKind,
        text: String,
        images: Vec<Image>,
        request: PendingRequest,
    ) {
        if self.closing {
            return self.refuse(request, shutting_down());
        }
        if let Err(failure) = self.check_waiting(&text, &images) {
            return self.refuse(request, failure);
        }
        let images: Vec<ImageContent> = images.into_iter().map(Into::into).collect();
        let about = self.queues.about(kind, &text, &images, request.key());
        if let Err(error) = self.journal.intent_log().intend(vec![IntentRecord::Queued(about)]).await {
            return self.refuse(request, store_failure(&error));
        }
        self.queues.push(kind, text, images, request.key().cloned(), &self.feed);
        self.accept(request, Disposition::Queued);
        if kind == QueueKind::Steering && self.interrupt_mode == InterruptMode::Immediate {
            self.interrupt_tools();
        }
    }

    /// Takes all messages back. Nothing comes of them, so that their keys are free again.
    pub(crate) async fn clear_queue(&mut self, reply: Reply) {
        if self.held_back.forget() {
            self.journal.intent_log().note(IntentRecord::Unqueued).await;
        } else {
            self.forget_waiting().await;
        }
        let (cleared, keys) = self.queues.clear(&self.feed);
        for key in keys {
            self.requests.forget(&key);
        }
        reply.data(&self.feed, cleared);
    }

    /// What waits is to be forgotten, after a crash as well.
    pub(crate) async fn forget_waiting(&self) {
        if self.queues.len() > 0 {
            self.journal.intent_log().note(IntentRecord::Unqueued).await;
        }
    }

    /// A message is about to be an entry; false when it waits no longer.
    pub(crate) fn deliver(&mut self, ticket: Ticket) -> bool {
        let delivered = self.queues.deliver(ticket, &self.feed);
        let waits = delivered.is_some();
        let record = delivered.as_ref().and_then(Delivered::record);
        self.run.comes_next(NextUserMessage { record, delivered });
        waits
    }

    /// There is no run any more. What it took out of a queue and did not store waits again.
    pub(crate) async fn finish_run(&mut self) -> Option<FinishedRun> {
        let mut finished = self.run.finish()?;
        if let Some(undelivered) = finished.undelivered.take() {
            self.wait_again(undelivered).await;
        }
        Some(finished)
    }

    /// A message that was taken out of its queue is no entry.
    pub(crate) async fn wait_again(&mut self, delivered: Delivered) {
        let about = self.queues.put_back(delivered, &self.feed);
        self.journal.intent_log().note(IntentRecord::Queued(about)).await;
    }

    /// Messages that waited when the daemon was killed wait again; who sends them once more is answered as before.
    pub(crate) fn let_wait(&mut self, messages: Vec<QueuedRecord>) {
        for key in self.queues.restore(messages) {
            // Nobody waits for an answer yet.
            let _ = self.requests.answer(key, CachedAnswer::Accepted(Disposition::Queued));
        }
    }
}
