//! Returns free heap memory to the system after sessions were unloaded. glibc does not return fragmented free memory by itself,
//! so call `malloc_trim`.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// Sessions that are unloaded within this time share one trim.
const DELAY: Duration = Duration::from_secs(1);

/// Trims the heap once for many unloaded sessions.
#[derive(Debug, Clone, Default)]
pub(super) struct HeapTrimmer {
    is_scheduled: Arc<AtomicBool>,
}

impl HeapTrimmer {
    /// Trims the heap after [`DELAY`].
    pub(super) fn trim_soon(&self) {
        if self.is_scheduled.swap(true, Ordering::AcqRel) {
            return;
        }
        let is_scheduled = Arc::clone(&self.is_scheduled);
        // Detached: at the end of the process the system gets everything anyway.
        tokio::spawn(async move {
            tokio::time::sleep(DELAY).await;
            is_scheduled.store(false, Ordering::Release);
            trim_heap().await;
        });
    }
}

/// Trims the heap now, on a thread for blocking work.
pub(super) async fn trim_heap() {
    if let Err(error) = tokio::task::spawn_blocking(malloc_trim).await {
        tracing::error!(%error, "memory could not be given back");
    }
}

/// Takes some milliseconds on a large heap.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "there is no safe way to ask the C library for this")]
fn malloc_trim() {
    // SAFETY: it may be called at any time and from any thread, and touches only what is free.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Other allocators do it by themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn malloc_trim() {}

/// Makes all threads allocate from at most `count` arenas. By default glibc makes eight for each core, one by one for threads as they come:
/// each keeps what its threads have freed, and reserves 64 MiB of address space, used or not. For `main`, before there are other threads.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "there is no safe way to tell the C library")]
pub fn limit_arenas(count: u8) {
    // SAFETY: it sets a number of the allocator, under its own lock.
    if unsafe { libc::mallopt(libc::M_ARENA_MAX, count.into()) } == 0 {
        tracing::warn!("the allocator does not keep to {count} arenas");
    }
}

/// Other allocators do not reserve an arena for each thread.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn limit_arenas(_count: u8) {}
