//! What a provider is called, and where it stands.

/// A reader of one tool's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Provider {
    /// The id in settings and on the wire.
    pub id: &'static str,
    /// The name for people.
    pub name: &'static str,
    /// Of two items with one name, that of the provider with the higher priority counts.
    pub priority: u8,
    /// True if its files of the user count only when `discovery.enabledProviders` names it.
    pub user_is_opt_in: bool,
}

impl Provider {
    pub(crate) const fn new(
        id: &'static str,
        name: &'static str,
        priority: u8,
        user_is_opt_in: bool,
    ) -> Self {
        Self { id, name, priority, user_is_opt_in }
    }
}

/// agentd's own files.
pub const NATIVE: Provider = Provider::new("native", "agentd", 100, false);

/// The folders `.agents`, which are for every agent.
pub const AGENTS: Provider = Provider::new("agents", "Agents", 70, false);

/// What packages bring.
pub const PACKAGES: Provider = Provider::new("packages", "Packages", 90, false);

/// `AGENTS.md` of folders, which agentd reads as pi does.
pub const AGENTS_MD: Provider = Provider::new("agents-md", "AGENTS.md", 10, false);

/// `CLAUDE.md` of folders, which agentd reads as pi does.
pub const CLAUDE_MD: Provider = Provider::new("claude-md", "CLAUDE.md", 10, false);
