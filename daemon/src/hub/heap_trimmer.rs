//! Memory that is free goes back to the system when sessions have left it. The C library alone keeps it: between the pieces
//! that are still in use, for as long as the process lives.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// Sessions that leave together are cleaned up after together.
const TOGETHER: Duration = Duration::from_secs(1);

/// Sees to it that memory is given back, once for many sessions.
#[derive(Debug, Clone, Default)]
pub(super) struct HeapTrimmer {
    is_due: Arc<AtomicBool>,
}

impl HeapTrimmer {
    /// Gives memory back in a second.
    pub(super) fn trim_soon(&self) {
        if self.is_due.swap(true, Ordering::AcqRel) {
            return;
        }
        let is_due = Arc::clone(&self.is_due);
        // Nobody waits for it: at the end of the process the system gets everything.
        tokio::spawn(async move {
            tokio::time::sleep(TOGETHER).await;
            is_due.store(false, Ordering::Release);
            if let Err(error) = tokio::task::spawn_blocking(trim_heap).await {
                tracing::error!(%error, "memory could not be given back");
            }
        });
    }
}

/// Takes some milliseconds where there is much to look through.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "there is no safe way to ask the C library for this")]
pub(super) fn trim_heap() {
    // SAFETY: it may be called at any time and from any thread, and touches only what is free.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Other allocators do it by themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(super) fn trim_heap() {}

/// Lets all threads take memory from one place. The C library gives each thread 64 MiB of address space for itself, used or not:
/// where that has a limit, little would be left of it. For `main`, before there are other threads.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "there is no safe way to tell the C library")]
pub fn share_one_arena() {
    // SAFETY: it sets a number of the allocator, under its own lock.
    if unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) } == 0 {
        tracing::warn!("the allocator does not keep to one arena");
    }
}

/// Other allocators have no such habit.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn share_one_arena() {}
