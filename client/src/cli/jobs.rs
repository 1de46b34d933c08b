//! `agentctl jobs`.

use clap::{Args, Subcommand};
use clap_complete::ArgValueCompleter;

use crate::commands::complete::candidates;

/// The verbs of `agentctl jobs`.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Jobs {
    /// List the jobs of the sessions in the daemon's memory
    List(JobsListOptions),

    /// Print what a job has written
    Output(JobsOutputOptions),

    /// End a job with everything that it started
    Kill(JobsKillOptions),
}

const LIST_HELP: &str = "\
Examples:
  agentctl jobs list
  agentctl jobs list 0198c0de                  of one session
  agentctl jobs list --json | jq '.jobs[].id'

KIND is process for a command that the model runs beside its work, service for one that others use, subagent for an agent
that works for it. Jobs that have ended are listed, too, the last ones of each session.

Exit codes:
  0    done, also when there is no job
  1    no live session has the id, or several ids begin with it
  3    agentd is not running";

/// The flags of `agentctl jobs list`.
#[derive(Debug, Clone, Args)]
#[command(after_help = LIST_HELP)]
pub(crate) struct JobsListOptions {
    /// The id of a live session, or its beginning
    #[arg(value_name = "SESSION", add = ArgValueCompleter::new(candidates::live_sessions))]
    pub(crate) session: Option<String>,

    /// Print the jobs as JSON, each with its session
    #[arg(long)]
    pub(crate) json: bool,
}

const OUTPUT_HELP: &str = "\
Examples:
  agentctl jobs output bg-1                    the last lines
  agentctl jobs output bg-1 --all | less       all that was kept
  agentctl jobs output web --session 0198c0de

Exit codes:
  0    done
  1    no job has the id, or jobs of several sessions have it
  3    agentd is not running";

/// The flags of `agentctl jobs output`.
#[derive(Debug, Clone, Args)]
#[command(after_help = OUTPUT_HELP)]
pub(crate) struct JobsOutputOptions {
    /// The id of a job, or the name of a service
    #[arg(value_name = "JOB")]
    pub(crate) job: String,

    /// The live session that it works for: its id, or the beginning of it; default the only one that has it
    #[arg(long, value_name = "SESSION", add = ArgValueCompleter::new(candidates::live_sessions))]
    pub(crate) session: Option<String>,

    /// Print it from the beginning on, not only its last lines
    #[arg(long)]
    pub(crate) all: bool,
}

const KILL_HELP: &str = "\
Examples:
  agentctl jobs kill bg-1
  agentctl jobs kill web --session 0198c0de

It gets SIGTERM, and SIGKILL two seconds later. The model is told.

Exit codes:
  0    it has ended
  1    no job has the id, jobs of several sessions have it, or it survives SIGKILL
  3    agentd is not running";

/// The flags of `agentctl jobs kill`.
#[derive(Debug, Clone, Args)]
#[command(after_help = KILL_HELP)]
pub(crate) struct JobsKillOptions {
    /// The id of a job, or the name of a service
    #[arg(value_name = "JOB")]
    pub(crate) job: String,

    /// The live session that it works for: its id, or the beginning of it; default the only one that has it
    #[arg(long, value_name = "SESSION", add = ArgValueCompleter::new(candidates::live_sessions))]
    pub(crate) session: Option<String>,

    /// Print the job as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
