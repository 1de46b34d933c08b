//! Asks sessions what they are doing, for one client that watches them and wants to know.
//!
//! Sessions at work are asked once a second, others when something about them has changed. So the sessions themselves count and
//! publish nothing for this, and while no client asks, or nothing works, nothing happens at all.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use agentd_protocol::daemon::{ActivityState, SessionActivity};
use futures::future::join_all;
use tokio::time::{Instant, sleep_until, timeout};

use crate::hub::{SessionChange, SessionRegistry};

/// The shortest time between two questions.
const INTERVAL: Duration = Duration::from_secs(1);

/// How long a session may take to answer. One that slow clients hold up is asked again.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(500);

/// The sessions that one client watches, with what it knows of them.
pub(super) struct ActivitySampler {
    /// What the client was told last.
    told: HashMap<Arc<str>, SessionActivity>,
    /// The sessions to ask: at work when they were last asked, changed since, or without an answer.
    due: HashSet<Arc<str>>,
    /// When they may be asked.
    next: Instant,
}

impl ActivitySampler {
    /// Asks all sessions in memory; gives their answers, which the client is told, and what goes on from there.
    pub(super) async fn start(registry: &SessionRegistry) -> (Vec<SessionActivity>, Self) {
        let live = registry.known().into_iter().filter(|session| session.loaded().is_some());
        let due = live.map(|session| Arc::clone(session.id())).collect();
        let mut sampler = Self { told: HashMap::new(), due, next: Instant::now() };
        (sampler.sample(registry).await, sampler)
    }

    /// Notes the change of a session.
    pub(super) fn note(&mut self, id: &Arc<str>, change: SessionChange) {
        if change == SessionChange::Closed {
            self.told.remove(id);
            self.due.remove(id);
        } else {
            self.due.insert(Arc::clone(id));
        }
    }

    /// Waits until a session does something else than the client was told, or got on with it. Cancel safe.
    pub(super) async fn next(&mut self, registry: &SessionRegistry) -> Vec<SessionActivity> {
        loop {
            if self.due.is_empty() {
                // The next change makes one due, and the caller waits again then.
                std::future::pending::<()>().await;
            }
            sleep_until(self.next).await;
            let news = self.sample(registry).await;
            if !news.is_empty() {
                return news;
            }
        }
    }

    /// Asks the sessions that are due; gives what differs from what the client was told.
    async fn sample(&mut self, registry: &SessionRegistry) -> Vec<SessionActivity> {
        let asked = self.due.iter().filter_map(|id| {
            let handle = registry.get(id)?.loaded()?;
            let id = Arc::clone(id);
            Some(async move { (id, timeout(ANSWER_TIMEOUT, handle.activity()).await) })
        });
        let answers = join_all(asked).await;
        self.next = Instant::now() + INTERVAL;
        let mut still_due = HashSet::new();
        let mut news = Vec::new();
        for (id, answer) in answers {
            match answer {
                // Held up by a slow client.
                Err(_) => {
                    still_due.insert(id);
                }
                // Ended, or unloaded: `session_changed` or `session_closed` says so.
                Ok(None) => {
                    self.told.remove(&id);
                }
                Ok(Some(activity)) => {
                    if is_at_work(&activity) {
                        still_due.insert(Arc::clone(&id));
                    }
                    if self.told.get(&id) != Some(&activity) {
                        self.told.insert(id, activity.clone());
                        news.push(activity);
                    }
                }
            }
        }
        self.due = still_due;
        news
    }
}

/// Whether a session may do something else without a change that its watchers hear of: background processes end, too.
fn is_at_work(activity: &SessionActivity) -> bool {
    activity.state != ActivityState::Idle || activity.commands > 0
}
