//! Where long outputs go, and a count of what is written there.

use std::{
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use agentd_files::fail_point::{self, Point};
use tokio::sync::Notify;

use crate::artifacts::{ArtifactFolder, CreatedFile, new_file, random};

/// Where outputs go that are too long to show.
#[derive(Debug, Clone)]
pub struct OutputStorage {
    folder: StorageFolder,
    /// Bytes kept of one output.
    limit: u64,
    meter: OutputMeter,
}

#[derive(Debug, Clone)]
enum StorageFolder {
    /// A temporary folder, cleaned up by the system: files `pi-bash-<16 hex digits>.log`.
    Temporary(PathBuf),
    /// The session's own folder.
    Session(ArtifactFolder),
}

/// Facts about the file of an output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogFileFacts {
    /// Its path, once there is one: when the output was too long for memory, unless it goes to the file from its first byte on.
    pub path: Option<PathBuf>,
    /// The id of the artifact that it is, in the session's folder.
    pub artifact_id: Option<String>,
    /// How many bytes of the output it has, from the beginning.
    pub bytes: u64,
    /// Why it could not be created, or written any further.
    pub failure: Option<std::io::ErrorKind>,
}

impl From<&Path> for OutputStorage {
    fn from(folder: &Path) -> Self {
        Self::of(StorageFolder::Temporary(folder.to_owned()))
    }
}

impl From<ArtifactFolder> for OutputStorage {
    fn from(folder: ArtifactFolder) -> Self {
        Self::of(StorageFolder::Session(folder))
    }
}

impl OutputStorage {
    fn of(folder: StorageFolder) -> Self {
        Self { folder, limit: u64::MAX, meter: OutputMeter::default() }
    }

    /// The same storage with a limit: at most `limit` bytes of each output are kept, and `meter` counts what is
    /// written.
    #[must_use]
    pub fn limited(self, limit: u64, meter: OutputMeter) -> Self {
        Self { limit, meter, ..self }
    }

    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    pub(crate) fn meter(&self) -> &OutputMeter {
        &self.meter
    }

    /// Creates a file that did not exist before and that only its owner can read. Blocks.
    pub(crate) fn create(&self) -> io::Result<CreatedFile> {
        fail_point::call(Point::SpillCreate)?;
        match &self.folder {
            StorageFolder::Temporary(folder) => {
                let path = folder.join(format!("pi-bash-{:016x}.log", random()));
                Ok(CreatedFile { file: new_file(&path)?, path, id: None })
            }
            StorageFolder::Session(folder) => folder.create(),
        }
    }
}

impl OutputStorage {
    /// Keeps a content that is whole already, at most as much of it as of any output; where it is found. Blocks.
    ///
    /// # Errors
    /// The system's.
    pub fn store(&self, content: &[u8]) -> io::Result<PathBuf> {
        let CreatedFile { mut file, path, .. } = self.create()?;
        let kept = usize::try_from(self.limit).map_or(content, |limit| &content[..content.len().min(limit)]);
        file.write_all(kept)?;
        self.meter.add(kept.len() as u64);
        Ok(path)
    }
}

/// Counts the bytes that all outputs write together. Cheap to clone; all clones share one count.
#[derive(Debug, Clone, Default)]
pub struct OutputMeter(Arc<Counter>);

#[derive(Debug, Default)]
struct Counter {
    bytes: AtomicU64,
    /// The count that a caller waits for; 0 while none waits.
    wanted: AtomicU64,
    news: Notify,
}

impl OutputMeter {
    pub(crate) fn add(&self, bytes: u64) {
        let now = self.0.bytes.fetch_add(bytes, Ordering::AcqRel) + bytes;
        let wanted = self.0.wanted.load(Ordering::Acquire);
        if wanted > 0 && now >= wanted {
            self.0.news.notify_one();
        }
    }

    /// Waits until `bytes` have been written since it last returned, then restarts the count. For one waiting caller.
    /// Cancel safe.
    pub async fn grown_by(&self, bytes: u64) {
        self.0.wanted.store(bytes.max(1), Ordering::Release);
        while self.0.bytes.load(Ordering::Acquire) < bytes.max(1) {
            self.0.news.notified().await;
        }
        self.0.bytes.store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use crate::output_storage::*;

    #[tokio::test]
    async fn growth_wakes_the_waiting_caller() {
        let meter = OutputMeter::default();
        meter.add(5);
        meter.grown_by(5).await;
        let waiting = tokio::spawn({
            let meter = meter.clone();
            async move { meter.grown_by(10).await }
        });
        tokio::task::yield_now().await;
        meter.add(4);
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        meter.add(6);
        waiting.await.unwrap();
    }
}
