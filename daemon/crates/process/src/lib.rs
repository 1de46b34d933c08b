//! Starts, watches and ends the processes that agentd owns; nothing else in agentd starts a process for a session.
//!
//! A [`Launcher`] serves the whole daemon, a [`ProcessGroup`] one session, a [`Process`] is one command. Every command runs under a
//! *supervisor*: a tiny process that is a subreaper, so that whatever the command forks, however it detaches itself, stays below the
//! supervisor and ends with it. A supervisor ends its processes on an order, or when the daemon's end of their socket closes, which
//! happens even when the daemon is killed outright. Supervisors are forked by the *guard*, a second run of the daemon's own program
//! (see [`run_guard`]) that stays small; one whose command left nothing behind takes the next command.
//!
//! The rest is for running shells: [`Shell`] for wherever a session's commands run, [`ShellRun`] for one command on this machine from
//! start to end, [`OutputTail`] for output of any length in bounded memory, [`OutputCleaner`] and [`TerminalText`] for terminal output
//! as plain text, [`BackgroundProcesses`] for commands that run beside others.
//!
//! This crate knows nothing of sessions, tools or models.

mod artifacts;
mod background;
mod bounded_text;
mod command;
mod frames;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzz;
mod group;
mod group_state;
mod idle_supervisors;
mod launcher;
mod limits;
#[cfg(target_os = "linux")]
mod linux;
mod listing;
mod output_pace;
mod output_storage;
mod output_sweep;
mod owner;
mod plain_text;
mod process;
mod responder;
mod session_shell;
mod shell;
mod shell_path;
mod shell_run;
mod shell_snapshot;
mod streams;
mod supervisor;
mod tail;
mod terminal;
mod terminal_text;
mod window;

pub use artifacts::{Artifact, ArtifactFolder, ArtifactPart};
pub use background::{
    AdoptedOutput, AdoptedProcess, BackgroundEnd, BackgroundError, BackgroundJob, BackgroundLimits,
    BackgroundProcess, BackgroundProcesses, BackgroundState, Delivery, DeliveryState, EndedBy, JobFacts,
    JobTerms, OutputExcerpt, OutputListener,
};
pub use bounded_text::{HALF_BYTES, HeadTailBuffer};
pub use command::{CommandSpec, CommandStreams, ExitStatus, SpawnError};
pub use group::ProcessGroup;
pub use launcher::{GuardCommand, Launcher};
pub use limits::{LimitReached, LimitedResource, ProcessLimits, ProcessSupport, raise_file_limit};
#[cfg(target_os = "linux")]
pub use linux::{CommandOrigin, OWNER_VARIABLE, Peer, PeerOrigin, run_guard};
pub use listing::{ProcessTable, ProcessView, RunningProcess};
pub use output_storage::{LogFileFacts, OutputMeter, OutputStorage};
pub use output_sweep::{OutputRetention, SweepMode, SweepResult, sweep_outputs};
pub use plain_text::{OutputCleaner, Utf8Stream};
pub use process::{Process, ProcessMark};
pub use session_shell::{SessionShell, ShellSession};
pub use shell::{CleanedOutput, CleanedRun, LocalShell, RunningCommand, Shell, ShellFuture, ShellJob};
pub use shell_path::resolve_shell;
pub use shell_run::{ShellCommand, ShellError, ShellOutcome, ShellRun, StopCause};
pub use shell_snapshot::{ShellSnapshot, sweep_shell_snapshots};
pub use streams::{InputPipe, OutputPipe};
pub use tail::{FullOutput, OutputTail};
pub use terminal::TerminalSize;
pub use terminal_text::TerminalText;
pub use window::{MAX_BYTES, MAX_LINES, TailWindow};
