//! The public interface: prepares images off the runtime's threads, in bounded memory.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use agentd_protocol::message::ImageContent;
use tokio::sync::Semaphore;

use crate::{
    Omission, Prepared,
    fit::Limits,
    job::{Job, Resized, Wish},
};

/// The largest file to pass to [`Images::prepare`], in bytes: 128 MiB.
pub const MAX_FILE_BYTES: u64 = 128 << 20;

/// The memory of all decoding in the process, in MiB. One image takes at most 704 of them.
const MEMORY_MIB: u32 = 768;

/// The least memory counted for an image, in MiB, which bounds the number of images at a time.
const LEAST_MIB: u32 = 32;

/// Prepares images for models: of a supported kind, upright, at most 2000 by 2000 pixels, in base64 shorter than 4.5
/// MiB. An image that fits already stays unchanged.
///
/// Clones share one memory limit, so a process should create one and clone it.
#[derive(Debug, Clone)]
pub struct Images {
    memory: Arc<Semaphore>,
    wish: Wish,
}

impl Default for Images {
    fn default() -> Self {
        Self { memory: Arc::new(Semaphore::new(MEMORY_MIB as usize)), wish: Wish::Fit(Limits::default()) }
    }
}

impl Images {
    /// The same memory limit for a caller that wants images resized, or left in their size and only converted from
    /// unsupported kinds.
    #[must_use]
    pub fn resizing(&self, resizes: bool) -> Self {
        Self {
            memory: Arc::clone(&self.memory),
            wish: if resizes { Wish::Fit(Limits::default()) } else { Wish::Convert },
        }
    }

    /// Prepares an image in `bytes`.
    ///
    /// # Errors
    /// Why the image is left out.
    ///
    /// Cancel safety: when dropped, the work ends soon, on its own thread.
    pub async fn prepare(&self, bytes: Vec<u8>) -> Result<Prepared, Omission> {
        let wish = self.wish;
        self.work(move || Job::of_bytes(bytes, wish), Job::run).await
    }

    /// Prepares an image of a message. Its media type is determined from the bytes; base64 may be in any usual form.
    ///
    /// # Errors
    /// As [`Images::prepare`], also for dropping.
    pub async fn prepare_content(&self, image: ImageContent) -> Result<Prepared, Omission> {
        let wish = self.wish;
        self.work(move || Job::of_base64(image.data, wish), Job::run).await
    }

    /// Resizes an image in base64, in the same memory.
    pub(crate) async fn work_on(&self, data: String, wish: Wish) -> Result<Resized, Omission> {
        self.work(move || Job::of_base64(data, wish), Job::resize).await
    }

    async fn work<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> Result<Job, Omission> + Send + 'static,
        run: fn(Job, Stop) -> Result<T, Omission>,
    ) -> Result<T, Omission> {
        let (job, memory) = blocking(move || {
            let job = job()?;
            let memory = job.memory()?;
            Ok((job, memory))
        })
        .await?;
        let mib = u32::try_from(memory >> 20).unwrap_or(u32::MAX).clamp(LEAST_MIB, MEMORY_MIB);
        let Ok(permit) = Arc::clone(&self.memory).acquire_many_owned(mib).await else {
            return Err(Omission::Unconvertible);
        };
        let left = Left(Arc::new(AtomicBool::new(false)));
        let nobody_waits = Arc::clone(&left.0);
        blocking(move || {
            // The memory is free when the thread is done, not when the caller stops waiting.
            let _permit = permit;
            run(job, Box::new(move || nobody_waits.load(Ordering::Relaxed)))
        })
        .await
    }
}

/// Returns whether the caller has stopped waiting.
type Stop = Box<dyn Fn() -> bool>;

/// Signals, when dropped, that the caller stopped waiting.
struct Left(Arc<AtomicBool>);

impl Drop for Left {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `work` off the runtime's threads. A decoder that panics cannot decode the image.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Omission> + Send + 'static,
) -> Result<T, Omission> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        tracing::error!(%error, "an image could not be worked on to the end");
        Err(Omission::Unconvertible)
    })
}

#[cfg(test)]
mod tests;
