//! The socket path of an agent directory's daemon: one rule for the daemon and its clients. Pure: variables and folders
//! come in, paths come out, and nothing is looked at.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

/// The longest path of a socket, in bytes: the system's field has 108, and the last one ends it.
pub const MAX_BYTES: usize = 107;

/// The variable that names the socket outright.
pub const VARIABLE: &str = "AGENTD_SOCKET";

/// The user and what surrounds the program.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// Looks up an environment variable.
    pub variable: &'a dyn Fn(&str) -> Option<OsString>,
    /// The working directory, from which relative paths are taken.
    pub cwd: &'a Path,
    /// The number of the user.
    pub uid: u32,
}

impl Surroundings<'_> {
    /// The agent directory: `AGENTD_DIR`, else `PI_CODING_AGENT_DIR`, else `~/.agentd`. With `compat` (started as `pi`)
    /// `PI_CODING_AGENT_DIR` comes first and the default is `~/.pi/agent`. `None` when not even `HOME` is set.
    #[must_use]
    pub fn agent_dir(&self, compat: bool) -> Option<PathBuf> {
        let (first, second, default) = if compat {
            ("PI_CODING_AGENT_DIR", "AGENTD_DIR", ".pi/agent")
        } else {
            ("AGENTD_DIR", "PI_CODING_AGENT_DIR", ".agentd")
        };
        match self.non_empty(first).or_else(|| self.non_empty(second)) {
            Some(path) => Some(self.cwd.join(self.expand_tilde(path))),
            None => self.non_empty("HOME").map(|home| Path::new(&home).join(default)),
        }
    }

    /// The socket of the daemon that serves `agent_dir`: `AGENTD_SOCKET`; else in `$XDG_RUNTIME_DIR/agentd`, where two
    /// agent directories never meet; else `run/agentd.sock` in the agent directory; where that is longer than
    /// [`MAX_BYTES`], in a folder of the user's under the temporary directory.
    ///
    /// The path of `AGENTD_SOCKET` is given as it is, however long.
    #[must_use]
    pub fn socket(&self, agent_dir: &Path) -> PathBuf {
        if let Some(path) = self.non_empty(VARIABLE) {
            return self.cwd.join(self.expand_tilde(path));
        }
        let named = format!("agentd-{:08x}.sock", hash(agent_dir));
        let runtime_dir = self.non_empty("XDG_RUNTIME_DIR").map(PathBuf::from);
        let path = match runtime_dir.filter(|folder| folder.is_absolute()) {
            Some(folder) if self.is_default(agent_dir) => folder.join("agentd/agentd.sock"),
            Some(folder) => folder.join("agentd").join(&named),
            None => agent_dir.join("run/agentd.sock"),
        };
        if fits(&path) {
            return path;
        }
        let below = |folder: &Path| folder.join(format!("agentd-{}", self.uid)).join(&named);
        let folders = ["TMPDIR", "TMP", "TEMP"].into_iter().find_map(|name| self.non_empty(name));
        folders
            .map(|folder| below(&self.cwd.join(folder)))
            .filter(|path| fits(path))
            .unwrap_or_else(|| below(Path::new("/tmp")))
    }

    fn is_default(&self, agent_dir: &Path) -> bool {
        self.non_empty("HOME").is_some_and(|home| Path::new(&home).join(".agentd") == agent_dir)
    }

    fn non_empty(&self, name: &str) -> Option<OsString> {
        (self.variable)(name).filter(|value| !value.is_empty())
    }

    fn expand_tilde(&self, path: OsString) -> PathBuf {
        let path = PathBuf::from(path);
        match (path.strip_prefix("~"), self.non_empty("HOME")) {
            (Ok(rest), Some(home)) if rest.as_os_str().is_empty() => PathBuf::from(home),
            (Ok(rest), Some(home)) => Path::new(&home).join(rest),
            _ => path,
        }
    }
}

/// Whether the system takes the path for a socket.
#[must_use]
pub fn fits(path: &Path) -> bool {
    path.as_os_str().len() <= MAX_BYTES
}

/// FNV-1a of 32 bits over the path's parts: a stable name, no secret. How the path is written (`a//b`, `a/./b`, `a/b/`)
/// makes no difference.
fn hash(path: &Path) -> u32 {
    let bytes = path.components().flat_map(|part| part_bytes(part.as_os_str()));
    bytes.fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// A part and what ends it: no part holds a zero byte.
fn part_bytes(part: &OsStr) -> impl Iterator<Item = u8> {
    part.as_encoded_bytes().iter().copied().chain([0])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn with<T>(variables: &[(&str, &str)], ask: impl FnOnce(Surroundings<'_>) -> T) -> T {
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value))
        };
        ask(Surroundings { variable: &variable, cwd: Path::new("/cwd"), uid: 7 })
    }

    fn check_socket(variables: &[(&str, &str)], agent_dir: &str, expected: &str) {
        let found = with(variables, |here| here.socket(Path::new(agent_dir)));
        assert_eq!(found, Path::new(expected), "{variables:?} {agent_dir}");
    }

    #[test]
    fn agent_directories() {
        let check = |variables: &[(&str, &str)], compat, expected: Option<&str>| {
            let found = with(variables, |here| here.agent_dir(compat));
            assert_eq!(found.as_deref(), expected.map(Path::new), "{variables:?} {compat}");
        };
        let both = [("AGENTD_DIR", "/ours"), ("PI_CODING_AGENT_DIR", "/theirs"), ("HOME", "/h")];
        check(&both, false, Some("/ours"));
        check(&both, true, Some("/theirs"));
        check(&both[1..], false, Some("/theirs"));
        check(&both[..1], true, Some("/ours"));
        check(&both[2..], false, Some("/h/.agentd"));
        check(&both[2..], true, Some("/h/.pi/agent"));
        check(&[("AGENTD_DIR", "~/a"), ("HOME", "/h")], false, Some("/h/a"));
        check(&[("AGENTD_DIR", "~"), ("HOME", "/h")], false, Some("/h"));
        check(&[("AGENTD_DIR", ""), ("HOME", "/h")], false, Some("/h/.agentd"));
        check(&[("AGENTD_DIR", "~x/a"), ("HOME", "/h")], false, Some("/cwd/~x/a"));
        check(&[("AGENTD_DIR", "a")], false, Some("/cwd/a"));
        check(&[("HOME", "")], false, None);
    }

    #[test]
    fn sockets() {
        let home = ("HOME", "/h");
        let run = ("XDG_RUNTIME_DIR", "/run/user/7");
        check_socket(&[home], "/h/.agentd", "/h/.agentd/run/agentd.sock");
        check_socket(&[home], "/a", "/a/run/agentd.sock");
        check_socket(&[home, run], "/h/.agentd", "/run/user/7/agentd/agentd.sock");
        check_socket(&[home, run], "/h/.agentd/", "/run/user/7/agentd/agentd.sock");
        check_socket(&[home, run], "/a", "/run/user/7/agentd/agentd-c70fa593.sock");
        check_socket(&[run], "/a//", "/run/user/7/agentd/agentd-c70fa593.sock");
        // A relative one is to be ignored, says its specification; an empty one is none.
        check_socket(&[home, ("XDG_RUNTIME_DIR", "run")], "/a", "/a/run/agentd.sock");
        check_socket(&[home, ("XDG_RUNTIME_DIR", "")], "/a", "/a/run/agentd.sock");
        check_socket(&[home, run, (VARIABLE, "/s/x.sock")], "/a", "/s/x.sock");
        check_socket(&[home, (VARIABLE, "x.sock")], "/a", "/cwd/x.sock");
        check_socket(&[home, (VARIABLE, "~/x.sock")], "/a", "/h/x.sock");
        check_socket(&[home, (VARIABLE, "")], "/a", "/a/run/agentd.sock");
    }

    #[test]
    fn what_is_too_long_goes_to_the_temporary_directory() {
        // `/run/agentd.sock` and what is before it.
        let longest = format!("/{}", "a".repeat(MAX_BYTES - 17));
        check_socket(&[], &longest, &format!("{longest}/run/agentd.sock"));
        let longer = format!("{longest}a");
        let named = with(&[], |here| here.socket(Path::new(&longer)));
        let name = named.file_name().unwrap().to_str().unwrap().to_owned();
        assert_eq!(named, Path::new("/tmp/agentd-7").join(&name));
        assert_eq!(name.len(), "agentd-12345678.sock".len(), "{name}");
        check_socket(&[("TMPDIR", "/t")], &longer, &format!("/t/agentd-7/{name}"));
        check_socket(&[("TEMP", "/t")], &longer, &format!("/t/agentd-7/{name}"));
        check_socket(&[("TMPDIR", &longest)], &longer, &format!("/tmp/agentd-7/{name}"));
        check_socket(&[("XDG_RUNTIME_DIR", &longest)], "/a", "/tmp/agentd-7/agentd-c70fa593.sock");
        assert!(fits(Path::new(&"a".repeat(MAX_BYTES))) && !fits(Path::new(&"a".repeat(MAX_BYTES + 1))));
    }

    proptest! {
        #[test]
        fn what_is_found_fits(agent in "/[a-z/]{0,150}", run in "/?[a-z/]{0,150}", tmp in "/?[a-z/]{0,150}") {
            let variables = [("XDG_RUNTIME_DIR", run.as_str()), ("TMPDIR", tmp.as_str())];
            let socket = with(&variables, |here| here.socket(Path::new(&agent)));
            prop_assert!(fits(&socket) && socket.is_absolute(), "{}", socket.display());
        }
    }

    #[test]
    fn different_directories_have_different_names() {
        assert_ne!(hash(Path::new("/a/b")), hash(Path::new("/ab")));
        assert_eq!(hash(Path::new("/a/b/")), hash(Path::new("/a/./b")));
    }
}
