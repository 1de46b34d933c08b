//! Starts, watches and ends the processes that agentd owns; nothing else in agentd starts a process for a session.
//!
//! A [`Launcher`] serves the whole daemon, a [`ProcessGroup`] one session, a [`Process`] is one command. Every command
//! lives in a *scope*: a tiny process that is a subreaper, so that whatever the command forks, however it detaches
//! itself, stays below the scope, and goes with it. A scope ends its processes when it is told to or when the daemon's
//! end of their socket closes, which happens even when the daemon is killed outright. Scopes are forked by the *guard*,
//! a second run of the daemon's own program (see [`run_guard`]) that stays small.
//!
//! The rest is what running a shell needs: [`Shell`] for wherever a session's commands run, [`ShellRun`] for one command
//! on this machine from start to end, [`OutputTail`] for output of any length in bounded memory, [`OutputCleaner`] and
//! [`TerminalText`] for terminal output as plain text, [`BackgroundProcesses`] for commands that go on while others run.
//!
//! This crate knows nothing of sessions, tools or models.

mod artifacts;
mod background;
mod clean;
mod cleaned_run;
mod command;
mod decode;
mod drain;
mod file_limit;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzz;
mod group;
mod halves;
mod input;
mod launcher;
mod limits;
#[cfg(target_os = "linux")]
mod linux;
mod listing;
mod mechanisms;
mod operations;
mod output;
mod output_meter;
mod owner;
mod process;
mod responder;
mod scope;
mod shell;
mod shell_run;
mod spill;
mod streams;
mod suffix;
mod tail;
mod terminal;
mod terminal_text;
mod window;
mod wire;

pub use artifacts::{
    Artifact, ArtifactFolder, ArtifactPart, OutputRetention, OutputStorage, SweepMode, SweepResult,
    sweep_outputs,
};
pub use background::{
    BackgroundEnd, BackgroundError, BackgroundJob, BackgroundLimits, BackgroundProcess, BackgroundProcesses,
    BackgroundState, EndedBy, LogFileFacts, OutputExcerpt,
};
pub use clean::OutputCleaner;
pub use cleaned_run::{CleanedOutput, CleanedRun};
pub use command::{CommandSpec, ExitStatus, SpawnError};
pub use decode::Utf8Stream;
pub use file_limit::raise_file_limit;
pub use group::ProcessGroup;
pub use halves::{HALF_BYTES, HeadTailBuffer};
pub use input::InputPipe;
pub use launcher::{GuardCommand, Launcher};
pub use limits::{LimitReached, LimitedResource, ProcessLimits};
#[cfg(target_os = "linux")]
pub use linux::{CommandOrigin, Peer, PeerOrigin, run_guard};
pub use listing::{ProcessTable, ProcessView, RunningProcess};
pub use mechanisms::ProcessSupport;
pub use operations::{LocalShell, RunningCommand, Shell, ShellFuture, ShellJob};
pub use output::OutputPipe;
pub use output_meter::OutputMeter;
pub use owner::OWNER_VARIABLE;
pub use process::Process;
pub use shell::{ShellError, resolve_shell};
pub use shell_run::{ShellCommand, ShellOutcome, ShellRun, StopCause};
pub use streams::CommandStreams;
pub use tail::{FullOutput, OutputTail};
pub use terminal::TerminalSize;
pub use terminal_text::TerminalText;
pub use window::{MAX_BYTES, MAX_LINES, TailWindow};
