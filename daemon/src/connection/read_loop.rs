//! The loop of a connection's reading half: takes lines, reads commands, and hands each to the functions of its scope.

use std::{pin::pin, sync::Arc};

use agentd_protocol::{
    command::{AdminCommand, Command},
    error::{ErrorCode, Failure},
    eval_executor::{EvalOutput, EvalResult},
    frame::{Head, unknown_command},
    host_tools::{HostToolResult, HostToolUpdate},
    host_uris::HostUriResult,
    lines::Line,
    ui::UiResponse,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    client_tools,
    dispatcher::Dispatcher,
    moves::Move,
    options::{Origin, ReservedSlot},
    writer::WriterCommand,
};
use crate::{admin, cli::OnEof, limits::LINES_A_TURN};

impl Dispatcher {
    /// Follows the session that a host's connection starts with, if it starts with one.
    pub(super) async fn begin(&mut self) {
        if let Origin::Host { session, flags, answers, .. } = &self.connection.origin {
            self.client.is_alone = !answers;
            if self.client.take_flags(*flags) {
                self.tell_writer(WriterCommand::View(self.client.view)).await;
            }
            if let Some(session) = session.clone() {
                let feed = session.feed().attach();
                self.follow(session, feed, None).await;
            }
        }
    }

    /// Takes lines until the input ends. Then leaves the sessions, or ends them, as the connection's origin requires. When
    /// `ending` fires, it returns at once: the daemon ends the sessions.
    pub(super) async fn run(mut self, mut lines: mpsc::Receiver<Line>, ending: CancellationToken) {
        loop {
            let line = tokio::select! {
                line = lines.recv() => line,
                next = self.moves.next() => {
                    // A host's daemon ends with its session, as at the end of its input.
                    if matches!((&next, &self.connection.origin), (Move::Quit, Origin::Host { .. })) {
                        // The host hears all of it before that.
                        tokio::select! {
                            () = self.drain() => {}
                            () = ending.cancelled() => return,
                        }
                        break;
                    }
                    self.make_move(next).await;
                    continue;
                }
                failure = silence(self.connection.reserved.as_ref()), if !self.connection.shutdown.is_requested() => {
                    self.fail(None, None, failure).await;
                    None
                }
                () = ending.cancelled() => return,
            };
            match line {
                Some(line) => self.turn(line, &mut lines).await,
                None => break,
            }
            if self.is_refused {
                break;
            }
        }
        // The client can answer no more tool calls, so those that wait for it fail now.
        self.sessions.disconnect_tools();
        // Commands from before the end of the input are still answered.
        while self.background.join_next().await.is_some() {}
        while let Some(asked) = self.moves.answered() {
            self.make_move(Move::Asked(asked)).await;
        }
        while self.background.join_next().await.is_some() {}
        match self.connection.origin {
            Origin::Socket { .. } => {
                if self.on_eof == OnEof::Drain {
                    tokio::select! {
                        () = self.drain() => {}
                        () = ending.cancelled() => return,
                    }
                }
                self.sessions.leave_all();
            }
            Origin::Host { on_eof, .. } => {
                match on_eof {
                    OnEof::Abort => self.sessions.leave_all(),
                    OnEof::Drain => self.registry.idle().await,
                }
                // No other client can reach a host's sessions.
                self.registry.close_sessions().await;
            }
        }
    }

    /// Waits until the current session is idle, and has all of its events until then written.
    async fn drain(&self) {
        let Some(current) = &self.sessions.current else { return };
        // An unloaded session is idle.
        if let Some(handle) = current.loaded() {
            handle.idle().await;
        }
        if let Some(followed) = self.sessions.get(current) {
            followed.owed.add_events_through(current.feed().last_seq());
        }
    }

    /// Goes to another session, in the connection's turn.
    async fn make_move(&mut self, next: Move) {
        let daemon = Arc::clone(&self.connection.daemon);
        daemon.scheduler.run_in_turn(Box::pin(self.take_move(next))).await;
    }

    /// Takes a line in the connection's turn, and the lines behind it unless other connections wait.
    async fn turn(&mut self, line: Line, lines: &mut mpsc::Receiver<Line>) {
        let daemon = Arc::clone(&self.connection.daemon);
        let scheduler = &daemon.scheduler;
        let taking = pin!(async {
            self.line(line).await;
            for _ in 1..LINES_A_TURN {
                if scheduler.has_waiters() {
                    break;
                }
                let Ok(line) = lines.try_recv() else { break };
                self.line(line).await;
                if self.is_refused {
                    break;
                }
            }
        });
        scheduler.run_in_turn(taking).await;
    }

    /// Executes a line.
    async fn line(&mut self, line: Line) {
        match line {
            Line::Text(text) => self.text(&text).await,
            Line::TooLong => {
                let limit = self.connection.max_line_bytes;
                let text =
                    format!("Failed to parse command: the line is longer than the limit of {limit} bytes");
                let failure = Failure::new(ErrorCode::TooLarge, text)
                    .hint("The line was skipped; send large content through files.");
                self.fail(None, Some("parse"), failure).await;
            }
            Line::Refused(failure) => self.fail(None, Some("parse"), *failure).await,
        }
    }

    /// Reads a command, checks whether the client may send it now, and hands it to the function of its scope.
    async fn text(&mut self, line: &str) {
        let mut head = match Head::parse(line) {
            Ok(head) => head,
            Err(failure) => return self.fail(None, Some("parse"), failure).await,
        };
        let kind = head.kind.as_deref();
        if let Some(fault) = head.fault.take() {
            return self.fail(head.id, kind, fault.into()).await;
        }
        if kind == Some(UiResponse::TYPE) {
            return self.answer_question(head, line).await;
        }
        for answer in [HostToolUpdate::TYPE, HostToolResult::TYPE] {
            if kind == Some(answer) {
                return self.answer_host_tool(head, answer, line).await;
            }
        }
        for answer in [EvalOutput::TYPE, EvalResult::TYPE] {
            if kind == Some(answer) {
                return self.answer_cell(head, answer, line).await;
            }
        }
        if kind == Some(HostUriResult::TYPE) {
            return self.answer_host_uri(head, line).await;
        }
        let command = match kind.and_then(|name| Command::parse(name, line)) {
            None => return self.fail(head.id, kind, unknown_command(kind)).await,
            Some(Err(field)) => {
                if kind == Some(client_tools::RESPONSE) {
                    self.provided_tools.unreadable(line, &field);
                }
                return self.fail(head.id, kind, field.into()).await;
            }
            Some(Ok(command)) => command,
        };
        if let Some(Err(failure)) = self.connection.reserved.as_ref().map(|reserved| reserved.check(&command))
        {
            self.is_refused = true;
            return self.fail(head.id, kind, failure).await;
        }
        if let Err(failure) = self.may(&command, head.session_id.as_deref()) {
            return self.fail(head.id, kind, failure).await;
        }
        if command.spec().begins_work && self.connection.shutdown.is_requested() {
            let failure =
                Failure::new(ErrorCode::ShuttingDown, "The daemon is ending and takes no new work.");
            return self
                .fail(head.id, kind, failure.hint("`agentctl up` waits for its end and starts it again."))
                .await;
        }
        // What is seldom done is on the heap: this future is copied on its way to where it is awaited, with room for the largest of them.
        match command {
            Command::Session(command) => self.execute_session(command, head, line.len()).await,
            Command::Switch(command) => Box::pin(self.switch(command, head)).await,
            Command::ClientTool(command) => {
                Box::pin(self.execute_client_tool(command, head, line.len())).await;
            }
            Command::Admin(command) => Box::pin(self.execute_admin(command, head)).await,
            Command::Daemon(command) => Box::pin(self.execute_daemon(command, head.id)).await,
        }
    }

    /// Executes a command about the user's set-up, in the background.
    async fn execute_admin(&mut self, command: AdminCommand, head: Head) {
        let context = admin::Context::of(&self.connection.options, self.registry.auth_services());
        let name = command.name();
        // An extension of a session may log in.
        let session = match (&command, &head.session_id) {
            (AdminCommand::LoginStart(_), Some(id)) => match self.find_session(id).await {
                Ok(session) => Some(session),
                Err(failure) => return self.fail(head.id, Some(name), failure).await,
            },
            (AdminCommand::LoginStart(_), None) => self.sessions.current.clone(),
            _ => None,
        };
        self.in_background(head.id, name, async move {
            // One with extensions is loaded.
            let session = match session {
                Some(session) => session.loaded_guard().await.map(|guard| guard.handle),
                None => None,
            };
            admin::answer(context, command, session).await.map(Some)
        })
        .await;
    }
}

/// Waits until a connection in a reserved slot has been silent for too long; forever for any other connection.
async fn silence(reserved: Option<&ReservedSlot>) -> Failure {
    match reserved {
        Some(reserved) => reserved.is_silent().await,
        None => std::future::pending().await,
    }
}
