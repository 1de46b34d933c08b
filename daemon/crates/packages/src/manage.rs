//! Packages as users manage them: `agentctl install`, `remove`, `list` and `update`.

use std::{path::PathBuf, time::Duration};

use agentd_config::{JsonFileError, MemberChange, PrivateObject, PrivateObjectError, read_project_json};
use agentd_protocol::{resources::SourceScope, settings::PackageSetting};
use serde_json::{Map, Value, json};

use crate::{
    discovery::DiscoveryQuery,
    folders::PackageFolders,
    install::{InstallError, PackageInstaller, UpdatedPackage},
    patterns::relative,
    source::{PackageSource, SourceError, without_password},
};

/// The setting.
const PACKAGES: &str = "packages";

/// How long another writer of the settings is waited for.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// Why packages stay as they are.
#[derive(Debug, thiserror::Error)]
pub enum ManageError {
    /// The source names nothing.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The package was not installed, updated or removed.
    #[error(transparent)]
    Install(#[from] InstallError),
    /// The settings file cannot be read or written.
    #[error("settings.json was not changed: {0}")]
    Settings(#[from] PrivateObjectError),
    /// The project's settings file is not to be used.
    #[error("settings.json was not changed: {0}")]
    ProjectSettings(#[from] JsonFileError),
    /// `packages` is no list.
    #[error("{} was not changed: \"packages\" must be a list of sources of packages", path.display())]
    NoList {
        /// The settings file.
        path: PathBuf,
    },
    /// The project is not trusted.
    #[error("Project is not trusted. Use --approve to modify local package config.")]
    NotTrusted,
    /// The working directory holds the agent directory.
    #[error(
        "a project in this folder has no settings of its own, since its .agentd is the agent directory: leave out --local"
    )]
    NoProject,
    /// The settings name no such package.
    #[error("No matching package found for {source_text}{}", meant.as_ref().map(|it| format!(". Did you mean {it}?")).unwrap_or_default())]
    NotFound {
        /// The source.
        source_text: String,
        /// A package that may be meant.
        meant: Option<String>,
    },
}

/// A package of the settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfiguredPackage {
    /// The source as it is written, without a password.
    pub source: String,
    /// Whose settings name it.
    pub scope: SourceScope,
    /// Whether the entry says what of it is used.
    pub filtered: bool,
    /// Where it is; `None` if it is not installed.
    pub installed: Option<PathBuf>,
}

/// A changed settings file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsChange {
    /// The file.
    pub path: PathBuf,
    /// Whether it was written.
    pub changed: bool,
}

/// Manages the packages of a query's settings files.
#[derive(Debug, Clone, Copy)]
pub struct PackageManager<'a> {
    /// The folders and lists of the settings, those of the project where it is trusted.
    pub query: &'a DiscoveryQuery<'a>,
}

impl PackageManager<'_> {
    /// Installs a package and adds it to the settings, of the user or (`local`) of the project. A package that is there under another
    /// version or ref takes its place, with its filters.
    ///
    /// # Errors
    /// [`ManageError`]; the settings are as they were, and a package that was not there is not.
    pub async fn install(
        &self,
        installer: &PackageInstaller<'_>,
        text: &str,
        local: bool,
    ) -> Result<SettingsChange, ManageError> {
        let scope = self.scope(local)?;
        let source = PackageSource::parse(text)?;
        let file = self.file(scope)?;
        // A file that cannot be changed is found out before anything is fetched.
        self.edit(&file, scope, |_| Ok(Vec::new()))?;
        // A path counts from here, and in the settings from their folder.
        let installed_as =
            if matches!(source, PackageSource::Path(_)) { SourceScope::Temporary } else { scope };
        installer.install(&source, installed_as).await?;
        let written = self.written(text, &source, scope);
        let identity = self.folders().identity(&source, installed_as);
        self.edit(&file, scope, |packages| {
            let found = packages
                .iter()
                .position(|entry| self.identity_of(entry, scope).as_deref() == Some(&identity));
            Ok(match found {
                None => vec![MemberChange::AddItem(vec![PACKAGES.to_owned()], json!(written))],
                Some(at) => {
                    let entry = with_source(&packages[at], &written);
                    if entry == packages[at] {
                        Vec::new()
                    } else {
                        vec![MemberChange::ReplaceItem(vec![PACKAGES.to_owned()], at, entry)]
                    }
                }
            })
        })
    }

    /// Removes a package and takes it out of the settings.
    ///
    /// # Errors
    /// [`ManageError`]; [`ManageError::NotFound`] when the settings do not name it. The settings are as they were.
    pub async fn remove(
        &self,
        installer: &PackageInstaller<'_>,
        text: &str,
        local: bool,
    ) -> Result<SettingsChange, ManageError> {
        let scope = self.scope(local)?;
        let source = PackageSource::parse(text)?;
        let file = self.file(scope)?;
        let folders = self.folders();
        let here = folders.identity(&source, if is_path(&source) { SourceScope::Temporary } else { scope });
        // As it is written in the file, too.
        let there = folders.identity(&source, scope);
        let is_it = |entry: &Value| {
            self.identity_of(entry, scope).is_some_and(|identity| identity == here || identity == there)
        };
        let mut is_named = false;
        self.edit(&file, scope, |packages| {
            is_named = packages.iter().any(is_it);
            Ok(Vec::new())
        })?;
        if !is_named {
            return Err(self.not_found(text));
        }
        installer.remove(&source, scope).await?;
        self.edit(&file, scope, |packages| {
            let places = packages.iter().enumerate().filter(|(_, entry)| is_it(entry)).map(|(at, _)| at);
            // From the end, so that the others keep their places.
            let places: Vec<usize> = places.collect();
            let remove = |at: &usize| MemberChange::RemoveItem(vec![PACKAGES.to_owned()], *at);
            Ok(places.iter().rev().map(remove).collect())
        })
    }

    /// The packages of the settings, the user's first. Looks at folders; blocks.
    #[must_use]
    pub fn list(&self) -> Vec<ConfiguredPackage> {
        let folders = self.folders();
        let installed = |source: &str, scope| {
            let place = folders.place(&PackageSource::parse(source).ok()?, scope);
            place.exists().then_some(place)
        };
        let of = |(entry, scope): (&PackageSetting, SourceScope)| ConfiguredPackage {
            source: without_password(entry.source()),
            scope,
            filtered: entry.filter().is_some(),
            installed: installed(entry.source(), scope),
        };
        self.entries().map(of).collect()
    }

    /// Brings the packages of the settings to their newest versions, or one of them.
    ///
    /// # Errors
    /// [`ManageError`]; [`ManageError::NotFound`] when the settings do not name it.
    pub async fn update(
        &self,
        installer: &PackageInstaller<'_>,
        text: Option<&str>,
    ) -> Result<Vec<UpdatedPackage>, ManageError> {
        let folders = self.folders();
        let wanted = match text {
            None => None,
            Some(text) => {
                let source = PackageSource::parse(text)?;
                Some(folders.identity(&source, SourceScope::Temporary))
            }
        };
        let mut packages = Vec::new();
        for (entry, scope) in self.entries() {
            // What is no source is told by sessions and `agentctl doctor`.
            let Ok(source) = PackageSource::parse(entry.source()) else { continue };
            if wanted.as_ref().is_none_or(|wanted| *wanted == folders.identity(&source, scope)) {
                packages.push((source, entry.source().to_owned(), scope));
            }
        }
        if let Some(text) = text.filter(|_| packages.is_empty()) {
            return Err(self.not_found(text));
        }
        Ok(installer.update(&packages).await?)
    }

    fn folders(&self) -> PackageFolders {
        self.query.package_folders()
    }

    /// The entries of the settings, the user's first.
    fn entries(&self) -> impl Iterator<Item = (&PackageSetting, SourceScope)> {
        let lists = self.query.lists;
        let of_user = lists.user.packages.iter().map(|entry| (entry, SourceScope::User));
        of_user.chain(lists.project.packages.iter().map(|entry| (entry, SourceScope::Project)))
    }

    fn scope(&self, local: bool) -> Result<SourceScope, ManageError> {
        match local {
            false => Ok(SourceScope::User),
            true if self.query.trusted => Ok(SourceScope::Project),
            true => Err(ManageError::NotTrusted),
        }
    }

    fn file(&self, scope: SourceScope) -> Result<PathBuf, ManageError> {
        if scope != SourceScope::Project {
            return Ok(self.query.agent_dir.settings_file());
        }
        let path = self.query.folders.place_of("settings.json").ok_or(ManageError::NoProject)?;
        // No link of the project may lead the change into a file elsewhere.
        read_project_json(&path)?;
        Ok(path)
    }

    /// Changes the list of packages of a settings file under the lock of its writers. All else in the file stays as it is.
    fn edit(
        &self,
        path: &std::path::Path,
        scope: SourceScope,
        plan: impl FnOnce(&[Value]) -> Result<Vec<MemberChange>, ManageError>,
    ) -> Result<SettingsChange, ManageError> {
        let lock = self.query.agent_dir.run_dir().join("settings.lock");
        let object = PrivateObject { path, lock: &lock, timeout: LOCK_TIMEOUT };
        let planned = |settings: &Map<String, Value>| {
            let packages = match settings.get(PACKAGES) {
                None | Some(Value::Null) => &[],
                Some(Value::Array(packages)) => packages.as_slice(),
                Some(_) => return Err(ManageError::NoList { path: path.to_owned() }),
            };
            Ok((plan(packages)?, ()))
        };
        // A file without a project folder is made only when something is written to it.
        if scope == SourceScope::Project && !path.exists() {
            let changes = planned(&Map::new())?.0;
            if changes.is_empty() {
                return Ok(SettingsChange { path: path.to_owned(), changed: false });
            }
            let (changed, ()) = object.edit_shared(|_| Ok::<_, ManageError>((changes, ())))?;
            return Ok(SettingsChange { path: path.to_owned(), changed });
        }
        let (changed, ()) = object.edit_shared(planned)?;
        Ok(SettingsChange { path: path.to_owned(), changed })
    }

    fn identity_of(&self, entry: &Value, scope: SourceScope) -> Option<String> {
        let source = entry.as_str().or_else(|| entry.get("source")?.as_str())?;
        Some(self.folders().identity(&PackageSource::parse(source).ok()?, scope))
    }

    /// A source as it is written into a settings file: a path counts from its folder there.
    fn written(&self, text: &str, source: &PackageSource, scope: SourceScope) -> String {
        if !is_path(source) {
            return text.trim().to_owned();
        }
        let folders = self.folders();
        let path = folders.place(source, SourceScope::Temporary);
        let path = relative(&path, folders.base(scope)).display().to_string();
        if path.is_empty() { ".".to_owned() } else { path }
    }

    fn not_found(&self, text: &str) -> ManageError {
        let wanted = text.trim();
        let is_meant = |entry: &PackageSetting| match PackageSource::parse(entry.source()) {
            Ok(PackageSource::Npm(npm)) => wanted == npm.name || wanted == npm.spec,
            Ok(PackageSource::Git(git)) => {
                let short = format!("{}/{}", git.host, git.path);
                let with_ref = git.reference.map(|reference| format!("{short}@{reference}"));
                wanted == short || with_ref.is_some_and(|it| wanted == it)
            }
            Ok(PackageSource::Path(_)) | Err(_) => false,
        };
        let meant = self.entries().map(|(entry, _)| entry).find(|entry| is_meant(entry));
        let meant = meant.map(|entry| without_password(entry.source()));
        ManageError::NotFound { source_text: without_password(wanted), meant }
    }
}

fn is_path(source: &PackageSource) -> bool {
    matches!(source, PackageSource::Path(_))
}

/// An entry with another source, and the filters that it had.
fn with_source(entry: &Value, source: &str) -> Value {
    match entry {
        Value::Object(filter) => {
            let mut filter = filter.clone();
            filter.insert("source".to_owned(), json!(source));
            Value::Object(filter)
        }
        _ => json!(source),
    }
}
