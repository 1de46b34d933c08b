//! Files that extensions change by themselves, in turn with the tools of the session and with each other.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use agentd_extensions::{CallResponder, HostFailure};
use agentd_tools::FileQueue;
use serde_json::json;
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;

/// The most files that extensions hold and wait for.
const MAX_LOCKS: usize = 10_000;

/// The files that extensions hold or wait for, by the token of each. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct FileLocks(Arc<Mutex<Held>>);

#[derive(Default)]
struct Held {
    last: u64,
    /// What gives each back.
    by_token: HashMap<u64, oneshot::Sender<()>>,
}

impl FileLocks {
    /// Waits in a task for the turn to change a file, and answers with its token. The turn ends with [`Self::release`], or with the host.
    pub(crate) fn acquire(
        &self,
        queue: &FileQueue,
        path: PathBuf,
        responder: CallResponder,
        tasks: &TaskTracker,
    ) {
        let (release, mut released) = oneshot::channel();
        let token = {
            let mut held = self.lock();
            if held.by_token.len() >= MAX_LOCKS {
                drop(held);
                return responder
                    .send(&Err(HostFailure::new("too_large", "The extensions hold too many files.")));
            }
            held.last += 1;
            let token = held.last;
            held.by_token.insert(token, release);
            token
        };
        let entry = LockEntry { locks: self.clone(), token };
        // Before the task begins: the order is that of the calls.
        let ticket = queue.ticket();
        tasks.spawn(async move {
            let _entry = entry;
            let host_over = responder.host_over().clone();
            let entered = tokio::select! {
                entered = ticket.enter(path) => entered,
                () = responder.cancelled().cancelled() => {
                    return responder.send(&Err(HostFailure::new("failed", "Operation aborted")));
                }
                () = host_over.cancelled() => return,
            };
            let _turn = match entered {
                Ok(turn) => turn,
                Err(error) => return responder.send(&Err(HostFailure::new("failed", error.to_string()))),
            };
            responder.send(&Ok(json!({"token": token})));
            tokio::select! {
                _ = &mut released => {}
                () = host_over.cancelled() => {}
            }
        });
    }

    /// Gives a file back.
    pub(crate) fn release(&self, token: u64) {
        if let Some(release) = self.lock().by_token.remove(&token) {
            // Its task may have ended with the host.
            let _ = release.send(());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        // No method panics halfway.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps a token while its file is held or waited for.
struct LockEntry {
    locks: FileLocks,
    token: u64,
}

impl Drop for LockEntry {
    fn drop(&mut self) {
        self.locks.lock().by_token.remove(&self.token);
    }
}
