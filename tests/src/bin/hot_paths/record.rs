//! The counts on record, and the build that they are of.

use std::{collections::BTreeMap, fs, path::PathBuf, process::Command};

use agentd_e2e::binaries;
use serde_json::{Value, json};

/// What was counted.
#[derive(Clone)]
pub(crate) struct Record {
    /// The compiler, the machine's kind and the profile. Another of them makes other instructions of the same text.
    pub(crate) build: String,
    /// By path.
    pub(crate) instructions: BTreeMap<String, u64>,
}

impl Record {
    /// The record of the repository; an empty one where it has none.
    pub(crate) fn load() -> Self {
        let text = fs::read_to_string(file()).unwrap_or_default();
        let value: Value = serde_json::from_str(&text).unwrap_or_default();
        let counts = value["instructions"].as_object().cloned().unwrap_or_default();
        Self {
            build: value["build"].as_str().unwrap_or("nothing").to_owned(),
            instructions: counts
                .into_iter()
                .filter_map(|(name, count)| Some((name, count.as_u64()?)))
                .collect(),
        }
    }

    /// A record of this build without counts.
    pub(crate) fn of_this_build() -> Self {
        Self { build: build(), instructions: BTreeMap::new() }
    }

    /// Whether counts of this build can be compared with it.
    pub(crate) fn is_of_this_build(&self) -> bool {
        self.build == build()
    }

    /// Puts it in the place of the one in the repository.
    pub(crate) fn save(&self) {
        let value = json!({"build": self.build, "instructions": self.instructions});
        let text = serde_json::to_string_pretty(&value).expect("a record is JSON");
        fs::write(file(), text + "\n").expect("the record can be written");
    }
}

/// What is built here, such as `rustc 1.95.0, x86_64, debug`.
pub(crate) fn build() -> String {
    let compiler = Command::new("rustc").arg("--version").output().expect("a Rust compiler");
    let compiler = String::from_utf8_lossy(&compiler.stdout);
    let version: Vec<&str> = compiler.split_whitespace().take(2).collect();
    let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
    format!("{}, {}, {profile}", version.join(" "), std::env::consts::ARCH)
}

fn file() -> PathBuf {
    binaries::workspace().join("tests/data/hot-paths.json")
}
