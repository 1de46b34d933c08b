//! Starting extensions in a session that is open: what is made beside the actor, and comes back to it.

use agentd_extensions::LoadError;
use agentd_protocol::error::Failure;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::oneshot;

use crate::{context::SessionContext, open::NewSettings};

/// What the function `setup` of an extension puts into a new session.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SetUp {
    #[serde(default)]
    pub(crate) entries: Vec<Value>,
    #[serde(default)]
    pub(crate) leaf_id: Option<String>,
}

/// Who waits for extensions to be started: answered once their handlers of `session_start` have ended.
pub(crate) type StartAsker = oneshot::Sender<Result<(), Failure>>;

/// Why extensions begin, as `session_start` says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StartReason {
    /// `startup`, `new`, `resume`, `fork` or `reload`.
    pub(crate) reason: &'static str,
    /// The file of the session before.
    pub(crate) previous_file: Option<String>,
}

/// Surroundings with extensions that are loaded and not told of their session.
pub(crate) struct LoadedAgain {
    pub(crate) surroundings: NewSurroundings,
    /// The extensions that could not be loaded.
    pub(crate) failures: Vec<LoadError>,
    pub(crate) why: StartReason,
    /// What an extension fills the session with.
    pub(crate) set_up: Option<Result<SetUp, Failure>>,
    pub(crate) asker: StartAsker,
}

/// Surroundings of a session with other extensions.
pub(crate) enum NewSurroundings {
    /// All settings were read again.
    Reread(Box<NewSettings>),
    /// All else is as it was.
    Same(Box<SessionContext>),
}
