//! Who asked for a compaction or a summary, and gets its result.

use agentd_protocol::error::{ErrorCode, Failure};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::oneshot;

use crate::{event_log::Feed, reply::Reply};

/// Who asked for a compaction, or to leave a branch.
pub(crate) enum SummaryAsker {
    /// A client, by a command.
    Client(Reply),
    /// An extension, by a call.
    Extension(oneshot::Sender<Result<Value, Failure>>),
}

impl SummaryAsker {
    /// Answers with `data`, or with the failure.
    pub(crate) fn result<T: Serialize>(self, feed: &Feed, result: Result<T, Failure>) {
        match self {
            Self::Client(reply) => reply.result(feed, result),
            Self::Extension(answer) => {
                let value = result.and_then(|data| {
                    serde_json::to_value(data)
                        .map_err(|error| Failure::new(ErrorCode::Internal, error.to_string()))
                });
                // The extension may be gone.
                let _ = answer.send(value);
            }
        }
    }

    /// Answers with a failure.
    pub(crate) fn fail(self, feed: &Feed, failure: Failure) {
        self.result::<()>(feed, Err(failure));
    }
}
