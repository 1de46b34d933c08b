//! The bound of the kernels of the daemon: one that has nothing to do makes room for another.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// The kernels of all sessions. Cheap to clone; all clones are the same.
#[derive(Debug, Clone, Default)]
pub struct KernelPool(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    kernels: Mutex<Kernels>,
    tasks: TaskTracker,
}

#[derive(Debug, Default)]
struct Kernels {
    next: u64,
    list: Vec<PooledKernel>,
}

#[derive(Debug)]
struct PooledKernel {
    id: u64,
    used: Instant,
    is_busy: bool,
    /// Fires when it has to make room.
    evicted: CancellationToken,
}

/// A kernel's place in the pool. Dropped, it is free.
#[derive(Debug)]
pub(crate) struct Place {
    id: u64,
    pool: KernelPool,
    /// Fires when the kernel has to make room.
    pub(crate) evicted: CancellationToken,
}

impl KernelPool {
    /// A pool whose kernels' tasks belong to `tasks`.
    #[must_use]
    pub fn new(tasks: TaskTracker) -> Self {
        Self(Arc::new(Inner { kernels: Mutex::default(), tasks }))
    }

    /// Runs a task of a kernel.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.0.tasks.spawn(task);
    }

    /// A place for a kernel that is about to work. Where there are `most`, the one that has been idle for longest makes room.
    ///
    /// # Errors
    /// A sentence: all of them work.
    pub(crate) fn place(&self, most: usize) -> Result<Place, String> {
        let mut kernels = self.lock();
        while kernels.list.len() >= most.max(1) {
            let idle = kernels.list.iter().enumerate().filter(|(_, kernel)| !kernel.is_busy);
            let Some((oldest, _)) = idle.min_by_key(|(_, kernel)| kernel.used) else {
                return Err(format!(
                    "No kernel can be started: {} work already, and more are not permitted at a time (setting eval.maxKernels). Try again \
                     when one of them is done.",
                    kernels.list.len()
                ));
            };
            kernels.list.remove(oldest).evicted.cancel();
        }
        kernels.next += 1;
        let (id, evicted) = (kernels.next, CancellationToken::new());
        kernels.list.push(PooledKernel { id, used: Instant::now(), is_busy: true, evicted: evicted.clone() });
        Ok(Place { id, pool: self.clone(), evicted })
    }

    fn lock(&self) -> MutexGuard<'_, Kernels> {
        // No holder panics halfway.
        self.0.kernels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// The kernel works, or has nothing to do. False where it has lost its place meanwhile.
    pub(crate) fn works(&self, is_busy: bool) -> bool {
        let mut kernels = self.pool.lock();
        let Some(kernel) = kernels.list.iter_mut().find(|kernel| kernel.id == self.id) else { return false };
        (kernel.is_busy, kernel.used) = (is_busy, Instant::now());
        true
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.pool.lock().list.retain(|kernel| kernel.id != self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_that_is_idle_for_longest_makes_room() {
        let pool = KernelPool::default();
        let (first, second) = (pool.place(2).unwrap(), pool.place(2).unwrap());
        let error = pool.place(2).unwrap_err();
        assert!(error.contains("2 work already") && error.contains("eval.maxKernels"), "{error}");
        assert!(second.works(false) && first.works(false));
        let third = pool.place(2).unwrap();
        assert!(second.evicted.is_cancelled() && !first.evicted.is_cancelled());
        assert!(!second.works(true), "its place is taken");
        drop(second);
        assert!(first.works(true));
        drop(third);
        assert!(pool.place(2).is_ok(), "a place is free again");
    }
}
