//! Extensions and packages in whole trees of files.

use agentd_config::{
    AgentDir, Environment, ProjectFolders,
    resources::{ListedPaths, ResourceFlags, ResourceLists},
};
use agentd_protocol::resources::SourceScope;
use serde_json::{Value, json};

use super::*;
use crate::testing::TestFolder;

/// A session in `project/` with the agent directory `agent/` and the home `home/`.
struct Session {
    place: TestFolder,
    trusted: bool,
    no_mcp: bool,
    lists: ResourceLists,
    flags: ResourceFlags,
}

impl Session {
    fn new(files: &[(&str, &str)]) -> Self {
        let place = TestFolder::new(files);
        Self {
            place,
            trusted: true,
            no_mcp: false,
            lists: ResourceLists::default(),
            flags: ResourceFlags::default(),
        }
    }

    /// What the settings say, the user's and the project's: `{"extensions": [], "packages": []}`.
    fn settings(mut self, user: Value, project: Value) -> Self {
        let listed = |base: &str, value: Value| ListedPaths {
            base: self.place.path(base),
            extensions: serde_json::from_value(value["extensions"].clone()).unwrap_or_default(),
            packages: serde_json::from_value(value["packages"].clone()).unwrap_or_default(),
            ..ListedPaths::default()
        };
        self.lists = ResourceLists { user: listed("agent", user), project: listed("project/.pi", project) };
        self
    }

    fn flags(mut self, extensions: &[&str]) -> Self {
        self.flags.extensions = extensions.iter().map(|text| (*text).to_owned()).collect();
        self
    }

    fn discover(&self) -> Discovery {
        let (agent_dir, cwd) = (AgentDir::at(self.place.path("agent")), self.place.path("project"));
        let environment: Environment = [("HOME", self.place.path("home"))].into_iter().collect();
        discover(&DiscoveryQuery {
            agent_dir: &agent_dir,
            cwd: &cwd,
            folders: &ProjectFolders::of(&cwd, &agent_dir),
            trusted: self.trusted,
            environment: &environment,
            lists: &self.lists,
            flags: &self.flags,
            no_mcp: self.no_mcp,
        })
    }

    /// `path rank source scope origin base`, without the built-in ones.
    fn check(&self, expected: &[&str]) {
        let found = self.discover();
        let extensions = found.extensions.iter().filter(|it| it.rank != LoadRank::Builtin);
        let shown: Vec<String> = extensions
            .map(|it| {
                assert_eq!(it.needs_trust, it.source_info.scope == SourceScope::Project);
                format!("{} {:?} {}", self.below(&it.path), it.rank, self.info(&it.source_info))
            })
            .collect();
        assert_eq!(shown, expected, "{:?} {:?}", found.errors, found.diagnostics);
    }

    fn info(&self, info: &agentd_protocol::resources::SourceInfo) -> String {
        let base = info.base_dir.as_deref().map_or("-".to_owned(), |base| self.below(base));
        format!("{} {:?} {:?} {base}", info.source, info.scope, info.origin)
    }

    fn below(&self, path: &str) -> String {
        self.place.below(std::path::Path::new(path))
    }
}

fn everywhere() -> Vec<(&'static str, &'static str)> {
    vec![
        ("project/.pi/settings.json", "{}"),
        ("project/.pi/extensions/auto.ts", ""),
        ("project/.agentd/extensions/own.ts", ""),
        ("project/.pi/listed.ts", ""),
        ("agent/extensions/auto.ts", ""),
        ("agent/listed/index.ts", ""),
        ("agent/npm/node_modules/pack/extensions/p.ts", ""),
        ("agent/npm/node_modules/pack/skills/s/SKILL.md", ""),
        ("agent/npm/node_modules/pack/prompts/t.md", ""),
        ("agent/npm/node_modules/pack/themes/dark.json", ""),
        ("project/.pi/git/h.example/o/r/extensions/g.js", ""),
        ("project/flag.ts", ""),
    ]
}

#[test]
fn extensions_come_in_the_order_of_their_ranks() {
    let session = Session::new(&everywhere())
        .settings(
            json!({"extensions": ["listed"], "packages": ["npm:pack@1"]}),
            json!({"extensions": ["./listed.ts"], "packages": ["git:h.example/o/r"]}),
        )
        .flags(&["flag.ts"]);
    session.check(&[
        "project/flag.ts Flag cli Temporary TopLevel -",
        "project/.pi/listed.ts ProjectSettings local Project TopLevel -",
        "project/.agentd/extensions/own.ts ProjectFolder auto Project TopLevel project/.agentd",
        "project/.pi/extensions/auto.ts ProjectFolder auto Project TopLevel project/.pi",
        "agent/listed/index.ts UserSettings local User TopLevel -",
        "agent/extensions/auto.ts UserFolder auto User TopLevel agent",
        "project/.pi/git/h.example/o/r/extensions/g.js Package git:h.example/o/r Project Package \
         project/.pi/git/h.example/o/r",
        "agent/npm/node_modules/pack/extensions/p.ts Package npm:pack@1 User Package agent/npm/node_modules/pack",
    ]);
    let found = session.discover();
    let shown =
        |file: &PackageFile| format!("{} {}", session.below(&file.source.path), session.info(&file.source));
    let pack = "npm:pack@1 User Package agent/npm/node_modules/pack";
    let at = "agent/npm/node_modules/pack";
    assert_eq!(
        found.resources.skills.iter().map(shown).collect::<Vec<_>>(),
        [format!("{at}/skills/s/SKILL.md {pack}")]
    );
    assert_eq!(
        found.resources.prompts.iter().map(shown).collect::<Vec<_>>(),
        [format!("{at}/prompts/t.md {pack}")]
    );
    assert_eq!(found.themes.iter().map(shown).collect::<Vec<_>>(), [format!("{at}/themes/dark.json {pack}")]);
}

#[test]
fn packages_of_the_project_lie_beside_its_settings() {
    let mut files = everywhere();
    files.push(("project/.agentd/git/h.example/o/r/extensions/g.js", ""));
    files.push(("project/.agentd/settings.json", "{}"));
    let session = Session::new(&files)
        .settings(json!({"extensions": ["-extensions/auto.ts"]}), json!({"packages": ["git:h.example/o/r"]}));
    session.check(&[
        "project/.agentd/extensions/own.ts ProjectFolder auto Project TopLevel project/.agentd",
        "project/.pi/extensions/auto.ts ProjectFolder auto Project TopLevel project/.pi",
        "project/.agentd/git/h.example/o/r/extensions/g.js Package git:h.example/o/r Project Package \
         project/.agentd/git/h.example/o/r",
    ]);
}

#[test]
fn nothing_of_a_project_counts_before_its_trust() {
    let mut session = Session::new(&everywhere()).settings(
        json!({"packages": ["npm:pack"]}),
        json!({"extensions": ["./listed.ts", "./gone.ts", "-builtin:mcp"], "packages": ["git:h.example/o/r", "npm:../x"]}),
    );
    session.trusted = false;
    session.check(&[
        "agent/extensions/auto.ts UserFolder auto User TopLevel agent",
        "agent/npm/node_modules/pack/extensions/p.ts Package npm:pack User Package agent/npm/node_modules/pack",
    ]);
    let found = session.discover();
    assert_eq!(found.diagnostics, []);
    assert!(found.extensions.iter().any(|it| it.path == "builtin:mcp"));
}

#[test]
fn a_flag_can_be_all_there_is() {
    let mut session = Session::new(&everywhere()).flags(&[
        "flag.ts",
        "./flag.ts",
        "~/gone.ts",
        "builtin:codemode",
        "builtin:nothing",
        "npm:../x",
        "../agent/npm/node_modules/pack",
    ]);
    session.flags.no_extensions = true;
    session.check(&[
        "project/flag.ts Flag cli Temporary TopLevel -",
        "builtin:codemode Flag builtin Temporary TopLevel -",
        "agent/npm/node_modules/pack/extensions/p.ts Flag cli Temporary TopLevel -",
    ]);
    let found = session.discover();
    let told: Vec<_> =
        found.errors.iter().map(|it| it.to_string().replace(&session.place.root(), "")).collect();
    assert_eq!(
        told[0],
        "Failed to load extension \"/home/gone.ts\": Extension path does not exist: /home/gone.ts"
    );
    assert_eq!(
        told[1],
        "Failed to load extension \"builtin:nothing\": Unknown built-in extension: builtin:nothing"
    );
    assert!(told[2].contains("is no source of a package") && told.len() == 3, "{told:?}");
    assert_eq!(session.info(&found.resources.skills[0].source), "cli Temporary TopLevel -");
    let prompt = "../agent/npm/node_modules/pack Temporary Package agent/npm/node_modules/pack";
    assert_eq!(session.info(&found.resources.prompts[0].source), prompt);
    assert!(found.resources.skills[0].is_of_flag && found.resources.prompts[0].is_of_flag);
}

#[test]
fn what_settings_switch_off_stays_off_elsewhere() {
    let session = Session::new(&[
        ("agent/extensions/a.ts", ""),
        ("agent/extensions/b.ts", ""),
        ("agent/more/c.ts", ""),
        ("agent/more/d.ts", ""),
        ("project/.pi/settings.json", "{}"),
        ("project/.pi/extensions/e.ts", ""),
    ])
    .settings(
        json!({"extensions": ["more", "!more/c*", "-extensions/a.ts", "../nowhere.ts"]}),
        json!({"extensions": ["../../agent/extensions/b.ts", "-../../agent/extensions/b.ts", "!**/e.ts", "+extensions/e.ts"]}),
    );
    session.check(&[
        "project/.pi/extensions/e.ts ProjectFolder auto Project TopLevel project/.pi",
        "agent/more/d.ts UserSettings local User TopLevel -",
    ]);
    let told = session.discover().diagnostics;
    assert_eq!(told.len(), 1);
    let told = told[0].to_string().replace(&session.place.root(), "");
    assert_eq!(
        told,
        "/nowhere.ts: this is named by the setting \"extensions\" and is not there (correct the path in /agent/settings.json)"
    );
}

#[test]
fn built_in_extensions_can_be_switched_off() {
    let names = |session: &Session| -> Vec<String> {
        let found = session.discover().extensions.into_iter();
        found
            .map(|it| format!("{} {}", it.path.replace("builtin:", ""), session.info(&it.source_info)))
            .collect()
    };
    let mut session = Session::new(&[("project/.pi/settings.json", "{}")]).settings(
        json!({"extensions": ["-builtin:mcp", "!builtin:l*"]}),
        json!({"extensions": ["+builtin:mcp"]}),
    );
    let user = "builtin User TopLevel -";
    assert_eq!(
        names(&session),
        [format!("codemode {user}"), format!("tool-search {user}"), "mcp builtin Project TopLevel -".into()]
    );
    session.no_mcp = true;
    assert_eq!(names(&session).len(), 2);
}

#[test]
fn one_file_is_one_extension() {
    let session = Session::new(&[("agent/extensions/a.ts", ""), ("project/.pi/settings.json", "{}")])
        .settings(json!({"extensions": ["link.ts", "extensions/a.ts"]}), json!({}));
    std::os::unix::fs::symlink(
        session.place.path("agent/extensions/a.ts"),
        session.place.path("agent/link.ts"),
    )
    .unwrap();
    session.check(&["agent/link.ts UserSettings local User TopLevel -"]);
    let found = &session.discover().extensions[0];
    assert_eq!(found.entry, session.place.path("agent/extensions/a.ts"));
    assert_eq!(found.base_dir, session.place.path("agent"));
}

#[test]
fn a_project_changes_what_it_takes_of_the_users_package() {
    let session = Session::new(&[
        ("project/.pi/settings.json", "{}"),
        ("agent/npm/node_modules/pack/extensions/a.ts", ""),
        ("agent/npm/node_modules/pack/extensions/b.ts", ""),
        ("agent/npm/node_modules/pack/extensions/c.ts", ""),
    ])
    .settings(
        json!({"packages": [{"source": "npm:pack", "extensions": ["-extensions/c.ts"]}]}),
        json!({"packages": [{"source": "npm:pack", "autoload": false, "extensions": ["-extensions/a.ts", "+extensions/c.ts"]}]}),
    );
    session.check(&[
        "agent/npm/node_modules/pack/extensions/c.ts Package npm:pack Project Package agent/npm/node_modules/pack",
        "agent/npm/node_modules/pack/extensions/b.ts Package npm:pack User Package agent/npm/node_modules/pack",
    ]);
}

#[test]
fn paths_are_packages_modules_or_files() {
    let session = Session::new(&[
        ("project/.pi/settings.json", "{}"),
        ("agent/one.ts", ""),
        ("agent/module/package.json", r#"{"main":"x.js"}"#),
        ("agent/module/x.js", ""),
        (
            "agent/package/package.json",
            r#"{"pi":{"extensions":["x.ts"]},"dependencies":{"typebox":"1","y":"1"}}"#,
        ),
        ("agent/package/x.ts", ""),
    ])
    .settings(json!({"packages": ["./one.ts", "./module", "package", "./gone"]}), json!({}));
    session.check(&[
        "agent/one.ts Package ./one.ts User Package agent",
        "agent/module Package ./module User Package agent/module",
        "agent/package/x.ts Package package User Package agent/package",
    ]);
    let told: Vec<_> = session
        .discover()
        .diagnostics
        .iter()
        .map(|it| it.to_string().replace(&session.place.root(), ""))
        .collect();
    assert_eq!(
        told[0],
        "/agent/gone: the package \"./gone\" is not there (`agentctl remove ./gone` takes it out of the settings)"
    );
    assert!(
        told[1].starts_with(
            "/agent/package/package.json: Host-provided extension packages must be declared in peerDependencies with a \"*\" \
             range, not dependencies: typebox. Installed copies"
        ) && told.len() == 2,
        "{told:?}"
    );
}

#[test]
fn nothing_is_read_where_no_package_is_named() {
    let place = TestFolder::new(&[]);
    let (agent_dir, cwd) = (AgentDir::at(place.path("agent")), place.path("project"));
    let (lists, flags) = (ResourceLists::default(), ResourceFlags::default());
    let mut diagnostics = Vec::new();
    let query = DiscoveryQuery {
        agent_dir: &agent_dir,
        cwd: &cwd,
        folders: &ProjectFolders::of(&cwd, &agent_dir),
        trusted: true,
        environment: &Environment::default(),
        lists: &lists,
        flags: &flags,
        no_mcp: false,
    };
    assert_eq!(package_resources(&query, &mut diagnostics), PackageResources::default());
    assert_eq!(diagnostics, []);
}
