//! Moves lines between the editor, the agent and the daemon. Everything that waits is bounded: an editor that reads nothing holds up
//! the daemon's lines, and a daemon that takes nothing the editor's.

use std::{collections::HashMap, sync::Arc};

use agentd_acp::{Agent, AgentOptions, Effects, FileRead};
use agentd_protocol::lines::Line;
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use super::{
    daemon_link::{DaemonLines, DaemonLink},
    editor_texts::{EditorTexts, TextRequest},
    old_text::old_text,
};
use crate::{
    limits::{ACP_EOF_GRACE, WAITING_ACP_BYTES, WAITING_ACP_COMMANDS},
    transport::Output,
};

/// Why lines are moved no more.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RelayEnd {
    /// The editor's input has ended.
    Input,
    /// The daemon's connection has ended before.
    Daemon,
    /// The daemon cannot be used, and why.
    Unusable(String),
    /// The editor's output cannot be written.
    Output,
}

/// The editor's end.
pub(super) struct Editor {
    pub(super) lines: mpsc::Receiver<Line>,
    pub(super) output: Output,
    /// The longest line that is taken from it, in bytes.
    pub(super) max_line_bytes: usize,
}

/// Moves lines until the editor's input ends, or `ending` fires, and the last answers are written.
pub(super) async fn relay(
    options: AgentOptions,
    editor: Editor,
    daemon: DaemonLink,
    texts: Option<(Arc<EditorTexts>, mpsc::Receiver<TextRequest>)>,
    ending: CancellationToken,
) -> RelayEnd {
    let mut effects = Effects::default();
    let agent = Agent::start(options, &mut effects);
    let Editor { lines: editor_lines, output, max_line_bytes } = editor;
    let (texts, wanted_texts) = texts.unzip();
    let mut relay = Relay {
        agent,
        effects,
        max_line_bytes,
        reads: JoinSet::new(),
        texts,
        asked_texts: HashMap::new(),
        last_text: 0,
    };
    let end = relay.run(editor_lines, &output, daemon, wanted_texts, ending).await;
    if !relay.effects.to_client.is_empty()
        && let Some(room) = output.room().await
    {
        room.send(std::mem::take(&mut relay.effects.to_client));
    }
    // The editor may be gone already.
    let finished = tokio::time::timeout(ACP_EOF_GRACE, output.finish()).await;
    match (end, finished) {
        (RelayEnd::Input, Ok(Err(_))) => RelayEnd::Output,
        (end, _) => end,
    }
}

struct Relay {
    agent: Agent,
    effects: Effects,
    max_line_bytes: usize,
    /// Files that are being read.
    reads: JoinSet<(FileRead, Option<Option<String>>)>,
    /// The editor's files, for the tools of a daemon in this process.
    texts: Option<Arc<EditorTexts>>,
    /// The tools that wait for the editor, by the numbers of their requests.
    asked_texts: HashMap<u64, oneshot::Sender<Result<String, String>>>,
    last_text: u64,
}

impl Relay {
    async fn run(
        &mut self,
        mut editor_lines: mpsc::Receiver<Line>,
        output: &Output,
        daemon: DaemonLink,
        mut wanted_texts: Option<mpsc::Receiver<TextRequest>>,
        ending: CancellationToken,
    ) -> RelayEnd {
        let DaemonLink { mut commands, lines: mut daemon_lines } = daemon;
        // Set when the editor's input has ended.
        let mut deadline: Option<Instant> = None;
        let mut takes_commands = true;
        loop {
            if let Some(reason) = self.effects.unusable.take() {
                self.agent.daemon_gone(&mut self.effects);
                return RelayEnd::Unusable(reason);
            }
            for read in self.effects.reads.drain(..) {
                self.reads.spawn_blocking(move || {
                    let text = old_text(&read);
                    (read, text)
                });
            }
            for (number, text) in self.effects.texts.drain(..) {
                if let Some(answer) = self.asked_texts.remove(&number) {
                    // The call may have been stopped meanwhile.
                    let _ = answer.send(text);
                }
            }
            if deadline.is_some() && commands.is_some() && self.is_done() {
                commands = None;
            }
            let (to_client, to_daemon) = (self.effects.to_client.len(), self.effects.to_daemon.len());
            tokio::select! {
                biased;
                room = output.room(), if to_client > 0 => match room {
                    Some(room) => room.send(std::mem::take(&mut self.effects.to_client)),
                    None => return RelayEnd::Output,
                },
                room = room_for_command(commands.as_ref()), if to_daemon > 0 && takes_commands => {
                    match room {
                        Some(room) => {
                            if let Some(command) = self.effects.to_daemon.pop_front() {
                                room.send(Line::Text(command));
                            }
                        }
                        None => takes_commands = false,
                    }
                }
                line = editor_lines.recv(),
                    if deadline.is_none() && to_daemon < WAITING_ACP_COMMANDS && to_client < WAITING_ACP_BYTES =>
                {
                    match line {
                        Some(line) => self.editor_line(line),
                        None => {
                            deadline = Some(Instant::now() + ACP_EOF_GRACE);
                            self.agent.client_gone(&mut self.effects);
                        }
                    }
                }
                Some(request) = next_text(wanted_texts.as_mut()), if to_client < WAITING_ACP_BYTES => {
                    self.text_request(request);
                }
                Some(read) = self.reads.join_next() => {
                    if let Ok((read, Some(text))) = read {
                        self.agent.file_read(&read, text);
                    }
                }
                batch = daemon_lines.next(), if to_client < WAITING_ACP_BYTES => match batch {
                    Some(batch) => self.daemon_lines(&batch),
                    None => {
                        self.agent.daemon_gone(&mut self.effects);
                        return if deadline.is_some() { RelayEnd::Input } else { RelayEnd::Daemon };
                    }
                },
                () = wait_until(deadline) => {
                    break;
                }
                () = ending.cancelled(), if deadline.is_none() => {
                    deadline = Some(Instant::now() + ACP_EOF_GRACE);
                    self.agent.client_gone(&mut self.effects);
                }
            }
        }
        drop(commands);
        drained(&mut daemon_lines).await
    }

    fn editor_line(&mut self, line: Line) {
        match line {
            Line::Text(text) if text.trim().is_empty() => {}
            Line::Text(text) => {
                self.agent.client_line(&text, &mut self.effects);
                if let Some(texts) = &self.texts {
                    texts.offer(self.agent.has_files());
                }
            }
            Line::TooLong => self.agent.line_too_long(self.max_line_bytes, &mut self.effects),
            Line::Refused(failure) => self.agent.line_refused(&failure, &mut self.effects),
        }
    }

    /// Passes a tool's request about a file on to the editor.
    fn text_request(&mut self, request: TextRequest) {
        let TextRequest { session, path, text, answer } = request;
        self.last_text += 1;
        // Of those that were stopped, nobody waits any more.
        self.asked_texts.retain(|_, answer| !answer.is_closed());
        self.asked_texts.insert(self.last_text, answer);
        match text {
            Some(text) => {
                self.agent.text_written(self.last_text, &session, &path, &text, &mut self.effects);
            }
            None => self.agent.text_wanted(self.last_text, &session, &path, &mut self.effects),
        }
    }

    fn daemon_lines(&mut self, batch: &[u8]) {
        for line in batch.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            match std::str::from_utf8(line) {
                Ok(line) => self.agent.daemon_line(line, &mut self.effects),
                Err(error) => tracing::error!(%error, "a line of the daemon is no text"),
            }
        }
    }

    /// Whether nothing is under way any more.
    fn is_done(&self) -> bool {
        self.effects.to_daemon.is_empty() && self.agent.is_idle()
    }
}

/// Waits for room for a command; `None` when the daemon takes none any more. Cancel safe.
async fn room_for_command(commands: Option<&mpsc::Sender<Line>>) -> Option<mpsc::Permit<'_, Line>> {
    commands?.reserve().await.ok()
}

/// Waits for a request about a file, for ever where there are none. Cancel safe.
async fn next_text(requests: Option<&mut mpsc::Receiver<TextRequest>>) -> Option<TextRequest> {
    match requests {
        Some(requests) => requests.recv().await,
        None => std::future::pending().await,
    }
}

/// Waits until then, for ever without a time. Cancel safe.
async fn wait_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Takes the daemon's last lines, so that it can end: nothing of them is for an editor that has left.
async fn drained(lines: &mut DaemonLines) -> RelayEnd {
    let all = async { while lines.next().await.is_some() {} };
    // What takes longer is ended with the process.
    let _ = tokio::time::timeout(ACP_EOF_GRACE / 5, all).await;
    RelayEnd::Input
}
