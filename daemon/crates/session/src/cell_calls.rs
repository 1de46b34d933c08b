//! The calls of tools that cells of code make: how they reach the session's actor, which knows the tools of now.

use std::sync::{Arc, OnceLock};

use agentd_kernels::{CellToolCall, ToolCallFuture, ToolCaller};
use agentd_protocol::tool::ToolResult;
use tokio::sync::oneshot;

use crate::message_sender::MessageSender;

/// A call of a tool by a cell, for the actor.
pub(crate) struct CellCall {
    pub(crate) call: CellToolCall,
    /// Takes its result, and whether it failed.
    pub(crate) done: oneshot::Sender<(ToolResult, bool)>,
}

/// Runs the calls of a session's cells. Cheap to clone; all clones are the same.
#[derive(Clone, Default)]
pub(crate) struct CellCalls(Arc<OnceLock<MessageSender<CellCall>>>);

impl CellCalls {
    /// Says how the session's actor is reached. Only the first time counts.
    pub(crate) fn lead_to(&self, actor: MessageSender<CellCall>) {
        let _ = self.0.set(actor);
    }
}

impl ToolCaller for CellCalls {
    fn call(&self, call: CellToolCall) -> ToolCallFuture {
        let actor = self.0.get().cloned();
        Box::pin(async move {
            let gone = || (ToolResult::failure("The session has ended."), true);
            let Some(actor) = actor else { return gone() };
            let (done, result) = oneshot::channel();
            actor.send(CellCall { call, done }).await;
            result.await.unwrap_or_else(|_| gone())
        })
    }
}
