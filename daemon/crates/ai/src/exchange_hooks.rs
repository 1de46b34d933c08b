//! Somebody who sees the exchange of a request with its provider, and may change what is sent.

use std::{fmt, sync::Arc};

use agentd_protocol::{model::Model, secret::Secret};
use futures::future::BoxFuture;
use serde_json::{Map, Value};

/// A point of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExchangeStage {
    /// Before the request is made, with the headers that are configured for it.
    Headers,
    /// Before the request is sent, with its JSON body.
    Payload,
    /// After the headers of an answer with a status of success.
    Response,
    /// After each event of the answer, before it is decoded.
    StreamEvent,
}

/// Sees the exchanges of requests. Nothing is made for a stage that nobody wants.
///
/// Cancel safety: dropping a future gives up what is asked; the exchange is given up then, too.
pub trait ExchangeHooks: Send + Sync {
    /// Whether somebody wants to see this stage. Asked often, so it must be cheap.
    fn wants(&self, stage: ExchangeStage) -> bool;

    /// The configured headers as they are to be sent; one with an empty value takes that of the adapter away.
    fn headers(&self, headers: Vec<(String, Secret)>) -> BoxFuture<'_, Vec<(String, Secret)>>;

    /// Another body in the place of this one; `None` where it stays as it is.
    fn payload(&self, payload: Value) -> BoxFuture<'_, Option<Value>>;

    /// An answer begins.
    fn response(&self, status: u16, headers: Map<String, Value>) -> BoxFuture<'_, ()>;

    /// An event of the answer.
    fn stream_event<'a>(&'a self, model: &'a Model, data: Value) -> BoxFuture<'a, ()>;
}

/// Shared [`ExchangeHooks`]; cheap to clone.
#[derive(Clone)]
pub struct ExchangeHook(pub Arc<dyn ExchangeHooks>);

impl ExchangeHook {
    /// The hooks, if they want to see a stage.
    pub(crate) fn wanting(&self, stage: ExchangeStage) -> Option<&dyn ExchangeHooks> {
        self.0.wants(stage).then_some(&*self.0)
    }
}

impl fmt::Debug for ExchangeHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ExchangeHook")
    }
}
