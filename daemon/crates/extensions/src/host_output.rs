//! What takes the output of a host.

/// Takes what a host writes, in order. Called while it is read: must not wait.
pub(crate) trait HostOutput: Send + Sync {
    /// A record.
    fn record(&self, line: String);

    /// Something that code of an extension printed.
    fn printed(&self, text: &str);

    /// The host is gone: why.
    fn ended(&self, reason: &str);
}
