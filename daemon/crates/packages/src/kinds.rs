//! The kinds of resources that packages bring.

/// A kind of resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceKind {
    /// Code that sessions run.
    Extension,
    /// Instructions for one kind of work.
    Skill,
    /// A text that users send by a short name.
    Prompt,
    /// Colours of an interactive client.
    Theme,
}

impl ResourceKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Extension, Self::Skill, Self::Prompt, Self::Theme];

    /// The name of the folder, of the list in a manifest and of the filter in the settings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Extension => "extensions",
            Self::Skill => "skills",
            Self::Prompt => "prompts",
            Self::Theme => "themes",
        }
    }
}

/// A value for each kind.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct PerKind<T>([T; 4]);

impl<T> PerKind<T> {
    pub(crate) fn of(value: impl FnMut(ResourceKind) -> T) -> Self {
        Self(ResourceKind::ALL.map(value))
    }

    pub(crate) fn get(&self, kind: ResourceKind) -> &T {
        &self.0[kind as usize]
    }

    pub(crate) fn get_mut(&mut self, kind: ResourceKind) -> &mut T {
        &mut self.0[kind as usize]
    }
}
