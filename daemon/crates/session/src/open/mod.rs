//! Making a session: settings, models, keys, the file, the tools; then its actor.

mod error;
mod prepare;
mod target;

use std::sync::Arc;

use tokio::{sync::mpsc, task::JoinSet};
use tokio_util::sync::CancellationToken;

pub use error::OpenError;
pub use target::locate;

use self::prepare::{Prepared, prepare};
use crate::{
    SessionOptions,
    actor::Actor,
    attach::Joining,
    feed::{DEFAULT_FEED_BYTES, Feed},
    handle::{AbortSwitch, INBOX, SessionHandle},
    queues::SessionQueues,
    run_slot::RunSlot,
    shared::Services,
    step::STEPS,
    summary::SummaryBoard,
    user_bash::UserBash,
};

/// A session that was opened.
pub struct Opened {
    /// The way in.
    pub handle: SessionHandle,
    /// What to tell the user: a sentence each.
    pub warnings: Vec<String>,
}

/// Opens a session and starts its actor.
///
/// # Errors
/// [`OpenError`]; nothing was written then, but for folders that were missing.
pub async fn open(services: Arc<Services>, options: SessionOptions) -> Result<Opened, OpenError> {
    let prepared = {
        let services = Arc::clone(&services);
        tokio::task::spawn_blocking(move || prepare(&services, &options)).await??
    };
    let Prepared { shared, journal, chooser, modes, warnings } = prepared;
    let feed = Feed::new(DEFAULT_FEED_BYTES);
    let (inbox, commands) = mpsc::channel(INBOX);
    let (steps, taken) = mpsc::channel(STEPS);
    let (abort, closing) = (AbortSwitch::default(), CancellationToken::new());
    let summary = SummaryBoard::new(journal.tree());
    let handle = SessionHandle {
        id: shared.session_id.as_str().into(),
        feed: feed.clone(),
        inbox,
        abort: abort.clone(),
        summary: summary.subscribe(),
        closing: closing.clone(),
    };
    let actor = Actor {
        shared: Arc::new(shared),
        feed,
        journal,
        queues: SessionQueues::new(modes.0, modes.1),
        chooser,
        run: RunSlot::default(),
        user_bash: UserBash::default(),
        abort,
        steps,
        tasks: JoinSet::new(),
        idle_waiters: Vec::new(),
        joining: Joining::default(),
        summary,
        stopped_tools: Vec::new(),
        closing: false,
    };
    // The actor ends when it is closed or when the last handle is gone. Listeners are told even if a bug ends it.
    let end = handle.feed.close_at_the_end();
    services.tasks.spawn(async move {
        actor.run(commands, taken, closing).await;
        drop(end);
    });
    Ok(Opened { handle, warnings })
}
