//! The request of `agentctl install`, `remove`, `list` and `update` to `agentd` on its stdin, and the lines of its answer: JSON each.

use serde::{Deserialize, Serialize};

use crate::resources::SourceScope;

/// What is to be done with packages of the working directory and of the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PackageRequest {
    /// The task.
    pub task: PackageTask,
    /// Whether the project counts as trusted.
    #[serde(default)]
    pub approve: bool,
}

/// A task about packages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum PackageTask {
    /// Installs a package and adds it to the settings.
    Install {
        /// `npm:NAME`, `git:HOST/PATH`, a URL or a path.
        source: String,
        /// Whether the settings are those of the project, not the user's.
        local: bool,
    },
    /// Removes a package and takes it out of the settings.
    Remove {
        /// Its source.
        source: String,
        /// Whether the settings are those of the project, not the user's.
        local: bool,
    },
    /// Lists the packages of the settings.
    List,
    /// Brings packages to their newest versions.
    Update {
        /// The source of one package; `None` for all.
        source: Option<String>,
    },
}

/// A line of the answer. The last one is the result; a refusal is said on stderr.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum PackageAnswer {
    /// Work goes on.
    Progress {
        /// What is done now.
        message: String,
    },
    /// The settings are as they are to be.
    Settings {
        /// The settings file, absolute.
        path: String,
        /// Whether it is another one than before.
        changed: bool,
        /// Whether it is used: that of a project needs the project's trust.
        used: bool,
    },
    /// The packages of the settings, the user's first.
    Packages {
        /// In the order of the settings.
        packages: Vec<ListedPackage>,
    },
    /// The update is done.
    Updated {
        /// The packages that are others now.
        updated: Vec<UpdatedPackage>,
        /// Whether nothing was looked for, since `PI_OFFLINE` is set.
        offline: bool,
    },
}

/// A package of the settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedPackage {
    /// The source as it is written, without a password.
    pub source: String,
    /// Whose settings name it.
    pub scope: SourceScope,
    /// Whether the entry says what of it is used.
    pub filtered: bool,
    /// Where it is; absent if it is not installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installed_path: Option<String>,
}

/// A package that is another one than before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UpdatedPackage {
    /// The source as it is written, without a password.
    pub source: String,
    /// Whose settings name it.
    pub scope: SourceScope,
    /// The version or commit before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The version or commit now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

/// Returns whether what `--extension` or an installation names is a path of this machine by its form, and not the source of a package
/// elsewhere.
#[must_use]
pub fn names_a_path(source: &str) -> bool {
    let source = source.trim();
    let elsewhere = ["npm:", "git:", "github:", "http:", "https:", "ssh:", "builtin:"];
    !elsewhere.iter().any(|beginning| source.starts_with(beginning))
}
