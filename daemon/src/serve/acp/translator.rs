//! The editor's agent for the relay, with what it needs beside lines: files as they were, and texts of the editor.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use agentd_acp::{Agent, AgentOptions, Effects, FileRead};
use agentd_protocol::error::Failure;
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
};

use super::{
    super::relay::Translator,
    editor_texts::{EditorTexts, TextRequest},
    old_text::old_text,
};

/// The agent, and what it waits for.
pub(super) struct AcpTranslator {
    agent: Agent,
    effects: Effects,
    /// Files that are being read.
    reads: JoinSet<OldText>,
    /// The editor's files, for the tools of a daemon in this process.
    texts: Option<Arc<EditorTexts>>,
    wanted_texts: Option<mpsc::Receiver<TextRequest>>,
    /// The tools that wait for the editor, by the numbers of their requests.
    asked_texts: HashMap<u64, oneshot::Sender<Result<String, String>>>,
    last_text: u64,
}

/// A file that was read: the outer `None` for one whose text cannot be told, the inner one where none is there.
type OldText = (FileRead, Option<Option<String>>);

/// What comes beside lines.
pub(super) enum AcpNews {
    /// A file was read.
    Read(OldText),
    /// A tool wants a text of the editor, or gives it one.
    Text(TextRequest),
}

impl AcpTranslator {
    /// An agent that begins to speak to the daemon.
    pub(super) fn new(
        options: AgentOptions,
        texts: Option<(Arc<EditorTexts>, mpsc::Receiver<TextRequest>)>,
    ) -> Self {
        let mut effects = Effects::default();
        let agent = Agent::start(options, &mut effects);
        let (texts, wanted_texts) = texts.unzip();
        Self {
            agent,
            effects,
            reads: JoinSet::new(),
            texts,
            wanted_texts,
            asked_texts: HashMap::new(),
            last_text: 0,
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
}

impl Translator for AcpTranslator {
    type News = AcpNews;

    fn host_line(&mut self, line: &str) {
        self.agent.client_line(line, &mut self.effects);
        if let Some(texts) = &self.texts {
            texts.offer(self.agent.has_files());
        }
    }

    fn line_too_long(&mut self, limit: usize) {
        self.agent.line_too_long(limit, &mut self.effects);
    }

    fn line_refused(&mut self, failure: &Failure) {
        self.agent.line_refused(failure, &mut self.effects);
    }

    fn daemon_line(&mut self, line: &str) {
        self.agent.daemon_line(line, &mut self.effects);
    }

    fn host_gone(&mut self) {
        self.agent.client_gone(&mut self.effects);
    }

    fn daemon_gone(&mut self) {
        self.agent.daemon_gone(&mut self.effects);
    }

    fn is_idle(&self) -> bool {
        self.agent.is_idle()
    }

    fn to_host(&mut self) -> &mut Vec<u8> {
        &mut self.effects.to_client
    }

    fn to_daemon(&mut self) -> &mut VecDeque<String> {
        &mut self.effects.to_daemon
    }

    fn unusable(&mut self) -> Option<String> {
        self.effects.unusable.take()
    }

    fn start_work(&mut self) {
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
    }

    async fn news(&mut self) -> AcpNews {
        tokio::select! {
            biased;
            Some(request) = next_text(self.wanted_texts.as_mut()) => AcpNews::Text(request),
            Some(Ok(read)) = self.reads.join_next() => AcpNews::Read(read),
            else => std::future::pending().await,
        }
    }

    fn take_news(&mut self, news: AcpNews) {
        match news {
            AcpNews::Text(request) => self.text_request(request),
            AcpNews::Read((read, Some(text))) => self.agent.file_read(&read, text),
            AcpNews::Read((_, None)) => {}
        }
    }
}

/// Waits for a request about a file, for ever where there are none. Cancel safe.
async fn next_text(requests: Option<&mut mpsc::Receiver<TextRequest>>) -> Option<TextRequest> {
    match requests {
        Some(requests) => requests.recv().await,
        None => std::future::pending().await,
    }
}
