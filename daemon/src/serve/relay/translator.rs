//! The translator of a protocol, as the relay uses it.

use std::{collections::VecDeque, future::Future};

use agentd_protocol::error::Failure;

/// Translates between a host and a connection of ours. It moves no lines itself: they come by calls, and wait here to be taken.
pub(in crate::serve) trait Translator {
    /// What comes beside lines, such as the text of a file.
    type News;

    /// Takes a line of the host.
    fn host_line(&mut self, line: &str);

    /// Takes the news that the host's line was not kept: it was longer than `limit` bytes.
    fn line_too_long(&mut self, limit: usize);

    /// Takes the news that the host's line was not kept, and why.
    fn line_refused(&mut self, failure: &Failure);

    /// Takes a line of the daemon.
    fn daemon_line(&mut self, line: &str);

    /// The host has left.
    fn host_gone(&mut self);

    /// The daemon is gone.
    fn daemon_gone(&mut self);

    /// Whether the daemon has answered everything, and nothing is worked on that ends with the host.
    fn is_idle(&self) -> bool;

    /// Whole lines for the host.
    fn to_host(&mut self) -> &mut Vec<u8>;

    /// Lines for the daemon, without LF.
    fn to_daemon(&mut self) -> &mut VecDeque<String>;

    /// The reason why the daemon cannot be used.
    fn unusable(&mut self) -> Option<String>;

    /// Starts what the last line asked for beside lines.
    fn start_work(&mut self) {}

    /// Waits for news, for ever where there are none. Cancel safe.
    fn news(&mut self) -> impl Future<Output = Self::News>;

    /// Takes news.
    fn take_news(&mut self, news: Self::News);
}
