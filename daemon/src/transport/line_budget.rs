//! The memory for unfinished lines of all clients together. A line that has stalled gives its memory to one that grows.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use agentd_memory::{MemoryAccount, MemoryPurpose, MemoryRefused, MemoryReservation};
use agentd_protocol::error::{ErrorCode, Failure};
use tokio::sync::Notify;

use crate::limits::STALLED_LINE;

/// The memory for unfinished lines; all clones share it.
#[derive(Debug, Clone)]
pub struct LineBudget(Arc<SharedBudget>);

#[derive(Debug)]
struct SharedBudget {
    account: MemoryAccount,
    /// The longest pause within a line; `None`: any.
    timeout: Option<Duration>,
    lines: Mutex<Vec<Weak<LineState>>>,
    began: Instant,
}

#[derive(Debug)]
struct LineState {
    reservation: Mutex<MemoryReservation>,
    /// When the line last grew, in milliseconds since `began`.
    grew: AtomicU64,
    /// Whether the memory of the line went to another one.
    is_revoked: AtomicBool,
    revoked: Notify,
}

impl LineBudget {
    /// A budget of as much as the account allows, for lines that pause no longer than `timeout`.
    #[must_use]
    pub fn new(account: MemoryAccount, timeout: Option<Duration>) -> Self {
        Self::since(Instant::now(), account, timeout)
    }

    fn since(began: Instant, account: MemoryAccount, timeout: Option<Duration>) -> Self {
        let lines = Mutex::default();
        Self(Arc::new(SharedBudget { account, timeout, lines, began }))
    }

    /// The part of one client.
    #[must_use]
    pub fn client(&self) -> ClientLineBudget {
        let reservation = Mutex::new(self.0.account.open(MemoryPurpose::Lines));
        let (grew, is_revoked) = (AtomicU64::new(0), AtomicBool::new(false));
        let line = Arc::new(LineState { reservation, grew, is_revoked, revoked: Notify::new() });
        let mut lines = self.0.lines();
        lines.retain(|line| line.strong_count() > 0);
        lines.push(Arc::downgrade(&line));
        drop(lines);
        ClientLineBudget { shared: Arc::clone(&self.0), line }
    }
}

impl SharedBudget {
    fn lines(&self) -> MutexGuard<'_, Vec<Weak<LineState>>> {
        // Additions and removals leave the list whole.
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Takes the memory of the line that has stalled for the longest; false where all lines grow.
    fn revoke(&self, except: &Arc<LineState>) -> bool {
        let latest = self.now().saturating_sub(u64::try_from(STALLED_LINE.as_millis()).unwrap_or(u64::MAX));
        let lines = self.lines();
        let others = lines.iter().filter_map(Weak::upgrade).filter(|line| !Arc::ptr_eq(line, except));
        let stalled = others.filter(|line| line.grew() <= latest && line.reservation().charged() > 0);
        let Some(longest) = stalled.min_by_key(|line| line.grew()) else { return false };
        drop(lines);
        // The task of the line frees the memory at its next poll.
        longest.reservation().set(0);
        longest.is_revoked.store(true, Ordering::Release);
        longest.revoked.notify_one();
        true
    }
}

impl LineState {
    fn reservation(&self) -> MutexGuard<'_, MemoryReservation> {
        // Its methods leave it whole at every point where they could panic.
        self.reservation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn grew(&self) -> u64 {
        self.grew.load(Ordering::Relaxed)
    }
}

/// The memory for the unfinished line of one client; returned when it is dropped.
#[derive(Debug)]
pub struct ClientLineBudget {
    shared: Arc<SharedBudget>,
    line: Arc<LineState>,
}

impl ClientLineBudget {
    /// Reserves `bytes` in all for a line that has just grown.
    ///
    /// # Errors
    /// `limit_reached` when lines that grow have all the memory.
    pub fn grow_to(&self, bytes: usize) -> Result<(), Failure> {
        self.note_growth();
        loop {
            let grown = self.line.reservation().grow_to(bytes as u64);
            match grown {
                Ok(()) => return Ok(()),
                Err(MemoryRefused::Full { .. }) if self.shared.revoke(&self.line) => {}
                Err(refused) => {
                    let text = format!("Failed to parse command: the line was given up: {refused}");
                    let hint = format!("The rest of the line was skipped. {}", refused.hint());
                    return Err(Failure::new(ErrorCode::LimitReached, text).hint(hint));
                }
            }
        }
    }

    /// Notes that the line has grown.
    pub fn note_growth(&self) {
        self.line.grew.store(self.shared.now(), Ordering::Relaxed);
    }

    /// Notes that the line has ended or was given up, and that `bytes` of the next one are held.
    pub fn hold(&self, bytes: usize) {
        self.line.reservation().set(bytes as u64);
        self.line.is_revoked.store(false, Ordering::Release);
    }

    /// As [`Self::hold`], where no bytes are held but some are charged.
    pub fn settle(&self, bytes: usize) {
        if bytes == 0 && self.line.reservation().charged() > 0 {
            self.hold(0);
        }
    }

    /// Waits until the line has to be given up: it pauses for too long, or its memory went to another line. Cancel safe; a new call
    /// begins a new timeout.
    pub async fn given_up(&self) -> Failure {
        let too_long = async {
            match self.shared.timeout {
                Some(timeout) => tokio::time::sleep(timeout).await,
                None => std::future::pending().await,
            }
        };
        let revoked = async {
            loop {
                self.line.revoked.notified().await;
                // The notification may be of the line before.
                if self.line.is_revoked.load(Ordering::Acquire) {
                    break;
                }
            }
        };
        tokio::select! {
            () = revoked => {
                let text = "Failed to parse command: the line was given up: nothing more came, and the lines of other clients \
                            need the memory";
                Failure::new(ErrorCode::LimitReached, text)
                    .hint("The rest of the line was skipped. Send lines without a pause. The setting daemon.maxMemoryBytes sets the limit.")
            }
            () = too_long => {
                let millis = self.shared.timeout.unwrap_or_default().as_millis();
                let text = format!(
                    "Failed to parse command: the line was given up: it has no end, and nothing came for {millis} ms"
                );
                Failure::limit(text, "daemon.lineIdleMs", "The rest of the line was skipped.")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use agentd_memory::AddressSpace;

    use super::*;

    #[tokio::test]
    async fn a_stalled_line_gives_its_memory_to_another_and_a_growing_one_does_not() {
        let account = MemoryAccount::new(8 << 20, AddressSpace::unlimited());
        let began = Instant::now().checked_sub(10 * STALLED_LINE).unwrap();
        let budget = LineBudget::since(began, account.clone(), None);
        let (still, moving, new) = (budget.client(), budget.client(), budget.client());
        still.grow_to(500 << 10).unwrap();
        moving.grow_to(500 << 10).unwrap();
        let refused = new.grow_to(300 << 10).unwrap_err();
        assert!(refused.hint.unwrap().contains("daemon.maxMemoryBytes"));
        still.line.grew.store(0, Ordering::Relaxed);
        new.grow_to(300 << 10).unwrap();
        assert_eq!(still.given_up().await.code, ErrorCode::LimitReached);
        still.hold(0);
        assert!(account.used(MemoryPurpose::Lines) > 600 << 10);
        new.grow_to(900 << 10).unwrap_err();
    }

    #[tokio::test(start_paused = true)]
    async fn a_line_that_pauses_for_too_long_is_given_up() {
        let budget = LineBudget::new(MemoryAccount::default(), Some(Duration::from_secs(60)));
        let failure = budget.client().given_up().await;
        assert!(failure.error.contains("60000 ms") && failure.hint.unwrap().contains("daemon.lineIdleMs"));
    }
}
