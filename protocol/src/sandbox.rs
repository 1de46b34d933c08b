//! What a session's sandbox enforces.

use serde::{Deserialize, Serialize};

use crate::settings::{NamespaceMaker, NetworkAccess, SandboxMode};

/// A way in which the system confines commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum SandboxLayer {
    /// A mount namespace: writable folders, protected and denied paths, devices.
    Mounts,
    /// Landlock: writable folders again, TCP, signals and tracing of other processes.
    Landlock,
    /// A filter of system calls: sockets, namespaces, io_uring and the like.
    Seccomp,
}

impl SandboxLayer {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Mounts, Self::Landlock, Self::Seccomp];

    /// The name, as on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Mounts => "mounts",
            Self::Landlock => "landlock",
            Self::Seccomp => "seccomp",
        }
    }
}

/// What the system offers, as a process found that tried it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SandboxSupport {
    /// The layers that work.
    pub layers: Vec<SandboxLayer>,
    /// The version of landlock; 0 without it.
    pub landlock_abi: u32,
    /// Why each of the others does not work: sentences for people.
    pub missing: Vec<String>,
}

impl SandboxSupport {
    /// What the layers that work do not stop, though they should: sentences for people, [`Self::missing`] among them.
    #[must_use]
    pub fn gaps(&self) -> Vec<String> {
        let mut gaps = self.missing.clone();
        let has = |layer| self.layers.contains(&layer);
        let (mounts, seccomp) = (has(SandboxLayer::Mounts), has(SandboxLayer::Seccomp));
        let landlock = if has(SandboxLayer::Landlock) { self.landlock_abi } else { 0 };
        if !mounts {
            gaps.push(
                "protected and denied paths, modes and times of files outside, terminals and shared memory of the user are not kept from \
                 commands"
                    .to_owned(),
            );
            match landlock {
                0 => gaps.push("commands can write files outside of the writable folders".to_owned()),
                1 | 2 => gaps.push("commands can empty files outside (landlock 3 stops it)".to_owned()),
                _ => {}
            }
        }
        if !seccomp {
            let tcp = if landlock < 4 { "TCP, " } else { "" };
            gaps.push(format!(
                "{tcp}UDP and local sockets, limits of other processes, new namespaces and io_uring are not kept from commands"
            ));
        }
        match landlock {
            0 => gaps.push("commands can send signals to, and look into, other processes of the user".to_owned()),
            1..6 => gaps.push(format!(
                "commands can send signals to other processes of the user (landlock has version {landlock}; 6 stops it)"
            )),
            _ => {}
        }
        gaps
    }
}

/// The sandbox of a session: what is enforced, never more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SandboxState {
    /// What was asked for.
    pub mode: SandboxMode,
    /// How commands are confined. File tools obey the same rules in any case.
    pub enforced: Vec<SandboxLayer>,
    /// What makes the mounts.
    pub namespaces: NamespaceMaker,
    /// The version of landlock; 0 without it.
    pub landlock_abi: u32,
    /// The folders that may be written.
    pub writable_roots: Vec<String>,
    /// The folder for temporary files, one of `writableRoots`; commands find it in `TMPDIR`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temporary_folder: Option<String>,
    /// What stays read-only in them.
    pub read_only_paths: Vec<String>,
    /// What cannot be read or written.
    pub denied_paths: Vec<String>,
    /// Whether commands may use the network.
    pub network: NetworkAccess,
    /// Whether commands may use local sockets that have a name.
    pub unix_sockets: NetworkAccess,
    /// What is not stopped, though it was asked for: sentences for people. Empty where everything is enforced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gaps(layers: &[SandboxLayer], landlock_abi: u32) -> String {
        SandboxSupport { layers: layers.to_vec(), landlock_abi, missing: Vec::new() }.gaps().join("; ")
    }

    #[test]
    fn what_is_missing_is_said_and_nothing_else() {
        use SandboxLayer::{Landlock, Mounts, Seccomp};
        let cases: [(&[SandboxLayer], u32, &[&str]); 7] = [
            (&[Mounts, Landlock, Seccomp], 6, &[]),
            (&[Mounts, Landlock, Seccomp], 5, &["signals"]),
            (&[Mounts, Seccomp], 0, &["signals", "look into"]),
            (&[Mounts, Landlock], 6, &["UDP"]),
            (&[Mounts, Landlock], 3, &["UDP", "TCP", "signals"]),
            (&[Landlock, Seccomp], 6, &["denied paths", "terminals"]),
            (&[Seccomp], 0, &["denied paths", "terminals", "write files outside", "signals", "look into"]),
        ];
        let all = [
            "signals",
            "look into",
            "TCP",
            "UDP",
            "denied paths",
            "terminals",
            "write files outside",
            "empty",
        ];
        for (layers, abi, said) in cases {
            let gaps = gaps(layers, abi);
            let found: Vec<_> = all.into_iter().filter(|word| gaps.contains(word)).collect();
            assert_eq!(found.len(), said.len(), "{layers:?} {abi}: {gaps}");
            assert!(said.iter().all(|word| gaps.contains(word)), "{layers:?} {abi}: {gaps}");
        }
        assert!(gaps(&[Landlock, Seccomp], 2).contains("empty files outside"));
    }
}
