//! `agentctl service`: the daemon as a service of the user's service manager.

use clap::{Args, Subcommand, ValueEnum};

/// The verbs of `agentctl service`.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Service {
    /// Write the files that let systemd or launchd start the daemon
    Install(ServiceInstallOptions),

    /// Remove the files that `install` wrote
    Uninstall(ServiceUninstallOptions),

    /// Show which files there are, and whether they are as `install` would write them now
    Status(ServiceStatusOptions),
}

/// A service manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ServiceKind {
    /// User units in $XDG_CONFIG_HOME/systemd/user: the first client starts the daemon
    Systemd,
    /// An agent in ~/Library/LaunchAgents: the daemon starts at login
    Launchd,
}

impl ServiceKind {
    /// The service manager of this platform.
    pub(crate) const fn native() -> Self {
        if cfg!(target_os = "macos") { Self::Launchd } else { Self::Systemd }
    }
}

const INSTALL_HELP: &str = "\
Examples:
  agentctl service install --now      write the files, and start the service
  agentctl service install            write them, and say which commands start it
  agentctl service install --print    print them instead
  agentctl service install --kind launchd --print

The service runs the agentd that stands beside this program, at the place where `agentctl` finds its daemon. Installing again
brings the files up to date. Files that were changed since, or that another program wrote, are kept unless --force is given;
for changes of your own `systemctl --user edit agentd.service` makes a file that stays.

Exit codes:
  0    the files are there (and with --now the service is enabled)
  1    a file is in the way, or cannot be written, or the service manager refused
  3    there is no agentd";

/// The flags of `agentctl service install`.
#[derive(Debug, Clone, Args)]
#[command(after_help = INSTALL_HELP)]
pub(crate) struct ServiceInstallOptions {
    /// The service manager; default: the one of this system
    #[arg(long, value_enum)]
    pub(crate) kind: Option<ServiceKind>,

    /// Enable the service and start it, too
    #[arg(long, conflicts_with = "print")]
    pub(crate) now: bool,

    /// Replace files that were changed since, or that another program wrote
    #[arg(long)]
    pub(crate) force: bool,

    /// Print the files instead of writing them
    #[arg(long)]
    pub(crate) print: bool,
}

const UNINSTALL_HELP: &str = "\
Examples:
  agentctl service uninstall --now    stop the service, and remove its files
  agentctl service uninstall          remove them, and say how to stop what runs

Sessions and settings stay.

Exit codes:
  0    the files are gone
  1    a file was changed since or is another program's (--force removes it), or the service manager refused";

/// The flags of `agentctl service uninstall`.
#[derive(Debug, Clone, Args)]
#[command(after_help = UNINSTALL_HELP)]
pub(crate) struct ServiceUninstallOptions {
    /// The service manager; default: the one of this system
    #[arg(long, value_enum)]
    pub(crate) kind: Option<ServiceKind>,

    /// Stop the service and disable it first
    #[arg(long)]
    pub(crate) now: bool,

    /// Remove files that were changed since, or that another program wrote, too
    #[arg(long)]
    pub(crate) force: bool,
}

const STATUS_HELP: &str = "\
Examples:
  agentctl service status
  agentctl service status --json

Whether the daemon runs says `agentctl status`.

Exit codes:
  0    all files are there, as `install` would write them now
  1    a file is missing, or is another one
  3    there is no agentd";

/// The flags of `agentctl service status`.
#[derive(Debug, Clone, Args)]
#[command(after_help = STATUS_HELP)]
pub(crate) struct ServiceStatusOptions {
    /// The service manager; default: the one of this system
    #[arg(long, value_enum)]
    pub(crate) kind: Option<ServiceKind>,

    /// Print the answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
