//! The features of `bash` beyond its plain form, from the setting `bash`.

use std::{num::NonZeroU16, sync::Arc, time::Duration};

use agentd_process::{BackgroundLimits, BackgroundProcesses, LocalShell, TerminalSize};
use agentd_protocol::settings::BashSettings;
use agentd_sandbox::SandboxPolicy;

use super::{
    intercept::{Interception, IsActive},
    timeout::MAX_TIMEOUT,
};

/// The most bytes of output kept in memory for each background process: 16 MiB.
const MOST_KEPT: u64 = 16 << 20;

/// The features of `bash` beyond its plain form; none by default.
#[derive(Debug, Clone, Default)]
pub struct BashFeatures {
    /// How long a command may take whose call says nothing about it.
    pub default_timeout: Option<Duration>,
    /// Commands can run on a terminal, of this size by default.
    pub pty: Option<TerminalSize>,
    /// Commands can run in the background.
    pub background: Option<BackgroundFeature>,
    /// Commands can name their working directory.
    pub cwd: bool,
    /// Commands can set environment variables.
    pub env: bool,
    /// What commands may touch. Commands can ask to run outside of it: the hooks let the user decide that.
    pub sandbox: Option<Arc<SandboxPolicy>>,
    /// Some commands are refused in favour of other tools.
    pub interception: Option<Interception>,
}

/// How commands run in the background.
#[derive(Debug, Clone)]
pub struct BackgroundFeature {
    /// The background processes of the session.
    pub list: BackgroundProcesses,
    /// The shell that starts them.
    pub shell: LocalShell,
    /// Limits for each of them, and for all together.
    pub limits: BackgroundLimits,
}

impl BashFeatures {
    /// The features that the setting enables on this machine. `list` holds the session's background processes.
    #[must_use]
    pub fn of(
        setting: Option<&BashSettings>,
        list: &BackgroundProcesses,
        shell: &LocalShell,
        is_active: IsActive,
    ) -> Self {
        let Some(setting) = setting else {
            return Self { sandbox: shell.sandbox.clone(), ..Self::default() };
        };
        let is_on = |switch: Option<bool>| switch.unwrap_or(false);
        let plain = TerminalSize::default();
        let size = TerminalSize {
            rows: setting.rows.map_or(plain.rows, NonZeroU16::get),
            cols: setting.cols.map_or(plain.cols, NonZeroU16::get),
        };
        let whole = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let limits = BackgroundLimits {
            running: setting.max_background.map_or(8, |most| whole(most.get().into())),
            keep_bytes: whole(setting.keep_bytes.unwrap_or(128 << 10).min(MOST_KEPT)),
            file_bytes: setting.file_bytes.unwrap_or(64 << 20),
        };
        let default_timeout = setting.timeout_ms.map(|time| Duration::from_millis(time.get().into()));
        Self {
            default_timeout: default_timeout.map(|time| time.min(MAX_TIMEOUT)),
            pty: is_on(setting.pty).then_some(size),
            background: is_on(setting.background).then(|| BackgroundFeature {
                list: list.clone(),
                shell: shell.clone(),
                limits,
            }),
            cwd: is_on(setting.cwd),
            env: is_on(setting.env),
            sandbox: shell.sandbox.clone(),
            interception: Interception::of(setting.intercept.as_ref(), is_active),
        }
    }
}
