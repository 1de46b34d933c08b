//! The crates that the programs are built from, as cargo resolves them for one target.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    process::Command,
};

use cargo_metadata::{Metadata, MetadataCommand, Package};

use crate::outcome::{About as _, Outcome, fail};

/// Name and version of a crate.
pub(crate) type CrateId = (String, String);

/// A crate of the build.
#[derive(Debug)]
pub(crate) struct Crate {
    pub(crate) description: Option<String>,
    /// An SPDX expression.
    pub(crate) licence: String,
    pub(crate) repository: Option<String>,
    /// SHA-256 of the crate file, where a registry has it.
    pub(crate) checksum: Option<String>,
    /// Whether its code is in a program. Otherwise it helps to build one.
    pub(crate) is_linked: bool,
    /// The folder of its manifest.
    pub(crate) folder: PathBuf,
    /// The crates that it is built from.
    pub(crate) uses: BTreeSet<CrateId>,
}

impl Crate {
    /// Whether it comes from a registry, not from this repository.
    pub(crate) fn is_external(&self) -> bool {
        self.checksum.is_some()
    }
}

/// All crates of the programs for `target`.
///
/// # Errors
/// When cargo fails, or a crate has no licence.
pub(crate) fn read(root: &Path, target: &str) -> Outcome<BTreeMap<CrateId, Crate>> {
    let everything = tree(root, target, "normal,build")?;
    let linked = tree(root, target, "normal,no-proc-macro")?;
    let checksums = checksums(&std::fs::read_to_string(root.join("Cargo.lock")).about("Cargo.lock")?);
    let metadata = metadata(root, target)?;
    let packages: BTreeMap<CrateId, &Package> = metadata
        .packages
        .iter()
        .map(|package| ((package.name.to_string(), package.version.to_string()), package))
        .collect();
    let mut crates = BTreeMap::new();
    for (id, uses) in everything {
        let Some(package) = packages.get(&id) else {
            return fail(format!("cargo metadata does not know {} {}", id.0, id.1));
        };
        let Some(licence) = &package.license else {
            return fail(format!("{} {} names no licence", id.0, id.1));
        };
        let folder = package.manifest_path.parent().map(|folder| folder.as_std_path().to_owned());
        let one = Crate {
            description: package.description.clone(),
            licence: expression(licence),
            repository: package.repository.clone(),
            checksum: checksums.get(&id).cloned(),
            is_linked: linked.contains_key(&id),
            folder: folder.unwrap_or_default(),
            uses,
        };
        crates.insert(id, one);
    }
    Ok(crates)
}

/// What `cargo metadata` says of the workspace.
pub(crate) fn metadata(root: &Path, target: &str) -> Outcome<Metadata> {
    let options = ["--locked", "--filter-platform", target].map(str::to_owned);
    let mut command = MetadataCommand::new();
    command.manifest_path(root.join("Cargo.toml")).other_options(options);
    command.exec().about("cargo metadata")
}

/// Each crate with those that it uses. `cargo metadata` would add what tests of the workspace switch on.
fn tree(root: &Path, target: &str, edges: &str) -> Outcome<BTreeMap<CrateId, BTreeSet<CrateId>>> {
    let mut command = Command::new(super::programs::cargo());
    command.args(["tree", "--locked", "--target", target, "--edges", edges, "--prefix", "depth"]);
    command.args(["--format", "|{p}"]).current_dir(root);
    for program in super::programs::PACKAGES {
        command.args(["--package", program]);
    }
    let output = command.output().about("cargo tree")?;
    if !output.status.success() {
        return fail(format!("cargo tree: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    edges_of(&String::from_utf8_lossy(&output.stdout))
}

/// The edges of a tree whose lines are `DEPTH|NAME vVERSION …`.
fn edges_of(text: &str) -> Outcome<BTreeMap<CrateId, BTreeSet<CrateId>>> {
    let mut edges: BTreeMap<CrateId, BTreeSet<CrateId>> = BTreeMap::new();
    let mut above: Vec<CrateId> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let parsed = line.split_once('|').and_then(|(depth, rest)| {
            let mut words = rest.split(' ');
            let id = (words.next()?.to_owned(), words.next()?.strip_prefix('v')?.to_owned());
            Some((depth.parse::<usize>().ok()?, id))
        });
        let Some((depth, id)) = parsed.filter(|(depth, _)| *depth <= above.len()) else {
            return fail(format!("cargo tree wrote an unknown line: {line}"));
        };
        above.truncate(depth);
        if let Some(parent) = above.last() {
            edges.entry(parent.clone()).or_default().insert(id.clone());
        }
        edges.entry(id.clone()).or_default();
        above.push(id);
    }
    Ok(edges)
}

/// The checksums of `Cargo.lock`.
fn checksums(lock: &str) -> BTreeMap<CrateId, String> {
    let value = |block: &str, key: &str| {
        let prefix = format!("{key} = \"");
        block.lines().find_map(|line| Some(line.strip_prefix(&prefix)?.strip_suffix('"')?.to_owned()))
    };
    lock.split("[[package]]")
        .filter_map(|block| {
            let id = (value(block, "name")?, value(block, "version")?);
            Some((id, value(block, "checksum")?))
        })
        .collect()
}

/// Old manifests write `MIT/Apache-2.0`, which is no SPDX expression.
fn expression(licence: &str) -> String {
    licence.split('/').map(str::trim).collect::<Vec<_>>().join(" OR ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str, version: &str) -> CrateId {
        (name.to_owned(), version.to_owned())
    }

    #[test]
    fn a_tree_is_read_by_depth() {
        let text = "0|agentctl v0.1.0 (/project/client)\n1|a v1.0.0\n2|b v2.0.0 (proc-macro)\n1|b v2.0.0 (proc-macro) (*)\n\n\
            0|agentd v0.1.0 (/project/daemon)\n1|a v1.0.0 (*)\n";
        let edges = edges_of(text).unwrap();
        assert_eq!(edges.len(), 4);
        assert_eq!(edges[&id("agentctl", "0.1.0")], [id("a", "1.0.0"), id("b", "2.0.0")].into());
        assert_eq!(edges[&id("a", "1.0.0")], [id("b", "2.0.0")].into());
        assert_eq!(edges[&id("agentd", "0.1.0")], [id("a", "1.0.0")].into());
        assert!(edges_of("1|a v1.0.0\n").is_err());
        assert!(edges_of("a v1.0.0\n").is_err());
    }

    #[test]
    fn only_crates_of_a_registry_have_checksums() {
        let lock = "version = 4\n\n[[package]]\nname = \"ours\"\nversion = \"0.1.0\"\n\n[[package]]\nname = \"theirs\"\nversion = \"1.2.3\"\n\
            source = \"registry+x\"\nchecksum = \"00ff\"\n";
        assert_eq!(checksums(lock), [(id("theirs", "1.2.3"), "00ff".to_owned())].into());
    }

    #[test]
    fn licences_are_expressions() {
        assert_eq!(expression("MIT/Apache-2.0"), "MIT OR Apache-2.0");
        assert_eq!(expression("Apache-2.0 / MIT"), "Apache-2.0 OR MIT");
        assert_eq!(expression("Apache-2.0 WITH LLVM-exception"), "Apache-2.0 WITH LLVM-exception");
    }
}
