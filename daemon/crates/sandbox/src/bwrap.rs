//! The mounts of a sandbox made by `bwrap` (bubblewrap), for systems that let it make namespaces and nobody else.
//!
//! `bwrap` makes the mounts and runs this program again, which confines itself by the other layers and executes the command: landlock has
//! to come after the mounts, since a process that it restricts can make none.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs, io,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{confine::confine, policy::SandboxPolicy, support::Layer};

/// The first argument with which the program of the daemon confines itself and executes a command; see [`exec_confined`].
pub const EXEC_ARGUMENT: &str = "sandbox-exec";

/// The capabilities that root keeps; the last step takes all others away.
const KEPT: [&str; 6] =
    ["CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_SETGID", "CAP_SETUID"];

/// The command line that runs `program` by `bwrap`, which is `bwrap`, with the mounts of `policy`.
///
/// # Errors
/// The path of this program is not known.
pub fn command_line(
    bwrap: &Path,
    policy: &SandboxPolicy,
    cwd: &Path,
    program: &OsStr,
    args: &[OsString],
) -> io::Result<(OsString, Vec<OsString>)> {
    let mut line = mounts(policy);
    line.extend(["--chdir".into(), cwd.into(), "--".into()]);
    line.push(env::current_exe()?.into_os_string());
    line.extend([
        EXEC_ARGUMENT.into(),
        hexadecimal(&without_mounts(policy)).into(),
        cwd.into(),
        program.into(),
    ]);
    line.extend(args.iter().cloned());
    Ok((bwrap.into(), line))
}

/// The options for the mounts: in the order in which they are made.
pub(crate) fn mounts(policy: &SandboxPolicy) -> Vec<OsString> {
    let mut line: Vec<OsString> =
        ["--unshare-ipc", "--ro-bind", "/", "/", "--dev", "/dev"].map(Into::into).into();
    let mut option = |words: &[&OsStr]| line.extend(words.iter().map(|word| (*word).to_owned()));
    // bwrap follows links.
    let is_real = |path: &PathBuf| path.canonicalize().is_ok_and(|real| real == *path);
    for root in policy.mounted_writable().into_iter().filter(is_real) {
        option(&["--bind-try".as_ref(), root.as_ref(), root.as_ref()]);
    }
    for path in policy.protected() {
        option(&["--ro-bind-try".as_ref(), path.as_ref(), path.as_ref()]);
    }
    for path in &policy.denied {
        match fs::symlink_metadata(path) {
            Ok(about) if about.is_dir() => {
                option(&["--perms".as_ref(), "000".as_ref(), "--tmpfs".as_ref(), path.as_ref()]);
                option(&["--remount-ro".as_ref(), path.as_ref()]);
            }
            // bwrap lets nobody open devices that it mounts outside of its own /dev.
            Ok(_) => option(&["--ro-bind".as_ref(), "/dev/null".as_ref(), path.as_ref()]),
            Err(_) => {}
        }
    }
    if rustix::process::geteuid().is_root() {
        option(&["--cap-drop".as_ref(), "ALL".as_ref()]);
        for capability in KEPT {
            option(&["--cap-add".as_ref(), capability.as_ref()]);
        }
        // What takes the others away at the end.
        option(&["--cap-add".as_ref(), "CAP_SETPCAP".as_ref()]);
    }
    line
}

fn without_mounts(policy: &SandboxPolicy) -> SandboxPolicy {
    let layers = policy.layers.iter().copied().filter(|layer| *layer != Layer::Mounts).collect();
    SandboxPolicy { layers, bwrap: None, ..policy.clone() }
}

/// Confines this process and executes a command: the arguments after [`EXEC_ARGUMENT`] are those that [`command_line`] made. Returns only
/// on an error; the command has not run then. The process must have one thread.
#[must_use]
pub fn exec_confined(mut args: impl Iterator<Item = OsString>) -> io::Error {
    let policy = args.next().and_then(|text| SandboxPolicy::from_bytes(&from_hexadecimal(text.to_str()?)?));
    let (Some(policy), Some(cwd), Some(program)) = (policy, args.next(), args.next()) else {
        return io::Error::new(io::ErrorKind::InvalidInput, "these are not the arguments of a sandbox");
    };
    match confine(&policy, Path::new(&cwd)) {
        Ok(()) => Command::new(&program).args(args).exec(),
        Err(error) => io::Error::other(error),
    }
}

fn hexadecimal(policy: &SandboxPolicy) -> String {
    policy.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hexadecimal(text: &str) -> Option<Vec<u8>> {
    let pairs =
        text.as_bytes().chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_survives_the_command_line() {
        let policy = SandboxPolicy {
            writable: vec![std::env::temp_dir().canonicalize().unwrap()],
            denied: vec!["/no/such".into()],
            layers: Layer::ALL.to_vec(),
            bwrap: Some("/usr/bin/bwrap".into()),
            ..SandboxPolicy::default()
        };
        let inner = without_mounts(&policy);
        assert_eq!(inner.layers, [Layer::Landlock, Layer::Seccomp]);
        let bytes = from_hexadecimal(&hexadecimal(&inner)).unwrap();
        assert_eq!(SandboxPolicy::from_bytes(&bytes), Some(inner));
        assert_eq!(from_hexadecimal("0g"), None);
        let (program, line) =
            command_line("/b".as_ref(), &policy, "/w".as_ref(), "sh".as_ref(), &["-c".into(), "x".into()])
                .unwrap();
        assert_eq!(program, "/b");
        let root = policy.writable[0].as_os_str();
        assert!(line.windows(3).any(|words| words == ["--bind-try".as_ref(), root, root]), "{line:?}");
        assert!(!line.iter().any(|word| word == "/no/such"), "what is missing is not mounted: {line:?}");
        assert_eq!(line[line.len() - 3..], ["sh", "-c", "x"]);
    }
}
