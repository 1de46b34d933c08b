//! Who outside of a session is told what becomes of it.

/// Is told of sessions. Called from a session's own task: to be quick, and never to wait.
pub trait SessionWatch: Send + Sync {
    /// The [`Summary`](crate::Summary) of a session has news: another name, a begin or an end of work.
    fn changed(&self, id: &str);

    /// A session has had nothing to do for [`Limits::idle_after`](crate::Limits::idle_after). OpenEvents again after as long
    /// a time, if it still has not.
    fn idle(&self, id: &str);
}

/// Nobody.
impl SessionWatch for () {
    fn changed(&self, _id: &str) {}

    fn idle(&self, _id: &str) {}
}
