//! The features of `bash` beyond its plain form, from the setting `bash`.

use std::{fmt, num::NonZeroU16, pin::Pin, sync::Arc, time::Duration};

use agentd_process::{
    BackgroundLimits, BackgroundProcess, BackgroundProcesses, LocalShell, SessionShell, ShellSession,
    TerminalSize,
};
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
    /// Commands can be jobs.
    pub jobs: Option<JobsFeature>,
    /// Commands get variables that keep programs from asking and paging.
    pub non_interactive: bool,
    /// Commands can name their working directory.
    pub cwd: bool,
    /// Commands can set environment variables.
    pub env: bool,
    /// What commands may touch. Commands can ask to run outside of it: the hooks let the user decide that.
    pub sandbox: Option<Arc<SandboxPolicy>>,
    /// Commands run in one shell that stays.
    pub session: Option<SessionShell>,
    /// Some commands are refused in favour of other tools.
    pub interception: Option<Interception>,
}

/// How commands run in the background.
#[derive(Clone)]
pub struct BackgroundFeature {
    /// The background processes of the session.
    pub list: BackgroundProcesses,
    /// The shell that starts them.
    pub shell: LocalShell,
    /// Limits for each of them, and for all together.
    pub limits: BackgroundLimits,
    /// Keeps the session's record of them.
    pub recorder: Arc<dyn JobRecorder>,
}

impl fmt::Debug for BackgroundFeature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BackgroundFeature").field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// Commands that go on beside the run, and whose end the session's model is told.
#[derive(Debug, Clone)]
pub struct JobsFeature {
    /// How they run.
    pub processes: BackgroundFeature,
    /// The time after which a command that is waited for becomes one; `None`: never.
    pub auto_after: Option<Duration>,
    /// Whether the end of one begins a run while the session is idle.
    pub wakes: bool,
}

/// The switches of a session's jobs.
#[derive(Debug, Clone, Copy, Default)]
pub struct JobsSwitch {
    /// Whether commands can be jobs.
    pub is_on: bool,
    /// Whether the end of one begins a run while the session is idle.
    pub wakes: bool,
}

/// What becomes of a record, or a sentence why it could not be made.
pub type Recorded<'a> = Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>>;

/// Keeps a session's record of its jobs, so that none is forgotten when the daemon ends.
pub trait JobRecorder: Send + Sync {
    /// A background process began. One that is a job is on record when this returns. Cancel safe.
    fn began(&self, process: Arc<BackgroundProcess>) -> Recorded<'_>;
}

impl BashFeatures {
    /// The features that the setting enables on this machine. `list` holds the session's background processes, of which `recorder` is told;
    /// `session` is its shell that stays.
    #[must_use]
    pub fn of(
        setting: Option<&BashSettings>,
        (list, recorder): (&BackgroundProcesses, &Arc<dyn JobRecorder>),
        (shell, session): (&LocalShell, &ShellSession),
        is_active: IsActive,
        jobs: JobsSwitch,
    ) -> Self {
        let plain = BashSettings::default();
        let setting = setting.unwrap_or(&plain);
        let is_on = |switch: Option<bool>| switch.unwrap_or(false);
        let usual = TerminalSize::default();
        let size = TerminalSize {
            rows: setting.rows.map_or(usual.rows, NonZeroU16::get),
            cols: setting.cols.map_or(usual.cols, NonZeroU16::get),
        };
        let whole = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let limits = BackgroundLimits {
            running: setting.max_background.map_or(8, |most| whole(most.get().into())),
            keep_bytes: whole(setting.keep_bytes.unwrap_or(128 << 10).min(MOST_KEPT)),
            file_bytes: setting.file_bytes.unwrap_or(64 << 20),
        };
        let processes = || BackgroundFeature {
            list: list.clone(),
            shell: shell.clone(),
            limits,
            recorder: Arc::clone(recorder),
        };
        let threshold = setting.auto_background.as_ref().and_then(|auto| auto.threshold_ms).unwrap_or(0);
        let default_timeout = setting.timeout_ms.map(|time| Duration::from_millis(time.get().into()));
        Self {
            default_timeout: default_timeout.map(|time| time.min(MAX_TIMEOUT)),
            pty: is_on(setting.pty).then_some(size),
            background: is_on(setting.background).then(processes),
            jobs: jobs.is_on.then(|| JobsFeature {
                processes: processes(),
                auto_after: (threshold > 0).then(|| Duration::from_millis(threshold)),
                wakes: jobs.wakes,
            }),
            non_interactive: is_on(setting.non_interactive),
            cwd: is_on(setting.cwd),
            env: is_on(setting.env),
            sandbox: shell.sandbox.clone(),
            session: is_on(setting.session)
                .then(|| SessionShell { local: shell.clone(), session: session.clone() }),
            interception: Interception::of(setting.intercept.as_ref(), is_active),
        }
    }
}
