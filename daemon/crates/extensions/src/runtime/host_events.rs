//! What hosts send by themselves, and their ends.

use std::sync::atomic::Ordering;

use super::Runtime;
use crate::{
    connection::HostConnection,
    host::{HostEvents, OpenCalls},
    record::{HostFailure, Incoming},
    registrations::Changed,
    session::{CallResponder, SessionCall},
};

/// The text of pi for calls of a session that was replaced (its beginning: extensions compare that).
const STALE: &str =
    "This extension ctx is stale after session replacement or reload. Use the ctx of the new session.";

impl HostEvents for Runtime {
    fn record(&self, host: usize, connection: &HostConnection, calls: &OpenCalls, record: Incoming) {
        match record {
            Incoming::Registration { epoch, ext, is_taken_back, what }
                if epoch == self.hosts[host].epoch() =>
            {
                let Some(extension) = self.extension(host, &ext) else { return };
                let changed = {
                    let mut registrations = self.registrations();
                    let changed = registrations.apply(extension, *what, is_taken_back);
                    if changed == Changed::Handlers {
                        self.update_events(&registrations);
                    }
                    changed
                };
                match (changed, self.session()) {
                    (Changed::Tools, Some(session)) => session.tools_changed(),
                    (Changed::Models, Some(session)) => session.models_changed(),
                    _ => {}
                }
            }
            Incoming::Call(call) => {
                let Some(call) = connection.serve_within(call) else { return };
                let (within, command) = connection.call_within(call.within);
                let responder = CallResponder {
                    connection: connection.clone(),
                    id: call.id,
                    cancel: calls.open(call.id),
                    within: Some(within),
                    is_answered: false,
                };
                if call.epoch != self.hosts[host].epoch() {
                    return responder.send(&Err(HostFailure::new("stale", STALE)));
                }
                let Some(session) = self.session() else {
                    let text = "Extension runtime not initialized. Action methods cannot be called during extension loading.";
                    return responder.send(&Err(HostFailure::new("invalid", text)));
                };
                if call.method == "read" && call.params["topic"] == "entries" {
                    // Before the session looks: what is appended after its look has to be told.
                    self.hosts[host].has_entries.store(true, Ordering::Relaxed);
                }
                let extension = self.extension(host, &call.ext);
                session.call(SessionCall {
                    is_within: call.within.is_some(),
                    method: call.method,
                    params: call.params,
                    extension: extension
                        .map_or_else(|| "<runtime>".to_owned(), |it| self.path(it).to_owned()),
                    is_in_stream: connection.is_stream(call.within),
                    command,
                    responder,
                });
            }
            Incoming::Ui(note) if note.epoch == self.hosts[host].epoch() => {
                if let Some(session) = self.session() {
                    session.show(note.fields);
                }
            }
            Incoming::Error(note) => {
                let extension = self.extension(host, &note.ext);
                let path = extension.map_or("<runtime>", |extension| self.path(extension)).to_owned();
                self.failed(path, &note.event, note.message);
            }
            Incoming::Log { level, text } => {
                let level = level.unwrap_or_else(|| "info".to_owned());
                self.hosts[host].log.message(&level, None, &text.into());
            }
            _ => {}
        }
    }

    fn printed(&self, host: usize, text: &str) {
        self.hosts[host].log.errors(text);
    }

    fn ended(&self, host: usize, reason: &str) {
        let slot = &self.hosts[host];
        slot.set_down(reason);
        // What runs in the host of another session ends with it, and so does its session.
        let is_left = self.is_closing.load(Ordering::Relaxed)
            || self.session.get().is_none()
            || slot.program().is_none();
        if is_left || slot.is_restarting.swap(true, Ordering::Relaxed) {
            return;
        }
        self.failed("<host>".to_owned(), "host_exit", format!("Extension host exited ({reason})"));
        if let Some(me) = self.me.upgrade() {
            self.setup.tasks.spawn(async move { me.restart(host).await });
        }
    }
}
