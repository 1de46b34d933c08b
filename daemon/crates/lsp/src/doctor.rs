//! Which servers a folder could have, for checks of the set-up. Starts nothing.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use crate::{
    config::LspConfig,
    find::{ProgramSearch, has_marker},
};

/// A server that could be started, or that a project of the folder would need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundServer {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub group: String,
    /// Its command.
    pub command: String,
    /// Its program; `None` where it is not there.
    pub program: Option<PathBuf>,
    /// Whether the folder has one of its root markers.
    pub is_wanted: bool,
    /// The file that names it; `None` for one that agentd knows.
    pub path: Option<PathBuf>,
}

/// The servers whose programs are there, those that files name, and those of which the folder has a marker. Blocks.
#[must_use]
pub fn found_servers(
    config: &LspConfig,
    path: Option<&OsStr>,
    (cwd, home): (&Path, &Path),
    is_trusted: bool,
) -> Vec<FoundServer> {
    let workspace = [cwd.to_owned()];
    let search = ProgramSearch { path, cwd, home, trusted: is_trusted.then_some(&workspace[..]) };
    let servers = config.servers.iter().filter(|server| !server.disabled).map(|server| FoundServer {
        name: server.name.clone(),
        group: server.group.clone(),
        command: server.command.clone(),
        program: search.find(&server.command, cwd),
        is_wanted: !server.root_markers.is_empty() && has_marker(cwd, server),
        path: server.path.clone(),
    });
    servers.filter(|server| server.program.is_some() || server.is_wanted || server.path.is_some()).collect()
}
