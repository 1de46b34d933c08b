//! The Node host: its files, which are part of this program.
//!
//! Nothing here happens in a session without an extension for Node.

use std::{
    ffi::OsString,
    fs, io,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::OnceLock,
};

use sha2::{Digest as _, Sha256};

use crate::process::HostProgram;

include!(concat!(env!("OUT_DIR"), "/node_host.rs"));

/// All files, one after the other, compressed.
static PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/node_host.bin"));

/// The file that Node runs.
const MAIN: &str = "host.mjs";

/// The name of pi's package: code of extensions looks for it beside the program that runs them.
const PACKAGE: &str = r#"{"name":"@earendil-works/pi-coding-agent","version":"1.5.2","type":"module","piConfig":{"configDir":".pi"}}"#;

/// Why there is no Node host.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The files of the host could not be written.
    #[error("cannot unpack the extension host to {}: {source}", path.display())]
    Unpack {
        /// The folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// The program of the Node host, whose files are unpacked under the agent directory first where they are not there. Blocks.
///
/// # Errors
/// [`NodeError`].
pub fn node_program(
    node: &Path,
    agent_dir: &Path,
    cwd: &Path,
    env: &[(OsString, OsString)],
) -> Result<HostProgram, NodeError> {
    let folder = agent_dir.join("run").join(format!("extension-host-{}", version()));
    unpack(&folder).map_err(|source| NodeError::Unpack { path: folder.clone(), source })?;
    let mut env = env.to_vec();
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
    let parent = folder.parent().unwrap_or(folder);
    fs::DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
    let unfinished = parent.join(format!("{}.{}", version(), std::process::id()));
    // Left by a process of that number that was killed.
    match fs::remove_dir_all(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::DirBuilder::new().mode(0o700).create(&unfinished)?;
    let mut rest = &contents[..];
    let write = |name: &str, content: &[u8]| {
        let mut options = fs::OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600).open(unfinished.join(name));
        file.and_then(|mut file| io::Write::write_all(&mut file, content))
    };
    for (name, length) in FILES {
        let (content, after) = rest.split_at(*length);
        write(name, content)?;
        rest = after;
    }
    write("package.json", PACKAGE.as_bytes())?;
    match fs::rename(&unfinished, folder) {
        // Somebody else was faster.
        Err(_) if folder.join(MAIN).is_file() => fs::remove_dir_all(&unfinished),
        renamed => renamed,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_files_are_unpacked_once_and_are_private() {
        let folder = tempfile::tempdir().unwrap();
        let node = Path::new("/usr/bin/node");
        let program = node_program(node, folder.path(), Path::new("/"), &[]).unwrap();
        let main = PathBuf::from(&program.command[1]);
        let content = fs::read(&main).unwrap();
        let length = FILES.iter().find(|(name, _)| *name == MAIN).map(|(_, length)| *length);
        assert_eq!(Some(content.len()), length);
        assert_eq!(fs::metadata(&main).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(main.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
        let written = fs::metadata(&main).unwrap().modified().unwrap();
        node_program(node, folder.path(), Path::new("/"), &[]).unwrap();
        assert_eq!(fs::metadata(&main).unwrap().modified().unwrap(), written);
        assert_eq!(fs::read_dir(folder.path().join("run")).unwrap().count(), 1);
    }
}
