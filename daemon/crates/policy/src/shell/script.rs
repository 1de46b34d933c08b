//! What a parsed shell command consists of.

use std::path::PathBuf;

use super::word::Word;

/// The simple commands of a shell command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Script {
    /// The simple commands, those of substitutions and of strings that shells run included. A redirection of a compound command is
    /// one without words.
    pub commands: Vec<SimpleCommand>,
    /// What is not understood, if anything: then other commands may run as well.
    pub obscure: Option<String>,
}

impl Script {
    /// Notes what is not understood; the first note stays.
    pub(super) fn be_obscure(&mut self, what: &str) {
        self.obscure.get_or_insert_with(|| what.to_owned());
    }
}

/// A simple command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimpleCommand {
    /// Variables that are set before it, or by it.
    pub assignments: Vec<Assignment>,
    /// Its name and arguments.
    pub words: Vec<Word>,
    /// Its redirections to and from files.
    pub redirections: Vec<Redirection>,
    /// The folders that it may run in.
    pub folders: Folders,
    /// The commands of [`Script::commands`] whose output it reads, all of them simple ones of its pipeline; empty where its input is
    /// anything else.
    pub fed_by: std::ops::Range<usize>,
}

/// A variable that is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// Its name.
    pub name: String,
    /// Whether programs see it: it stands before a command, or is exported.
    pub exported: bool,
}

/// A redirection to or from a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirection {
    /// What is done with the file.
    pub access: Access,
    /// The file.
    pub target: Word,
}

/// What is done with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It is read.
    Read,
    /// It is written.
    Write,
}

/// The folders that a command may run in, for `cd` may fail or be passed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Folders {
    /// One of these, absolute.
    Known(Vec<PathBuf>),
    /// Any.
    Unknown,
}

/// The most folders that are told apart.
const MAX_FOLDERS: usize = 8;

impl Folders {
    /// One folder.
    #[must_use]
    pub fn one(folder: impl Into<PathBuf>) -> Self {
        Self::Known(vec![folder.into()])
    }

    /// These folders, and the others.
    pub(crate) fn or(mut self, others: Self) -> Self {
        let (Self::Known(folders), Self::Known(others)) = (&mut self, others) else { return Self::Unknown };
        for folder in others {
            if !folders.contains(&folder) {
                folders.push(folder);
            }
        }
        if folders.len() > MAX_FOLDERS { Self::Unknown } else { self }
    }
}
