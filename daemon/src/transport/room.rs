//! The room for lines that have not ended, of all clients together. A line that stands still gives way to one that moves.

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

/// How long nothing has come of a line that gives way to another one.
const STANDS_STILL: Duration = Duration::from_secs(1);

/// The room for lines; cheap to clone, all clones are the same one.
#[derive(Debug, Clone)]
pub struct LineRoom(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    account: MemoryAccount,
    /// How long nothing may come of a line; `None`: as long as it likes.
    patience: Option<Duration>,
    places: Mutex<Vec<Weak<Place>>>,
    began: Instant,
}

#[derive(Debug)]
struct Place {
    reservation: Mutex<MemoryReservation>,
    /// When something came last, in milliseconds since the room is there.
    moved: AtomicU64,
    /// Whether the line has to give way; and what fires then.
    is_ousted: AtomicBool,
    ousted: Notify,
}

impl LineRoom {
    /// Room for as much as the account allows, and lines of which nothing comes for no longer than `patience`.
    #[must_use]
    pub fn new(account: MemoryAccount, patience: Option<Duration>) -> Self {
        Self::since(Instant::now(), account, patience)
    }

    fn since(began: Instant, account: MemoryAccount, patience: Option<Duration>) -> Self {
        let places = Mutex::default();
        Self(Arc::new(Shared { account, patience, places, began }))
    }

    /// Room for one client.
    #[must_use]
    pub fn enter(&self) -> ClientRoom {
        let reservation = Mutex::new(self.0.account.open(MemoryPurpose::Lines));
        let (moved, is_ousted) = (AtomicU64::new(0), AtomicBool::new(false));
        let place = Arc::new(Place { reservation, moved, is_ousted, ousted: Notify::new() });
        let mut places = self.0.places();
        places.retain(|place| place.strong_count() > 0);
        places.push(Arc::downgrade(&place));
        drop(places);
        ClientRoom { shared: Arc::clone(&self.0), place }
    }
}

impl Shared {
    fn places(&self) -> MutexGuard<'_, Vec<Weak<Place>>> {
        // Single changes of a list.
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Takes its room from the line that has stood still for the longest; false where all move.
    fn oust(&self, except: &Arc<Place>) -> bool {
        let still = self.now().saturating_sub(u64::try_from(STANDS_STILL.as_millis()).unwrap_or(u64::MAX));
        let places = self.places();
        let others = places.iter().filter_map(Weak::upgrade).filter(|place| !Arc::ptr_eq(place, except));
        let of_use = others.filter(|place| place.moved() <= still && place.reservation().charged() > 0);
        let Some(longest) = of_use.min_by_key(|place| place.moved()) else { return false };
        drop(places);
        // Its memory follows as soon as its task has its turn.
        longest.reservation().set(0);
        longest.is_ousted.store(true, Ordering::Release);
        longest.ousted.notify_one();
        true
    }
}

impl Place {
    fn reservation(&self) -> MutexGuard<'_, MemoryReservation> {
        // Its methods leave it whole at every point where they could panic.
        self.reservation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn moved(&self) -> u64 {
        self.moved.load(Ordering::Relaxed)
    }
}

/// Room for the line of one client; given back when it is dropped.
#[derive(Debug)]
pub struct ClientRoom {
    shared: Arc<Shared>,
    place: Arc<Place>,
}

impl ClientRoom {
    /// Asks for `bytes` in all, for a line that something has just come of.
    ///
    /// # Errors
    /// `limit_reached`, when lines that move have all the room that there is.
    pub fn grow_to(&self, bytes: usize) -> Result<(), Failure> {
        self.moves();
        loop {
            let grown = self.place.reservation().grow_to(bytes as u64);
            match grown {
                Ok(()) => return Ok(()),
                Err(MemoryRefused::Full { .. }) if self.shared.oust(&self.place) => {}
                Err(refused) => {
                    let text = format!("Failed to parse command: the line was given up: {refused}");
                    let hint = format!("The rest of the line was skipped. {}", refused.hint());
                    return Err(Failure::new(ErrorCode::LimitReached, text).hint(hint));
                }
            }
        }
    }

    /// Something has come of the line.
    pub fn moves(&self) {
        self.place.moved.store(self.shared.now(), Ordering::Relaxed);
    }

    /// The line has ended or was given up; so much is held of the next one.
    pub fn hold(&self, bytes: usize) {
        self.place.reservation().set(bytes as u64);
        self.place.is_ousted.store(false, Ordering::Release);
    }

    /// The same, where more is held for a line than there is of it any more.
    pub fn settle(&self, bytes: usize) {
        if bytes == 0 && self.place.reservation().charged() > 0 {
            self.hold(0);
        }
    }

    /// Waits until the line has to be given up: it stands still, for too long or in the way of others. Cancel safe; called again, the time begins
    /// anew.
    pub async fn over(&self) -> Failure {
        let too_long = async {
            match self.shared.patience {
                Some(patience) => tokio::time::sleep(patience).await,
                None => std::future::pending().await,
            }
        };
        let ousted = async {
            loop {
                self.place.ousted.notified().await;
                // It may have been meant for the line before.
                if self.place.is_ousted.load(Ordering::Acquire) {
                    break;
                }
            }
        };
        tokio::select! {
            () = ousted => {
                let text = "Failed to parse command: the line was given up: nothing more came, and the lines of other clients \
                            need the memory";
                Failure::new(ErrorCode::LimitReached, text)
                    .hint("The rest of the line was skipped. Send lines without a pause. The setting daemon.maxMemoryBytes sets the limit.")
            }
            () = too_long => {
                let millis = self.shared.patience.unwrap_or_default().as_millis();
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
    async fn a_line_that_stands_still_gives_way_and_one_that_moves_does_not() {
        let account = MemoryAccount::new(8 << 20, AddressSpace::unlimited());
        let began = Instant::now().checked_sub(10 * STANDS_STILL).unwrap();
        let room = LineRoom::since(began, account.clone(), None);
        let (still, moving, new) = (room.enter(), room.enter(), room.enter());
        still.grow_to(500 << 10).unwrap();
        moving.grow_to(500 << 10).unwrap();
        let refused = new.grow_to(300 << 10).unwrap_err();
        assert!(refused.hint.unwrap().contains("daemon.maxMemoryBytes"));
        still.place.moved.store(0, Ordering::Relaxed);
        new.grow_to(300 << 10).unwrap();
        assert_eq!(still.over().await.code, ErrorCode::LimitReached);
        still.hold(0);
        assert!(account.used(MemoryPurpose::Lines) > 600 << 10);
        new.grow_to(900 << 10).unwrap_err();
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_comes_for_too_long() {
        let room = LineRoom::new(MemoryAccount::default(), Some(Duration::from_secs(60)));
        let failure = room.enter().over().await;
        assert!(failure.error.contains("60000 ms") && failure.hint.unwrap().contains("daemon.lineIdleMs"));
    }
}
