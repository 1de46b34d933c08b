//! The events that extensions can subscribe to, by the names of pi 1.5.2.

macro_rules! event_kinds {
    ($($name:ident = $wire:literal),* $(,)?) => {
        /// An event that extensions can subscribe to.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[expect(missing_docs, reason = "each is the event of its name in docs/extension-protocol.md")]
        pub enum EventKind {
            $($name),*
        }

        impl EventKind {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// Its name: the `type` of the event.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $wire),* }
            }

            /// The event of that name. Extensions may subscribe to others, which never happen.
            #[must_use]
            pub fn of(name: &str) -> Option<Self> {
                match name {
                    $($wire => Some(Self::$name),)*
                    _ => None,
                }
            }
        }
    };
}

event_kinds! {
    ProjectTrust = "project_trust",
    SessionStart = "session_start",
    ResourcesDiscover = "resources_discover",
    SessionInfoChanged = "session_info_changed",
    SessionBeforeSwitch = "session_before_switch",
    SessionBeforeFork = "session_before_fork",
    SessionBeforeCompact = "session_before_compact",
    SessionCompact = "session_compact",
    SessionCompactFailed = "session_compact_failed",
    SessionBeforeTree = "session_before_tree",
    SessionTree = "session_tree",
    SessionShutdown = "session_shutdown",
    McpServersChange = "mcp_servers_change",
    Input = "input",
    BeforeAgentStart = "before_agent_start",
    AgentStart = "agent_start",
    AgentEnd = "agent_end",
    AgentBeforeSettle = "agent_before_settle",
    AgentSettled = "agent_settled",
    TurnStart = "turn_start",
    TurnEnd = "turn_end",
    MessageStart = "message_start",
    MessageUpdate = "message_update",
    MessageEnd = "message_end",
    Context = "context",
    ContextWithSystem = "context_with_system",
    BeforeProviderHeaders = "before_provider_headers",
    BeforeProviderRequest = "before_provider_request",
    AfterProviderResponse = "after_provider_response",
    ProviderStreamEvent = "provider_stream_event",
    ToolExecutionStart = "tool_execution_start",
    ToolExecutionUpdate = "tool_execution_update",
    ToolExecutionEnd = "tool_execution_end",
    ToolCall = "tool_call",
    ToolResult = "tool_result",
    ModelSelect = "model_select",
    ThinkingLevelSelect = "thinking_level_select",
    UserBash = "user_bash",
    CacheWarmingDecision = "cache_warming_decision",
    UiPromptStart = "ui_prompt_start",
    UiPromptEnd = "ui_prompt_end",
}

/// A set of events, tested without a lock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct EventSet(u64);

impl EventSet {
    /// As a number.
    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    /// The set of that number.
    pub(crate) fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    pub(crate) fn insert(&mut self, kind: EventKind) {
        self.0 |= 1 << kind as u64;
    }

    /// Both together.
    pub(crate) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) fn contains(self, kind: EventKind) -> bool {
        self.0 & (1 << kind as u64) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_their_events() {
        assert!(EventKind::ALL.len() <= 64);
        for kind in EventKind::ALL {
            assert_eq!(EventKind::of(kind.name()), Some(*kind));
        }
        assert_eq!(EventKind::of("session_directory"), None);
    }

    #[test]
    fn a_set_has_what_was_put_into_it() {
        let mut set = EventSet::default();
        set.insert(EventKind::ToolCall);
        let set = EventSet::from_bits(set.bits());
        let kept: Vec<_> = EventKind::ALL.iter().filter(|kind| set.contains(**kind)).collect();
        assert_eq!(kept, [&EventKind::ToolCall]);
    }
}
