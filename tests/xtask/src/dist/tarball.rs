//! The tar archive: a tree that can be laid over a prefix such as `~/.local`, with the script that does so.

use crate::outcome::Outcome;

use super::{
    archive::{Files, gzip},
    release::Release,
};

/// The script that installs the archive; it is in the archive, and beside it.
pub(crate) const INSTALL_SCRIPT: &str = include_str!("../../files/install.sh");

/// The name of the file and its content.
///
/// # Errors
/// When a file that goes into it cannot be read.
pub(crate) fn make(release: &Release) -> Outcome<(String, Vec<u8>)> {
    let mut files = Files::default();
    for (name, content) in release.programs.each() {
        files.add_program(format!("bin/{name}"), content);
    }
    files.add_below("share", &release.share());
    files.add_below("share/doc/agentd", &release.documents()?);
    files.add_below("share/doc/agentd", &release.licences()?);
    files.add_program("install.sh", INSTALL_SCRIPT);
    let name = format!("agentd-{}-{}", release.version, release.programs.target());
    let archive = gzip(&files.tar(release.epoch, &format!("{name}/"), false)?)?;
    Ok((format!("{name}.tar.gz"), archive))
}
