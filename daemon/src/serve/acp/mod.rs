//! `agentd acp`: the sessions of an editor on stdin and stdout, by the Agent Client Protocol. The protocol itself is in `agentd-acp`;
//! here lines are moved between the editor and a daemon, which is in this process or, with `--shared`, the user's.

mod agent_options;
mod daemon_link;
mod editor_texts;
mod old_text;
mod own;
mod relay;
mod shared;

use std::process::ExitCode;

use self::{own::own, shared::shared};
use super::runtime::run;
use crate::{cli::AcpOptions, logging::complain};

/// Serves until the input ends or a signal comes.
#[must_use]
pub fn acp(options: AcpOptions) -> ExitCode {
    for warning in &options.warnings {
        complain(warning);
    }
    if options.shared { shared(options) } else { run(own(options)) }
}
