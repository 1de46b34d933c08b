//! Sending one kind of message through a channel that carries several kinds.

use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::sync::mpsc;

/// Sends messages of type `T` through a channel that carries them as one of its kinds, so that the sender does not know the
/// other kinds. Costs an allocation for each message: not for events that stream. Cheap to clone.
pub(crate) struct MessageSender<T>(Arc<dyn Fn(T) -> BoxFuture<'static, ()> + Send + Sync>);

impl<T: Send + 'static> MessageSender<T> {
    /// `wrap` makes a message of the channel.
    pub(crate) fn new<M: Send + 'static>(channel: &mpsc::Sender<M>, wrap: fn(T) -> M) -> Self {
        let channel = channel.clone();
        Self(Arc::new(move |message| {
            let channel = channel.clone();
            Box::pin(async move {
                // Without the receiver the message is dropped, and with it the sender of its answer.
                let _ = channel.send(wrap(message)).await;
            })
        }))
    }

    /// Waits for room in the channel. A message to a session that is gone is dropped.
    pub(crate) async fn send(&self, message: T) {
        (self.0)(message).await;
    }
}

impl<T> Clone for MessageSender<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}
