//! Calls of extensions that begin or end work of the session: compacting it, and ending it.

use agentd_extensions::CallResponder;
use agentd_protocol::{
    command::CompactParams,
    error::{ErrorCode, Failure},
};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::session_actor::Actor;
use crate::summary_asker::SummaryAsker;

impl Actor {
    /// The call `agent.compact`: answered at once; the functions of the extension hear of the result.
    pub(super) fn compact_for_extension(&mut self, params: &Value, responder: CallResponder) {
        let (functions, callback) = (responder.functions(), params["cb"].as_u64());
        let (asker, compacted) = oneshot::channel::<Result<Value, Failure>>();
        let params =
            CompactParams { custom_instructions: params["customInstructions"].as_str().map(str::to_owned) };
        self.compact(params, SummaryAsker::Extension(asker));
        self.tell_extensions();
        responder.send(&Ok(Value::Null));
        let Some(callback) = callback else { return };
        self.context.services.tasks.spawn(async move {
            let ended = || Err(Failure::new(ErrorCode::NoSession, "The session has ended."));
            let (method, arg) = match compacted.await.unwrap_or_else(|_| ended()) {
                Ok(result) => ("complete", result),
                Err(failure) => ("error", json!({"message": failure.error})),
            };
            if let Err(failure) = functions.call(callback, Some(method), vec![arg], None).await {
                tracing::warn!(%failure, "an extension failed after a compaction");
            }
        });
    }

    /// The call `agent.shutdown`: the session ends once nothing works for it and no command of an extension runs. A daemon of its own ends
    /// with it; on a shared one, other sessions go on.
    pub(super) fn quit_for_extension(&mut self, responder: CallResponder) {
        self.command_runs.quits = true;
        responder.send(&Ok(Value::Null));
        self.quit_when_idle();
    }

    /// Ends the session, if an extension wants that and nothing works for it.
    pub(super) fn quit_when_idle(&mut self) {
        if !self.command_runs.quits || !self.command_runs.is_empty() || !self.is_idle() || self.closing {
            return;
        }
        self.command_runs.quits = false;
        self.clients.movers().quit();
        self.context.services.watch.quits(&self.context.session_id);
    }
}
