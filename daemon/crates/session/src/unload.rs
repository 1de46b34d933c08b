//! Unloading an idle session, and the state that a reload needs.
//!
//! The session's clients stay, so that subscribers notice nothing and events keep their numbers, and an [`Unloaded`].
//! All else is read again from the file.
//!
//! An idle actor tells the registry, which asks it to unload: the actor checks that nothing works or waits, and ends without closing its
//! event log. What stays is the log without its replay events, the options, and the few lines of a session without a file. A caller that
//! hands the session a command holds its gate meanwhile, and the registry takes the gate for writing before it asks, so that no command is
//! lost; a caller that finds no actor behind the gate loads the session from its file, on the same log.

use std::{path::Path, sync::Arc, time::SystemTime};

use agentd_config::{StartingFiles, models::RestoredChoice};
use agentd_protocol::{agent_mode::AgentMode, settings::PermissionSettings};
use tokio::sync::oneshot;

use crate::session_tools::ToolChoice;

/// The state of an unloaded session that its file does not hold, beside its clients and options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unloaded {
    pub(crate) file: Box<Path>,
    /// Detects changes of the file since; `None` while there is no file, or where its metadata could not be read.
    pub(crate) stamp: Option<Box<Stamp>>,
    /// The lines of a session whose file is yet to be made.
    pub(crate) unsaved: Option<Box<[u8]>>,
    /// The entry that the next one follows.
    pub(crate) leaf: Leaf,
    /// Whether the session went back to that place, and what it goes on with there: the branch may say otherwise.
    pub(crate) moved: Option<RestoredChoice>,
    /// The provider that a key of the options is for.
    pub(crate) key_provider: Option<Box<str>>,
    /// The tools that somebody chose.
    pub(crate) tools: ToolChoice,
    /// The mode.
    pub(crate) mode: AgentMode,
    /// The fallback models, where a command chose them.
    pub(crate) fallback_models: Option<Arc<[String]>>,
    /// Changes of the permissions by commands, if there were any.
    pub(crate) permissions: Option<Box<PermissionSettings>>,
    /// Whether the user said that the project is trusted for as long as the session is open.
    pub(crate) trusted: bool,
    /// The files of the project that trust was given for, where the project is trusted.
    pub(crate) trusted_files: Option<Box<StartingFiles>>,
}

/// Metadata that changes when a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    bytes: u64,
    modified: Option<SystemTime>,
    /// The device and the number of the file: another one may have taken its place.
    #[cfg(unix)]
    file: (u64, u64),
}

impl Stamp {
    /// Blocks. `None` for a file that cannot be looked at.
    pub(crate) fn of(path: &Path) -> Option<Box<Self>> {
        #[cfg(unix)]
        use std::os::unix::fs::MetadataExt as _;
        let metadata = path.metadata().ok()?;
        Some(Box::new(Self {
            bytes: metadata.len(),
            // Some file systems do not keep it.
            modified: metadata.modified().ok(),
            #[cfg(unix)]
            file: (metadata.dev(), metadata.ino()),
        }))
    }
}

/// The entry that the next entry of a session follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Leaf {
    /// The last entry of the file, if there is one.
    Last,
    /// Another entry.
    At(Box<str>),
    /// No entry, though there are some.
    Root,
}

impl Unloaded {
    /// The session's file, which need not be there yet.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Whether its file is not as it was left: another program has written to it, or it could not be looked at. Reads the file's
    /// metadata; blocks.
    pub(crate) fn has_changed(&self) -> bool {
        self.unsaved.is_none() && (self.stamp.is_none() || self.stamp != Stamp::of(&self.file))
    }

    /// Whether it has a file, with all that was said in it.
    #[must_use]
    pub fn has_its_file(&self) -> bool {
        self.unsaved.is_none()
    }

    /// Whether its file holds all of its state, so that opening the file continues the same session.
    #[must_use]
    pub fn is_all_in_its_file(&self) -> bool {
        let Self {
            file: _,
            stamp: _,
            unsaved,
            leaf,
            moved,
            key_provider,
            tools: _,
            mode: _,
            fallback_models,
            permissions,
            trusted,
            trusted_files: _,
        } = self;
        unsaved.is_none()
            && *leaf == Leaf::Last
            && moved.is_none()
            && key_provider.is_none()
            && fallback_models.is_none()
            && permissions.is_none()
            && !trusted
    }
}

/// Answers with what brings the session back, once nothing of it is left in memory; with nothing if it stays.
pub(crate) type Unloading = oneshot::Sender<Option<Unloaded>>;
