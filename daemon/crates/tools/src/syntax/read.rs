//! Finds the files to look into, and reads their texts. Blocks.

use std::{
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use agentd_agent::ToolError;
use agentd_safe_open::{AcceptedOwner, LinkPolicy, OpenRules, SeenFileSystems};
use agentd_syntax::{LanguageFacts, MAX_TEXT};
use ignore::overrides::Override;
use memchr::memmem::Finder;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::request::Languages;
use crate::{
    edit::normalized_text,
    errno,
    operations::{FileKind, FileSystem, Unreachable},
    search::{FarWalk, UnusedFiles, Walk, WalkRules},
};

/// Files that are taken from the walk at once.
const CHUNK: usize = 64;

/// The bytes of texts after which a request is made, so that one search holds few texts in memory: 512 KiB.
const MAX_REQUEST: usize = 512 << 10;

/// For a file that a walk has found: links are not followed.
const OF_A_WALK: OpenRules<'static> = OpenRules::new(LinkPolicy::Refused).owner(AcceptedOwner::Anybody);

/// A file to look into.
#[derive(Debug, Clone)]
pub(super) struct CodeFile {
    pub(super) path: PathBuf,
    /// Its name in results.
    pub(super) shown: String,
    pub(super) language: &'static LanguageFacts,
}

/// A file with its text, without byte order mark and with line feeds alone.
#[derive(Debug)]
pub(super) struct CodeText {
    pub(super) file: CodeFile,
    pub(super) text: String,
}

/// What a walk found besides files.
#[derive(Debug, Default)]
pub(super) struct WalkFacts {
    /// Folders that could not be read.
    pub(super) unreadable: usize,
    /// What is to be said about ignore files that are not used.
    pub(super) unused: Option<String>,
}

/// Sends the files below a folder in chunks, in the order of a walk, until there are no more or nobody takes them.
///
/// # Errors
/// The folder's host cannot be reached.
pub(super) fn walk(
    files: &dyn FileSystem,
    root: &Path,
    (languages, overrides): (&Languages, Override),
    cancel: &CancellationToken,
    chunks: &mpsc::Sender<Vec<CodeFile>>,
) -> Result<WalkFacts, ToolError> {
    let failed = |error: &io::Error| ToolError(errno::describe(error, "scandir", root));
    let unused = UnusedFiles::default();
    let mut facts = WalkFacts::default();
    let rules =
        WalkRules { root, own_ignore_file: ".rgignore", require_git: true, overrides, unused: &unused };
    let mut chunk = Vec::new();
    let mut take = |entry: crate::search::Entry| {
        if entry.kind != FileKind::File {
            return true;
        }
        let Some(language) = languages.of(&entry.path, false) else { return true };
        let shown = entry.path.strip_prefix(root).unwrap_or(&entry.path).to_string_lossy().into_owned();
        chunk.push(CodeFile { path: entry.path, shown, language });
        chunk.len() < CHUNK || chunks.blocking_send(std::mem::take(&mut chunk)).is_ok()
    };
    if files.is_local() {
        for entry in Walk::new(rules) {
            if cancel.is_cancelled() || chunks.is_closed() {
                break;
            }
            match entry {
                Ok(entry) => {
                    if !take(entry) {
                        break;
                    }
                }
                Err(_) => facts.unreadable += 1,
            }
        }
    } else {
        for entry in FarWalk::new(files, rules).map_err(|error| failed(&error))? {
            if cancel.is_cancelled() || chunks.is_closed() {
                break;
            }
            match entry {
                Ok(entry) => {
                    if !take(entry) {
                        break;
                    }
                }
                Err(error) if Unreachable::of(&error).is_some() => return Err(failed(&error)),
                Err(_) => facts.unreadable += 1,
            }
        }
    }
    if !chunk.is_empty() {
        // Nobody takes it where enough was found.
        let _ = chunks.blocking_send(chunk);
    }
    facts.unused = unused.notice();
    Ok(facts)
}

/// Texts that files of a language must contain.
pub(super) type Literals = Arc<[Finder<'static>]>;

/// What was read of some files.
#[derive(Default)]
pub(super) struct Texts {
    /// The texts that may have a match.
    pub(super) texts: Vec<CodeText>,
    /// How many of the files were looked at: the texts of a request are bounded.
    pub(super) taken: usize,
    pub(super) unreadable: usize,
    pub(super) too_long: usize,
}

/// Reads files until their texts are enough for a request. `literals` are those of a file's language; a file without them is looked at,
/// and has no text here. `is_named`: the call names the file.
///
/// # Errors
/// The host of the files cannot be reached.
pub(super) fn read_texts(
    files: &dyn FileSystem,
    chunk: &[CodeFile],
    literals: impl Fn(&CodeFile) -> Option<Literals>,
    is_named: bool,
    cancel: &CancellationToken,
) -> Result<Texts, ToolError> {
    let mut found = Texts::default();
    let mut bytes = 0;
    let mut take = |number: usize, content: io::Result<&mut dyn Read>| {
        found.taken = number + 1;
        let file = &chunk[number];
        let Some(literals) = literals(file) else { return !cancel.is_cancelled() };
        match content.and_then(|content| text_of(content, &literals)) {
            Ok(FileText::Text(text)) => {
                bytes += text.len();
                found.texts.push(CodeText { file: file.clone(), text });
            }
            Ok(FileText::TooLong) => found.too_long += 1,
            Ok(FileText::NoMatch) => {}
            Err(_) => found.unreadable += 1,
        }
        bytes < MAX_REQUEST && !cancel.is_cancelled()
    };
    if files.is_local() && !is_named {
        let mut seen = SeenFileSystems::default();
        for (number, file) in chunk.iter().enumerate() {
            let wants_more = match OF_A_WALK.open_one_of_many(&file.path, &mut seen) {
                Ok((mut content, _)) => take(number, Ok(&mut content)),
                Err(error) => take(number, Err(io::Error::other(error))),
            };
            if !wants_more {
                break;
            }
        }
    } else {
        let paths: Vec<PathBuf> = chunk.iter().map(|file| file.path.clone()).collect();
        let read = files.read_each(&paths, &mut take);
        if let Err(error) = read
            && !cancel.is_cancelled()
        {
            return Err(ToolError(errno::sentence(&error)));
        }
    }
    // A host that answers with fewer files than it was asked for would be asked for ever.
    found.taken = found.taken.max(1);
    Ok(found)
}

enum FileText {
    Text(String),
    TooLong,
    /// It is no text, or lacks a literal.
    NoMatch,
}

fn text_of(content: &mut dyn Read, literals: &[Finder<'_>]) -> io::Result<FileText> {
    let mut bytes = Vec::new();
    content.take(MAX_TEXT as u64 + 1).read_to_end(&mut bytes)?;
    if literals.iter().any(|literal| literal.find(&bytes).is_none()) {
        return Ok(FileText::NoMatch);
    }
    if bytes.len() > MAX_TEXT {
        return Ok(FileText::TooLong);
    }
    Ok(match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => {
            FileText::Text(normalized_text(text.strip_prefix('\u{feff}').unwrap_or(&text)).into_owned())
        }
        _ => FileText::NoMatch,
    })
}
