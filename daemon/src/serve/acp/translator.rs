//! The editor's agent for the relay, with what it needs beside lines: files as they were, and the editor's own files and terminals.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use agentd_acp::{Agent, AgentOptions, Effects, FileRead, TerminalAnswer, TerminalRequest};
use agentd_protocol::error::Failure;
use tokio::{sync::mpsc, task::JoinSet};

use super::{
    super::relay::Translator,
    editor_link::{Answer, EditorLink, EditorRequest},
    old_text::old_text,
};

/// The agent, and what it waits for.
pub(super) struct AcpTranslator {
    agent: Agent,
    effects: Effects,
    /// Files that are being read.
    reads: JoinSet<OldText>,
    /// The editor, for the tools of a daemon in this process.
    link: Option<Arc<EditorLink>>,
    requests: Option<mpsc::Receiver<EditorRequest>>,
    /// The tools that wait for the editor's files, by the numbers of their requests.
    asked_texts: HashMap<u64, Answer<String>>,
    /// Those that wait for its terminals.
    asked_terminals: HashMap<u64, AskedTerminal>,
    last_request: u64,
}

/// A file that was read: the outer `None` for one whose text cannot be told, the inner one where none is there.
type OldText = (FileRead, Option<Option<String>>);

/// A tool that waits for the editor's answer about a terminal.
struct AskedTerminal {
    session: String,
    /// Whether the terminal is to be made: then the answer counts when the tool waits no more, too.
    is_new: bool,
    answer: Answer<TerminalAnswer>,
}

/// What comes beside lines.
pub(super) enum AcpNews {
    /// A file was read.
    Read(OldText),
    /// A tool wants something of the editor.
    Request(EditorRequest),
}

impl AcpTranslator {
    /// An agent that begins to speak to the daemon.
    pub(super) fn new(
        options: AgentOptions,
        editor: Option<(Arc<EditorLink>, mpsc::Receiver<EditorRequest>)>,
    ) -> Self {
        let mut effects = Effects::default();
        let agent = Agent::start(options, &mut effects);
        let (link, requests) = editor.unzip();
        Self {
            agent,
            effects,
            reads: JoinSet::new(),
            link,
            requests,
            asked_texts: HashMap::new(),
            asked_terminals: HashMap::new(),
            last_request: 0,
        }
    }

    /// Passes a tool's request on to the editor.
    fn request(&mut self, request: EditorRequest) {
        self.last_request += 1;
        let (number, effects) = (self.last_request, &mut self.effects);
        match request {
            EditorRequest::Text { session, path, text, answer } => {
                // Of those that were stopped, nobody waits any more.
                self.asked_texts.retain(|_, answer| !answer.is_closed());
                self.asked_texts.insert(number, answer);
                match text {
                    Some(text) => self.agent.text_written(number, &session, &path, &text, effects),
                    None => self.agent.text_wanted(number, &session, &path, effects),
                }
            }
            // It was stopped before the editor heard of it.
            EditorRequest::Terminal { answer: Some(answer), .. } if answer.is_closed() => {}
            EditorRequest::Terminal { session, request, answer } => {
                self.asked_terminals.retain(|_, asked| asked.is_new || !asked.answer.is_closed());
                if let Some(answer) = answer {
                    let is_new = matches!(request, TerminalRequest::Create(_));
                    let asked = AskedTerminal { session: session.clone(), is_new, answer };
                    self.asked_terminals.insert(number, asked);
                }
                self.agent.terminal_wanted(number, &session, request, effects);
            }
        }
    }

    /// Gives answers of the editor to the tools that wait for them. A terminal that came too late is given up.
    fn answer_tools(&mut self) {
        for (number, text) in self.effects.texts.drain(..) {
            if let Some(answer) = self.asked_texts.remove(&number) {
                // The call may have been stopped meanwhile.
                let _ = answer.send(text);
            }
        }
        for (number, given) in std::mem::take(&mut self.effects.terminals) {
            let Some(AskedTerminal { session, answer, .. }) = self.asked_terminals.remove(&number) else {
                continue;
            };
            if let Err(Ok(TerminalAnswer::Created(terminal))) = answer.send(given) {
                let release = TerminalRequest::Release(terminal);
                self.agent.terminal_wanted(number, &session, release, &mut self.effects);
            }
        }
    }
}

impl Translator for AcpTranslator {
    type News = AcpNews;

    fn host_line(&mut self, line: &str) {
        self.agent.client_line(line, &mut self.effects);
        if let Some(link) = &self.link {
            link.offer(self.agent.has_files(), self.agent.has_terminals());
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
        self.answer_tools();
    }

    async fn news(&mut self) -> AcpNews {
        tokio::select! {
            biased;
            Some(request) = next_request(self.requests.as_mut()) => AcpNews::Request(request),
            Some(Ok(read)) = self.reads.join_next() => AcpNews::Read(read),
            else => std::future::pending().await,
        }
    }

    fn take_news(&mut self, news: AcpNews) {
        match news {
            AcpNews::Request(request) => self.request(request),
            AcpNews::Read((read, Some(text))) => self.agent.file_read(&read, text),
            AcpNews::Read((_, None)) => {}
        }
    }
}

/// Waits for a request of a tool, for ever where there are none. Cancel safe.
async fn next_request(requests: Option<&mut mpsc::Receiver<EditorRequest>>) -> Option<EditorRequest> {
    match requests {
        Some(requests) => requests.recv().await,
        None => std::future::pending().await,
    }
}
