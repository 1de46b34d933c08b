//! Errors of opening a session.

use std::path::PathBuf;

use agentd_config::{NoAgentDir, models::ReferenceError};
use agentd_extensions::{FlagError, LoadError, StartError};
use agentd_protocol::error::{ErrorCode, Failure};
use agentd_store::{ForkError, StoreError};
use tokio::task::JoinError;

use crate::{permissions::PermissionFault, sandbox::SandboxFault, transcript::store_failure};

/// Why a session could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is no home for settings and sessions.
    #[error(transparent)]
    AgentDir(#[from] NoAgentDir),
    /// The permissions cannot be used, so that nothing would be refused.
    #[error(transparent)]
    Permissions(#[from] PermissionFault),
    /// The sandbox that was asked for cannot be had.
    #[error(transparent)]
    Sandbox(#[from] SandboxFault),
    /// An extension cannot be loaded.
    #[error(transparent)]
    Extension(#[from] LoadError),
    /// A flag that neither agentd nor an extension has, or that lacks its value.
    #[error(transparent)]
    Flag(#[from] FlagError),
    /// The session file does not open.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The session cannot be copied.
    #[error(transparent)]
    Fork(#[from] ForkError),
    /// No session has that id.
    #[error("No session found matching '{0}'")]
    NotFound(String),
    /// A copy is to have the id of a session that is there.
    #[error("A session with the id '{id}' is there already: {}. Choose another --session-id.", path.display())]
    IdTaken {
        /// The id.
        id: String,
        /// The session's file.
        path: PathBuf,
    },
    /// The file of a session that left memory is not there any more.
    #[error("the session's file is gone: {}", .0.display())]
    Gone(PathBuf),
    /// The session belongs to another working directory.
    #[error(
        "Session '{id}' belongs to another working directory: {cwd}. Start in that directory, copy it with --fork {id}, \
         or name the file {}.",
        path.display()
    )]
    Elsewhere {
        /// The id, or its beginning.
        id: String,
        /// The directory of the session.
        cwd: String,
        /// The session's file.
        path: PathBuf,
    },
    /// The folder of session files cannot be read.
    #[error("cannot look for sessions in {}: {source}", dir.display())]
    Search {
        /// The folder.
        dir: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The folder that the session works in is gone.
    #[error(
        "Stored session working directory does not exist: {cwd}\nSession file: {}\nCurrent working directory: {}",
        file.display(),
        current.display()
    )]
    NoCwd {
        /// The session's id.
        id: String,
        /// The folder.
        cwd: String,
        /// The session's file.
        file: PathBuf,
        /// Where we are.
        current: PathBuf,
    },
    /// The command line asks for a model that is not there.
    #[error("{error}{}", load_error.as_ref().map(|text| format!("\n{text}")).unwrap_or_default())]
    Model {
        /// Why.
        #[source]
        error: ReferenceError,
        /// The error of models.json, which may be the reason.
        load_error: Option<String>,
    },
    /// It would take more than a setting allows.
    #[error("{}", .0.error)]
    Limit(Failure),
    /// The session is to begin in plan mode, which is switched off.
    #[error("plan mode is switched off by the setting plan.enabled")]
    PlanModeOff,
    /// The daemon is ending.
    #[error("the daemon is ending")]
    Ending(#[from] JoinError),
}

impl OpenError {
    /// The remedy, where the message does not name it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoCwd { id, .. } => Some(format!(
                "Make that folder again, or go on in another one with a copy: `agentctl fork --cwd DIR {id}`, or --fork with the \
                 session file."
            )),
            Self::Extension(_) => Some("Start without extensions: --no-extensions.".to_owned()),
            _ => None,
        }
    }
}

impl From<StartError> for OpenError {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Load(error) => error.into(),
            StartError::Flag(error) => error.into(),
        }
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        let code = match &error {
            OpenError::Store(error) => return store_failure(error),
            OpenError::Limit(failure) => return failure.clone(),
            OpenError::Fork(_) => ErrorCode::Io,
            OpenError::NotFound(_) | OpenError::Gone(_) | OpenError::Elsewhere { .. } => {
                ErrorCode::SessionNotFound
            }
            OpenError::IdTaken { .. }
            | OpenError::Permissions(_)
            | OpenError::Sandbox(_)
            | OpenError::Extension(_)
            | OpenError::Flag(_) => ErrorCode::InvalidField,
            OpenError::PlanModeOff => ErrorCode::Unsupported,
            OpenError::Model { .. } => ErrorCode::NoModel,
            OpenError::AgentDir(_) | OpenError::NoCwd { .. } | OpenError::Search { .. } => ErrorCode::Io,
            OpenError::Ending(_) => ErrorCode::ShuttingDown,
        };
        let failure = Self::new(code, error.to_string());
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}
