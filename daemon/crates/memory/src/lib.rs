//! One account of the memory that a process takes for what others send it: lines that have not ended, commands and
//! messages that wait, answers that run. Each alone is bounded; the account bounds what all of them take together.
//!
//! It counts what would be taken and refuses what passes the limit. It never waits, and frees nothing itself.

mod address_space;
mod purpose;
mod refused;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

pub use address_space::AddressSpace;
pub use purpose::MemoryPurpose;
pub use refused::MemoryRefused;

/// What is charged at once, in bytes, so that a user that grows in small steps touches the account rarely.
const STEP: u64 = 64 << 10;

/// The part of the process's memory that there is for each purpose: together five eighths of it, as what was taken is copied while it is worked on.
const PART: u64 = 8;

/// How often what was taken is there again while it is worked on: parsed, copied into an event, written to a file.
const COPIES: u64 = 4;

/// The account; cheap to clone, all clones are the same one. The default has no limit.
#[derive(Debug, Clone, Default)]
pub struct MemoryAccount(Arc<Books>);

#[derive(Debug)]
struct Books {
    /// For each purpose, in bytes; the largest value is no limit.
    limits: [u64; MemoryPurpose::ALL.len()],
    used: [AtomicU64; MemoryPurpose::ALL.len()],
    address_space: AddressSpace,
}

impl Default for Books {
    fn default() -> Self {
        Self {
            limits: [u64::MAX; MemoryPurpose::ALL.len()],
            used: Default::default(),
            address_space: AddressSpace::unlimited(),
        }
    }
}

impl MemoryAccount {
    /// The account of a process that is to take `memory_bytes` at most, in this address space. An eighth of that is for each purpose.
    /// [`u64::MAX`] is no limit.
    #[must_use]
    pub fn new(memory_bytes: u64, address_space: AddressSpace) -> Self {
        let memory_bytes = memory_bytes.min(address_space.limit().unwrap_or(u64::MAX));
        let each = if memory_bytes == u64::MAX { u64::MAX } else { memory_bytes / PART };
        Self(Arc::new(Books {
            limits: [each; MemoryPurpose::ALL.len()],
            used: Default::default(),
            address_space,
        }))
    }

    /// A user of the account, who has taken nothing yet.
    #[must_use]
    pub fn open(&self, purpose: MemoryPurpose) -> MemoryReservation {
        MemoryReservation { account: self.clone(), purpose, charged: 0 }
    }

    /// What is charged for a purpose, in bytes.
    #[must_use]
    pub fn used(&self, purpose: MemoryPurpose) -> u64 {
        self.0.used[purpose.place()].load(Ordering::Relaxed)
    }

    /// What can be charged for a purpose, in bytes; the largest value is no limit.
    #[must_use]
    pub fn limit(&self, purpose: MemoryPurpose) -> u64 {
        self.0.limits[purpose.place()]
    }
}

/// What one user has taken; given back when it is dropped.
#[derive(Debug)]
pub struct MemoryReservation {
    account: MemoryAccount,
    purpose: MemoryPurpose,
    charged: u64,
}

impl MemoryReservation {
    /// Takes as much as it needs to have `bytes` in all; never gives anything back. Costs a comparison where what was taken
    /// is enough.
    ///
    /// # Errors
    /// When all users together would pass the limit, or the system would soon give no more. What was taken before stays.
    pub fn grow_to(&mut self, bytes: u64) -> Result<(), MemoryRefused> {
        let wanted = self.charge_for(bytes);
        if wanted <= self.charged {
            return Ok(());
        }
        self.account.0.address_space.check(bytes, COPIES)?;
        let (more, limit) = (wanted - self.charged, self.account.limit(self.purpose));
        let used = &self.account.0.used[self.purpose.place()];
        let added = used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(more).filter(|sum| *sum <= limit)
        });
        match added {
            Ok(_) => {
                self.charged = wanted;
                Ok(())
            }
            Err(used) => Err(MemoryRefused::Full { purpose: self.purpose, used, limit }),
        }
    }

    /// Has `bytes` from here on, whatever the limit: for what is there already, and for less.
    pub fn set(&mut self, bytes: u64) {
        let wanted = self.charge_for(bytes);
        let used = &self.account.0.used[self.purpose.place()];
        if wanted > self.charged {
            used.fetch_add(wanted - self.charged, Ordering::Relaxed);
        } else {
            used.fetch_sub(self.charged - wanted, Ordering::Relaxed);
        }
        self.charged = wanted;
    }

    /// What is charged, in bytes.
    #[must_use]
    pub fn charged(&self) -> u64 {
        self.charged
    }

    fn charge_for(&self, bytes: u64) -> u64 {
        bytes.saturating_sub(self.purpose.free()).div_ceil(STEP).saturating_mul(STEP)
    }
}

impl Drop for MemoryReservation {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn account(memory: u64) -> MemoryAccount {
        MemoryAccount::new(memory, AddressSpace::unlimited())
    }

    #[test]
    fn all_users_together_have_a_limit_and_small_ones_are_free() {
        let account = account(8 << 20);
        assert_eq!(account.limit(MemoryPurpose::Lines), 1 << 20);
        let (mut one, mut other) = (account.open(MemoryPurpose::Lines), account.open(MemoryPurpose::Lines));
        one.grow_to(64 << 10).unwrap();
        assert_eq!(account.used(MemoryPurpose::Lines), 0);
        one.grow_to(1 << 20).unwrap();
        assert_eq!(account.used(MemoryPurpose::Lines), 15 * STEP);
        other.grow_to(128 << 10).unwrap();
        let refused = other.grow_to(129 << 10).unwrap_err();
        assert_eq!(
            refused,
            MemoryRefused::Full { purpose: MemoryPurpose::Lines, used: 1 << 20, limit: 1 << 20 }
        );
        assert!(refused.to_string().contains("1048576") && refused.hint().contains("daemon.maxMemoryBytes"));
        // Others have a share of their own.
        account.open(MemoryPurpose::Answers).grow_to(2 << 20).unwrap();
        drop(one);
        other.grow_to(1 << 20).unwrap();
        drop(other);
        assert_eq!(MemoryPurpose::ALL.map(|purpose| account.used(purpose)), [0; 5]);
    }

    #[test]
    fn without_a_limit_everything_is_taken() {
        let mut all = MemoryAccount::default().open(MemoryPurpose::Queues);
        all.grow_to(1 << 50).unwrap();
        assert_eq!(account(u64::MAX).limit(MemoryPurpose::Queues), u64::MAX);
    }

    proptest! {
        /// The account is what its users have, and never more than its limit by what they ask for.
        #[test]
        fn it_adds_up(asks in prop::collection::vec((0..4_usize, 0..3_000_000_u64, any::<bool>()), 0..60)) {
            let account = account(32 << 20);
            let mut users: Vec<MemoryReservation> = (0..4).map(|_| account.open(MemoryPurpose::Answers)).collect();
            for (user, bytes, is_set) in asks {
                if is_set {
                    users[user].set(bytes.min(1 << 20));
                } else if users[user].grow_to(bytes).is_ok() {
                    prop_assert!(users[user].charged() + MemoryPurpose::Answers.free() >= bytes);
                }
                let sum: u64 = users.iter().map(MemoryReservation::charged).sum();
                prop_assert_eq!(account.used(MemoryPurpose::Answers), sum);
                prop_assert!(sum <= account.limit(MemoryPurpose::Answers));
            }
        }
    }
}
