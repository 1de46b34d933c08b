//! Asking whether a file may be changed, where a call does not name its files.

use std::{path::Path, pin::Pin};

use tokio_util::sync::CancellationToken;

/// A change of a file that a call is about to make.
#[derive(Debug, Clone, Copy)]
pub struct ProposedChange<'a> {
    /// The call of the model.
    pub call_id: &'a str,
    /// The file, absolute.
    pub path: &'a Path,
    /// The session's folder.
    pub cwd: &'a Path,
    /// What it would contain.
    pub content: &'a str,
}

/// `Ok`, or a sentence for the model why the file must not be changed.
pub type ApprovalFuture<'a> = Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>>;

/// Decides about changes of files, one by one, as about calls of `edit`.
pub trait ChangeApproval: Send + Sync {
    /// Decides. It may take as long as a user takes; when `stop` fires, its future is dropped.
    fn approve<'a>(&'a self, change: ProposedChange<'a>, stop: &'a CancellationToken) -> ApprovalFuture<'a>;
}

/// Allows every change.
impl ChangeApproval for () {
    fn approve<'a>(&'a self, _: ProposedChange<'a>, _: &'a CancellationToken) -> ApprovalFuture<'a> {
        Box::pin(async { Ok(()) })
    }
}
