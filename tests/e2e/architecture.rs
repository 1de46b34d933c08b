//! Who may import whom: the rules of docs/architecture.md, read off `cargo metadata`.

mod imports;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use cargo_metadata::{DependencyKind, MetadataCommand, Package};

/// Our crates, what each may use of our crates, and what it must never use of others.
const RULES: &[(&str, &[&str], &[&str], &str)] = &[
    (
        "agentd-protocol",
        &[],
        &["tokio", "reqwest", "rustix", "clap", "image"],
        "the protocol is data only: no runtime, no network, no files",
    ),
    (
        "agentd-connect",
        &["agentd-protocol", "agentd-safe-open"],
        &["reqwest", "clap"],
        "the way to the daemon knows neither command line nor daemon",
    ),
    (
        "agentd-translator",
        &["agentd-protocol"],
        &["tokio", "reqwest", "rustix", "clap"],
        "what translators share is lines in and lines out, as they are",
    ),
    (
        "agentd-acp",
        &["agentd-protocol", "agentd-translator"],
        &["tokio", "reqwest", "rustix", "clap"],
        "an editor's protocol is lines in and lines out: who moves them is known elsewhere",
    ),
    (
        "agentd-mcp-server",
        &["agentd-protocol", "agentd-translator"],
        &["tokio", "reqwest", "rustix", "clap"],
        "an agent's protocol is lines in and lines out: who moves them is known elsewhere",
    ),
    (
        "agentd-images",
        &["agentd-protocol"],
        &["reqwest", "rustix", "clap"],
        "images are bytes: the caller reads and stores them",
    ),
    (
        "agentd-input",
        &["agentd-protocol", "agentd-safe-open"],
        &["tokio", "reqwest", "clap", "image"],
        "what prompts are made of is read before anything runs",
    ),
    (
        "agentd-markdown",
        &["agentd-protocol"],
        &["tokio", "reqwest", "clap", "rustix"],
        "text in, lines out: the caller knows the terminal",
    ),
    (
        "agentctl",
        &[
            "agentd-protocol",
            "agentd-files",
            "agentd-safe-open",
            "agentd-connect",
            "agentd-input",
            "agentd-markdown",
            "agentd-chat",
            "agentd-client-text",
            "agentd-rpc",
        ],
        &["reqwest"],
        "the client knows the wire, not the daemon",
    ),
    (
        "agentd-client-text",
        &["agentd-protocol"],
        &["tokio", "reqwest", "clap", "rustix"],
        "words know nothing of what they are shown on",
    ),
    (
        "agentd-rpc",
        &["agentd-protocol"],
        &["reqwest", "clap", "rustix"],
        "calls and events know neither a socket nor a command line",
    ),
    (
        "agentd-chat",
        &[
            "agentd-protocol",
            "agentd-files",
            "agentd-safe-open",
            "agentd-ignore-files",
            "agentd-connect",
            "agentd-input",
            "agentd-client-text",
            "agentd-markdown",
            "agentd-rpc",
        ],
        &["reqwest", "clap"],
        "the interactive client is told what to open, and knows the wire alone",
    ),
    (
        "agentd-http",
        &["agentd-protocol", "agentd-safe-open"],
        &["clap", "rustix"],
        "HTTP alone: who asks, and what for, is known elsewhere",
    ),
    (
        "agentd-budget",
        &["agentd-protocol", "agentd-files", "agentd-safe-open"],
        &["tokio", "reqwest", "clap"],
        "an account knows neither models nor sessions",
    ),
    (
        "agentd-program-log",
        &["agentd-protocol", "agentd-http", "agentd-safe-open"],
        &["reqwest", "clap", "rustix"],
        "lines are written without knowing what the program is for",
    ),
    ("agentd-memory", &[], &["tokio", "reqwest", "clap"], "an account knows nothing of what it counts"),
    (
        "agentd-ai",
        &["agentd-protocol", "agentd-safe-open", "agentd-http", "agentd-memory"],
        &["clap", "rustix"],
        "the provider layer knows nothing of sessions, tools, files",
    ),
    (
        "agentd-agent",
        &["agentd-protocol", "agentd-ai", "agentd-images"],
        &["reqwest", "rustix", "clap"],
        "the loop has no disk and no network",
    ),
    (
        "agentd-telemetry",
        &["agentd-protocol", "agentd-ai", "agentd-agent", "agentd-http"],
        &["clap", "rustix"],
        "what is sent is made of what sessions report, and changes none",
    ),
    (
        "agentd-process",
        &["agentd-protocol", "agentd-safe-open", "agentd-sandbox", "agentd-files"],
        &["reqwest", "clap"],
        "processes know nothing of what they are started for",
    ),
    (
        "agentd-sandbox",
        &["agentd-protocol"],
        &["tokio", "reqwest", "clap"],
        "what a process may touch is said before anything is known of it",
    ),
    (
        "agentd-syntax",
        &[],
        &["tokio", "reqwest", "tree-sitter", "ast-grep-core", "ast-grep-language"],
        "both programs know the words between them, and only one has the grammars",
    ),
    (
        "agentd-syntax-program",
        &["agentd-syntax"],
        &["tokio", "reqwest", "agentd-process"],
        "it gets texts and tells what matches: it reads no files and starts nothing",
    ),
    (
        "agentd-tools",
        &[
            "agentd-protocol",
            "agentd-images",
            "agentd-ai",
            "agentd-agent",
            "agentd-checkpoints",
            "agentd-files",
            "agentd-ignore-files",
            "agentd-process",
            "agentd-safe-open",
            "agentd-sandbox",
            "agentd-syntax",
        ],
        &["reqwest", "clap"],
        "tools never learn of sessions or connections",
    ),
    (
        "agentd-mcp",
        &[
            "agentd-protocol",
            "agentd-agent",
            "agentd-auth",
            "agentd-config",
            "agentd-files",
            "agentd-http",
            "agentd-memory",
            "agentd-process",
            "agentd-program-log",
            "agentd-safe-open",
        ],
        &["clap", "rustix"],
        "the client of MCP servers never learns of sessions: it gives them tools",
    ),
    (
        "agentd-lsp",
        &[
            "agentd-protocol",
            "agentd-agent",
            "agentd-checkpoints",
            "agentd-config",
            "agentd-memory",
            "agentd-process",
            "agentd-program-log",
            "agentd-sandbox",
            "agentd-tools",
        ],
        &["reqwest", "clap", "rustix"],
        "the client of language servers never learns of sessions: it is given what it needs of one",
    ),
    (
        "agentd-web",
        &[
            "agentd-protocol",
            "agentd-agent",
            "agentd-http",
            "agentd-images",
            "agentd-process",
            "agentd-tools",
        ],
        &["clap"],
        "the web never learns of sessions: it gives them tools, and is told what it may ask for",
    ),
    (
        "agentd-hooks",
        &["agentd-protocol", "agentd-config", "agentd-process", "agentd-safe-open", "agentd-sandbox"],
        &["reqwest", "clap", "rustix"],
        "hooks never learn of sessions: they are given facts, and say what they want",
    ),
    (
        "agentd-extensions",
        &["agentd-protocol", "agentd-ai", "agentd-agent", "agentd-process", "agentd-program-log"],
        &["reqwest", "clap", "rustix"],
        "extensions never learn of sessions: a session implements what they ask for",
    ),
    ("agentd-files", &[], &["reqwest", "clap"], "a lock or a step knows nothing of what the file holds"),
    ("agentd-safe-open", &[], &["tokio", "reqwest", "clap"], "the caller says which files are acceptable"),
    (
        "agentd-ignore-files",
        &["agentd-safe-open"],
        &["tokio", "reqwest", "clap"],
        "rules know nothing of the search that they are for",
    ),
    (
        "agentd-checkpoints",
        &["agentd-protocol", "agentd-files", "agentd-ignore-files", "agentd-safe-open"],
        &["tokio", "reqwest", "clap"],
        "what changed is kept without knowing who runs tools, or when",
    ),
    (
        "agentd-prompt-history",
        &["agentd-protocol", "agentd-files"],
        &["reqwest", "clap"],
        "prompts are kept without knowing what sessions are",
    ),
    (
        "agentd-isolation",
        &["agentd-protocol", "agentd-files", "agentd-process"],
        &["reqwest", "clap"],
        "a copy knows nothing of the subagent that works in it",
    ),
    (
        "agentd-kernels",
        &[
            "agentd-protocol",
            "agentd-agent",
            "agentd-checkpoints",
            "agentd-process",
            "agentd-sandbox",
            "agentd-tools",
        ],
        &["reqwest", "rustix", "clap"],
        "a kernel knows nothing of the session whose cells it runs",
    ),
    (
        "agentd-packages",
        &["agentd-protocol", "agentd-config", "agentd-process", "agentd-safe-open"],
        &["reqwest", "rustix", "clap"],
        "packages are found and fetched without knowing which session wants them; npm and git have the network",
    ),
    (
        "agentd-policy",
        &["agentd-protocol"],
        &["tokio", "reqwest", "clap"],
        "a verdict knows nothing of who asks for it",
    ),
    (
        "agentd-store",
        &["agentd-protocol", "agentd-safe-open", "agentd-files"],
        &["reqwest", "clap"],
        "the store knows files and trees, not runs",
    ),
    (
        "agentd-config",
        &["agentd-protocol", "agentd-files", "agentd-ignore-files", "agentd-safe-open"],
        &["tokio", "reqwest", "clap"],
        "configuration is read, not served",
    ),
    (
        "agentd-stream-rules",
        &[],
        &["tokio", "reqwest", "rustix", "clap"],
        "rules are matched without knowing what a match means",
    ),
    (
        "agentd-discovery",
        &["agentd-protocol", "agentd-files", "agentd-config", "agentd-safe-open", "agentd-stream-rules"],
        &["tokio", "reqwest", "rustix", "clap"],
        "files of other tools are read without knowing what becomes of them",
    ),
    (
        "agentd-auth",
        &["agentd-protocol", "agentd-files", "agentd-safe-open", "agentd-config", "agentd-http"],
        &["clap"],
        "credentials know nothing of who asks for them",
    ),
    (
        "agentd-export-html",
        &["agentd-protocol", "agentd-files", "agentd-store"],
        &["tokio", "reqwest", "clap"],
        "a page is made of a session's entries alone",
    ),
    (
        "agentd-session",
        &[
            "agentd-prompt-history",
            "agentd-protocol",
            "agentd-ai",
            "agentd-agent",
            "agentd-checkpoints",
            "agentd-files",
            "agentd-store",
            "agentd-config",
            "agentd-discovery",
            "agentd-stream-rules",
            "agentd-export-html",
            "agentd-extensions",
            "agentd-hooks",
            "agentd-images",
            "agentd-memory",
            "agentd-budget",
            "agentd-auth",
            "agentd-isolation",
            "agentd-lsp",
            "agentd-kernels",
            "agentd-mcp",
            "agentd-packages",
            "agentd-policy",
            "agentd-process",
            "agentd-program-log",
            "agentd-safe-open",
            "agentd-sandbox",
            "agentd-tools",
            "agentd-web",
        ],
        &["reqwest", "clap"],
        "a session never learns who is listening",
    ),
    (
        "agentd",
        &[
            "agentd-prompt-history",
            "agentd-protocol",
            "agentd-safe-open",
            "agentd-acp",
            "agentd-connect",
            "agentd-input",
            "agentd-ai",
            "agentd-agent",
            "agentd-files",
            "agentd-store",
            "agentd-checkpoints",
            "agentd-config",
            "agentd-discovery",
            "agentd-export-html",
            "agentd-images",
            "agentd-memory",
            "agentd-auth",
            "agentd-lsp",
            "agentd-kernels",
            "agentd-mcp",
            "agentd-mcp-server",
            "agentd-packages",
            "agentd-policy",
            "agentd-process",
            "agentd-tools",
            "agentd-web",
            "agentd-hooks",
            "agentd-session",
            "agentd-telemetry",
            "agentd-safe-open",
            "agentd-sandbox",
        ],
        &["reqwest"],
        "the daemon puts the others together",
    ),
    ("agentd-e2e", &["agentd-protocol"], &["tokio"], "end-to-end tests see the programs from outside"),
    ("agentd-xtask", &[], &["tokio", "reqwest"], "packages are made of programs, not of crates"),
    (
        "agentd-fuzz-laws",
        &[
            "agentd-protocol",
            "agentd-http",
            "agentd-ai",
            "agentd-policy",
            "agentd-process",
            "agentd-tools",
            "agentd-agent",
            "agentd-images",
            "agentd-store",
            "agentd-config",
            "agentd-auth",
            "agentd-mcp",
            "agentd-export-html",
        ],
        &["tokio", "reqwest", "clap"],
        "laws are functions of bytes and need nothing else",
    ),
];

fn packages() -> Vec<Package> {
    let manifest = agentd_e2e::binaries::workspace().join("Cargo.toml");
    let metadata = MetadataCommand::new().manifest_path(manifest).no_deps().exec().expect("cargo metadata");
    metadata.packages
}

/// The names of what a package depends on: all, or only what ends up in its programs.
fn dependencies(package: &Package, kinds: &[DependencyKind]) -> BTreeSet<String> {
    let wanted = package.dependencies.iter().filter(|dependency| kinds.contains(&dependency.kind));
    wanted.map(|dependency| dependency.name.clone()).collect()
}

#[test]
fn imports_follow_the_rules() {
    let packages = packages();
    let ours: BTreeSet<String> = packages.iter().map(|package| package.name.to_string()).collect();
    let rules: BTreeMap<&str, _> =
        RULES.iter().map(|(name, allowed, forbidden, why)| (*name, (allowed, forbidden, why))).collect();
    for package in &packages {
        let name = package.name.as_str();
        let Some((allowed, forbidden, why)) = rules.get(name) else {
            panic!("{name} is new: say in tests/e2e/architecture.rs what it may import, and why");
        };
        for dependency in dependencies(package, &[DependencyKind::Normal, DependencyKind::Build]) {
            if ours.contains(&dependency) {
                assert!(allowed.contains(&dependency.as_str()), "{name} must not import {dependency}: {why}");
            }
            assert!(!forbidden.contains(&dependency.as_str()), "{name} must not use {dependency}: {why}");
        }
    }
    for (name, ..) in RULES {
        assert!(ours.contains(*name), "{name} is gone: take its rule out of tests/e2e/architecture.rs");
    }
}

/// A version that stands in two places goes out of step.
#[test]
fn versions_stand_in_the_root_manifest_alone() {
    for package in packages() {
        let manifest = std::fs::read_to_string(&package.manifest_path).unwrap();
        let own_version = manifest
            .lines()
            .find(|line| line.starts_with(|c: char| c.is_ascii_lowercase()) && line.contains("version = \""));
        assert_eq!(own_version, None, "{}: take the version from the workspace", package.manifest_path);
    }
}

/// TLS and C code come in through one door, and none of these have one.
#[test]
fn no_second_tls_and_no_openssl() {
    let manifest = agentd_e2e::binaries::workspace().join("Cargo.lock");
    let lock = std::fs::read_to_string(manifest).unwrap();
    for banned in ["openssl-sys", "native-tls", "aws-lc-sys"] {
        assert!(
            !lock.contains(&format!("name = \"{banned}\"")),
            "{banned} came into Cargo.lock: rustls with ring is our TLS"
        );
    }
}

/// The roots of the programs and libraries of all packages, tests and examples left out.
fn roots() -> Vec<PathBuf> {
    let packages = packages();
    let targets = packages.iter().flat_map(|package| &package.targets);
    let shipped = targets.filter(|target| target.is_lib() || target.is_bin());
    shipped.map(|target| target.src_path.clone().into_std_path_buf()).collect()
}

fn shown(path: &Path) -> String {
    path.strip_prefix(agentd_e2e::binaries::workspace()).unwrap_or(path).display().to_string()
}

/// Files that import each other can only be understood together, and moved only together.
#[test]
fn no_files_import_each_other() {
    let mut found = Vec::new();
    for root in roots() {
        let imports = imports::of_target(&root);
        let graph: BTreeMap<PathBuf, BTreeSet<PathBuf>> =
            imports.iter().map(|(file, used)| (file.clone(), used.keys().cloned().collect())).collect();
        for circle in imports::circles(&graph) {
            let mut lines = vec![format!("{} files import each other:", circle.len())];
            for (file, used) in circle.iter().map(|file| (file, &imports[file])) {
                for (other, names) in used.iter().filter(|(other, _)| circle.contains(other)) {
                    lines.push(format!("  {} takes {names:?} from {}", shown(file), shown(other)));
                }
            }
            found.push(lines.join("\n"));
        }
    }
    assert!(found.is_empty(), "move what both need below them:\n{}", found.join("\n"));
}

/// The folders and files right below the root of the session's crate stand above each other: none imports one that imports it, and nothing but the crate's
/// face knows the actor.
#[test]
fn no_part_of_a_session_imports_upward() {
    let root = agentd_e2e::binaries::workspace().join("daemon/crates/session/src/lib.rs");
    let folder = root.parent().unwrap().to_owned();
    let part = |file: &Path| {
        let inside = file.strip_prefix(&folder).unwrap().components().next().unwrap();
        Path::new(&inside).with_extension("").display().to_string()
    };
    let mut graph: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (file, used) in imports::of_target(&root) {
        let below = used.keys().map(|other| part(other)).filter(|other| *other != part(&file));
        graph.entry(part(&file)).or_default().extend(below);
    }
    assert_eq!(imports::circles(&graph), Vec::<Vec<String>>::new(), "{graph:#?}");
}
