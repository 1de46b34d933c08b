//! The events that hooks can be for.

/// An event that hooks can be for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HookEvent {
    /// A tool call of the model is about to start.
    PreToolUse,
    /// A tool call of the model has succeeded.
    PostToolUse,
    /// The user has sent a message.
    UserPromptSubmit,
    /// A session was opened.
    SessionStart,
    /// The model is done.
    Stop,
    /// A subagent is done.
    SubagentStop,
    /// The context is about to be compacted.
    PreCompact,
    /// The user is asked something.
    Notification,
    /// A session was closed.
    SessionEnd,
}

impl HookEvent {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::PreToolUse,
        Self::PostToolUse,
        Self::UserPromptSubmit,
        Self::SessionStart,
        Self::Stop,
        Self::SubagentStop,
        Self::PreCompact,
        Self::Notification,
        Self::SessionEnd,
    ];

    /// Its name in configuration files, and for hooks.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::PreToolUse => "PreToolUse",
            Self::PostToolUse => "PostToolUse",
            Self::UserPromptSubmit => "UserPromptSubmit",
            Self::SessionStart => "SessionStart",
            Self::Stop => "Stop",
            Self::SubagentStop => "SubagentStop",
            Self::PreCompact => "PreCompact",
            Self::Notification => "Notification",
            Self::SessionEnd => "SessionEnd",
        }
    }

    /// The event of that name.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.name() == name)
    }

    /// Whether a hook that gave no answer in time counts as one that said no: what it guards must not happen without it.
    pub(crate) const fn fails_closed(self) -> bool {
        matches!(self, Self::PreToolUse)
    }

    /// Whether plain text that a hook prints is context for the model.
    pub(crate) const fn takes_plain_text(self) -> bool {
        matches!(self, Self::UserPromptSubmit | Self::SessionStart)
    }

    /// Whether a hook can say no to the event, or to its end.
    pub(crate) const fn can_block(self) -> bool {
        matches!(
            self,
            Self::PreToolUse
                | Self::PostToolUse
                | Self::UserPromptSubmit
                | Self::Stop
                | Self::SubagentStop
                | Self::PreCompact
        )
    }

    /// Whether the matchers of its hooks count.
    pub(crate) const fn has_matchers(self) -> bool {
        !matches!(self, Self::UserPromptSubmit | Self::Stop | Self::SubagentStop)
    }

    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back() {
        for (index, event) in HookEvent::ALL.into_iter().enumerate() {
            assert_eq!(HookEvent::of(event.name()), Some(event));
            assert_eq!(event.index(), index);
        }
        assert_eq!(HookEvent::of("preToolUse"), None);
    }
}
