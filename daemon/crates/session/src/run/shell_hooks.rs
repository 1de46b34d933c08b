//! Shell hooks at the end of a run: one may say that the work is not done.

use agentd_agent::{RunStart, nothing_in_flight, serve_in_flight_queries};
use agentd_protocol::{
    Json,
    message::{Message, StopReason},
};

use super::host::RunHost;
use crate::shell_hooks::stop_message;

impl RunHost {
    /// Asks the `Stop` hooks, and tells why a hook ended the work before. The beginning of what comes next, if one says that the work is not
    /// done.
    pub(super) async fn ask_stop_hooks(&mut self) -> Option<RunStart> {
        let hooks = self.context.hooks.clone()?;
        if let Some(why) = hooks.stopped() {
            hooks.tell(&format!("A hook has ended the work: {why}")).await;
            return None;
        }
        let has_failed = matches!(self.last_stop, Some(StopReason::Error | StopReason::Aborted));
        if has_failed || self.is_cancelled() || self.context.budget.reached().is_some() {
            return None;
        }
        let cancel = self.channels.cancel.clone();
        let asked = async move {
            // A hook is killed with the run.
            cancel.run_until_cancelled(hooks.goes_on(&cancel)).await.flatten()
        };
        // Boxed: the run's future has no room for what only sessions with hooks do. A session that is gone needs no answer.
        let reason = serve_in_flight_queries(self, Box::pin(asked), nothing_in_flight).await.ok()??;
        match Json::new(Message::Custom(stop_message(&reason))) {
            Ok(message) => Some(RunStart { messages: vec![message], queued: Vec::new() }),
            Err(error) => {
                tracing::error!(%error, "the reason of a hook cannot be written");
                None
            }
        }
    }
}
