//! Gets packages by npm and git, and removes them.

mod commands;
mod error;
mod git;
mod npm;

use std::{ffi::OsString, fmt, io, path::PathBuf, time::Duration};

use agentd_config::{Environment, FileLock};
use agentd_process::Launcher;
use agentd_protocol::{
    resources::{Diagnostic, DiagnosticKind, DiagnosticLevel, SourceScope},
    settings::{PackageSetting, Settings},
};
use tokio::{task::spawn_blocking, time::Instant};

pub(crate) use self::commands::{Commands, Invocation};
pub use self::error::InstallError;
use self::npm::Npm;
use crate::{
    configured::{NamedPackage, configured},
    discovery::DiscoveryQuery,
    folders::PackageFolders,
    source::{GitSource, NpmSource, PackageSource, without_password},
    version::{self, Version},
};

/// The time that the missing packages of a session may take together. `agentctl install` has no limit.
const AT_START: Duration = Duration::from_secs(120);

/// How long another process that installs packages is waited for.
const LOCK_WAIT: Duration = Duration::from_secs(600);

/// What is told while packages are installed: a line for the user.
pub type Progress = dyn Fn(String) + Send + Sync;

/// Gets and removes packages. Programs run under the process guard, without a terminal and without a shell; one process at a time installs
/// packages of an agent directory.
///
/// Cancel safety: a call that is dropped kills what it started, and leaves nothing half installed.
pub struct PackageInstaller<'a> {
    commands: Commands,
    npm: Npm,
    folders: PackageFolders,
    lock: PathBuf,
    is_offline: bool,
    progress: &'a Progress,
}

impl fmt::Debug for PackageInstaller<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PackageInstaller").field("folders", &self.folders).finish_non_exhaustive()
    }
}

/// A package that is another one than before an update.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpdatedPackage {
    /// Its source.
    pub source: String,
    /// Whose it is.
    pub scope: SourceScope,
    /// The version or commit before; `None` if it was not installed.
    pub from: Option<String>,
    /// The version or commit now.
    pub to: Option<String>,
}

/// The result of [`PackageInstaller::install_missing`].
#[derive(Debug, Default, PartialEq)]
pub struct InstalledMissing {
    /// Whether something is there now that was not, so that a discovery finds more.
    pub changed: bool,
    /// Packages that could not be installed: their resources are left out, and the next start tries again.
    pub diagnostics: Vec<Diagnostic>,
}

/// Whether `PI_OFFLINE` says that nothing is to be fetched.
#[must_use]
pub fn is_offline(environment: &Environment) -> bool {
    let value = environment.get("PI_OFFLINE").map(str::to_ascii_lowercase);
    matches!(value.as_deref(), Some("1" | "true" | "yes"))
}

impl<'a> PackageInstaller<'a> {
    /// An installer for the packages of a query. `programs` is the complete environment of npm and git: their scripts are code of others,
    /// and get no keys of models.
    ///
    /// # Errors
    /// [`InstallError::NpmCommand`].
    pub fn new(
        query: &DiscoveryQuery<'_>,
        settings: &Settings,
        launcher: &Launcher,
        programs: Vec<(OsString, OsString)>,
        progress: &'a Progress,
    ) -> Result<Self, InstallError> {
        let commands = Commands {
            launcher: launcher.clone(),
            environment: programs,
            cwd: query.cwd.to_owned(),
            deadline: None,
        };
        Ok(Self {
            commands,
            npm: Npm::of(settings)?,
            folders: query.package_folders(),
            lock: query.agent_dir.run_dir().join("packages.lock"),
            is_offline: is_offline(query.environment),
            progress,
        })
    }

    /// Installs what the settings and flags of a query name and is not there, unless offline, and looks for newer versions of what flags
    /// name. A package that cannot be installed within 2 minutes is a warning. Where nothing is missing it only looks at folders.
    pub async fn install_missing(&mut self, query: &DiscoveryQuery<'_>) -> InstalledMissing {
        let wanted = self.wanted(query);
        let mut result = InstalledMissing::default();
        if wanted.is_empty() {
            return result;
        }
        if self.is_offline {
            let missing = wanted.into_iter().filter(|package| self.is_missing(package));
            result.diagnostics.extend(missing.map(|package| {
                let source = without_password(&package.source_text);
                let message =
                    format!("Extension package \"{source}\" is not installed, so that nothing of it is used");
                let told = Diagnostic::warning(DiagnosticKind::Package, message).level(DiagnosticLevel::Info);
                told.hint("sessions install it when they start, unless PI_OFFLINE is set")
            }));
            return result;
        }
        self.commands.deadline = Some((Instant::now() + AT_START, AT_START));
        let lock = self.locked(AT_START).await;
        for package in wanted {
            let is_missing = self.is_missing(&package);
            let installed = match &lock {
                Ok(_) if is_missing => self.get(&package.source, package.install_scope).await,
                Ok(_) => {
                    // A copy that is there is used where no newer one can be had.
                    match self.refresh(&package).await {
                        Ok(changed) => result.changed |= changed,
                        Err(error) => tracing::debug!(%error, "a package of a flag was not refreshed"),
                    }
                    continue;
                }
                // Another process has it now, or has it soon.
                Err(_) if !is_missing => continue,
                Err(error) => Err(InstallError::Locked {
                    waited: match error {
                        InstallError::Locked { waited } => *waited,
                        _ => AT_START,
                    },
                }),
            };
            match installed {
                Ok(()) => result.changed = true,
                Err(error) => result.diagnostics.push(failure(&package, &error)),
            }
        }
        self.commands.deadline = None;
        result
    }

    /// Installs a package. One that is there already is brought to what the source says.
    ///
    /// # Errors
    /// [`InstallError`]; then nothing of it is left, and what was there before still is.
    pub async fn install(&self, source: &PackageSource, scope: SourceScope) -> Result<(), InstallError> {
        let _lock = self.locked(LOCK_WAIT).await?;
        self.get(source, scope).await
    }

    /// Removes an installed package; a path stays as it is.
    ///
    /// # Errors
    /// [`InstallError`].
    pub async fn remove(&self, source: &PackageSource, scope: SourceScope) -> Result<(), InstallError> {
        let _lock = self.locked(LOCK_WAIT).await?;
        match source {
            PackageSource::Npm(npm) => {
                if !self.folders.npm_package(npm, scope).exists() {
                    return Ok(());
                }
                self.npm.uninstall(&self.commands, &self.folders.npm_root(scope), &npm.name).await
            }
            PackageSource::Git(git) => {
                let (place, root) = (self.folders.repository(git, scope), self.folders.git_root(scope));
                blocking(move || git::remove(&place, root.as_deref())).await
            }
            PackageSource::Path(_) => Ok(()),
        }
    }

    /// Brings packages of the settings to their newest versions: of npm those that name no single version, of git all, to the newest
    /// commit of the branch or ref. Returns those that are others now. Nothing happens offline.
    ///
    /// # Errors
    /// [`InstallError`] of the first that fails.
    pub async fn update(
        &self,
        packages: &[(PackageSource, String, SourceScope)],
    ) -> Result<Vec<UpdatedPackage>, InstallError> {
        if self.is_offline {
            return Ok(Vec::new());
        }
        let _lock = self.locked(LOCK_WAIT).await?;
        let mut updated = Vec::new();
        for (source, text, scope) in packages {
            if source.is_pinned() && matches!(source, PackageSource::Npm(_) | PackageSource::Path(_)) {
                continue;
            }
            let from = self.state(source, *scope).await;
            (self.progress)(format!("Updating {}...", without_password(text)));
            match source {
                PackageSource::Npm(npm) => self.update_npm(npm, *scope, from.as_deref()).await?,
                PackageSource::Git(git) => self.get_git(git, *scope).await?,
                PackageSource::Path(_) => {}
            }
            let to = self.state(source, *scope).await;
            if from != to {
                updated.push(UpdatedPackage { source: without_password(text), scope: *scope, from, to });
            }
        }
        Ok(updated)
    }

    /// Whether nothing is to be fetched.
    #[must_use]
    pub fn is_offline(&self) -> bool {
        self.is_offline
    }

    /// Takes the lock of all installations in the agent directory.
    async fn locked(&self, wait: Duration) -> Result<FileLock, InstallError> {
        let lock = self.lock.clone();
        blocking(move || {
            FileLock::take(&lock, wait).map_err(|source| match source.kind() {
                io::ErrorKind::TimedOut => InstallError::Locked { waited: wait },
                _ => InstallError::Io { path: lock, source },
            })
        })
        .await
    }

    /// The packages that are not there, and those of flags that may have newer versions.
    fn wanted(&self, query: &DiscoveryQuery<'_>) -> Vec<NamedPackage> {
        // What is no source is told by the discovery.
        let mut found = configured(&query.counting_lists(), &self.folders, &mut Vec::new());
        found.retain(|package| self.is_missing(package));
        let flags = query.flags.extensions.iter().filter_map(|text| {
            let source = PackageSource::parse(text).ok()?;
            let is_fetched = !matches!(source, PackageSource::Path(_));
            let entry = PackageSetting::Source(text.clone());
            is_fetched.then(|| NamedPackage::new(entry, SourceScope::Temporary, source))
        });
        found.extend(flags);
        found
    }

    fn is_missing(&self, package: &NamedPackage) -> bool {
        let place = self.folders.place(&package.source, package.install_scope);
        match &package.source {
            PackageSource::Path(_) => false,
            PackageSource::Git(_) => !place.exists(),
            PackageSource::Npm(npm) => {
                let Some(version) = npm::installed_version(&place) else { return true };
                let range = npm.range.as_deref().unwrap_or("");
                Version::parse(&version).is_some_and(|version| !version::allows(range, &version))
            }
        }
    }

    async fn get(&self, source: &PackageSource, scope: SourceScope) -> Result<(), InstallError> {
        match source {
            PackageSource::Npm(npm) => self.get_npm(npm, scope, npm.spec.clone()).await,
            PackageSource::Git(git) => self.get_git(git, scope).await,
            PackageSource::Path(_) => {
                let path = self.folders.place(source, scope);
                if path.exists() { Ok(()) } else { Err(InstallError::NoPath { path }) }
            }
        }
    }

    async fn get_npm(
        &self,
        source: &NpmSource,
        scope: SourceScope,
        spec: String,
    ) -> Result<(), InstallError> {
        self.npm.install(&self.commands, &self.folders.npm_root(scope), &[(source, spec)]).await
    }

    /// Clones a repository, or brings one that is there up to date.
    async fn get_git(&self, source: &GitSource, scope: SourceScope) -> Result<(), InstallError> {
        let (place, root) = (self.folders.repository(source, scope), self.folders.git_root(scope));
        if place.exists() {
            return git::update(&self.commands, &self.npm, source, &place).await;
        }
        git::install(&self.commands, &self.npm, source, (&place, root.as_deref())).await
    }

    async fn update_npm(
        &self,
        source: &NpmSource,
        scope: SourceScope,
        installed: Option<&str>,
    ) -> Result<(), InstallError> {
        if self.has_newest(source, installed).await {
            return Ok(());
        }
        // Without a version, npm would keep to the range in its own records.
        let spec =
            if source.range.is_some() { source.spec.clone() } else { format!("{}@latest", source.name) };
        self.get_npm(source, scope, spec).await
    }

    /// Whether the registry has nothing newer. Where it cannot be asked, an installation finds out.
    async fn has_newest(&self, source: &NpmSource, installed: Option<&str>) -> bool {
        let Some(installed) = installed.and_then(Version::parse) else { return false };
        self.npm.newest(&self.commands, source).await.is_some_and(|newest| newest <= installed)
    }

    /// Brings a package of a flag up to date. Returns whether it is another one.
    async fn refresh(&self, package: &NamedPackage) -> Result<bool, InstallError> {
        let scope = package.install_scope;
        let before = self.state(&package.source, scope).await;
        match &package.source {
            PackageSource::Npm(_) if package.source.is_pinned() => return Ok(false),
            PackageSource::Npm(npm) => {
                let installed = before.as_deref().and_then(Version::parse);
                let newest = self.npm.newest(&self.commands, npm).await;
                if newest.is_none() || newest <= installed {
                    return Ok(false);
                }
                self.update_npm(npm, scope, before.as_deref()).await?;
            }
            PackageSource::Git(git) => {
                // A commit that is checked out already does not move.
                let is_commit = |text: &str| {
                    (7..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
                };
                let reference = git.reference.as_deref().filter(|text| is_commit(text));
                let at = |reference: &str| before.as_deref().is_some_and(|head| head.starts_with(reference));
                if reference.is_some_and(|reference| at(&reference.to_ascii_lowercase())) {
                    return Ok(false);
                }
                self.get_git(git, scope).await?;
            }
            PackageSource::Path(_) => return Ok(false),
        }
        Ok(self.state(&package.source, scope).await != before)
    }

    /// The version or commit of an installed package.
    async fn state(&self, source: &PackageSource, scope: SourceScope) -> Option<String> {
        let place = self.folders.place(source, scope);
        match source {
            PackageSource::Npm(_) => npm::installed_version(&place),
            PackageSource::Git(_) if place.exists() => git::head(&self.commands, &place).await,
            PackageSource::Git(_) | PackageSource::Path(_) => None,
        }
    }
}

/// Runs work that waits for the file system on a thread for that.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, InstallError> + Send + 'static,
) -> Result<T, InstallError> {
    spawn_blocking(work).await.unwrap_or_else(|error| {
        Err(InstallError::Io { path: PathBuf::new(), source: io::Error::other(error) })
    })
}

/// The warning about a package that was not installed at the start of a session, in pi's words.
fn failure(package: &NamedPackage, error: &InstallError) -> Diagnostic {
    let source = without_password(&package.source_text);
    let message = format!("Extension package \"{source}\": failed to install ({error}).");
    let local = if package.install_scope == SourceScope::Project { " --local" } else { "" };
    let hint = match package.scope {
        SourceScope::Temporary => "Check the source and try again.".to_owned(),
        SourceScope::User | SourceScope::Project => {
            format!("Run \"agentctl remove {source}{local}\" to remove it from settings.json.")
        }
    };
    Diagnostic::warning(DiagnosticKind::Package, message).hint(hint)
}
