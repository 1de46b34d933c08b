//! `agentctl http`.

use std::{net::SocketAddr, path::PathBuf};

use clap::Args;

use super::DaemonChoice;

const HTTP_HELP: &str = "\
Examples:
  agentctl http
  agentctl http --listen 127.0.0.1:8091 --token-file ./token
  curl -N http://127.0.0.1:8091/prompt -H \"Authorization: Bearer $(cat ./token)\" -d '{\"message\":\"Hi\"}'

Answers prompts over HTTP: the answer to POST /prompt is a stream of server-sent events, which ends with the run. Closing the
request stops the run, unless it says \"onDisconnect\":\"detach\". The first line of stdout is a JSON object with the address and the
file of the token (docs/http.md has the fields and the statuses).

Exit codes:
  0    Ctrl-C or SIGTERM; the runs of open requests are stopped
  1    the address cannot be listened on, or the file of the token cannot be used
  2    the command line cannot be used
  3    agentd is missing";

/// The flags of `agentctl http`.
#[derive(Debug, Clone, Args)]
#[command(after_help = HTTP_HELP)]
pub(crate) struct HttpOptions {
    /// The address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,

    /// The file of the token that requests must bring; one that is missing is made, with a new token [default: http-token in the agent directory]
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,

    /// How many prompts may be at work at once; more are turned away with status 503
    #[arg(long, value_name = "COUNT", default_value = "32", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) max_requests: u16,

    #[command(flatten)]
    pub(crate) choice: DaemonChoice,
}
