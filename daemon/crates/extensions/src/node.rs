//! The Node host: its files, which are part of this program.
//!
//! Nothing here happens in a session without an extension for Node.

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use sha2::{Digest as _, Sha256};

use crate::{
    pi_shim::add_pi,
    private_folder::{appear, write_private},
    process::HostProgram,
};

include!(concat!(env!("OUT_DIR"), "/node_host.rs"));

/// All files, one after the other, compressed.
static PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/node_host.bin"));

/// The file that Node runs.
const MAIN: &str = "host.mjs";

/// Why there is no Node host.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The files of the host could not be written.
    #[error("cannot write the files of the extension host to {}: {source}", path.display())]
    Unpack {
        /// The folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// The program of the Node host, whose files are unpacked under the agent directory first where they are not there. `pi_on_path` makes
/// this program the `pi` on the host's search path. Blocks.
///
/// # Errors
/// [`NodeError`].
pub fn node_program(
    node: &Path,
    agent_dir: &Path,
    cwd: &Path,
    env: &[(OsString, OsString)],
    pi_on_path: bool,
) -> Result<HostProgram, NodeError> {
    let folder = agent_dir.join("run").join(format!("extension-host-{}", version()));
    unpack(&folder).map_err(|source| NodeError::Unpack { path: folder.clone(), source })?;
    let mut env = env.to_vec();
    add_pi(agent_dir, &mut env, pi_on_path)
        .map_err(|source| NodeError::Unpack { path: agent_dir.join("run"), source })?;
    // What published extensions read.
    env.extend([
        ("PI_CODING_AGENT".into(), "true".into()),
        ("AI_AGENT".into(), "pi".into()),
        ("PI_CODING_AGENT_DIR".into(), agent_dir.into()),
    ]);
    Ok(HostProgram {
        command: vec![node.into(), folder.join(MAIN).into()],
        cwd: cwd.to_owned(),
        env,
        own_descriptors: true,
    })
}

/// Changes with the files.
fn version() -> &'static str {
    static VERSION: OnceLock<String> = OnceLock::new();
    VERSION.get_or_init(|| {
        let digest = Sha256::digest(PACKED);
        digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    })
}

/// Writes the files into a folder that appears whole: another process may do the same.
fn unpack(folder: &Path) -> io::Result<()> {
    if folder.join(MAIN).is_file() {
        return Ok(());
    }
    let contents = miniz_oxide::inflate::decompress_to_vec(PACKED)
        .map_err(|error| io::Error::other(error.to_string()))?;
    appear(folder, |unfinished| {
        let mut rest = &contents[..];
        for (name, length) in FILES {
            let (content, after) = rest.split_at(*length);
            write_private(unfinished, name, content)?;
            rest = after;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    #[test]
    fn the_files_are_unpacked_once_and_are_private() {
        let folder = tempfile::tempdir().unwrap();
        let node = Path::new("/usr/bin/node");
        let program = node_program(node, folder.path(), Path::new("/"), &[], false).unwrap();
        let main = PathBuf::from(&program.command[1]);
        let content = fs::read(&main).unwrap();
        let length = FILES.iter().find(|(name, _)| *name == MAIN).map(|(_, length)| *length);
        assert_eq!(Some(content.len()), length);
        assert_eq!(fs::metadata(&main).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(main.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
        let written = fs::metadata(&main).unwrap().modified().unwrap();
        node_program(node, folder.path(), Path::new("/"), &[], false).unwrap();
        assert_eq!(fs::metadata(&main).unwrap().modified().unwrap(), written);
        // The host, and pi.
        assert_eq!(fs::read_dir(folder.path().join("run")).unwrap().count(), 2);
    }
}
