//! Packages of git repositories.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    commands::{Commands, Invocation},
    error::InstallError,
    npm::{Npm, write_ignore_file},
};
use crate::{manifest::Manifest, source::GitSource};

/// How long git may take for what it finds in the repository itself.
const LOCAL: Duration = Duration::from_secs(10);

/// What begins the name of a repository that is not whole yet.
const UNFINISHED: &str = ".agentd-install-";

const ADVICE: &str = "install git";

/// Clones a repository to where it belongs, with what it depends on. A failure leaves nothing.
pub(crate) async fn install(
    commands: &Commands,
    npm: &Npm,
    source: &GitSource,
    (place, root): (&Path, Option<&Path>),
) -> Result<(), InstallError> {
    let clone = UnfinishedClone::new(place, root)?;
    let folder = clone.folder.display().to_string();
    git(commands, None, &["clone", "--quiet", "--", &source.repository, &folder], None).await?;
    if let Some(reference) = &source.reference {
        git(commands, Some(&clone.folder), &["checkout", "--quiet", reference], None).await?;
    }
    npm.install_dependencies(commands, &clone.folder).await?;
    clone.keep()
}

/// Brings a repository to the newest commit of its branch or ref, without what was changed in it.
pub(crate) async fn update(
    commands: &Commands,
    npm: &Npm,
    source: &GitSource,
    place: &Path,
) -> Result<(), InstallError> {
    let here = Some(place);
    let target = match &source.reference {
        Some(reference) => {
            git(commands, here, &["fetch", "--quiet", "origin", reference], None).await?;
            "FETCH_HEAD"
        }
        None => {
            git(commands, here, &["fetch", "--quiet", "--prune", "--no-tags", "origin"], None).await?;
            let upstream = ["rev-parse", "--abbrev-ref", "@{upstream}"];
            match git(commands, here, &upstream, Some(LOCAL)).await {
                Ok(name) if name.trim().starts_with("origin/") => "@{upstream}",
                // A repository that was at a ref before.
                Ok(_) | Err(InstallError::Failed { .. }) => {
                    git(commands, here, &["remote", "set-head", "origin", "--auto"], None).await?;
                    "origin/HEAD"
                }
                Err(error) => return Err(error),
            }
        }
    };
    let commit = format!("{target}^{{commit}}");
    let there = git(commands, here, &["rev-parse", &commit], Some(LOCAL)).await?;
    let marker = marker(place);
    if head(commands, place).await.as_deref() != Some(there.trim()) {
        fs::write(&marker, "").map_err(InstallError::io(&marker))?;
        git(commands, here, &["reset", "--quiet", "--hard", &commit], None).await?;
    } else if !marker.exists() {
        if lacks_dependencies(place) {
            npm.install_dependencies(commands, place).await?;
        }
        return Ok(());
    }
    git(commands, here, &["clean", "--quiet", "-fdx"], None).await?;
    npm.install_dependencies(commands, place).await?;
    fs::remove_file(&marker).map_err(InstallError::io(&marker))
}

/// The commit that a repository is at.
pub(crate) async fn head(commands: &Commands, place: &Path) -> Option<String> {
    let said = git(commands, Some(place), &["rev-parse", "HEAD"], Some(LOCAL)).await;
    said.ok().map(|said| said.trim().to_owned())
}

/// Removes a repository, and the folders above it that are empty then.
pub(crate) fn remove(place: &Path, root: Option<&Path>) -> Result<(), InstallError> {
    if place.exists() {
        fs::remove_dir_all(place).map_err(InstallError::io(place))?;
    }
    // It need not be there.
    let _ = fs::remove_file(marker(place));
    prune(place, root);
    Ok(())
}

async fn git(
    commands: &Commands,
    cwd: Option<&Path>,
    args: &[&str],
    limit: Option<Duration>,
) -> Result<String, InstallError> {
    let invocation = Invocation {
        program: "git".to_owned(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        cwd: cwd.map(Path::to_owned),
        advice: ADVICE,
    };
    commands.run(&invocation, limit).await
}

/// The file that says that an update has begun and not ended; that of pi, which may work with the same folders.
fn marker(place: &Path) -> PathBuf {
    let name = place.file_name().unwrap_or_default().to_string_lossy();
    place.with_file_name(format!(".{name}.pi-update-incomplete"))
}

/// Whether something is not there that the repository's `package.json` names.
fn lacks_dependencies(place: &Path) -> bool {
    let names = Manifest::read(place).map(|manifest| manifest.dependencies).unwrap_or_default();
    names.iter().any(|name| !name.contains("..") && !place.join("node_modules").join(name).exists())
}

/// Removes the empty folders above a repository, up to the folder of all of them.
fn prune(place: &Path, root: Option<&Path>) {
    let Some(root) = root else { return };
    for folder in place.ancestors().skip(1).take_while(|folder| *folder != root && folder.starts_with(root)) {
        // A folder that is not empty stays, with all above it.
        if fs::remove_dir(folder).is_err() {
            break;
        }
    }
}

/// A repository that is not where it belongs yet. Dropped before [`Self::keep`], it is removed.
struct UnfinishedClone<'a> {
    folder: PathBuf,
    place: &'a Path,
    root: Option<&'a Path>,
    done: bool,
}

impl<'a> UnfinishedClone<'a> {
    fn new(place: &'a Path, root: Option<&'a Path>) -> Result<Self, InstallError> {
        let above = place.parent().unwrap_or(place);
        fs::create_dir_all(above).map_err(InstallError::io(above))?;
        if let Some(root) = root {
            write_ignore_file(root)?;
        }
        // What killed installations left: this one has the lock of all.
        for entry in fs::read_dir(above).map_err(InstallError::io(above))?.flatten() {
            if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
                fs::remove_dir_all(entry.path()).map_err(InstallError::io(entry.path()))?;
            }
        }
        let folder = above.join(format!("{UNFINISHED}{}", std::process::id()));
        Ok(Self { folder, place, root, done: false })
    }

    fn keep(mut self) -> Result<(), InstallError> {
        fs::rename(&self.folder, self.place).map_err(InstallError::io(self.place))?;
        self.done = true;
        Ok(())
    }
}

impl Drop for UnfinishedClone<'_> {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        if self.folder.exists()
            && let Err(error) = fs::remove_dir_all(&self.folder)
        {
            tracing::warn!(%error, folder = %self.folder.display(), "an unfinished repository could not be removed");
        }
        prune(self.place, self.root);
    }
}
