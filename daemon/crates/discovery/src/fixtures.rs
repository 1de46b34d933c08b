//! Whole repositories that are set up for other tools, item by item. See `tests/data/discovery/README.md`.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use agentd_config::{AgentDir, Environment};
use agentd_protocol::{
    capabilities::{CapabilityLevel, GetCapabilitiesParams},
    settings::DiscoverySettings,
};

use crate::{Capabilities, DiscoveryPlace, Snapshot, Switches, merge};

/// A copy of a fixture, outside of this repository.
struct Fixture {
    folder: tempfile::TempDir,
}

impl Fixture {
    fn of(name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("home")).unwrap();
        copy(&data().join(name), folder.path());
        fs::create_dir(folder.path().join("project/.git")).unwrap();
        Self { folder }
    }

    fn path(&self, below: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(below)
    }

    fn capabilities(&self, cwd: &str, settings: &DiscoverySettings, trusted: bool) -> Capabilities {
        let environment: Environment = [("HOME", self.path("home"))].into_iter().collect();
        let agent_dir = AgentDir::at(self.path("home/.agentd"));
        let place = DiscoveryPlace::of(&self.path(cwd), &agent_dir, &environment);
        let switches = Switches::of(Some(settings));
        merge(Vec::new(), &Snapshot::of(&place, &switches), &switches, trusted)
    }

    /// A line for each item and each warning.
    fn listed(&self, capabilities: &Capabilities) -> String {
        let list = capabilities.list(&GetCapabilitiesParams { kind: None, include_shadowed: true });
        let root = self.path("").display().to_string();
        let mut text = String::new();
        for item in list.items {
            let level = match item.source.level {
                CapabilityLevel::User => "user",
                CapabilityLevel::Project => "project",
            };
            let state = item.reason.unwrap_or_else(|| "counts".to_owned());
            let (kind, provider, path) = (item.kind.as_str(), item.source.provider, item.source.path);
            writeln!(text, "{kind} | {} | {provider} | {level} | {path} | {state}", item.name).unwrap();
        }
        for warning in list.warnings {
            writeln!(text, "warning | {warning}").unwrap();
        }
        text.replace(&root, "")
    }
}

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/data/discovery")
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            fs::create_dir_all(&target).unwrap();
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn check(name: &str, cwd: &str) {
    let fixture = Fixture::of(name);
    let settings =
        DiscoverySettings { enabled_providers: Some(vec!["*".to_owned()]), ..DiscoverySettings::default() };
    let listed = fixture.listed(&fixture.capabilities(cwd, &settings, false));
    let path = data().join(name).join("expected.txt");
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        fs::write(&path, &listed).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(listed, expected, "{name}");
}

#[test]
fn a_repository_for_claude_code() {
    check("claude", "project");
}

#[test]
fn a_repository_for_codex() {
    check("codex", "project");
}

#[test]
fn a_repository_for_cursor() {
    check("cursor", "project");
}

#[test]
fn a_repository_for_gemini_cli() {
    check("gemini", "project");
}

#[test]
fn a_repository_for_copilot_and_vs_code() {
    check("copilot", "project");
}

#[test]
fn a_repository_for_opencode() {
    check("opencode", "project");
}

#[test]
fn a_repository_for_windsurf() {
    check("windsurf", "project");
}

#[test]
fn a_repository_for_cline_seen_from_a_folder_in_it() {
    check("cline", "project/packages/app");
}

#[test]
fn a_repository_for_many_tools() {
    check("mixed", "project");
}

#[test]
fn folders_of_the_user_are_opt_in_and_trust_lets_servers_count() {
    let fixture = Fixture::of("claude");
    let default = DiscoverySettings::default();
    let listed = fixture.listed(&fixture.capabilities("project", &default, true));
    assert!(!listed.contains("/home/") && !listed.contains("waits for trust"), "{listed}");
    assert!(listed.contains("mcps | tickets | mcp-json | project | project/.mcp.json | counts"), "{listed}");
    let named = DiscoverySettings { enabled_providers: Some(vec!["claude".to_owned()]), ..default };
    let listed = fixture.listed(&fixture.capabilities("project", &named, false));
    assert!(listed.contains("agents | planner | claude | user"), "{listed}");
}

#[test]
fn a_provider_that_is_switched_off_has_no_items() {
    let fixture = Fixture::of("mixed");
    let off = DiscoverySettings {
        disabled_providers: Some(vec!["cursor".to_owned()]),
        disabled_items: Some(vec!["slash-command:review".to_owned()]),
        ..DiscoverySettings::default()
    };
    let listed = fixture.listed(&fixture.capabilities("project", &off, false));
    assert!(!listed.contains("| cursor |"), "{listed}");
    assert_eq!(listed.matches("switched off by discovery.disabledItems").count(), 2, "{listed}");
    let none = DiscoverySettings { foreign: Some(false), ..DiscoverySettings::default() };
    let listed = fixture.listed(&fixture.capabilities("project", &none, false));
    assert!(
        listed.lines().all(|line| line.contains("| native |")) && listed.contains("RULES@project"),
        "{listed}"
    );
}

#[test]
fn the_home_directory_is_no_project() {
    let fixture = Fixture::of("claude");
    let listed = fixture.listed(&fixture.capabilities("home", &DiscoverySettings::default(), false));
    assert_eq!(listed, "");
}
