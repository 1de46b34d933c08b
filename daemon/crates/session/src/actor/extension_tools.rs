//! Calls of extensions about tools, which tasks answer: built-in tools, and the files that they change by themselves.

use std::sync::Arc;

use agentd_extensions::{HostFailure, SessionCall};
use serde_json::Value;

use super::session_actor::Actor;
use crate::{
    extensions::{
        BuiltinCall, NestedCallParams, NestedSurroundings, ResizeCall, resize_image, run_builtin, run_nested,
    },
    message_sender::MessageSender,
    run::RunMessage,
};

impl Actor {
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
                    let extensions = self.context.extensions.clone()?;
                    let with = NestedSurroundings {
                        context: Arc::clone(&self.context),
                        extensions,
                        choice: self.chooser.in_use(),
                        tools: Arc::new(self.tools.callable(&self.context.tools)),
                        to_clients: MessageSender::new(&self.to_actor, RunMessage::Publish),
                    };
                    tasks.spawn(run_nested(with, wanted, call.responder));
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
