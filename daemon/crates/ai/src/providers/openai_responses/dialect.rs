//! What the APIs of this family do differently by nature, where `compat` only says what a server leaves out.

/// One of the APIs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::providers) enum Dialect {
    /// OpenAI's own, and what imitates it.
    OpenAi,
    /// Azure's: the model is a deployment of the user's.
    Azure,
    /// The one behind ChatGPT's subscriptions.
    Codex,
}

impl Dialect {
    /// Whether tools may be strict unless the model says otherwise.
    pub(super) fn is_strict(self) -> bool {
        self != Self::OpenAi
    }

    /// Whether requests may say how long the prompt is to be kept, unless the model says otherwise.
    pub(super) fn keeps_prompts_longer(self) -> bool {
        self == Self::OpenAi
    }

    /// Whether requests may limit the answer, unless the model says otherwise.
    pub(super) fn limits_answers(self) -> bool {
        self != Self::Codex
    }

    /// Whether a header says to which session a request belongs, unless the model says otherwise.
    pub(super) fn names_sessions(self) -> bool {
        self != Self::Azure
    }

    /// Whether the system prompt has a field of its own, which may not be empty.
    pub(super) fn has_instructions(self) -> bool {
        self == Self::Codex
    }

    /// Whether a tool that is not strict says so by `null`: that it is left to the server.
    pub(super) fn leaves_strictness_open(self) -> bool {
        self == Self::Codex
    }
}
