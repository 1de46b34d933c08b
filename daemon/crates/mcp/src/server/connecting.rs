//! Making the connection of a server: when it may be tried, and what comes of it.

use std::{sync::Arc, time::Duration};

use agentd_program_log::ProgramLogSource;
use serde_json::Value;
use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{
    Knowledge, McpServer, clean,
    handshake::{Connection, connect},
};
use crate::peer::PeerHandler;

/// The pause after the first failure; each further one doubles it.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Takes what a server sends by itself.
struct Events {
    /// Wakes the reading of tools.
    tools_changed: Arc<Notify>,
    /// Wakes the reading of prompts.
    prompts_changed: Arc<Notify>,
    /// The answer to `roots/list`.
    roots: Option<Value>,
    server: String,
    log: ProgramLogSource,
}

impl PeerHandler for Events {
    fn server(&self) -> &str {
        &self.server
    }

    fn notification(&self, method: &str, params: &Value) {
        match method {
            "notifications/tools/list_changed" => self.tools_changed.notify_one(),
            "notifications/prompts/list_changed" => self.prompts_changed.notify_one(),
            "notifications/message" => log_message(&self.log, params),
            _ => {}
        }
    }

    fn errors(&self, text: &str) {
        self.log.errors(text);
    }

    fn roots(&self) -> Option<Value> {
        self.roots.clone()
    }
}

/// Writes a `notifications/message` to the log.
fn log_message(log: &ProgramLogSource, params: &Value) {
    let word = |key: &str| params.get(key).and_then(Value::as_str);
    let level = word("level").unwrap_or("info");
    log.message(level, word("logger"), params.get("data").unwrap_or(&Value::Null));
}

impl McpServer {
    /// Connects in the background, unless it is connected or being connected.
    pub(crate) fn connect_soon(self: &Arc<Self>) {
        self.lock().is_asked_for = true;
        let server = Arc::clone(self);
        self.context.tasks.spawn(async move {
            // The state says what came of it.
            let _ = server.connection(None, Attempt::Now).await;
        });
    }

    /// Ends the connection, if there is one, and makes another. The state says what came of it.
    pub(crate) async fn reconnect(self: &Arc<Self>) {
        self.close().await;
        let _ = self.connection(None, Attempt::Now).await;
    }

    /// Gives up to connect it, now and later.
    pub(crate) fn give_up_connecting(&self) {
        self.closing.cancel();
    }

    /// Ends the connection: returns when nothing of the server is left.
    pub(crate) async fn close(&self) {
        let connection = self.lock().connection.take();
        if let Some(connection) = connection {
            connection.close().await;
            self.tell(false);
        }
    }

    /// The connection; one is made where there is none. `Err(None)`: given up by `cancel`.
    pub(super) async fn connection(
        self: &Arc<Self>,
        cancel: Option<&CancellationToken>,
        attempt: Attempt,
    ) -> Result<Arc<Connection>, Option<String>> {
        if let Some(connection) = self.live() {
            return Ok(connection);
        }
        // In a task of its own: others may wait for the same connection when this caller gives up.
        let server = Arc::clone(self);
        let made = self.context.tasks.spawn(async move {
            let _one = Arc::clone(&server.connecting).lock_owned().await;
            if let Some(connection) = server.live() {
                return Ok(connection);
            }
            if attempt == Attempt::AfterPause {
                server.check_pause()?;
            }
            server.make_connection().await
        });
        let cancelled = async {
            match cancel {
                Some(cancel) => cancel.cancelled().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            made = made => made.unwrap_or_else(|error| Err(error.to_string())).map_err(Some),
            () = cancelled => Err(None),
        }
    }

    /// Fails while the pause after a failure lasts.
    fn check_pause(&self) -> Result<(), String> {
        let state = self.lock();
        // The user may have signed in meanwhile.
        let Some(last) = state.last_failure.filter(|_| self.needed_sign_in().is_none()) else {
            return Ok(());
        };
        let left = pause(state.failures).saturating_sub(last.elapsed());
        if left.is_zero() {
            return Ok(());
        }
        let error = state.error.clone().unwrap_or_default();
        Err(format!("{error} (the next attempt is made in {} s)", left.as_secs() + 1))
    }

    async fn make_connection(self: &Arc<Self>) -> Result<Arc<Connection>, String> {
        self.lock().is_connecting = true;
        self.tell(false);
        let (tools_changed, prompts_changed) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let handler = Arc::new(Events {
            tools_changed: Arc::clone(&tools_changed),
            prompts_changed: Arc::clone(&prompts_changed),
            roots: self.config.roots.then(|| self.context.roots()),
            server: self.config.name.clone(),
            log: self.context.log.source(&self.config.name),
        });
        let connecting = connect(&self.config, &self.context, self.authorization.clone(), handler);
        let connected = self.closing.run_until_cancelled(connecting).await;
        let connected = connected.unwrap_or_else(|| Err("its session is closed".to_owned()));
        let connected = connected.map_err(|error| clean(&self.needed_sign_in().unwrap_or(error)));
        let outcome = {
            let mut state = self.lock();
            state.is_connecting = false;
            match connected {
                Ok((connection, list)) => {
                    let connection = Arc::new(connection);
                    state.connections += 1;
                    state.knowledge = Knowledge::Listed;
                    state.has_resources = connection.facts.has_resources;
                    state.instructions = connection.facts.instructions.clone();
                    state.connection = Some(Arc::clone(&connection));
                    (state.failures, state.last_failure, state.error) = (0, None, None);
                    state.tools_changed = tools_changed;
                    state.stale = connection.stale(&list);
                    state.tools = list.tools.into();
                    Ok(connection)
                }
                Err(error) => {
                    // The end of the session is no fault of the server.
                    if !self.closing.is_cancelled() {
                        tracing::warn!(
                            server = self.config.name,
                            error,
                            "an MCP server could not be connected"
                        );
                    }
                    state.failures += 1;
                    state.last_failure = Some(Instant::now());
                    state.error = Some(error.clone());
                    Err(error)
                }
            }
        };
        if let Ok(connection) = &outcome {
            let (number, tools_changed) = {
                let state = self.lock();
                (state.connections, Arc::clone(&state.tools_changed))
            };
            let weak = (Arc::downgrade(self), Arc::downgrade(connection));
            self.keep_definitions();
            if !connection.facts.has_prompts {
                self.set_prompts(Vec::new());
            } else {
                let (peer, over) = (connection.peer.clone(), connection.over.clone());
                let prompts = Self::follow_prompts(Arc::downgrade(self), peer, over, prompts_changed.clone());
                self.context.tasks.spawn(prompts);
            }
            self.context.tasks.spawn(Self::follow(weak, number, (tools_changed, prompts_changed)));
        }
        if outcome.is_err() && !self.closing.is_cancelled() {
            self.forget_definitions();
        }
        self.tell(outcome.is_ok());
        outcome
    }

    fn live(&self) -> Option<Arc<Connection>> {
        let state = self.lock();
        state.connection.as_ref().filter(|connection| connection.peer.closed().is_none()).map(Arc::clone)
    }
}

/// When a connection may be tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attempt {
    /// At once.
    Now,
    /// Not in the pause after a failure.
    AfterPause,
}

fn pause(failures: u32) -> Duration {
    FIRST_PAUSE.saturating_mul(1 << failures.saturating_sub(1).min(10)).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_minute() {
        let seconds: Vec<u64> = (1..9).map(|failures| pause(failures).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(pause(u32::MAX).as_secs(), 60);
    }
}
