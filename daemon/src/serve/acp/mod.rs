//! `agentd acp`: the sessions of an editor on stdin and stdout, by the Agent Client Protocol. The protocol itself is in `agentd-acp`;
//! its lines are moved by the relay.

mod agent_options;
mod editor_link;
mod login;
mod old_text;
mod translator;

use std::{process::ExitCode, sync::Arc};

use agentd_acp::AgentOptions;
use agentd_connect::environment;
use agentd_tools::operations::EditorAccess;

pub use self::login::log_in;
use self::{agent_options::agent_options, editor_link::EditorLink, translator::AcpTranslator};
use super::{
    relay,
    runtime::{Workers, run},
};
use crate::{cli::HostOptions, logging::complain};

/// Serves until the input ends or a signal comes.
#[must_use]
pub fn acp(options: HostOptions) -> ExitCode {
    for warning in &options.warnings {
        complain(warning);
    }
    let agent = agent_options(&options);
    if options.shared {
        let agent = AgentOptions { env: Some(environment()), ..agent };
        return relay::shared(&options, AcpTranslator::new(agent, None));
    }
    run(Workers::Several, async {
        let (link, requests) = EditorLink::new();
        let link = Arc::new(link);
        let editor = EditorAccess { files: Arc::clone(&link) as _, terminals: Arc::clone(&link) as _ };
        let translator = AcpTranslator::new(agent, Some((link, requests)));
        relay::own(options, Some(editor), translator).await
    })
}
