//! Extensions and packages: where they are, which count, and how they get here.
//!
//! [`discover`] finds the extensions of a session and what packages bring; it starts nothing. [`PackageInstaller`] gets packages by npm and
//! git, under the process guard. [`PackageManager`] adds and removes packages for a user. Nothing of a project counts, or
//! is looked at, before its trust.
//!
//! The crate knows nothing of sessions and of the programs that run extensions.

mod configured;
mod contents;
mod discovery;
mod entries;
mod folders;
mod install;
mod kinds;
mod manage;
mod manifest;
mod node;
mod patterns;
mod source;
#[cfg(test)]
mod testing;
mod version;

pub use configured::{NamedPackage, configured};
pub use discovery::{
    BUILTIN_EXTENSIONS, Discovery, DiscoveryQuery, ExtensionError, FoundExtension, LoadRank, discover,
    package_resources,
};
pub use entries::ExtensionKind;
pub use folders::PackageFolders;
pub use install::{InstallError, InstalledMissing, PackageInstaller, Progress, UpdatedPackage, is_offline};
pub use kinds::ResourceKind;
pub use manage::{ConfiguredPackage, ManageError, PackageManager, SettingsChange};
pub use manifest::HOST_PROTOCOL;
pub use node::{Node, NodeError, OLDEST_NODE, find_node};
pub use source::{GitSource, NpmSource, PackageSource, SourceError, without_password};
