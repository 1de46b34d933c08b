//! The reading half of a connection: takes lines, finds the command, hands it on.

use agentd_protocol::{
    command::{Cancelled, Command, NewSessionParams},
    error::{ErrorCode, Failure},
    frame::{Head, Response, unknown_command},
    lines::Line,
};
use agentd_session::{ReaderId, Reply, Target};
use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;
use tokio::{sync::mpsc, task::JoinSet};
use tokio_util::sync::CancellationToken;

use super::{Connection, writer::Out};
use crate::{admin, cli::OnEof};

pub(super) struct Reader {
    connection: Connection,
    /// Our name in the feed of the current session.
    listener: ReaderId,
    outbox: mpsc::Sender<Out>,
    /// Commands about the set-up that are being done.
    administering: JoinSet<()>,
}

impl Reader {
    pub(super) fn new(connection: Connection, listener: ReaderId, outbox: mpsc::Sender<Out>) -> Self {
        Self { connection, listener, outbox, administering: JoinSet::new() }
    }

    /// Takes lines until the input ends; then ends the session as `--on-eof` says. When `ending` fires, someone else
    /// ends the sessions, and no more is read.
    pub(super) async fn run(mut self, mut lines: mpsc::Receiver<Line>, ending: CancellationToken) {
        loop {
            let line = tokio::select! {
                line = lines.recv() => line,
                () = ending.cancelled() => return,
            };
            match line {
                Some(line) => self.line(line).await,
                None => break,
            }
        }
        // Whoever asked before the end of the input is answered.
        while self.administering.join_next().await.is_some() {}
        match self.connection.on_eof {
            OnEof::Abort => self.tell(Out::Mute).await,
            OnEof::Drain => self.connection.session.idle().await,
        }
        self.connection.registry.close(&self.connection.session).await;
    }

    async fn line(&mut self, line: Line) {
        match line {
            Line::Text(text) => self.text(&text).await,
            Line::NotUtf8 => {
                let failure =
                    Failure::new(ErrorCode::Parse, "Failed to parse command: the line is not valid UTF-8")
                        .hint("Send JSON in UTF-8; anything else can stand in a string as a \\u escape.");
                self.fail(None, Some("parse"), failure).await;
            }
            Line::TooLong => {
                let limit = agentd_protocol::lines::DEFAULT_MAX_LINE_BYTES;
                let text =
                    format!("Failed to parse command: the line is longer than the limit of {limit} bytes");
                let failure = Failure::new(ErrorCode::TooLarge, text)
                    .hint("The line was skipped; send large content through files.");
                self.fail(None, Some("parse"), failure).await;
            }
        }
    }

    async fn text(&mut self, line: &str) {
        let head = match Head::parse(line) {
            Ok(head) => head,
            Err(failure) => return self.fail(None, Some("parse"), failure).await,
        };
        let kind = head.kind.as_deref();
        // Clients may answer dialogs at any time, also ones that we never asked.
        if kind == Some("extension_ui_response") {
            return;
        }
        match kind.and_then(|name| Command::parse(name, line)) {
            None => self.fail(head.id, kind, unknown_command(kind)).await,
            Some(Err(field)) => self.fail(head.id, kind, field.into()).await,
            Some(Ok(Command::NewSession(params))) => self.new_session(params, head.id).await,
            Some(Ok(command)) if admin::handles(&command) => self.administer(command, head.id),
            Some(Ok(command)) => {
                let reply = Reply { reader: self.listener, id: head.id.clone(), command: command.name() };
                if !self.connection.session.send(command, reply).await {
                    let failure = Failure::new(ErrorCode::NoSession, "The session has ended.");
                    self.fail(head.id, kind, failure).await;
                }
            }
        }
    }

    /// Does a command about the set-up, beside everything else: it may take its time.
    fn administer(&mut self, command: Command, id: Option<Value>) {
        while self.administering.try_join_next().is_some() {}
        let context = admin::Context::of(&self.connection.options, self.connection.registry.key_commands());
        let outbox = self.outbox.clone();
        self.administering.spawn(async move {
            let name = command.name();
            let response = match admin::answer(context, command).await {
                Ok(data) => Response::done(id, name, Some(data)),
                Err(failure) => Response::failed(id, Some(name), failure),
            };
            send(&outbox, &response).await;
        });
    }

    /// Leaves the session for a new one. The old one says its last words first.
    async fn new_session(&mut self, params: NewSessionParams, id: Option<Value>) {
        let mut options = self.connection.options.clone();
        options.target = match (&options.target, params.parent_session) {
            (Target::Ephemeral(_), _) => Target::Ephemeral(None),
            (_, Some(parent)) => Target::Child(parent),
            (_, None) => Target::New,
        };
        // Names and ids of the command line were meant for the session that it opened.
        options.name = None;
        let opened = match self.connection.registry.open(options).await {
            Ok(opened) => opened,
            Err(error) => return self.fail(id, Some("new_session"), error.into()).await,
        };
        self.connection.registry.close(&self.connection.session).await;
        let feed = opened.handle.feed().attach();
        self.listener = feed.id();
        self.connection.session = opened.handle;
        self.tell(Out::Follow(feed)).await;
        self.answer(&Response::done(id, "new_session", Some(Cancelled { cancelled: false }))).await;
    }

    async fn fail(&self, id: Option<Value>, command: Option<&str>, failure: Failure) {
        self.answer(&Response::<()>::failed(id, command, failure)).await;
    }

    async fn answer<T: Serialize>(&self, response: &Response<T>) {
        send(&self.outbox, response).await;
    }

    async fn tell(&self, out: Out) {
        // A writer that is gone means a client that is gone: nobody misses the answer.
        let _ = self.outbox.send(out).await;
    }
}

async fn send<T: Serialize>(outbox: &mpsc::Sender<Out>, response: &Response<T>) {
    match serde_json::to_vec(response) {
        Ok(line) => {
            // As above: a writer that is gone means a client that is gone.
            let _ = outbox.send(Out::Line(Bytes::from(line))).await;
        }
        Err(error) => tracing::error!(%error, "cannot write an answer"),
    }
}
