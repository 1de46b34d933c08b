//! The connection to the daemon: it opens a session, follows it, makes calls, and comes back when it was lost.

mod attachments;
mod calls;
mod joining;
mod task;

pub(crate) use self::task::{LinkRequest, run};
