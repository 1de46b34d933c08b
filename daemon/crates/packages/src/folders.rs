//! Where packages of the user, of a project and of flags are.

use std::path::{Path, PathBuf};

use agentd_config::{AgentDir, Environment, resolve_path};
use agentd_protocol::{plain_path::without_dots, resources::SourceScope};
use sha2::{Digest, Sha256};

use crate::source::{GitSource, NpmSource, PackageSource};

/// The folders of packages for a working directory.
#[derive(Debug, Clone)]
pub struct PackageFolders {
    agent_dir: PathBuf,
    /// The folder of the project's settings file.
    project: PathBuf,
    cwd: PathBuf,
    environment: Environment,
}

impl PackageFolders {
    /// The folders for a working directory. `project` is the folder of its settings file, which need not exist.
    #[must_use]
    pub fn new(agent_dir: &AgentDir, project: &Path, cwd: &Path, environment: &Environment) -> Self {
        Self {
            agent_dir: agent_dir.path().to_owned(),
            project: project.to_owned(),
            cwd: cwd.to_owned(),
            environment: environment.clone(),
        }
    }

    /// The folder that relative paths of a scope count from.
    #[must_use]
    pub fn base(&self, scope: SourceScope) -> &Path {
        match scope {
            SourceScope::User => &self.agent_dir,
            SourceScope::Project => &self.project,
            SourceScope::Temporary => &self.cwd,
        }
    }

    /// The folder in which npm installs packages of a scope.
    #[must_use]
    pub fn npm_root(&self, scope: SourceScope) -> PathBuf {
        match scope {
            SourceScope::Temporary => self.temporary("npm", "", None),
            SourceScope::User | SourceScope::Project => self.base(scope).join("npm"),
        }
    }

    /// The folder with the repositories of a scope; `None` for those of flags, which have one each.
    #[must_use]
    pub fn git_root(&self, scope: SourceScope) -> Option<PathBuf> {
        (scope != SourceScope::Temporary).then(|| self.base(scope).join("git"))
    }

    pub(crate) fn npm_package(&self, source: &NpmSource, scope: SourceScope) -> PathBuf {
        self.npm_root(scope).join("node_modules").join(&source.name)
    }

    pub(crate) fn repository(&self, source: &GitSource, scope: SourceScope) -> PathBuf {
        match self.git_root(scope) {
            Some(root) => root.join(&source.host).join(&source.path),
            None => {
                self.temporary(&format!("git-{}", source.host), &source.path, source.reference.as_deref())
            }
        }
    }

    /// Where a package is or would be: a folder, or for a path also a file.
    #[must_use]
    pub fn place(&self, source: &PackageSource, scope: SourceScope) -> PathBuf {
        match source {
            PackageSource::Npm(npm) => self.npm_package(npm, scope),
            PackageSource::Git(git) => self.repository(git, scope),
            PackageSource::Path(path) => self.path(path, self.base(scope)),
        }
    }

    /// A path as it is written, absolute: `~` and `file://` are known.
    #[must_use]
    pub fn path(&self, text: &str, base: &Path) -> PathBuf {
        let text = text.trim();
        let text = text.strip_prefix("file://").unwrap_or(text);
        without_dots(&resolve_path(text, base, &self.environment))
    }

    /// The name by which a package is known, whatever its version and however its source is written.
    #[must_use]
    pub fn identity(&self, source: &PackageSource, scope: SourceScope) -> String {
        match source {
            PackageSource::Npm(npm) => format!("npm:{}", npm.name),
            PackageSource::Git(git) => format!("git:{}/{}", git.host, git.path),
            PackageSource::Path(_) => format!("path:{}", canonical(&self.place(source, scope)).display()),
        }
    }

    /// A folder for what a flag names: `PREFIX`, a hash of all that makes it another one, and the path that it is for.
    fn temporary(&self, prefix: &str, below: &str, reference: Option<&str>) -> PathBuf {
        let reference = reference.map(|reference| format!("@{reference}")).unwrap_or_default();
        let hash = Sha256::digest(format!("{prefix}-{below}{reference}"));
        let hash: String = hash.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        let folder = self.agent_dir.join("tmp/extensions").join(prefix).join(hash);
        if below.is_empty() { folder } else { folder.join(below) }
    }
}

/// The path without symbolic links where it exists, else as it is.
pub(crate) fn canonical(path: &Path) -> PathBuf {
    agentd_config::real_path(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_that_pi_uses() {
        let environment: Environment = [("HOME", "/h")].into_iter().collect();
        let folders = PackageFolders::new(
            &AgentDir::at("/agent"),
            Path::new("/cwd/.pi"),
            Path::new("/cwd"),
            &environment,
        );
        let check = |source: &str, scope: SourceScope, place: &str, identity: &str| {
            let source = PackageSource::parse(source).unwrap();
            assert_eq!(folders.place(&source, scope), Path::new(place));
            assert_eq!(folders.identity(&source, scope), identity);
        };
        use SourceScope::{Project, Temporary, User};
        check("npm:@s/a@1", User, "/agent/npm/node_modules/@s/a", "npm:@s/a");
        check("npm:a", Project, "/cwd/.pi/npm/node_modules/a", "npm:a");
        check("npm:a", Temporary, "/agent/tmp/extensions/npm/f35b2129/node_modules/a", "npm:a");
        check("git:github.com/u/r@v1", User, "/agent/git/github.com/u/r", "git:github.com/u/r");
        check(
            "git@github.com:u/r",
            Project,
            "/cwd/.pi/git@github.com:u/r",
            "path:/cwd/.pi/git@github.com:u/r",
        );
        check("./x/../y", User, "/agent/y", "path:/agent/y");
        check("./y", Temporary, "/cwd/y", "path:/cwd/y");
        check("~/y", Project, "/h/y", "path:/h/y");
        check("file:///y", Project, "/y", "path:/y");
        let git = |text: &str| folders.place(&PackageSource::parse(text).unwrap(), Temporary);
        assert_ne!(git("git:github.com/u/r@v1"), git("git:github.com/u/r"));
        assert!(git("git:github.com/u/r").starts_with("/agent/tmp/extensions/git-github.com"));
    }
}
