//! A command that may be repeated, until it is answered.

use agentd_config::Environment;
use agentd_protocol::{
    command::{Accepted, BashOutput, Disposition},
    error::{ErrorCode, Failure},
    message::{BashExecutionMessage, Message},
};

use super::cache::{CachedAnswer, RequestKey, RequestRecord};
use crate::{event_log::Feed, reply::Reply};

/// A command that is done once: whom to answer, and the key that it can be repeated by.
#[derive(Debug)]
pub(crate) struct PendingRequest {
    pub(crate) reply: Reply,
    pub(crate) key: Option<RequestKey>,
    /// What the user typed, for the prompt history; `None` if it is not kept.
    pub(crate) typed: Option<String>,
}

impl PendingRequest {
    /// The command's `id`.
    pub(crate) fn id(&self) -> Option<&serde_json::Value> {
        self.reply.id.as_ref()
    }

    /// The command's key.
    pub(crate) fn key(&self) -> Option<&RequestKey> {
        self.key.as_ref()
    }

    /// The environment of the client, where it has its own.
    pub(crate) fn environment(&self) -> Option<&Environment> {
        self.reply.environment.as_ref()
    }

    /// The request key and disposition for the message's entry.
    pub(crate) fn record(&self, disposition: Disposition) -> Option<RequestRecord> {
        self.key.clone().map(|key| RequestRecord { key, disposition })
    }
}

impl CachedAnswer {
    pub(crate) fn send(&self, reply: Reply, feed: &Feed) {
        match self {
            Self::Accepted(disposition) => {
                let agent_invoked = reply.hears_results.then_some(*disposition != Disposition::Handled);
                reply.data(feed, Accepted { disposition: *disposition, agent_invoked });
            }
            Self::Bash(message) => match message.get() {
                Some(Message::BashExecution(message)) => reply.data(feed, bash_output(message)),
                _ => {
                    let text = "The entry of the first command of this requestKey cannot be read.";
                    reply.fail(feed, Failure::new(ErrorCode::Internal, text));
                }
            },
        }
    }
}

/// The answer to a `bash` command, read from its entry.
fn bash_output(message: &BashExecutionMessage) -> BashOutput {
    BashOutput {
        output: message.output.clone(),
        exit_code: message.exit_code,
        cancelled: message.cancelled,
        truncated: message.truncated,
        full_output_path: message.full_output_path.clone(),
    }
}
