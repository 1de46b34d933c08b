//! Calls of extensions about tools, which tasks answer: built-in tools, and the files that they change by themselves.

use std::sync::Arc;

use agentd_extensions::{HostFailure, SessionCall};
use agentd_protocol::tool::ToolResult;
use serde_json::Value;

use super::session_actor::Actor;
use crate::{
    cell_calls::CellCall,
    extensions::{BuiltinCall, ResizeCall, resize_image, run_builtin},
    message_sender::MessageSender,
    nested_calls::{NestedCallParams, NestedSurroundings, run_nested, run_nested_for_extension},
    run::RunMessage,
};

impl Actor {
    /// What a call of a tool by a tool works with now.
    pub(super) fn nested_surroundings(&self) -> NestedSurroundings {
        NestedSurroundings {
            context: Arc::clone(&self.context),
            extensions: self.context.extensions.clone(),
            book: self.context.nested().clone(),
            choice: self.chooser.in_use(),
            tools: Arc::new(self.tools.callable(&self.context.tools)),
            to_clients: MessageSender::new(&self.to_actor, RunMessage::Publish),
        }
    }

    /// Runs a call of a cell in a task.
    pub(super) fn on_cell_call(&self, CellCall { call, done }: CellCall) {
        let with = self.nested_surroundings();
        self.context.services.tasks.spawn(async move {
            let params =
                NestedCallParams { tool_call_id: call.parent, name: call.name, args: call.arguments };
            let outcome = match run_nested(&with, params, &call.cancel, |_| {}).await {
                Ok(outcome) => (outcome.result, outcome.is_error),
                Err(error) => (ToolResult::failure(error), true),
            };
            // The cell may have ended.
            let _ = done.send(outcome);
        });
    }

    /// Takes a call about tools. Gives back any other.
    pub(super) fn take_tool_call(&mut self, call: SessionCall) -> Option<SessionCall> {
        let Some(locks) = self.extension_link.as_ref().map(|link| link.locks.clone()) else {
            return Some(call);
        };
        let tasks = self.context.services.tasks.clone();
        match call.method.as_str() {
            "tool.builtin" => match serde_json::from_value::<BuiltinCall>(call.params) {
                Ok(wanted) => {
                    let (context, choice) = (Arc::clone(&self.context), self.chooser.in_use());
                    tasks.spawn(run_builtin(context, choice, wanted, call.responder));
                }
                Err(error) => {
                    call.responder.send(&Err(HostFailure::new("invalid", error.to_string())));
                }
            },
            "tool.call" => match serde_json::from_value::<NestedCallParams>(call.params) {
                Ok(wanted) => {
                    let with = self.nested_surroundings();
                    tasks.spawn(run_nested_for_extension(with, wanted, call.responder));
                }
                Err(error) => {
                    call.responder.send(&Err(HostFailure::new("invalid", error.to_string())));
                }
            },
            "image.resize" => match serde_json::from_value::<ResizeCall>(call.params) {
                Ok(wanted) => {
                    tasks.spawn(resize_image(self.context.images.clone(), wanted, call.responder));
                }
                Err(error) => {
                    call.responder.send(&Err(HostFailure::new("invalid", error.to_string())));
                }
            },
            "lock.acquire" => match call.params["path"].as_str() {
                Some(path) => {
                    let path = self.context.cwd.join(path);
                    locks.acquire(&self.context.changes, path, call.responder, &tasks);
                }
                None => call.responder.send(&Err(HostFailure::new("invalid", "A lock needs a path."))),
            },
            "lock.release" => {
                if let Some(token) = call.params["token"].as_u64() {
                    locks.release(token);
                }
                call.responder.send(&Ok(Value::Null));
            }
            _ => return Some(call),
        }
        None
    }
}
