//! What happens to sessions, on its way to a client that watches them all.

use std::sync::Arc;

use agentd_protocol::{
    daemon::{SessionChanged, SessionOpened},
    event::Event,
};
use async_stream::stream;
use bytes::Bytes;
use futures::Stream;
use tokio_util::sync::CancellationToken;

use super::following::Batch;
use crate::hub::{SessionChange, SessionRegistry, SessionWatcher};

/// A piece of news.
pub(super) enum Told {
    /// A finished event.
    Line(Bytes),
    /// The session is closed.
    Closed(Arc<str>),
}

/// Sessions that are to be watched.
pub(super) struct Watching {
    pub(super) registry: Arc<SessionRegistry>,
    pub(super) watcher: SessionWatcher,
    /// Fires when they are watched no longer.
    pub(super) leaving: CancellationToken,
}

impl Watching {
    /// The news, until they are watched no longer.
    pub(super) fn batches(self) -> impl Stream<Item = Batch> + Send {
        let Self { registry, watcher, leaving } = self;
        stream! {
            while let Some(news) = leaving.run_until_cancelled(watcher.next()).await {
                let mut told = Vec::with_capacity(news.len());
                for (id, news) in news {
                    if matches!(news, SessionChange::Closed | SessionChange::Reopened) {
                        told.push(Told::Closed(Arc::clone(&id)));
                    }
                    if news != SessionChange::Closed && let Some(line) = line(&registry, &id, news) {
                        told.push(Told::Line(line));
                    }
                }
                yield Batch::News(told);
            }
            yield Batch::Unwatched;
        }
    }
}

/// `None` for a session that was closed meanwhile, of which the next batch tells.
fn line(registry: &SessionRegistry, id: &str, news: SessionChange) -> Option<Bytes> {
    let session = registry.get(id)?.info();
    let event = match news {
        SessionChange::Changed => Event::from(SessionChanged { session }),
        SessionChange::Opened | SessionChange::Reopened | SessionChange::Closed => {
            Event::from(SessionOpened { session })
        }
    };
    match serde_json::to_vec(&event) {
        Ok(line) => Some(line.into()),
        Err(error) => {
            tracing::error!(%error, "cannot write an event");
            None
        }
    }
}
