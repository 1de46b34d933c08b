//! The command `pi` of the Node host: published extensions start agents by it, and it is agentd in the form of pi's command line.
//!
//! Extensions find it in two ways: as `pi` on the search path, and as the script that Node itself runs (`process.argv[1]`), which they give
//! to another Node. Some read the `package.json` of the folder in which that script is.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs, io,
    os::unix::{ffi::OsStrExt as _, fs::symlink},
    path::{Path, PathBuf},
};

use sha2::{Digest as _, Sha256};

use crate::private_folder::{appear, write_private};

/// The variable that names the script to the host.
const VARIABLE: &str = "AGENTD_PI_SHIM";

/// The script.
const SCRIPT: (&str, &str) = ("cli.mjs", include_str!("pi_cli.mjs"));

/// pi's package, as far as extensions read it.
const PACKAGE: &str = r#"{"name":"@earendil-works/pi-coding-agent","version":"1.5.2","type":"module","bin":{"pi":"cli.mjs"},"piConfig":{"configDir":".pi"}}"#;

/// Adds what makes this very program the `pi` of extensions to the environment of their host. `on_path` puts it before other programs of
/// that name. Blocks.
///
/// # Errors
/// When the files cannot be written.
pub(crate) fn add_pi(agent_dir: &Path, env: &mut Vec<(OsString, OsString)>, on_path: bool) -> io::Result<()> {
    let folder = unpacked(agent_dir, &env::current_exe()?)?;
    env.push((VARIABLE.into(), folder.join(SCRIPT.0).into()));
    if on_path {
        let path = env.iter_mut().find(|(name, _)| name == "PATH");
        let first = folder.join("bin");
        match path {
            Some((_, path)) => {
                let others = env::split_paths(path).filter(|other| *other != first);
                let joined = env::join_paths(std::iter::once(first.clone()).chain(others));
                *path = joined.map_err(io::Error::other)?;
            }
            None => env.push(("PATH".into(), first.into())),
        }
    }
    Ok(())
}

/// The folder for this program, which is written where it is not there.
fn unpacked(agent_dir: &Path, program: &Path) -> io::Result<PathBuf> {
    let parent = agent_dir.join("run");
    let folder =
        parent.join(format!("pi-{}", digest(&[program.as_os_str(), SCRIPT.1.as_ref(), PACKAGE.as_ref()])));
    if folder.join(SCRIPT.0).is_file() {
        return Ok(folder);
    }
    appear(&folder, |unfinished| {
        write_private(unfinished, "package.json", PACKAGE.as_bytes())?;
        fs::create_dir(unfinished.join("bin"))?;
        symlink(program, unfinished.join("bin/pi"))?;
        write_private(unfinished, SCRIPT.0, SCRIPT.1.as_bytes())
    })?;
    Ok(folder)
}

fn digest(parts: &[&OsStr]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.len().to_le_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value<'a>(env: &'a [(OsString, OsString)], name: &str) -> &'a OsStr {
        &env.iter().find(|(known, _)| known == name).unwrap().1
    }

    #[test]
    fn the_program_is_first_on_the_path_once() {
        let home = tempfile::tempdir().unwrap();
        let plain = vec![("PATH".into(), "/usr/bin:/bin".into())];
        let mut env = plain.clone();
        add_pi(home.path(), &mut env, true).unwrap();
        let script = PathBuf::from(value(&env, VARIABLE));
        assert_eq!(fs::read_to_string(&script).unwrap(), SCRIPT.1);
        let folder = script.parent().unwrap();
        assert_eq!(fs::read_link(folder.join("bin/pi")).unwrap(), env::current_exe().unwrap());
        let path = format!("{}:/usr/bin:/bin", folder.join("bin").display());
        assert_eq!(value(&env, "PATH"), path.as_str());
        // A host within a host.
        add_pi(home.path(), &mut env, true).unwrap();
        assert_eq!(value(&env, "PATH"), path.as_str());
        assert_eq!(fs::read_dir(home.path().join("run")).unwrap().count(), 1);

        let mut env = plain;
        add_pi(home.path(), &mut env, false).unwrap();
        assert_eq!(value(&env, "PATH"), "/usr/bin:/bin");
        assert_eq!(value(&env, VARIABLE), script.as_os_str());
    }
}
