//! `clean_outputs`: removes long outputs that are too old or too large together.

use agentd_config::temp_dir;
use agentd_process::{OutputRetention, SweepMode, sweep_outputs};
use agentd_protocol::{
    error::{ErrorCode, Failure},
    storage::{CleanOutputsParams, CleanedOutputs},
};

use super::Context;
use crate::daemon_limits::{DaemonLimits, days};

/// Handles the command. Blocks.
///
/// # Errors
/// When the folder of sessions cannot be read.
pub(super) fn clean(context: &Context, params: &CleanOutputsParams) -> Result<CleanedOutputs, Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        Failure::new(ErrorCode::Io, format!("cannot look for long outputs: {error}"))
    };
    let agent_dir = context.agent_dir().map_err(|error| failed(&error))?;
    let usual = DaemonLimits::load(&context.environment, context.compat, &context.cwd).outputs;
    let bounds = OutputRetention {
        age: params.older_than_days.map_or(usual.age, days),
        bytes: params.max_bytes.unwrap_or(usual.bytes),
    };
    let mode = if params.dry_run == Some(true) { SweepMode::Try } else { SweepMode::Remove };
    let temporary = temp_dir(&context.environment);
    let swept = sweep_outputs(&agent_dir.sessions_dir(), Some(&temporary), bounds, mode);
    let swept = swept.map_err(|error| failed(&error))?;
    Ok(CleanedOutputs {
        removed: swept.removed,
        removed_bytes: swept.removed_bytes,
        left: swept.left,
        left_bytes: swept.left_bytes,
    })
}
