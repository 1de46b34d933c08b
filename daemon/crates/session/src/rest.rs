//! Leaving memory while there is nothing to do, and coming back as if nothing had been.
//!
//! What stays is the feed, so that listeners stay and events go on being counted where they were, and a [`Rested`]. All
//! else is read again from the file.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use agentd_config::models::RestoredChoice;
use tokio::sync::oneshot;

use crate::{actor::Actor, choice::Choice, tools::ToolChoice};

/// What brings a session back that has left memory, beside its feed and the options that it was opened with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rested {
    pub(crate) file: Box<Path>,
    /// The lines of a session whose file is yet to be made.
    pub(crate) unsaved: Option<Box<[u8]>>,
    /// What the next entry follows.
    pub(crate) leaf: Leaf,
    /// Whether the session went back to that place, and what it goes on with there: the branch may say otherwise.
    pub(crate) moved: Option<RestoredChoice>,
    /// The provider that a key of the options is for.
    pub(crate) key_provider: Option<Box<str>>,
    /// The tools that somebody chose.
    pub(crate) tools: ToolChoice,
    /// Who is asked when the chosen model fails, where a command said that.
    pub(crate) fallback_models: Option<Arc<[String]>>,
    /// Whether the user said that the project is trusted for as long as the session is open.
    pub(crate) trusted: bool,
}

/// What the next entry of a session follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Leaf {
    /// The last entry of the file, if there is one.
    Last,
    /// Another entry.
    At(Box<str>),
    /// No entry, though there are some.
    Root,
}

impl Rested {
    /// The session's file, which need not be there yet.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Whether it has a file, with all that was said in it.
    #[must_use]
    pub fn has_its_file(&self) -> bool {
        self.unsaved.is_none()
    }

    /// Whether its file says all of it, so that whoever opens that goes on with the same session.
    #[must_use]
    pub fn is_all_in_its_file(&self) -> bool {
        let Self { file: _, unsaved, leaf, moved, key_provider, tools: _, fallback_models, trusted } = self;
        unsaved.is_none()
            && *leaf == Leaf::Last
            && moved.is_none()
            && key_provider.is_none()
            && fallback_models.is_none()
            && !trusted
    }
}

/// Answers with what brings the session back, once nothing of it is left in memory; with nothing if it stays.
pub(crate) type Resting = oneshot::Sender<Option<Rested>>;

impl Actor {
    /// What brings the session back, if it can leave memory without anyone noticing: it has a place on disk, nothing works
    /// for it, and nothing waits.
    pub(crate) fn rested(&mut self) -> Option<Rested> {
        if !self.is_quiet() {
            return None;
        }
        let tree = self.journal.tree();
        let last = tree.entries().last().map(|entry| entry.id());
        let leaf = match tree.leaf_id() {
            leaf if leaf == last => Leaf::Last,
            Some(leaf) => Leaf::At(leaf.into()),
            None => Leaf::Root,
        };
        let Choice { model, level } = self.chooser.current();
        let moved = self.has_moved.then(|| RestoredChoice {
            model: (!model.is_placeholder()).then(|| (model.provider.clone(), model.id.clone())),
            level: Some(level),
        });
        Some(Rested {
            file: self.journal.file().map(PathBuf::from)?.into(),
            unsaved: self.journal.unsaved().map(Into::into),
            leaf,
            moved,
            tools: self.tools.chosen().clone(),
            fallback_models: self.shared.fallbacks.chosen(),
            trusted: self.trust.is_given(),
            key_provider: self.shared.key_provider.as_deref().map(Into::into),
        })
    }

    /// Whether nothing works for the session and nothing waits in it.
    pub(crate) fn is_quiet(&mut self) -> bool {
        while self.tasks.try_join_next().is_some() {}
        self.is_idle()
            && !self.closing
            && self.tasks.is_empty()
            && self.queues.len() == 0
            && self.idle_waiters.is_empty()
            && self.joining.is_empty()
            && self.dialogs.is_empty()
            && !self.overdue.is_in_memory()
            && self.shared.processes.running() == 0
            && self.shared.background.is_at_rest()
    }
}
