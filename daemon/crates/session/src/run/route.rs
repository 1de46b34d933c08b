//! The model of the run's next request, where the chosen model is a virtual one.

use std::sync::Arc;

use agentd_agent::{HostError, nothing_in_flight, serve_in_flight_queries};
use agentd_protocol::{Json, message::Message};
use serde_json::{Value, json};

use super::{host::RunHost, message::RunMessage};
use crate::{
    context::SessionContext,
    extensions::{RouteQuestion, is_virtual, reason_of, route},
    models::Choice,
};

impl RunHost {
    /// The choice of the router, or the choice itself where nothing is to be routed. What the router keeps is on record then. The inner error
    /// is why there is no route.
    ///
    /// # Errors
    /// The session is gone, or nothing can be stored.
    pub(super) async fn routed(
        &mut self,
        context: &Arc<SessionContext>,
        choice: Choice,
        state: Option<Value>,
        messages: &[Json<Message>],
    ) -> Result<Result<Choice, String>, HostError> {
        let failed = self.failed_answer.take();
        if !is_virtual(&choice.model) {
            return Ok(Ok(choice));
        }
        let (asked_context, asked_messages) = (Arc::clone(context), messages.to_vec());
        let (asked_choice, asked_state) = (choice.clone(), state.clone());
        let cancel = self.channels.cancel.clone();
        let asking = Box::pin(async move {
            let question = RouteQuestion {
                reason: reason_of(&asked_messages, failed.is_some()),
                failed: failed.as_deref(),
                state: asked_state.as_ref(),
                messages: &asked_messages,
            };
            let asked = route(&asked_context, &asked_choice, question);
            cancel.run_until_cancelled(asked).await.unwrap_or_else(|| Err("Request was aborted".to_owned()))
        });
        let (routed, state) = match serve_in_flight_queries(self, asking, nothing_in_flight).await? {
            Ok(routed) => routed,
            Err(why) => return Ok(Err(why)),
        };
        if let Some(state) = state {
            let name = choice.model.name();
            let data = json!({"provider": name.provider, "modelId": name.id, "state": state});
            self.ask(|kept| RunMessage::KeepRoute { data: Box::new(data), kept }).await??;
        }
        Ok(Ok(routed))
    }
}
