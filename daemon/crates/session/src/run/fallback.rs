//! When another model takes the place of one that failed. Only the failed answer is asked for anew: what was done before stays.

use std::sync::Arc;

use agentd_agent::{HostError, nothing_in_flight, serve_in_flight_queries};
use agentd_ai::failure::{Failure, classify_answer};
use agentd_protocol::{
    error::{self, ErrorCode},
    event::{FallbackPurpose, FallbackReason, ModelFallback},
    message::AssistantMessage,
    model::ModelName,
};
use tokio_util::sync::CancellationToken;

use super::{
    host::{RunHost, Unasked},
    message::RunMessage,
    prepare::unless,
};
use crate::{
    models::{Choice, Substitute, reason},
    transcript::FailedAnswer,
};

impl RunHost {
    /// Decides whether another model does what an answer failed to, and which.
    pub(super) async fn plan_fallback(
        &mut self,
        answer: &AssistantMessage,
        said: Option<&Failure>,
    ) -> Result<bool, HostError> {
        let unasked = self.fallbacks.unasked.take();
        if unasked == Some(Unasked::Surroundings) || self.context.fallbacks.names().is_empty() {
            return Ok(false);
        }
        let Choice { model, level } = self.fullness().await?.choice;
        if (&model.provider, &model.id) != (&answer.provider, &answer.model) {
            // Somebody chose another model meanwhile: that decides what comes next, not the chain.
            return Ok(false);
        }
        let message = answer.error_message.clone().unwrap_or_default();
        let reason = match unasked {
            Some(_) => Some(FallbackReason::NoCredentials),
            None => reason(said, classify_answer(answer, model.context_window), &message),
        };
        let Some(reason) = reason else { return Ok(false) };
        self.context.note_failure(&model, reason, &message);
        // A conversation that is too long is compacted, unless another model has room for it.
        let window = (reason == FallbackReason::ContextOverflow).then_some(model.context_window);
        if window == Some(0) {
            return Ok(false);
        }
        self.fallbacks.tried.push(model.name());
        let (context, tried) = (Arc::clone(&self.context), self.fallbacks.tried.clone());
        let next =
            serve_in_flight_queries(self, context.next_model(&tried, window, level), nothing_in_flight)
                .await?;
        self.fallbacks.planned = next.map(|choice| substitute(model.name(), choice, reason, message));
        Ok(self.fallbacks.planned.is_some())
    }

    /// Leaves the failed answer out of the context and goes over to the other model.
    pub(super) async fn fall_back(&mut self, substitute: Substitute) -> Result<(), HostError> {
        self.omit_failed(FailedAnswer::WithError).await?;
        self.use_substitute(substitute).await
    }

    /// Finds a model that can be asked for the prompt: the chosen one, unless it has no key or its account is at a
    /// limit, and another model of the chain can be asked.
    pub(super) async fn find_model(&mut self, cancel: &CancellationToken) -> Result<(), error::Failure> {
        let gone = |error: HostError| error::Failure::new(ErrorCode::Internal, error.to_string());
        let context = Arc::clone(&self.context);
        let Choice { model, level } = self.fullness().await.map_err(gone)?.choice;
        let check = unless(cancel, context.check_model(&model));
        let checked = serve_in_flight_queries(self, check, nothing_in_flight).await.map_err(gone)?;
        let (reason, message) = match &checked {
            Err(failure) if failure.code == ErrorCode::Aborted || model.is_placeholder() => return checked,
            Err(failure) => (FallbackReason::NoCredentials, failure.error.clone()),
            Ok(()) => match context.fallbacks.suspended(&model.name()) {
                Some(message) => (FallbackReason::AccountLimit, message),
                None => return Ok(()),
            },
        };
        let mut tried = vec![model.name()];
        loop {
            let next =
                serve_in_flight_queries(self, context.next_model(&tried, None, level), nothing_in_flight)
                    .await
                    .map_err(gone)?;
            // Where no other can be asked, the chosen one says what is wrong.
            let Some(choice) = next else { return checked };
            let check = unless(cancel, context.check_model(&choice.model));
            match serve_in_flight_queries(self, check, nothing_in_flight).await.map_err(gone)? {
                Ok(()) => {
                    self.fallbacks.tried = tried;
                    let substitute = substitute(model.name(), choice, reason, message);
                    return self.use_substitute(substitute).await.map_err(gone);
                }
                Err(failure) if failure.code == ErrorCode::Aborted => return Err(failure),
                Err(failure) => {
                    tracing::warn!(model = ?choice.model.name(), error = failure.error, "a fallback model cannot be asked");
                    tried.push(choice.model.name());
                }
            }
        }
    }

    async fn use_substitute(&self, substitute: Substitute) -> Result<(), HostError> {
        let ModelFallback { from, to, reason, .. } = &substitute.event;
        tracing::info!(?from, ?to, ?reason, "another model takes the turn");
        if let Some(observer) = &self.context.observer {
            observer.event(&substitute.event.clone().into());
        }
        let substitute = Box::new(substitute);
        self.ask(|done| RunMessage::FallBack { substitute, done }).await?
    }
}

fn substitute(from: ModelName, choice: Choice, reason: FallbackReason, error_message: String) -> Substitute {
    let event = ModelFallback {
        from,
        to: choice.model.name(),
        thinking_level: choice.level,
        purpose: FallbackPurpose::Answer,
        reason,
        error_message,
    };
    Substitute { choice, event }
}
