//! The loop: keys, messages of the connection and time go into the state; effects and the screen come out of it.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use crossterm::event::{Event as TerminalEvent, EventStream, MouseEventKind};
use futures::StreamExt as _;
use tokio::sync::mpsc;

use crate::{
    app::{Chat, Effect, Message, update},
    complete, editing, history,
    link::{self, LinkRequest},
    options::{ChatError, ChatOptions},
    terminal::Screen,
    view,
};

/// The least time between two screens that events alone ask for: 60 a second.
const FRAME: Duration = Duration::from_millis(16);

/// How often what is timed is drawn.
const TICK: Duration = Duration::from_millis(100);

/// How many rows a turn of the wheel is.
const WHEEL_ROWS: i32 = 3;

/// How many messages wait for the program. After that, the connection is not read.
const WAITING: usize = 1_024;

/// The session that was on the screen when the program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatEnd {
    /// Its id.
    pub session: String,
    /// Whether anything was said in it.
    pub has_messages: bool,
}

/// Runs the program until the user leaves. Dropping it gives the terminal back.
///
/// # Errors
/// When the terminal cannot be used, the daemon cannot be reached, or the session cannot be opened.
pub async fn run(options: ChatOptions) -> Result<ChatEnd, ChatError> {
    let options = Arc::new(options);
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let mut chat = Chat::new(PathBuf::from(&options.open.cwd), home);
    chat.editor.set(&options.draft);
    let (sender, mut messages) = mpsc::channel(WAITING);
    let (requests, taken) = mpsc::channel(WAITING);
    let mut link = tokio::spawn(link::run(Arc::clone(&options), taken, sender.clone()));
    // The first session is opened before the screen changes, so that a refusal stands in the shell.
    let first = tokio::select! {
        ended = &mut link => {
            return match ended {
                Ok(Err(error)) => Err(error),
                Ok(Ok(())) => Err(ChatError::Terminal(io::Error::other("the connection ended at once"))),
                Err(error) => Err(ChatError::Terminal(io::Error::other(error))),
            };
        }
        first = messages.recv() => first,
    };
    let mut program = Program {
        screen: Screen::take()?,
        keys: Some(EventStream::new()),
        chat,
        requests,
        sender,
        files: FileSearch::default(),
        options,
        drawn: None,
        is_over: false,
    };
    program.read_history();
    if let Some(first) = first {
        program.take(first).await?;
    }
    program.draw()?;
    let end = program.run(&mut messages).await;
    link.abort();
    end
}

struct Program {
    screen: Screen,
    /// `None` while another program has the terminal.
    keys: Option<EventStream>,
    chat: Chat,
    requests: mpsc::Sender<LinkRequest>,
    sender: mpsc::Sender<Message>,
    files: FileSearch,
    options: Arc<ChatOptions>,
    drawn: Option<Instant>,
    is_over: bool,
}

/// The search for files: one at a time, and the newest query next.
#[derive(Debug, Default)]
struct FileSearch {
    is_on: bool,
    next: Option<String>,
}

impl Program {
    async fn run(mut self, messages: &mut mpsc::Receiver<Message>) -> Result<ChatEnd, ChatError> {
        let mut is_stale = false;
        while !self.is_over {
            let next_frame = self.drawn.map_or(Duration::ZERO, |drawn| FRAME.saturating_sub(drawn.elapsed()));
            let keys = self.keys.get_or_insert_with(EventStream::new);
            tokio::select! {
                biased;
                event = keys.next() => match event {
                    Some(event) => {
                        let event = event?;
                        if matches!(event, TerminalEvent::Resize(..)) {
                            self.screen.clear()?;
                        }
                        let message = input(event);
                        if let Some(message) = message {
                            self.take(message).await?;
                        }
                        // A key is on the screen at once.
                        self.draw()?;
                        is_stale = false;
                    }
                    // The terminal is gone.
                    None => break,
                },
                () = tokio::time::sleep(next_frame), if is_stale => {
                    self.draw()?;
                    is_stale = false;
                }
                message = messages.recv() => {
                    let Some(message) = message else { break };
                    self.take(message).await?;
                    is_stale = true;
                }
                () = tokio::time::sleep(TICK), if self.chat.is_timed() && !is_stale => {
                    self.take(Message::Tick).await?;
                    is_stale = true;
                }
            }
        }
        self.screen.put(&self.chat.transcript.forget_images())?;
        let session = self.chat.session.session_id.clone();
        Ok(ChatEnd { session, has_messages: self.chat.transcript.prompts().next().is_some() })
    }

    async fn take(&mut self, message: Message) -> Result<(), ChatError> {
        if let Message::Files { .. } = &message {
            self.files.is_on = false;
            if let Some(query) = self.files.next.take() {
                self.find_files(query);
            }
        }
        for effect in update(&mut self.chat, message) {
            self.perform(effect).await?;
        }
        Ok(())
    }

    async fn perform(&mut self, effect: Effect) -> Result<(), ChatError> {
        match effect {
            Effect::Call(call) => self.request(LinkRequest::Call(call)).await,
            Effect::Switch(to) => self.request(LinkRequest::Switch(to)).await,
            Effect::Reconnect => self.request(LinkRequest::Reconnect).await,
            Effect::Redraw => self.screen.clear()?,
            Effect::Bell => self.screen.ring()?,
            Effect::Quit => self.is_over = true,
            Effect::FindFiles(query) => self.find_files(query),
            Effect::Remember(prompt) => self.remember(prompt),
            Effect::Suspend => {
                self.leave_terminal()?;
                editing::suspend()?;
                self.screen.retake()?;
            }
            Effect::OpenEditor(text) => {
                self.leave_terminal()?;
                let edited = editing::edit(&text).await;
                self.screen.retake()?;
                // What was typed comes back where the editor did not work.
                if edited.is_err() {
                    self.chat.editor.set(&text);
                }
                for effect in update(&mut self.chat, Message::Edited(edited)) {
                    if effect == Effect::Redraw {
                        self.screen.clear()?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Leaves the terminal to another program. With the other screen go the images on it.
    fn leave_terminal(&mut self) -> io::Result<()> {
        self.keys = None;
        self.screen.put(&self.chat.transcript.forget_images())?;
        crate::terminal::give_back();
        Ok(())
    }

    async fn request(&self, request: LinkRequest) {
        // The task of the connection ends with the program alone.
        let _ = self.requests.send(request).await;
    }

    fn find_files(&mut self, query: String) {
        if self.files.is_on {
            self.files.next = Some(query);
            return;
        }
        self.files.is_on = true;
        let (folder, sender) = (self.chat.folder.clone(), self.sender.clone());
        tokio::task::spawn_blocking(move || {
            let files = complete::find(&folder, &query);
            // The program may have ended.
            let _ = sender.blocking_send(Message::Files { query, files });
        });
    }

    fn read_history(&self) {
        let (file, sender) = (self.options.history.clone(), self.sender.clone());
        tokio::task::spawn_blocking(move || {
            let message = match history::read(&file) {
                Ok(prompts) => Message::History(prompts),
                Err(error) => not_kept(&file, &error),
            };
            let _ = sender.blocking_send(message);
        });
    }

    fn remember(&self, prompt: String) {
        let (file, sender) = (self.options.history.clone(), self.sender.clone());
        tokio::task::spawn_blocking(move || {
            if let Err(error) = history::append(&file, &prompt) {
                let _ = sender.blocking_send(not_kept(&file, &error));
            }
        });
    }

    fn draw(&mut self) -> Result<(), ChatError> {
        let (chat, has_colours) = (&mut self.chat, self.options.has_colours);
        if self.options.draws_images {
            chat.cell = crate::terminal::cell_size();
        }
        self.screen.terminal.draw(|frame| {
            let area = frame.area();
            if let Some(cursor) = view::draw(chat, area, frame.buffer_mut(), has_colours) {
                frame.set_cursor_position(cursor);
            }
        })?;
        self.screen.put(&chat.transcript.take_image_sequences())?;
        self.drawn = Some(Instant::now());
        Ok(())
    }
}

/// The notice about a history that cannot be kept.
fn not_kept(file: &Path, error: &io::Error) -> Message {
    Message::Trouble(format!("Earlier prompts are not kept: {}: {error}", file.display()))
}

fn input(event: TerminalEvent) -> Option<Message> {
    match event {
        TerminalEvent::Key(key) => Some(Message::Key(key)),
        TerminalEvent::Paste(text) => Some(Message::Paste(text)),
        TerminalEvent::Resize(..) => Some(Message::Resize),
        TerminalEvent::Mouse(mouse) => match mouse.kind {
            MouseEventKind::ScrollUp => Some(Message::Wheel(-WHEEL_ROWS)),
            MouseEventKind::ScrollDown => Some(Message::Wheel(WHEEL_ROWS)),
            _ => None,
        },
        TerminalEvent::FocusGained | TerminalEvent::FocusLost => None,
    }
}
