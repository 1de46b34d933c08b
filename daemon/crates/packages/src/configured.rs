//! The packages that settings name, each once.

use agentd_config::resources::ResourceLists;
use agentd_protocol::{
    resources::{Diagnostic, DiagnosticKind, SourceScope},
    settings::PackageSetting,
};

use crate::{folders::PackageFolders, source::PackageSource};

/// A package that settings or a flag name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedPackage {
    /// The entry as it is written.
    pub entry: PackageSetting,
    /// Who names it.
    pub scope: SourceScope,
    /// The source that is installed: of the user's entry, where the project's only changes that.
    pub source: PackageSource,
    /// The text of that source.
    pub source_text: String,
    /// Whose folder it is installed in.
    pub install_scope: SourceScope,
}

impl NamedPackage {
    /// A package that is what its entry says.
    #[must_use]
    pub fn new(entry: PackageSetting, scope: SourceScope, source: PackageSource) -> Self {
        let source_text = entry.source().to_owned();
        Self { entry, scope, source, source_text, install_scope: scope }
    }

    /// Whether it only changes the user's entry of the same package.
    fn is_change(&self) -> bool {
        self.scope == SourceScope::Project
            && self.entry.filter().is_some_and(|filter| filter.autoload == Some(false))
    }
}

/// The most packages of one settings file.
const MAX_PACKAGES: usize = 200;

/// The packages of the settings, those of the project first, each once: an entry of the project stands in the place of the user's. With
/// `autoload: false` both count, and the project's is a change of the user's. Pure, but for links in paths, which are followed.
pub fn configured(
    lists: &ResourceLists,
    folders: &PackageFolders,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<NamedPackage> {
    let mut found: Vec<(String, NamedPackage)> = Vec::new();
    for (listed, scope) in [(&lists.project, SourceScope::Project), (&lists.user, SourceScope::User)] {
        let file = listed.base.join("settings.json");
        if listed.packages.len() > MAX_PACKAGES {
            let message =
                format!("of the {} packages only the first {MAX_PACKAGES} count", listed.packages.len());
            diagnostics.push(Diagnostic::warning(DiagnosticKind::Package, message).at(&file));
        }
        for entry in listed.packages.iter().take(MAX_PACKAGES) {
            let source = match PackageSource::parse(entry.source()) {
                Ok(source) => source,
                Err(error) => {
                    diagnostics
                        .push(Diagnostic::warning(DiagnosticKind::Package, error.to_string()).at(&file));
                    continue;
                }
            };
            let identity = folders.identity(&source, scope);
            let package = NamedPackage::new(entry.clone(), scope, source);
            match found.iter_mut().find(|(known, _)| *known == identity) {
                None => found.push((identity, package)),
                Some((_, known)) if scope == SourceScope::Project => *known = package,
                Some((_, known)) if known.is_change() && known.install_scope == SourceScope::Project => {
                    known.source = package.source.clone();
                    known.source_text = package.source_text.clone();
                    known.install_scope = SourceScope::User;
                    found.push((format!("user {identity}"), package));
                }
                Some(_) => {}
            }
        }
    }
    found.into_iter().map(|(_, package)| package).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use agentd_config::{AgentDir, Environment, resources::ListedPaths};
    use serde_json::{Value, json};

    use super::*;

    fn check(user: Value, project: Value, expected: &[&str]) {
        let folders = PackageFolders::new(
            &AgentDir::at("/agent"),
            Path::new("/cwd/.pi"),
            Path::new("/cwd"),
            &Environment::default(),
        );
        let listed = |base: &str, packages: Value| ListedPaths {
            base: base.into(),
            packages: serde_json::from_value(packages).unwrap(),
            ..ListedPaths::default()
        };
        let lists = ResourceLists { user: listed("/agent", user), project: listed("/cwd/.pi", project) };
        let mut diagnostics = Vec::new();
        let found: Vec<String> = configured(&lists, &folders, &mut diagnostics)
            .into_iter()
            .map(|it| {
                format!(
                    "{:?} {} in {:?} as {}",
                    it.scope,
                    it.entry.source(),
                    it.install_scope,
                    it.source_text
                )
            })
            .collect();
        assert_eq!(found, expected, "{diagnostics:?}");
    }

    #[test]
    fn the_project_stands_in_the_place_of_the_user() {
        check(
            json!(["npm:a@1", "npm:b", "npm:a", "./x"]),
            json!(["npm:a@2", "./x", "/agent/x", {"source": "npm:c"}, "npm:c@3"]),
            &[
                "Project npm:a@2 in Project as npm:a@2",
                "Project ./x in Project as ./x",
                "Project /agent/x in Project as /agent/x",
                "Project npm:c@3 in Project as npm:c@3",
                "User npm:b in User as npm:b",
            ],
        );
        check(
            json!(["git:github.com/u/r@v1", "git@github.com:u/r"]),
            json!(["https://github.com/u/r.git"]),
            &[
                "Project https://github.com/u/r.git in Project as https://github.com/u/r.git",
                "User git@github.com:u/r in User as git@github.com:u/r",
            ],
        );
    }

    #[test]
    fn a_project_can_change_the_users_entry() {
        check(
            json!(["npm:a@1", "npm:a@4"]),
            json!([{"source": "npm:a@2", "autoload": false}, {"source": "npm:z", "autoload": false}]),
            &[
                "Project npm:a@2 in User as npm:a@1",
                "Project npm:z in Project as npm:z",
                "User npm:a@1 in User as npm:a@1",
            ],
        );
    }

    #[test]
    fn what_is_no_source_is_told() {
        let folders = PackageFolders::new(
            &AgentDir::at("/a"),
            Path::new("/p"),
            Path::new("/c"),
            &Environment::default(),
        );
        let user = ListedPaths {
            base: "/a".into(),
            packages: serde_json::from_value(json!(["npm:../x", "npm:y"])).unwrap(),
            ..ListedPaths::default()
        };
        let lists = ResourceLists { user, ..ResourceLists::default() };
        let mut diagnostics = Vec::new();
        assert_eq!(configured(&lists, &folders, &mut diagnostics).len(), 1);
        let said = diagnostics[0].to_string();
        assert!(said.starts_with("/a/settings.json: \"npm:../x\" is no source of a package"), "{said}");
    }
}
