//! `subscriptions/listen`: a request that stays open. Nothing that could be subscribed to changes here, so that nothing is told on it.

use agentd_translator::rpc::{INVALID_REQUEST, RequestId, RpcError, write_notification, write_result};
use serde_json::{Value, json, value::RawValue};

use super::state::{Caller, Effects, Server};
use crate::{requests::ListenParams, results::of_era, versions::Era};

/// How many of them can be open.
const MAX_LISTENING: usize = 16;

/// The `_meta` of what belongs to a subscription.
fn of_subscription(id: &RequestId) -> Value {
    let id = serde_json::from_str::<&RawValue>(id.text()).map(|id| json!(id)).unwrap_or_default();
    json!({"io.modelcontextprotocol/subscriptionId": id})
}

impl Server {
    pub(super) fn listen(
        &mut self,
        caller: &Caller,
        _given: &ListenParams,
        effects: &mut Effects,
    ) -> Result<(), RpcError> {
        if self.listening.len() >= MAX_LISTENING {
            let text = format!("{MAX_LISTENING} subscriptions are open, as many as may: cancel one");
            return Err(RpcError::new(INVALID_REQUEST, text));
        }
        self.listening.push(caller.request.clone());
        // None of the wishes can be met, and that is what is acknowledged.
        let params = json!({"_meta": of_subscription(&caller.request), "notifications": {}});
        write_notification("notifications/subscriptions/acknowledged", &params, &mut effects.to_client);
        Ok(())
    }

    /// Ends a subscription that the client has cancelled. False where there is none of that request.
    pub(super) fn end_subscription(&mut self, request: &str) -> bool {
        let before = self.listening.len();
        self.listening.retain(|open| open.text() != request);
        self.listening.len() < before
    }

    /// Ends all subscriptions in an orderly way.
    pub(super) fn end_subscriptions(&mut self, effects: &mut Effects) {
        for request in std::mem::take(&mut self.listening) {
            let result = json!({"_meta": of_subscription(&request)});
            let result = of_era(Era::Modern, &self.options.version, "complete", result);
            write_result(&request, &result, &mut effects.to_client);
        }
    }
}
