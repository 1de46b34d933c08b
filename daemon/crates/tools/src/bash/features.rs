//! What `bash` offers beyond its plain form, as the setting `bash` has it.

use std::num::NonZeroU16;

use agentd_process::{BackgroundLimits, BackgroundProcesses, LocalShell, TerminalSize};
use agentd_protocol::settings::BashSettings;

use super::intercept::{Interception, IsActive};

/// The most bytes of output that are kept in memory of a background process.
const MOST_KEPT: u64 = 16 << 20;

/// What `bash` offers beyond its plain form; by default, nothing.
#[derive(Debug, Clone, Default)]
pub struct BashFeatures {
    /// Commands can run on a terminal, of this size unless they say another.
    pub pty: Option<TerminalSize>,
    /// Commands can run in the background.
    pub background: Option<BackgroundFeature>,
    /// Commands can name the folder that they run in.
    pub cwd: bool,
    /// Commands can be given variables.
    pub env: bool,
    /// Some commands are refused in favour of other tools.
    pub interception: Option<Interception>,
}

/// How commands run in the background.
#[derive(Debug, Clone)]
pub struct BackgroundFeature {
    /// The background processes of the session.
    pub list: BackgroundProcesses,
    /// What starts them.
    pub shell: LocalShell,
    /// How much each of them, and all together, may take.
    pub limits: BackgroundLimits,
}

impl BashFeatures {
    /// What the setting asks for, on this machine. `list` holds the background processes of the session.
    #[must_use]
    pub fn of(
        setting: Option<&BashSettings>,
        list: &BackgroundProcesses,
        shell: &LocalShell,
        is_active: IsActive,
    ) -> Self {
        let Some(setting) = setting else { return Self::default() };
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
        Self {
            pty: is_on(setting.pty).then_some(size),
            background: is_on(setting.background).then(|| BackgroundFeature {
                list: list.clone(),
                shell: shell.clone(),
                limits,
            }),
            cwd: is_on(setting.cwd),
            env: is_on(setting.env),
            interception: Interception::of(setting.intercept.as_ref(), is_active),
        }
    }
}
