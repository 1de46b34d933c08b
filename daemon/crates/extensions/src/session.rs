//! What extensions can ask of their session. The session implements this; nothing here knows how.

use agentd_protocol::resources::SourceInfo;
use serde::Serialize;
use serde_json::{Map, Value};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::{
    channel::HostChannel,
    connection::{CallWithin, HostConnection, RequestError, RequestTerms},
    record::HostFailure,
};

/// The session of extensions.
///
/// No method waits: a handler of an extension may hold up the session's own work while it calls.
pub trait ExtensionSession: Send + Sync {
    /// A call of an extension, which is answered by its responder.
    fn call(&self, call: SessionCall);

    /// Something for the user that needs no answer: the fields of an `extension_ui_request` without its `id`.
    fn show(&self, fields: Map<String, Value>);

    /// Tells the clients of a failure.
    fn failed(&self, failure: ExtensionFailure);

    /// The tools of extensions have changed.
    fn tools_changed(&self);

    /// The providers or virtual models of extensions have changed.
    fn models_changed(&self);

    /// Says when no turn is under way. Dropped where the session is gone.
    fn between_turns(&self, reached: oneshot::Sender<()>);
}

/// A call of an extension.
pub struct SessionCall {
    /// What is asked for, as `docs/extension-protocol.md` lists it.
    pub method: String,
    /// Its parameters.
    pub params: Value,
    /// The extension, as errors name it.
    pub extension: String,
    /// Whether it was made to answer a model request of ours.
    pub is_in_stream: bool,
    /// Whether it was made while the extension was asked for something: by a tool, a handler or a command.
    pub is_within: bool,
    /// The session's number of the command in which it was made.
    pub command: Option<u64>,
    /// Answers it.
    pub responder: CallResponder,
}

/// Answers a call of an extension. Dropped without an answer, it says that the session is gone.
pub struct CallResponder {
    pub(crate) connection: HostConnection,
    pub(crate) id: u64,
    pub(crate) cancel: CancellationToken,
    /// The clock of the request in which the call was made stands still until then.
    pub(crate) within: Option<CallWithin>,
    pub(crate) is_answered: bool,
}

impl CallResponder {
    /// Answers, after everything that was told to the host before.
    pub fn send(mut self, outcome: &Result<Value, HostFailure>) {
        self.is_answered = true;
        self.connection.answer(self.id, outcome);
        self.within = None;
    }

    /// Sends a part of the answer. Waits while the host has not read most of what was sent.
    pub async fn event(&self, event: &impl Serialize) {
        #[derive(Serialize)]
        struct Note<'a, T> {
            id: u64,
            event: &'a T,
        }
        self.connection.room().await;
        self.connection.note("call.event", &Note { id: self.id, event });
    }

    /// Tells the extension of results so far.
    #[must_use]
    pub fn progress(&self) -> CallProgress {
        CallProgress { connection: self.connection.clone(), id: self.id }
    }

    /// Fires when the host of the extension is gone.
    #[must_use]
    pub fn host_over(&self) -> &CancellationToken {
        self.connection.over()
    }

    /// The functions that the extension hands over with its calls.
    #[must_use]
    pub fn functions(&self) -> HostFunctions {
        HostFunctions(self.connection.clone())
    }

    /// A channel of the host, by the number that it has given it.
    #[must_use]
    pub fn channel(&self, number: u64) -> HostChannel {
        HostChannel::new(self.connection.clone(), number)
    }

    /// The way to the host for what it is told without asking.
    #[must_use]
    pub fn notes(&self) -> HostNotes {
        HostNotes(self.connection.clone())
    }

    /// Fires when the extension gives the call up.
    #[must_use]
    pub fn cancelled(&self) -> &CancellationToken {
        &self.cancel
    }
}

/// Tells an extension of the results so far of a call that it made. Cheap to clone.
#[derive(Clone)]
pub struct CallProgress {
    connection: HostConnection,
    id: u64,
}

impl CallProgress {
    /// The result so far.
    pub fn update(&self, partial: &impl Serialize) {
        #[derive(Serialize)]
        struct Update<'a, T> {
            id: u64,
            partial: &'a T,
        }
        self.connection.note("call.update", &Update { id: self.id, partial });
    }
}

/// Tells a host things that it has not asked for. What is told first is read first. Cheap to clone.
#[derive(Clone)]
pub struct HostNotes(HostConnection);

impl HostNotes {
    /// Tells it, once it has read most of what was sent. Cancel safety: dropped early, it is not told.
    pub async fn tell(&self, kind: &str, fields: &impl Serialize) {
        self.0.room().await;
        self.0.note(kind, fields);
    }

    /// Fires when the host is gone.
    #[must_use]
    pub fn over(&self) -> &CancellationToken {
        self.0.over()
    }
}

/// The functions of a host that its extensions hand over by numbers.
#[derive(Clone)]
pub struct HostFunctions(HostConnection);

impl HostFunctions {
    /// Calls one. Calls that are made within it have the number of `command`.
    ///
    /// # Errors
    /// [`HostFailure`]: the function failed, or its host is gone.
    pub async fn call(
        &self,
        callback: u64,
        method: Option<&str>,
        args: Vec<Value>,
        command: Option<u64>,
    ) -> Result<Value, HostFailure> {
        #[derive(Serialize)]
        struct Call<'a> {
            cb: u64,
            #[serde(skip_serializing_if = "Option::is_none")]
            method: Option<&'a str>,
            args: Vec<Value>,
        }
        let terms = RequestTerms { command, ..RequestTerms::default() };
        let answer = self.0.request("ops.call", &Call { cb: callback, method, args }, terms).await;
        match answer {
            Ok(value) => serde_json::from_str(value.get())
                .map_err(|error| HostFailure::new("invalid", error.to_string())),
            Err(RequestError::Failed(failure)) => Err(failure),
            Err(error) => Err(HostFailure::new("gone", error.to_string())),
        }
    }
}

impl Drop for CallResponder {
    fn drop(&mut self) {
        if !self.is_answered {
            self.connection.answer(self.id, &Err(HostFailure::new("gone", "The session is closed.")));
        }
        self.cancel.cancel();
    }
}

/// A failure of an extension: the event `extension_error`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtensionFailure {
    /// The extension; `command:NAME` for a command, `<host>` for a host.
    pub extension_path: String,
    /// The event, or what it was about.
    pub event: String,
    /// What was the matter.
    pub error: String,
}

/// A slash command of an extension.
#[derive(Debug, Clone, PartialEq)]
pub struct ExtensionCommand {
    /// The name by which it is called, without the slash.
    pub name: String,
    /// Its purpose.
    pub description: Option<String>,
    /// Where it comes from.
    pub source_info: SourceInfo,
}
