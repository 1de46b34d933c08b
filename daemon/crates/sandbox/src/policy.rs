//! What a session's commands and file tools may touch.

use std::{
    ffi::OsString,
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
    path::{Path, PathBuf},
};

use crate::support::Layer;

/// Paths below each writable root that stay read-only: what is in them runs, or decides what runs, outside of the sandbox.
const PROTECTED: [&str; 4] = [".git/hooks", ".git/config", ".agentd", ".pi"];

/// What may be touched. All paths are absolute and real (without symbolic links), except that the last part may be missing.
///
/// Reading is allowed but for `denied`; writing is refused but for `writable`. A denied path comes before a protected one, a
/// protected one before a writable one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SandboxPolicy {
    /// The folders in which files may be written.
    pub writable: Vec<PathBuf>,
    /// What stays read-only in them, beside what [`Self::protected`] adds.
    pub read_only: Vec<PathBuf>,
    /// What cannot be read or written, with everything below.
    pub denied: Vec<PathBuf>,
    /// Whether the network may be used.
    pub network: bool,
    /// Whether commands may connect to, and offer, local sockets that have a name.
    pub unix_sockets: bool,
    /// How commands are confined.
    pub layers: Vec<Layer>,
    /// The program that makes the mounts (`bwrap`), where it is not agentd itself.
    pub bwrap: Option<PathBuf>,
}

/// Why a file tool may not access a path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccessRefusal {
    /// The path is denied.
    #[error(
        "The sandbox of this session denies {}: it is, or is below, {}, which the setting sandbox.deniedPaths (or agentd itself) \
         excludes. Do not look for another way to it; if it is needed, ask the user",
        path.display(),
        denied.display()
    )]
    Denied {
        /// The path.
        path: PathBuf,
        /// The denied path.
        denied: PathBuf,
    },
    /// The path is outside of the writable folders.
    #[error(
        "The sandbox of this session does not allow writing {}: only {writable} may be written. If it is needed, ask the user to allow \
         it: with --writable-root DIR, or the setting sandbox.writableRoots",
        path.display()
    )]
    Outside {
        /// The path.
        path: PathBuf,
        /// The writable folders, for people.
        writable: String,
    },
    /// The path is protected in a writable folder.
    #[error(
        "The sandbox of this session keeps {} read-only: what is in {} runs, or decides what runs, outside of the sandbox. If it is \
         needed, ask the user to do it",
        path.display(),
        protected.display()
    )]
    Protected {
        /// The path.
        path: PathBuf,
        /// The protected path.
        protected: PathBuf,
    },
}

impl SandboxPolicy {
    /// The protected paths: those of each writable folder, whether they exist or not, and [`Self::read_only`].
    pub fn protected(&self) -> impl Iterator<Item = PathBuf> + '_ {
        let of_roots = self.writable.iter().flat_map(|root| PROTECTED.iter().map(|name| root.join(name)));
        of_roots.chain(self.read_only.iter().cloned())
    }

    /// The folders that are mounted to be written: the writable ones, and in them each folder on the way to something that is protected,
    /// denied or writable itself. As a mount of its own a folder cannot be moved away with what is in it, where the next command would
    /// find it without its protection. Looks at folders.
    pub(crate) fn mounted_writable(&self) -> Vec<PathBuf> {
        let within = self.protected().chain(self.denied.iter().cloned()).chain(self.writable.iter().cloned());
        let on_the_way = within.flat_map(|path| {
            let is_inside = |folder: &&Path| self.writable.iter().any(|root| folder.starts_with(root));
            let folders = path.ancestors().skip(1).take_while(is_inside);
            folders.map(Path::to_owned).collect::<Vec<_>>()
        });
        let mut folders: Vec<PathBuf> = on_the_way.chain(self.writable.iter().cloned()).collect();
        folders.sort_unstable();
        folders.dedup();
        folders.retain(|folder| std::fs::symlink_metadata(folder).is_ok_and(|about| about.is_dir()));
        folders
    }

    /// Checks that a file tool may read `path`, a real path.
    ///
    /// # Errors
    /// [`AccessRefusal::Denied`].
    pub fn check_read(&self, path: &Path) -> Result<(), AccessRefusal> {
        match self.denied.iter().find(|denied| path.starts_with(denied)) {
            Some(denied) => Err(AccessRefusal::Denied { path: path.to_owned(), denied: denied.clone() }),
            None => Ok(()),
        }
    }

    /// Checks that a file tool may create, change or remove `path`, a real path.
    ///
    /// # Errors
    /// [`AccessRefusal`].
    pub fn check_write(&self, path: &Path) -> Result<(), AccessRefusal> {
        self.check_read(path)?;
        if let Some(protected) = self.protected().find(|protected| path.starts_with(protected)) {
            return Err(AccessRefusal::Protected { path: path.to_owned(), protected });
        }
        if self.writable.iter().any(|root| path.starts_with(root)) {
            return Ok(());
        }
        Err(AccessRefusal::Outside { path: path.to_owned(), writable: self.writable_text() })
    }

    /// The writable folders, for people.
    #[must_use]
    pub fn writable_text(&self) -> String {
        if self.writable.is_empty() {
            return "nothing".to_owned();
        }
        let names: Vec<_> = self.writable.iter().map(|root| root.display().to_string()).collect();
        names.join(", ")
    }

    /// Whether commands are confined by this layer.
    #[must_use]
    pub fn has(&self, layer: Layer) -> bool {
        self.layers.contains(&layer)
    }

    /// Encodes the policy for [`Self::from_bytes`] of the same build.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let layer = |layer| u8::from(self.has(layer));
        let mut out = vec![
            u8::from(self.network),
            u8::from(self.unix_sockets),
            layer(Layer::Mounts),
            layer(Layer::Landlock),
            layer(Layer::Seccomp),
        ];
        let bwrap: Vec<PathBuf> = self.bwrap.iter().cloned().collect();
        for paths in [&self.writable, &self.read_only, &self.denied, &bwrap] {
            out.extend_from_slice(&(paths.len() as u64).to_ne_bytes());
            for path in paths {
                let bytes = path.as_os_str().as_bytes();
                out.extend_from_slice(&(bytes.len() as u64).to_ne_bytes());
                out.extend_from_slice(bytes);
            }
        }
        out
    }

    /// Decodes what [`Self::to_bytes`] wrote; `None` for other bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let ([network, unix_sockets, mounts, landlock, seccomp], mut rest) =
            bytes.split_first_chunk::<5>()?;
        let writable = take_paths(&mut rest)?;
        let read_only = take_paths(&mut rest)?;
        let denied = take_paths(&mut rest)?;
        let bwrap = take_paths(&mut rest)?.pop();
        let layers = [(mounts, Layer::Mounts), (landlock, Layer::Landlock), (seccomp, Layer::Seccomp)];
        let layers = layers.into_iter().filter(|(on, _)| **on != 0).map(|(_, layer)| layer).collect();
        let policy = Self {
            writable,
            read_only,
            denied,
            network: *network != 0,
            unix_sockets: *unix_sockets != 0,
            layers,
            bwrap,
        };
        rest.is_empty().then_some(policy)
    }
}

fn take_paths(rest: &mut &[u8]) -> Option<Vec<PathBuf>> {
    let count = take_count(rest)?;
    let mut paths = Vec::new();
    for _ in 0..count {
        let length = take_count(rest)?;
        let (path, after) = rest.split_at_checked(length)?;
        *rest = after;
        paths.push(OsString::from_vec(path.to_vec()).into());
    }
    Some(paths)
}

fn take_count(rest: &mut &[u8]) -> Option<usize> {
    let (number, after) = rest.split_first_chunk::<8>()?;
    *rest = after;
    usize::try_from(u64::from_ne_bytes(*number)).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn policy() -> SandboxPolicy {
        SandboxPolicy {
            writable: vec!["/w".into(), "/tmp/s".into()],
            read_only: vec!["/w/locked".into()],
            denied: vec!["/home/u/.ssh".into(), "/w/secret".into()],
            ..SandboxPolicy::default()
        }
    }

    #[test]
    fn writing_is_for_the_writable_folders_without_what_is_protected() {
        for path in ["/w", "/w/a", "/w/.git/index", "/w/.gitx/hooks", "/w/sub/.git/hooks/x", "/tmp/s/x"] {
            assert_eq!(policy().check_write(path.as_ref()), Ok(()), "{path}");
        }
        for path in ["/", "/wx", "/tmp/x", "/etc/passwd", "/home/u/a"] {
            let refusal = policy().check_write(path.as_ref()).unwrap_err();
            assert!(matches!(refusal, AccessRefusal::Outside { .. }), "{path}: {refusal}");
            assert!(refusal.to_string().contains("/w, /tmp/s"), "{refusal}");
        }
        for path in ["/w/.git/hooks/pre-commit", "/w/.git/config", "/w/.agentd", "/w/.pi/x", "/w/locked/a"] {
            let refusal = policy().check_write(path.as_ref()).unwrap_err();
            assert!(matches!(refusal, AccessRefusal::Protected { .. }), "{path}: {refusal}");
        }
    }

    #[test]
    fn denied_paths_are_neither_read_nor_written() {
        for path in ["/home/u/.ssh", "/home/u/.ssh/id", "/w/secret/a"] {
            assert!(policy().check_read(path.as_ref()).is_err(), "{path}");
            assert!(
                matches!(policy().check_write(path.as_ref()), Err(AccessRefusal::Denied { .. })),
                "{path}"
            );
        }
        for path in ["/home/u/.sshx", "/etc/passwd", "/w/.git/hooks/a"] {
            assert_eq!(policy().check_read(path.as_ref()), Ok(()), "{path}");
        }
    }

    fn path() -> impl Strategy<Value = PathBuf> {
        proptest::collection::vec(1u8..=255, 0..20).prop_map(|bytes| OsString::from_vec(bytes).into())
    }

    proptest! {
        #[test]
        fn a_policy_comes_back_as_it_was(
            bwrap in proptest::option::of(path()),
            paths in proptest::array::uniform3(proptest::collection::vec(path(), 0..4)),
            network: bool,
            unix_sockets: bool,
            layers in proptest::sample::subsequence(Layer::ALL.to_vec(), 0..=3),
        ) {
            let [writable, read_only, denied] = paths;
            let policy = SandboxPolicy { writable, read_only, denied, network, unix_sockets, layers, bwrap };
            let bytes = policy.to_bytes();
            prop_assert_eq!(SandboxPolicy::from_bytes(&bytes[..bytes.len() - 1]), None);
            prop_assert_eq!(SandboxPolicy::from_bytes(&bytes), Some(policy));
        }
    }
}
