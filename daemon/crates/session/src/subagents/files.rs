//! The files of subagents, beside the file of the session that they work for.

use std::{
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use agentd_files::replace::Replacement;

/// The folder of the sessions of a session's subagents: beside its file, and named after it.
#[must_use]
pub fn subagent_folder(file: &Path) -> PathBuf {
    let mut name = file.file_stem().unwrap_or_default().to_owned();
    name.push(".agents");
    file.with_file_name(name)
}

/// Writes a file that only the user can read. Blocks.
pub(super) fn write_private(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("/"));
    agentd_store::create_dirs(folder).map_err(io::Error::other)?;
    let mut replacement = Replacement::create(folder, ".result-", ".tmp", 0o600)?;
    replacement.file_mut().write_all(bytes)?;
    replacement.commit(file).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_stands_beside_the_file() {
        assert_eq!(subagent_folder(Path::new("/s/a_b.jsonl")), Path::new("/s/a_b.agents"));
    }
}
