//! Keeps the long outputs of sessions within their bounds: when a daemon begins, and when much was written.

use std::path::{Path, PathBuf};

use agentd_config::{AgentDir, Environment, temp_dir};
use agentd_process::{OutputMeter, OutputRetention, SweepMode, sweep_outputs};
use tokio_util::task::AbortOnDropHandle;

/// How much is written at most before it is looked at again whether all is within bounds.
const MUCH: u64 = 64 << 20;

/// Where outputs are.
struct Place {
    sessions: PathBuf,
    temporary: PathBuf,
}

/// When to look for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum First {
    /// At once.
    Now,
    /// When much was written.
    Later,
}

/// Removes what is too old or too much, beside everything else, for as long as what this gives is there.
#[must_use]
pub(super) fn keep_within(
    bounds: OutputRetention,
    meter: OutputMeter,
    (environment, compat, cwd): (&Environment, bool, &Path),
    first: First,
) -> Option<AbortOnDropHandle<()>> {
    // Without an agent directory there is nothing to look for.
    let agent_dir = AgentDir::find(environment, compat, cwd).ok()?;
    let (sessions, temporary) = (agent_dir.sessions_dir(), temp_dir(environment));
    let much = (bounds.bytes / 8).clamp(1, MUCH);
    Some(AbortOnDropHandle::new(tokio::spawn(async move {
        if first == First::Later {
            meter.grown_by(much).await;
        }
        loop {
            let place = Place { sessions: sessions.clone(), temporary: temporary.clone() };
            // A sweep that has begun is done, whatever ends meanwhile.
            if let Err(error) = tokio::task::spawn_blocking(move || place.sweep(bounds)).await {
                tracing::error!(%error, "a sweep of old outputs broke down");
            }
            meter.grown_by(much).await;
        }
    })))
}

impl Place {
    fn sweep(&self, bounds: OutputRetention) {
        match sweep_outputs(&self.sessions, Some(&self.temporary), bounds, SweepMode::Remove) {
            Ok(swept) if swept.removed > 0 => tracing::info!(?swept, "removed old outputs"),
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "cannot look for old outputs"),
        }
    }
}
