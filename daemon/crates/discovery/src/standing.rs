//! Whether an item counts.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::item::Item;

/// An item and its standing.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedItem {
    /// The item.
    pub item: Arc<Item>,
    /// Whether it counts.
    pub standing: Standing,
}

/// Whether an item counts, or why not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It counts.
    Counts,
    /// One with the same key comes first: of this file.
    Shadowed(PathBuf),
    /// A server with the same command or address comes first, under this name.
    SameServer(String),
    /// `discovery.disabledItems` names it.
    Disabled,
    /// It is a skill, and `discovery.includeSkills` names others.
    LeftOut,
    /// Its own file switches it off.
    SwitchedOff,
    /// The project is not trusted.
    WaitsForTrust,
    /// It is found, and has no effect for this reason.
    NoEffect(String),
}

impl Standing {
    /// Returns whether the item counts.
    #[must_use]
    pub fn counts(&self) -> bool {
        *self == Self::Counts
    }

    /// Returns whether another item comes first.
    #[must_use]
    pub fn is_shadowed(&self) -> bool {
        matches!(self, Self::Shadowed(_) | Self::SameServer(_))
    }

    /// Why it does not count.
    pub(crate) fn reason(&self) -> Option<String> {
        let of = |path: &Path| format!("shadowed by {}", path.display());
        match self {
            Self::Counts => None,
            Self::Shadowed(path) => Some(of(path)),
            Self::SameServer(name) => Some(format!("the same server as \"{name}\"")),
            Self::Disabled => Some("switched off by discovery.disabledItems".to_owned()),
            Self::LeftOut => Some("left out by discovery.includeSkills".to_owned()),
            Self::SwitchedOff => Some("switched off in its file".to_owned()),
            Self::WaitsForTrust => Some("waits for trust".to_owned()),
            Self::NoEffect(reason) => Some(reason.clone()),
        }
    }
}
