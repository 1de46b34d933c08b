//! `agentctl policy`.

use std::path::PathBuf;

use agentd_protocol::settings::PermissionPreset;
use clap::{Args, Subcommand, builder::PossibleValuesParser};

/// The verbs of `agentctl policy`.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Policy {
    /// Say whether a shell command would run, be asked about, or be refused, and why
    Check(PolicyCheckOptions),

    /// Compare the verdicts about the examples of a file with those wanted there
    Test(PolicyTestOptions),
}

const CHECK_HELP: &str = "\
Examples:
  agentctl policy check -- 'git log | head'
  agentctl policy check --permissions workspace -- 'cd /tmp && rm -rf x'
  agentctl policy check --permissions full --rules team.json --json -- 'git push'

Counts what a session in the folder would count: the permissions of settings.json, with --permissions in the place of their preset, the
.agentd/policy.json of the project where that is trusted, and the rules of FILE besides:
{\"rules\": [{\"tool\": \"bash\", \"command\": \"git push *\", \"action\": \"ask\"}]}. Runs nothing, and needs no daemon. Put -- before the command, and the command in quotes, or your shell takes it apart first.

Exit codes:
  0    it would run
  1    a file or a rule cannot be used
  2    the command line cannot be used
  3    agentd is missing or broke down
  6    it would be refused
  7    the user would be asked";

/// The flags of `agentctl policy check`.
#[derive(Debug, Clone, Args)]
#[command(after_help = CHECK_HELP)]
pub(crate) struct PolicyCheckOptions {
    /// The shell command
    #[arg(value_name = "COMMAND", required = true, last = true)]
    pub(crate) command: Vec<String>,

    /// The verdict where no rule matches
    #[arg(long, value_name = "PRESET", value_parser = PossibleValuesParser::new(PermissionPreset::ALL.map(PermissionPreset::as_str)))]
    pub(crate) permissions: Option<String>,

    /// A file of rules that count besides those of the settings
    #[arg(long, value_name = "FILE")]
    pub(crate) rules: Option<PathBuf>,

    /// The session's folder (default: the working directory)
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,

    /// Print the verdict as JSON: {action, rule, reason, parsed: [{words, redirections}]}
    #[arg(long)]
    pub(crate) json: bool,
}

const TEST_HELP: &str = "\
Examples:
  agentctl policy test permissions-test.json

FILE holds {\"permissions\": {\"preset\": \"workspace\", \"rules\": […]}, \"examples\": [{\"command\": \"rm -rf x\", \"action\": \"deny\"},
{\"tool\": \"read\", \"path\": \"~/.ssh/id\", \"action\": \"deny\"}]}. Without \"permissions\" those of settings.json and of a trusted project's .agentd/policy.json count. \"cwd\" and \"home\"
may stand beside them, so that the file means the same everywhere.

Exit codes:
  0    every verdict is the one wanted
  1    some are not, or a file or a rule cannot be used
  2    the command line cannot be used
  3    agentd is missing or broke down";

/// The flags of `agentctl policy test`.
#[derive(Debug, Clone, Args)]
#[command(after_help = TEST_HELP)]
pub(crate) struct PolicyTestOptions {
    /// The file of examples
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}
