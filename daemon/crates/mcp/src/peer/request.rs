//! The terms of a request, and how it ends without a result.

use std::{sync::Arc, time::Duration};

use agentd_memory::MemoryRefused;
use tokio_util::sync::CancellationToken;

use crate::{elicitation::UserInput, message::ServerError};

/// Why a request has no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum RequestError {
    /// The server answered with an error.
    #[error("{} (code {})", .0.message, .0.code)]
    Server(ServerError),
    /// The server did not answer in time.
    #[error("it did not answer within {} seconds", .0.as_secs_f64())]
    TimedOut(Duration),
    /// The answer was too long.
    #[error("its answer was longer than {limit} bytes")]
    TooLong {
        /// The limit.
        limit: usize,
    },
    /// There is no memory for the answer.
    #[error("its answer was given up: {why}. {hint}", why = .0, hint = .0.hint())]
    NoMemory(MemoryRefused),
    /// The server could not be reached, or answered otherwise than HTTP is used here.
    #[error("{0}")]
    Http(String),
    /// The server refused the request by a status of HTTP.
    #[error("{text}")]
    Status {
        /// The status.
        status: u16,
        /// What the server said.
        text: String,
    },
    /// The server answered otherwise than its revision of MCP says.
    #[error("{0}")]
    Invalid(String),
    /// The server refused the request for lack of a good token, and did not run it.
    #[error("{0}")]
    Unauthorized(String),
    /// The server has ended the session, and did not run the request.
    #[error("the server has ended the session")]
    SessionExpired,
    /// The caller gave the request up.
    #[error("the request was given up")]
    Cancelled,
    /// The connection ended first.
    #[error("{0}")]
    Closed(Arc<str>),
}

/// How long a request may take, who may end it, and who answers the server's questions about it.
#[derive(Clone)]
pub(crate) struct RequestTerms<'a> {
    /// The time until the answer; each report of progress begins it anew, and it stands still while the user is asked.
    pub(crate) timeout: Duration,
    /// Gives the request up.
    pub(crate) cancel: Option<&'a CancellationToken>,
    /// Hears of progress, if the server is to report it.
    pub(crate) progress: Option<ProgressReport>,
    /// The user on whose behalf the request is made.
    pub(crate) user: Option<Arc<dyn UserInput>>,
    /// Arguments that HTTP repeats in headers, in the stateless revision.
    pub(crate) header_arguments: Vec<(String, String)>,
}

impl RequestTerms<'static> {
    /// A request with nothing but a limit of time.
    pub(crate) fn within(timeout: Duration) -> Self {
        Self { timeout, cancel: None, progress: None, user: None, header_arguments: Vec::new() }
    }
}

/// Takes the text of a call's progress.
pub(crate) type ProgressReport = Arc<dyn Fn(String) + Send + Sync>;
