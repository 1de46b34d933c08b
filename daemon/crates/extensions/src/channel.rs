//! Channels: the extensions of a session that an extension has opened run in the host of that extension.
//!
//! A channel is a connection within the connection with a host. It is told all that a host is told, from `hello` on, and knows nothing of the
//! session that the host itself belongs to.

use std::{fmt, sync::Arc};

use serde_json::json;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{connection::HostConnection, host_output::HostOutput, process::RunningHost};

/// A channel of a host, by the number that the host has given it. It can be opened once at a time.
#[derive(Clone)]
pub struct HostChannel {
    within: HostConnection,
    number: u64,
}

impl fmt::Debug for HostChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostChannel").field("number", &self.number).finish_non_exhaustive()
    }
}

impl HostChannel {
    pub(crate) fn new(within: HostConnection, number: u64) -> Self {
        Self { within, number }
    }

    /// Opens it. What comes through it goes to `output`, until it is over: by its token, or with the host.
    ///
    /// # Errors
    /// It is open, or the host is gone.
    pub(crate) fn open(
        &self,
        tasks: &TaskTracker,
        output: Arc<dyn HostOutput>,
    ) -> Result<(HostConnection, RunningHost), String> {
        let Self { within, number } = self.clone();
        let connection = within.channel(number);
        if !within.lead_channel(number, Arc::clone(&output)) {
            return Err(match within.closed() {
                Some(reason) => format!("the extension host is gone ({reason})"),
                None => "its channel is open already".to_owned(),
            });
        }
        let (over, gone) = (CancellationToken::new(), CancellationToken::new());
        tasks.spawn({
            let (connection, over, gone) = (connection.clone(), over.clone(), gone.clone());
            async move {
                let reason = tokio::select! {
                    () = over.cancelled() => "it was ended".to_owned(),
                    () = within.over().cancelled() => {
                        within.closed().map_or_else(|| "its host has ended".to_owned(), |reason| reason.to_string())
                    }
                };
                within.forget_channel(number);
                within.note("channel.close", &json!({"channel": number}));
                connection.close(&reason);
                over.cancel();
                output.ended(&reason);
                gone.cancel();
            }
        });
        Ok((connection, RunningHost { pid: None, over, gone }))
    }
}
