//! The state of a [`Server`]: the prompts that are worked on, and the requests of both sides that are not answered yet.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    path::PathBuf,
};

use agentd_protocol::permissions::PermissionQuestion;
use agentd_translator::{DaemonCalls, rpc::RequestId};
use serde_json::Value;

use crate::{
    arguments::PromptArguments, requests::ClientInfo, results::Outcome, transcript::Wanted, versions::Era,
};

/// What a [`Server`] is told at its start.
#[derive(Debug, Default)]
pub struct ServerOptions {
    /// Our version.
    pub version: String,
    /// The folder of sessions where the caller names none.
    pub cwd: PathBuf,
    /// Flags of the command line for each session that is opened.
    pub session_args: Vec<String>,
    /// The environment of sessions, where the daemon has another one.
    pub env: Option<BTreeMap<String, String>>,
    /// Whether the daemon has other clients, and its sessions outlive this one.
    pub shared: bool,
}

/// What is to be done after a line.
#[derive(Debug, Default)]
pub struct Effects {
    /// Whole lines for the client.
    pub to_client: Vec<u8>,
    /// Lines for the daemon, without LF.
    pub to_daemon: VecDeque<String>,
    /// The reason why the daemon cannot be used.
    pub unusable: Option<String>,
}

/// An MCP client's server. See the crate's documentation.
#[derive(Debug)]
pub struct Server {
    pub(super) options: ServerOptions,
    /// Set by `initialize`.
    pub(super) handshake: Option<Handshake>,
    pub(super) introduced: Introduced,
    /// The sessions that work on a prompt, by their ids. No others are followed.
    pub(super) working: HashMap<String, Work>,
    /// Results of prompts whose caller was asked something and has not come back, oldest first.
    pub(super) unclaimed: VecDeque<(String, Value)>,
    /// Our commands that the daemon has not answered.
    pub(super) daemon_calls: DaemonCalls<DaemonCall>,
    /// Our questions that the client has not answered, by the ids of their requests.
    pub(super) asked: HashMap<u64, Asked>,
    /// Where the sessions are that this client has had, by their ids.
    pub(super) places: HashMap<String, Place>,
    /// The open `subscriptions/listen` requests.
    pub(super) listening: Vec<RequestId>,
    pub(super) last_question: u64,
    pub(super) last_work: u64,
    /// Whether the client has left.
    pub(super) is_leaving: bool,
}

/// What a client said in `initialize`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Handshake {
    pub(super) version: &'static str,
    pub(super) shows_forms: bool,
}

/// What the daemon was told of the client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Introduced {
    pub(super) client: Option<ClientInfo>,
    /// Whether questions about calls can come to it.
    pub(super) takes_questions: bool,
}

/// Who waits for an answer.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    pub(super) request: RequestId,
    pub(super) era: Era,
    /// The revision of the protocol.
    pub(super) version: &'static str,
    /// Set where it wants to hear of progress.
    pub(super) progress_token: Option<Value>,
    /// Whether its user can be asked.
    pub(super) shows_forms: bool,
}

/// A prompt that a session works on.
#[derive(Debug)]
pub(super) struct Work {
    /// Names it in the results of questions.
    pub(super) state: String,
    /// `None` once the call is cancelled, and while the client is to come back with answers.
    pub(super) caller: Option<Caller>,
    /// Whether the daemon has taken the prompt.
    pub(super) is_accepted: bool,
    pub(super) is_cancelled: bool,
    pub(super) outcome: Outcome,
    /// What is being done, for people.
    pub(super) activity: String,
    /// The number of the last notification about progress.
    pub(super) progress: u64,
    /// The questions that wait for the user, by their ids.
    pub(super) questions: BTreeMap<String, PermissionQuestion>,
}

/// A question that the client was asked by a request of ours.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) session: String,
    pub(super) question: String,
}

/// A prompt whose session is not open yet.
#[derive(Debug)]
pub(super) struct Opening {
    /// `None` once the call is cancelled.
    pub(super) caller: Option<Caller>,
    pub(super) arguments: PromptArguments,
}

/// Where a session is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// Its file; `None` for one in memory.
    pub(super) path: Option<String>,
    /// The folder that it works in.
    pub(super) cwd: String,
}

/// What a session is looked for.
#[derive(Debug)]
pub(super) enum Errand {
    /// A prompt goes on in it.
    Prompt(Box<Opening>),
    /// It is read.
    Read { caller: Caller, wanted: Wanted },
}

impl Errand {
    /// Who waits for it.
    pub(super) fn caller(&self) -> Option<&Caller> {
        match self {
            Self::Prompt(opening) => opening.caller.as_ref(),
            Self::Read { caller, .. } => Some(caller),
        }
    }
}

/// A command of ours that the daemon has not answered.
#[derive(Debug)]
pub(super) enum DaemonCall {
    Hello,
    /// A page of the list in which a session is looked for.
    Find {
        session: String,
        errand: Errand,
    },
    /// Opening the session of a prompt.
    Open(Box<Opening>),
    Prompt {
        session: String,
    },
    /// The state of a session after an extension took the prompt.
    AtWork {
        session: String,
    },
    /// Joining a session anew, of which events were lost.
    Attach {
        session: String,
    },
    /// The state of a session that is to be steered.
    SteerLook {
        caller: Caller,
        session: String,
        message: String,
    },
    Steer {
        caller: Caller,
        session: String,
    },
    Abort {
        caller: Caller,
        session: String,
    },
    /// The entries of a session. `may_open`: whether a session that is not open is opened.
    Entries {
        caller: Caller,
        session: String,
        wanted: Wanted,
        may_open: bool,
    },
    /// Opening a session to read it.
    OpenToRead {
        caller: Caller,
        session: String,
        wanted: Wanted,
    },
    List {
        caller: Caller,
    },
    /// Its failure is no news for the client.
    Quiet,
}

impl DaemonCall {
    /// Who waits for the answer.
    pub(super) fn caller(&self) -> Option<&Caller> {
        match self {
            Self::Find { errand, .. } => errand.caller(),
            Self::Open(opening) => opening.caller.as_ref(),
            Self::SteerLook { caller, .. }
            | Self::Steer { caller, .. }
            | Self::Abort { caller, .. }
            | Self::Entries { caller, .. }
            | Self::OpenToRead { caller, .. }
            | Self::List { caller } => Some(caller),
            Self::Hello | Self::Prompt { .. } | Self::AtWork { .. } | Self::Attach { .. } | Self::Quiet => {
                None
            }
        }
    }
}
