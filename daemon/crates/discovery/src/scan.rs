//! Reading files and folders within limits, and noting what was looked at.

use std::{
    collections::{BTreeMap, HashSet},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use agentd_config::{
    MAX_TEXT_BYTES, ProjectBounds, real_path,
    resources::{
        FolderChild, FolderWalk,
        front_matter::{fields, split},
    },
};
use agentd_files::Stamp;
use agentd_files::{is_file, is_folder};
use agentd_protocol::{
    capabilities::{CapabilityKind, CapabilityLevel},
    resources::{Diagnostic, DiagnosticKind, DiagnosticLevel},
};
use agentd_safe_open::{AcceptedOwner, LinkPolicy, OpenRules};
use serde_json::{Map, Value};

use crate::{item::Item, place::DiscoveryPlace, provider::Provider, switches::Switches};

/// The files that are read in one scan.
const MAX_FILES: usize = 4000;

/// The bytes that are read in one scan: 32 MiB.
const MAX_BYTES: u64 = 32 << 20;

/// The items of one scan.
const MAX_ITEMS: usize = 4000;

/// The warnings of one scan.
const MAX_WARNINGS: usize = 200;

/// The depth to which folders of commands and the like are searched.
const MAX_DEPTH: usize = 8;

/// The files whose rules a folder's listing depends on.
const IGNORE_FILES: [&str; 3] = [".gitignore", ".ignore", ".fdignore"];

/// A Markdown file in its parts.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Document {
    pub(crate) fields: Map<String, Value>,
    /// Trimmed.
    pub(crate) body: String,
}

/// The files that a search has found.
struct FoundFiles<'a> {
    accepts: &'a dyn Fn(&str) -> bool,
    files: Vec<PathBuf>,
    /// The folders that were searched, without links.
    seen: HashSet<PathBuf>,
}

/// One look at all files.
pub(crate) struct Scan<'a> {
    pub(crate) place: &'a DiscoveryPlace,
    pub(crate) switches: &'a Switches,
    provider: Provider,
    walk: FolderWalk,
    files_left: usize,
    bytes_left: u64,
    /// The states of what was looked at, before it was read.
    pub(crate) stamps: BTreeMap<PathBuf, Option<Stamp>>,
    pub(crate) items: Vec<Arc<Item>>,
    pub(crate) warnings: Vec<Diagnostic>,
}

impl<'a> Scan<'a> {
    pub(crate) fn new(place: &'a DiscoveryPlace, switches: &'a Switches, provider: Provider) -> Self {
        Self {
            place,
            switches,
            provider,
            walk: FolderWalk::new(DiagnosticKind::Capability),
            files_left: MAX_FILES,
            bytes_left: MAX_BYTES,
            stamps: BTreeMap::new(),
            items: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Goes on for another provider.
    pub(crate) fn begin(&mut self, provider: Provider) {
        self.provider = provider;
    }

    /// Returns whether the provider's files of that level are read.
    pub(crate) fn reads(&self, level: CapabilityLevel) -> bool {
        self.switches.reads(self.provider, level)
    }

    /// The id of the provider.
    pub(crate) fn provider_id(&self) -> &'static str {
        self.provider.id
    }

    /// A new item of the provider.
    pub(crate) fn item(
        &self,
        kind: CapabilityKind,
        name: impl Into<String>,
        path: &Path,
        level: CapabilityLevel,
    ) -> Item {
        Item::new(kind, name, path, (self.provider, level))
    }

    /// A new context file of the provider.
    pub(crate) fn context(&self, path: &Path, distance: Option<usize>, level: CapabilityLevel) -> Item {
        Item::context(path, distance, (self.provider, level))
    }

    /// Adds an item to the list.
    pub(crate) fn add(&mut self, item: Item) {
        if self.items.len() == MAX_ITEMS {
            let message =
                format!("there are more than {MAX_ITEMS} items; from this file on they are not used");
            return self.warn_once(&item.path, message);
        }
        self.items.push(Arc::new(item));
    }

    /// Adds a warning about a file that is used.
    pub(crate) fn warn(&mut self, path: &Path, message: impl Into<String>) {
        self.say(path, None, DiagnosticLevel::Warning, message.into());
    }

    /// Adds a note about a file that is used as it stands.
    pub(crate) fn note(&mut self, path: &Path, message: impl Into<String>) {
        self.say(path, None, DiagnosticLevel::Info, message.into());
    }

    fn say(&mut self, path: &Path, line: Option<u32>, level: DiagnosticLevel, message: String) {
        if self.warnings.len() < MAX_WARNINGS {
            let message = format!("[{}] {message}", self.provider.name);
            let warning = Diagnostic::warning(DiagnosticKind::Capability, message).level(level);
            self.warnings.push(warning.at(path).line(line));
        }
    }

    fn warn_once(&mut self, path: &Path, message: String) {
        let shown = format!("[{}] {message}", self.provider.name);
        if self.warnings.iter().all(|warning| warning.message != shown) {
            self.warn(path, message);
        }
    }

    /// Returns whether there is a folder.
    pub(crate) fn is_folder(&mut self, path: &Path) -> bool {
        self.stamp(path);
        is_folder(path)
    }

    /// Returns whether there is a file.
    pub(crate) fn is_file(&mut self, path: &Path) -> bool {
        self.stamp(path);
        is_file(path)
    }

    fn stamp(&mut self, path: &Path) {
        if !self.stamps.contains_key(path) {
            self.stamps.insert(path.to_path_buf(), Stamp::of(path));
        }
    }

    /// The files in a folder that `accepts` takes, by their names; with `below`, those in its folders, too, where they stand in that order.
    /// Hidden ones and what ignore files of the folders say are left out.
    pub(crate) fn files(
        &mut self,
        folder: &Path,
        level: CapabilityLevel,
        below: bool,
        accepts: &dyn Fn(&str) -> bool,
    ) -> Vec<PathBuf> {
        let mut found = FoundFiles { accepts, files: Vec::new(), seen: HashSet::new() };
        self.add_files(folder, level, if below { MAX_DEPTH } else { 0 }, &mut found);
        found.files
    }

    fn add_files(&mut self, folder: &Path, level: CapabilityLevel, depth: usize, found: &mut FoundFiles<'_>) {
        // Links can lead around.
        if !found.seen.insert(real_path(folder)) {
            return;
        }
        for child in self.children(folder, level) {
            if child.is_folder {
                if depth > 0 {
                    self.add_files(&child.path, level, depth - 1, found);
                }
            } else if child.path.file_name().and_then(|name| name.to_str()).is_some_and(found.accepts) {
                found.files.push(child.path);
            }
        }
    }

    /// The folders in a folder, by their names.
    pub(crate) fn folders(&mut self, folder: &Path, level: CapabilityLevel) -> Vec<PathBuf> {
        let children = self.children(folder, level).into_iter();
        children.filter(|child| child.is_folder).map(|child| child.path).collect()
    }

    fn children(&mut self, folder: &Path, level: CapabilityLevel) -> Vec<FolderChild> {
        if !self.is_folder(folder) {
            return Vec::new();
        }
        if level == CapabilityLevel::Project {
            let real = real_path(folder);
            if !real.starts_with(&self.place.bounds.root) {
                self.warn(folder, "this folder leads out of the project, and is not read");
                return Vec::new();
            }
        }
        for name in IGNORE_FILES {
            let path = folder.join(name);
            if let Some(stamp) = Stamp::of(&path) {
                self.stamps.entry(path).or_insert(Some(stamp));
            }
        }
        let children = self.walk.children(folder);
        self.warnings.append(&mut self.walk.diagnostics);
        self.warnings.truncate(MAX_WARNINGS);
        children
    }

    /// The text of a file without its byte order mark, with LF line ends; `None` where there is none, or where it cannot be used, which is
    /// reported.
    pub(crate) fn text(&mut self, path: &Path, level: CapabilityLevel) -> Option<String> {
        self.stamp(path);
        if self.stamps.get(path).is_some_and(Option::is_none) && !path.is_symlink() {
            return None;
        }
        if self.files_left == 0 || self.bytes_left == 0 {
            let message = "there are more files than are read at once; from this one on they are not used";
            self.warn_once(path, message.to_owned());
            return None;
        }
        self.files_left -= 1;
        match read(path, level, &self.place.bounds, &self.place.agent_dir) {
            Ok(text) => {
                let text = text?;
                self.bytes_left = self.bytes_left.saturating_sub(text.len() as u64);
                Some(text)
            }
            Err(problem) => {
                self.warn(path, format!("the file {problem}; it is not used"));
                None
            }
        }
    }

    /// A Markdown file. `quotes` is true where a front matter without quotes is the tool's own form, and nothing to report.
    pub(crate) fn document(&mut self, path: &Path, level: CapabilityLevel, quotes: bool) -> Option<Document> {
        let text = self.text(path, level)?;
        let parts = split(&text);
        let read = parts.yaml.map(fields).unwrap_or_default();
        if let Some(problem) = read.problem.filter(|_| !(quotes && read.is_repaired)) {
            self.say(path, problem.line, DiagnosticLevel::Warning, problem.message);
        }
        Some(Document { fields: read.fields, body: parts.body.trim().to_owned() })
    }
}

/// Reads a text file of at most 1 MiB. One of a project is this user's, root's or, where root works in it, the project owner's, and stays in
/// the project behind links. `None` where there is none.
///
/// # Errors
/// Why it is not used, as the end of a sentence.
pub(crate) fn read(
    path: &Path,
    level: CapabilityLevel,
    bounds: &ProjectBounds,
    agent_dir: &Path,
) -> Result<Option<String>, String> {
    let rules = match level {
        CapabilityLevel::User => OpenRules::new(LinkPolicy::Followed),
        CapabilityLevel::Project => {
            // An agent directory in a project: no link of the project's may lead to the keys in it.
            let leads = || path.canonicalize().is_ok_and(|real| real.starts_with(agent_dir));
            if agent_dir.starts_with(&bounds.root) && !path.starts_with(agent_dir) && leads() {
                return Err("is a link that leads into the agent directory".to_owned());
            }
            OpenRules::new(LinkPolicy::Beneath(&bounds.root)).owner(bounds.owner)
        }
    };
    read_by(&rules, path)
}

pub(crate) fn read_by(rules: &OpenRules<'_>, path: &Path) -> Result<Option<String>, String> {
    let bytes = match rules.max_bytes(MAX_TEXT_BYTES).read(path) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Ok(None),
        Err(error) => return Err(error.problem().to_string()),
    };
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    };
    let text = text.strip_prefix('\u{FEFF}').map(str::to_owned).unwrap_or(text);
    Ok(Some(if text.contains('\r') { text.replace("\r\n", "\n") } else { text }))
}

/// The text of an item's file after its front matter, as the file is now. Reads it; blocks.
///
/// # Errors
/// The file is gone, or cannot be used any more.
pub fn read_body(item: &Item, place: &DiscoveryPlace) -> io::Result<String> {
    let failed = |problem: String| io::Error::other(format!("{} {problem}", item.path.display()));
    let text = read(&item.path, item.level, &place.bounds, &place.agent_dir).map_err(failed)?;
    let text = text
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("{} is gone", item.path.display())))?;
    Ok(split(&text).body.trim().to_owned())
}

/// The rules for a file of any place that is the user's.
pub(crate) fn anywhere() -> OpenRules<'static> {
    OpenRules::new(LinkPolicy::Followed).owner(AcceptedOwner::Own)
}
