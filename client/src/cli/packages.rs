//! `agentctl install`, `remove`, `list` and `update`.

use clap::Args;

const INSTALL_HELP: &str = "\
Examples:
  agentctl install npm:@example/agent-tools
  agentctl install npm:@example/agent-tools@^1.2
  agentctl install git:github.com/example/agent-tools@v1
  agentctl install --local ./tools/agent-package

Installs a package and adds it to \"packages\" in settings.json of the agent directory, or with --local in the project's. A path is used in its
place. Packages can run programs as you, while they are installed and after that: look at them first (docs/packages.md).

Exit codes:
  0    the package is there and in the settings
  1    it is not; the message says why, and nothing of it is left
  2    the command line cannot be used
  3    agentd is missing or broke down";

/// The flags of `agentctl install`.
#[derive(Debug, Clone, Args)]
#[command(after_help = INSTALL_HELP)]
pub(crate) struct InstallOptions {
    #[command(flatten)]
    pub(crate) package: PackageOptions,
}

const REMOVE_HELP: &str = "\
Examples:
  agentctl remove npm:@example/agent-tools
  agentctl remove --local ./tools/agent-package

Takes a package out of \"packages\" in settings.json and uninstalls it. A version or ref in SOURCE does not matter.

Exit codes:
  0    the package is gone, and not in the settings any more
  1    the settings do not name it, or it cannot be removed
  2    the command line cannot be used
  3    agentd is missing or broke down";

/// The flags of `agentctl remove`.
#[derive(Debug, Clone, Args)]
#[command(after_help = REMOVE_HELP)]
pub(crate) struct UninstallOptions {
    #[command(flatten)]
    pub(crate) package: PackageOptions,
}

/// A package of a settings file.
#[derive(Debug, Clone, Args)]
pub(crate) struct PackageOptions {
    /// npm:NAME, git:HOST/PATH, the URL of a repository, or a path
    #[arg(value_name = "SOURCE")]
    pub(crate) source: String,

    /// Use the settings of the project in the working directory
    #[arg(short, long)]
    pub(crate) local: bool,

    /// Trust the project for this
    #[arg(long)]
    pub(crate) approve: bool,
}

const LIST_HELP: &str = "\
Examples:
  agentctl list
  agentctl list --json | jq -r '.[] | select(.installedPath == null) | .source'

Packages of the project are listed where the project is trusted.

Exit codes:
  0    done
  1    the settings cannot be read
  2    the command line cannot be used
  3    agentd is missing or broke down";

/// The flags of `agentctl list`.
#[derive(Debug, Clone, Args)]
#[command(after_help = LIST_HELP)]
pub(crate) struct ListOptions {
    /// Print JSON: a list of {source, scope, filtered, installedPath}
    #[arg(long)]
    pub(crate) json: bool,

    /// List the packages of the project as if it were trusted
    #[arg(long)]
    pub(crate) approve: bool,
}

const UPDATE_HELP: &str = "\
Examples:
  agentctl update
  agentctl update npm:@example/agent-tools

Brings packages of npm to the newest versions that their sources allow, and repositories to the newest commits of their branches or refs; what was
changed in a repository by hand is lost. A source with one version (npm:NAME@1.2.3) stays. With PI_OFFLINE=1 nothing is looked for.

Exit codes:
  0    the packages are the newest
  1    one is not; the message says why
  2    the command line cannot be used
  3    agentd is missing or broke down";

/// The flags of `agentctl update`.
#[derive(Debug, Clone, Args)]
#[command(after_help = UPDATE_HELP)]
pub(crate) struct UpdateOptions {
    /// One package (default: all)
    #[arg(value_name = "SOURCE")]
    pub(crate) source: Option<String>,

    /// Update the packages of the project as if it were trusted
    #[arg(long)]
    pub(crate) approve: bool,
}
