//! Turns what a task changed in its copy into a patch or a branch.

use std::{
    fs,
    io::Read as _,
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
};

use agentd_protocol::isolation::IsolationMode;

use crate::{
    baseline::{self, UnitFiles},
    changes::{Captured, CapturedUnit, UnitChange},
    commits::{self, Apply, Conflict},
    error::{IsolationError, blocking},
    git::{Git, GitPlace, args},
    objects,
    record::{CopiedUnit, CopyFolder, CopyRecord},
    tree_paths::{self, GITLINK, TreeChanges},
};

pub use agentd_protocol::isolation::IsolationMode as CaptureMode;

/// The most commits that are rewritten one by one; a child with more gets one commit.
const MOST_COMMITS: usize = 200;

/// The most bytes of changes that a [`MessageWriter`] is shown.
const SHOWN_CHANGES: u64 = 48 << 10;

/// The most names of changed files that it is shown.
const SHOWN_FILES: usize = 200;

/// A future of a [`MessageWriter`].
pub type MessageFuture<'a> = Pin<Box<dyn Future<Output = Result<String, String>> + Send + 'a>>;

/// Writes the messages of commits.
pub trait MessageWriter: Send + Sync {
    /// The message of a commit with these changes: the changed files, a line each, and after an empty line the beginning of the changes in the
    /// form of `git diff`.
    ///
    /// # Errors
    /// Why there is none, in a clause. The commit then has the message of the options.
    fn message(&self, changes: String) -> MessageFuture<'_>;
}

/// Where the changes go.
#[derive(Clone)]
pub struct CaptureOptions {
    /// A patch, or a branch.
    pub mode: CaptureMode,
    /// The file for the patch of the outermost repository, absolute; those of nested ones are beside it, with `.nested-<n>` before
    /// the ending. Its folder exists. In mode `branch` it is used where commits are not possible.
    pub patch_path: PathBuf,
    /// The message of the commit for what the child did not commit itself.
    pub message: String,
    /// Writes a message for that commit in the place of this one.
    pub writer: Option<Arc<dyn MessageWriter>>,
}

/// Captures all repositories of a copy.
///
/// # Errors
/// [`IsolationError`]; the copy is as it was.
pub(crate) async fn capture(
    git: &Git,
    record: &CopyRecord,
    folder: &CopyFolder,
    options: &CaptureOptions,
) -> Result<Captured, IsolationError> {
    let mut captured = Captured {
        id: record.id.clone(),
        mode: options.mode,
        units: Vec::new(),
        notices: Vec::new(),
        kept: Vec::new(),
    };
    for unit in &record.units {
        let files = UnitFiles(folder.unit(unit.number));
        let (tree, new) = baseline::take_again(git, unit, &files).await?;
        for below in new {
            let from = unit.work.join(&below);
            let to = kept_place(&folder.path, &unit.repository.below.join(&below));
            captured.notices.push(format!(
                "the task made the repository {}: it is in no patch or commit, and was moved to {}",
                unit.repository.below.join(&below).display(),
                to.display()
            ));
            captured.kept.push(to.clone());
            blocking(move || keep(&from, &to)).await?;
        }
        if tree == unit.baseline {
            continue;
        }
        let place = unit.place(git).with_objects(&files.objects());
        let count = commits::changes(&place, &unit.baseline, &tree).await?.len();
        let change =
            capture_unit(&place, (unit, &files), &tree, (options, &record.id, &mut captured.notices)).await?;
        captured.units.push(CapturedUnit { repository: unit.repository.clone(), files: count, change });
    }
    Ok(captured)
}

/// `<base>/kept/<copy>/<path>`: beside the copies, so that moving is a rename.
fn kept_place(copy: &Path, below: &Path) -> PathBuf {
    let base = copy.parent().unwrap_or(copy);
    base.join("kept").join(copy.file_name().unwrap_or_default()).join(below)
}

fn keep(from: &Path, to: &Path) -> Result<(), IsolationError> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).map_err(IsolationError::io(folder))?;
    }
    fs::rename(from, to).map_err(IsolationError::io(to))
}

async fn capture_unit(
    place: &GitPlace,
    (unit, files): (&CopiedUnit, &UnitFiles),
    tree: &str,
    (options, id, notices): (&CaptureOptions, &str, &mut Vec<String>),
) -> Result<UnitChange, IsolationError> {
    if options.mode == IsolationMode::Branch {
        let mut chain = Chain { place, unit, files, options, notice: None };
        let built = chain.build(tree).await?;
        notices.extend(chain.notice.take());
        match built {
            Ok((tip, commits)) => {
                let name = chain.publish(id, &tip).await?;
                return Ok(UnitChange::Branch { name, base: unit.head.clone(), tip, commits });
            }
            Err(conflict) => notices.push(format!(
                "the changes of the task and your uncommitted changes in {} cannot be told apart, so that they are in a patch and not in commits",
                names(&conflict.files)
            )),
        }
    }
    let path = patch_path(&options.patch_path, unit.number);
    commits::diff_to_file(place, (&unit.baseline, tree), &path).await?;
    Ok(UnitChange::Patch { path })
}

fn names(files: &[PathBuf]) -> String {
    let shown: Vec<_> = files.iter().take(5).map(|file| file.display().to_string()).collect();
    let more = if files.len() > 5 { format!(" and {} more", files.len() - 5) } else { String::new() };
    if shown.is_empty() { "the same files".to_owned() } else { shown.join(", ") + &more }
}

fn patch_path(outermost: &Path, number: usize) -> PathBuf {
    if number == 0 {
        return outermost.to_owned();
    }
    let mut name = outermost.file_stem().unwrap_or_default().to_owned();
    name.push(format!(".nested-{number}.patch"));
    outermost.with_file_name(name)
}

/// The commits of a branch for a unit.
struct Chain<'a> {
    place: &'a GitPlace,
    unit: &'a CopiedUnit,
    files: &'a UnitFiles,
    options: &'a CaptureOptions,
    /// What is odd about the commits.
    notice: Option<String>,
}

type Built<T> = Result<Result<T, Conflict>, IsolationError>;

impl Chain<'_> {
    /// Makes the commits: the child's own, and one for what it did not commit. Returns the last one and their number.
    async fn build(&mut self, tree: &str) -> Built<(String, usize)> {
        let head = &self.unit.head;
        let child = self.place.object(args!["rev-parse", "--verify", "HEAD^{commit}"]).await?;
        let ancestor = args!["merge-base", "--is-ancestor", head, child];
        let descends = self.place.attempt(ancestor, Vec::new()).await?.exit.success();
        let own = if descends { commits::between(self.place, head, &child).await? } else { Vec::new() };
        let users = commits::changes(self.place, head, &self.unit.baseline).await?;
        if users.is_empty() && self.is_clean(&own).await? {
            return self.extend(&child, own.len(), tree).await.map(Ok);
        }
        let own = if own.len() > MOST_COMMITS { Vec::new() } else { own };
        let mut last = (head.clone(), commits::tree_of(self.place, head).await?);
        let mut count = 0;
        for commit in &own {
            let theirs = commits::tree_of(self.place, commit).await?;
            let cleaned = match self.without_users(&theirs, &users).await? {
                Ok(cleaned) => cleaned,
                Err(conflict) => return Ok(Err(conflict)),
            };
            // A commit of the user's changes alone.
            if cleaned != last.1 {
                last = (commits::recommit(self.place, commit, &cleaned, &last.0).await?, cleaned);
                count += 1;
            }
        }
        if let Some(conflict) = self.undone(tree, &users).await? {
            return Ok(Err(conflict));
        }
        Ok(match self.without_users(tree, &users).await? {
            Ok(cleaned) if cleaned == last.1 => Ok((last.0, count)),
            Ok(cleaned) => Ok((self.commit(&cleaned, &last.0).await?, count + 1)),
            Err(conflict) => Err(conflict),
        })
    }

    /// The user's uncommitted changes that the child has taken back: no commit can say that.
    async fn undone(&self, tree: &str, users: &TreeChanges) -> Result<Option<Conflict>, IsolationError> {
        let changed = commits::changes(self.place, &self.unit.head, tree).await?;
        let undone = users.keys().filter(|path| !changed.contains_key(*path));
        let files: Vec<_> = undone.map(|path| tree_paths::path_of(path)).collect();
        Ok((!files.is_empty()).then(|| Conflict { files, said: String::new() }))
    }

    /// Whether the child's commits can stay as they are: none of them has a nested repository or a link of ours.
    async fn is_clean(&self, own: &[String]) -> Result<bool, IsolationError> {
        for commit in own {
            let changes = commits::changes(self.place, &self.unit.head, commit).await?;
            if changes.iter().any(|(path, change)| self.is_foreign(path, change)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a change is of a nested repository or of a link, which have no place in commits.
    fn is_foreign(
        &self,
        path: &[u8],
        (old, new): &(Option<tree_paths::TreeFile>, Option<tree_paths::TreeFile>),
    ) -> bool {
        let is_link = |file: &Option<tree_paths::TreeFile>| {
            file.as_ref().is_some_and(|file| file.mode.as_bytes() == GITLINK)
        };
        let path = tree_paths::path_of(path);
        is_link(old) || is_link(new) || self.unit.excluded.contains(&path)
    }

    /// Adds a commit for what differs from the child's last one.
    async fn extend(
        &mut self,
        child: &str,
        own: usize,
        tree: &str,
    ) -> Result<(String, usize), IsolationError> {
        let base = if own == 0 { self.unit.head.clone() } else { child.to_owned() };
        if commits::tree_of(self.place, &base).await? == tree {
            return Ok((base, own));
        }
        Ok((self.commit(tree, &base).await?, own + 1))
    }

    /// A commit for what the child did not commit itself.
    async fn commit(&mut self, tree: &str, parent: &str) -> Result<String, IsolationError> {
        let plain = &self.options.message;
        let message = match &self.options.writer {
            None => plain.clone(),
            Some(writer) => match writer.message(self.changes_since(parent, tree).await?).await {
                Ok(message) => message,
                Err(why) => {
                    self.notice = Some(format!("the commit has a plain message, since {why}"));
                    plain.clone()
                }
            },
        };
        commits::commit(self.place, tree, parent, &message).await
    }

    /// What a [`MessageWriter`] is shown.
    async fn changes_since(&self, parent: &str, tree: &str) -> Result<String, IsolationError> {
        let changed = commits::changes(self.place, parent, tree).await?;
        let mut text = String::new();
        for path in changed.keys().take(SHOWN_FILES) {
            text.push_str(&format!("{}\n", String::from_utf8_lossy(path)));
        }
        if changed.len() > SHOWN_FILES {
            text.push_str(&format!("and {} more files\n", changed.len() - SHOWN_FILES));
        }
        let file = self.files.0.join("message.patch");
        commits::diff_to_file(self.place, (parent, tree), &file).await?;
        let mut read = blocking(move || {
            let opened = fs::File::open(&file).map_err(IsolationError::io(&file))?;
            let mut read = Vec::new();
            opened.take(SHOWN_CHANGES + 1).read_to_end(&mut read).map_err(IsolationError::io(&file))?;
            Ok(read)
        })
        .await?;
        let is_whole = read.len() as u64 <= SHOWN_CHANGES;
        read.truncate(SHOWN_CHANGES as usize);
        text.push_str(&format!("\n{}", String::from_utf8_lossy(&read)));
        if !is_whole {
            text.push_str("\n[the rest of the changes is left out]\n");
        }
        Ok(text)
    }

    /// A tree of the child's without the user's uncommitted changes: what differs between the baseline and the child's tree,
    /// merged into the commit that the copy began with. A file that the child did not commit is as it was in the baseline.
    async fn without_users(&self, theirs: &str, users: &TreeChanges) -> Built<String> {
        let head = &self.unit.head;
        let changed = commits::changes(self.place, head, theirs).await?;
        let uncommitted = users
            .iter()
            .filter(|(path, _)| !changed.contains_key(*path))
            .map(|(path, (_, baseline))| (path.as_slice(), baseline.as_ref()));
        let foreign =
            changed.iter().filter(|(path, change)| self.is_foreign(path, change)).map(|(path, (old, _))| {
                let baseline = users.get(path).map_or(old.as_ref(), |(_, baseline)| baseline.as_ref());
                (path.as_slice(), baseline)
            });
        let info = tree_paths::index_info(uncommitted.chain(foreign), head.len());
        let index = commits::read_tree(self.place, &self.files.index("theirs"), theirs).await?;
        index.run_with(args!["update-index", "-z", "--index-info"], info).await?;
        let changed_alone = index.object(args!["write-tree"]).await?;
        if changed_alone == self.unit.baseline {
            return commits::tree_of(self.place, head).await.map(Ok);
        }
        let patch = self.files.0.join("theirs.patch");
        commits::diff_to_file(self.place, (&self.unit.baseline, &changed_alone), &patch).await?;
        let index = commits::read_tree(self.place, &self.files.index("cleaned"), head).await?;
        match commits::apply(&index, &patch, Apply::ThreeWay).await? {
            None => index.object(args!["write-tree"]).await.map(Ok),
            Some(mut conflict) => {
                if conflict.files.is_empty() {
                    let touched = commits::changes(self.place, &self.unit.baseline, &changed_alone).await?;
                    let both = touched.keys().filter(|path| users.contains_key(*path));
                    conflict.files = both.map(|path| tree_paths::path_of(path)).collect();
                }
                Ok(Err(conflict))
            }
        }
    }

    /// Moves the commits into the repository and names them by a branch. Returns its name.
    async fn publish(&self, id: &str, tip: &str) -> Result<String, IsolationError> {
        let repository = &self.unit.repository;
        objects::publish(self.place, (&[tip], &self.unit.head), &self.files.0, &repository.common_dir)
            .await?;
        let mut last = None;
        for number in 1..=100 {
            let name =
                if number == 1 { format!("agentd/task/{id}") } else { format!("agentd/task/{id}-{number}") };
            // The empty old value says that it must be new.
            let create = args!["update-ref", format!("refs/heads/{name}"), tip, ""];
            match self.place.run(create).await {
                Ok(_) => return Ok(name),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or(IsolationError::Panicked))
    }
}
