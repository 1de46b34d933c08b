//! Removes long outputs of sessions that are too old or too large together: when a daemon starts, and after much was written.

use std::path::{Path, PathBuf};

use agentd_config::{AgentDir, Environment, temp_dir};
use agentd_process::{OutputMeter, OutputRetention, SweepMode, sweep_outputs, sweep_shell_snapshots};
use tokio_util::task::AbortOnDropHandle;

/// Bytes of new outputs after which the next sweep follows at the latest.
const SWEEP_EVERY_BYTES: u64 = 64 << 20;

/// The folders with outputs.
struct OutputFolders {
    sessions: PathBuf,
    temporary: PathBuf,
}

/// When the first sweep is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FirstSweep {
    /// At once.
    Now,
    /// After much was written.
    Later,
}

/// Sweeps outputs beside everything else, until the returned handle is dropped.
#[must_use]
pub(super) fn sweep_in_background(
    retention: OutputRetention,
    meter: OutputMeter,
    (environment, compat, cwd): (&Environment, bool, &Path),
    first: FirstSweep,
) -> Option<AbortOnDropHandle<()>> {
    // Without an agent directory there are no outputs.
    let agent_dir = AgentDir::find(environment, compat, cwd).ok()?;
    let (sessions, temporary) = (agent_dir.sessions_dir(), temp_dir(environment));
    let step = (retention.bytes / 8).clamp(1, SWEEP_EVERY_BYTES);
    Some(AbortOnDropHandle::new(tokio::spawn(async move {
        if first == FirstSweep::Later {
            meter.grown_by(step).await;
        }
        loop {
            let folders = OutputFolders { sessions: sessions.clone(), temporary: temporary.clone() };
            // A sweep that has begun goes on when this task is aborted.
            if let Err(error) = tokio::task::spawn_blocking(move || folders.sweep(retention)).await {
                tracing::error!(%error, "a sweep of old outputs broke down");
            }
            meter.grown_by(step).await;
        }
    })))
}

impl OutputFolders {
    fn sweep(&self, retention: OutputRetention) {
        match sweep_outputs(&self.sessions, Some(&self.temporary), retention, SweepMode::Remove) {
            Ok(swept) if swept.removed > 0 => tracing::info!(?swept, "removed old outputs"),
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "cannot look for old outputs"),
        }
        sweep_shell_snapshots(&self.temporary);
    }
}
