//! Skills and prompt templates in whole trees of files.

use agentd_protocol::resources::{DiagnosticLevel, SourceScope};

use super::{testing::TestFolder, *};
use crate::{AgentDir, Environment, ProjectFolders};

/// A session in `project/` with the agent directory `agent/` and the home `home/`.
struct Session {
    place: TestFolder,
    trusted: bool,
    lists: ResourceLists,
    flags: ResourceFlags,
    packages: PackageResources,
    of_extensions: ExtensionResources,
}

impl Session {
    fn new(files: &[(&str, &str)]) -> Self {
        let place = TestFolder::new(files);
        Self {
            place,
            trusted: true,
            lists: ResourceLists::default(),
            flags: ResourceFlags::default(),
            packages: PackageResources::default(),
            of_extensions: ExtensionResources::default(),
        }
    }

    fn with<T>(&self, look: impl FnOnce(&ResourceQuery<'_>) -> T) -> T {
        let (agent_dir, cwd) = (AgentDir::at(self.place.path("agent")), self.place.path("project"));
        let environment: Environment = [("HOME", self.place.path("home"))].into_iter().collect();
        let folders = ProjectFolders::of(&cwd, &agent_dir);
        look(&ResourceQuery {
            agent_dir: &agent_dir,
            cwd: &cwd,
            folders: &folders,
            trusted: self.trusted,
            environment: &environment,
            lists: &self.lists,
            flags: &self.flags,
            packages: &self.packages,
            of_extensions: &self.of_extensions,
            disabled: &[],
            included_skills: &[],
        })
    }

    fn load(&self) -> Resources {
        self.with(|query| load_resources(query, &DiscoveredResources::default()))
    }

    fn list(&mut self, base: &str, skills: &[&str], prompts: &[&str]) -> ListedPaths {
        let owned = |items: &[&str]| items.iter().map(|item| (*item).to_owned()).collect();
        ListedPaths {
            base: self.place.path(base),
            skills: owned(skills),
            prompts: owned(prompts),
            ..ListedPaths::default()
        }
    }

    /// `name path source scope base` of each.
    fn check(&self, skills: &[&str], prompts: &[&str]) {
        let loaded = self.load();
        let shown = |name: &str, source: &agentd_protocol::resources::SourceInfo| {
            let scope = match source.scope {
                SourceScope::User => "user",
                SourceScope::Project => "project",
                SourceScope::Temporary => "temporary",
            };
            let below = |path: &str| self.place.below(std::path::Path::new(path));
            let base = source.base_dir.as_deref().map_or("-".to_owned(), below);
            format!("{name} {} {} {scope} {base}", below(&source.path), source.source)
        };
        let found: Vec<_> = loaded.skills.iter().map(|it| shown(&it.name, &it.source)).collect();
        assert_eq!(found, skills, "{:?}", loaded.diagnostics);
        let found: Vec<_> = loaded.prompts.iter().map(|it| shown(&it.name, &it.source)).collect();
        assert_eq!(found, prompts, "{:?}", loaded.diagnostics);
    }

    /// The diagnostics, without the path of the temporary folder.
    fn said(&self) -> Vec<String> {
        let root = self.place.path("").display().to_string();
        self.load().diagnostics.iter().map(|it| it.to_string().replace(&root, "")).collect()
    }

    fn expand(&self, message: &str) -> Option<String> {
        let root = self.place.path("").display().to_string();
        self.with(|query| expand(message, query, &DiscoveredResources::default()))
            .unwrap()
            .map(|expansion| expansion.text.replace(&root, "/"))
    }
}

fn skill(name: &str) -> String {
    format!("---\nname: {name}\ndescription: about {name}\n---\nDo {name}.\n")
}

#[test]
fn every_place_in_its_order() {
    let texts: Vec<String> =
        ["a", "b", "c", "d", "e", "f", "g", "h", "i"].iter().map(|name| skill(name)).collect();
    let mut session = Session::new(&[
        ("listed-by-project/a/SKILL.md", &texts[0]),
        ("project/.agentd/skills/b/SKILL.md", &texts[1]),
        ("project/.pi/skills/c/SKILL.md", &texts[2]),
        ("project/.agents/skills/d/SKILL.md", &texts[3]),
        (".agents/skills/e/SKILL.md", &texts[4]),
        ("listed-by-user/f/SKILL.md", &texts[5]),
        ("agent/skills/g/SKILL.md", &texts[6]),
        ("agent/skills/g2.md", &skill("g2")),
        ("home/.agents/skills/h/SKILL.md", &texts[7]),
        ("home/.agents/skills/README.md", "no skill"),
        ("flag/i/SKILL.md", &texts[8]),
        ("one.md", &skill("j")),
        ("listed-by-project/t1.md", "x"),
        ("project/.agentd/prompts/t2.md", "x"),
        ("project/.pi/prompts/t3.md", "x"),
        ("listed-by-user/deep/t4.md", "x"),
        ("agent/prompts/t5.md", "x"),
        ("agent/prompts/deep/not.md", "x"),
        ("flag/t6.md", "x"),
        ("flag/deep/not.md", "x"),
    ]);
    session.lists = ResourceLists {
        project: session.list(
            "project/.pi",
            &["../../listed-by-project"],
            &["../../listed-by-project/t1.md"],
        ),
        user: session.list("agent", &["../listed-by-user"], &["../listed-by-user/deep"]),
    };
    session.flags.skills = vec!["../flag".into(), "../one.md".into()];
    session.flags.prompts = vec!["../flag".into()];
    session.check(
        &[
            "a listed-by-project/a/SKILL.md local project -",
            "b project/.agentd/skills/b/SKILL.md auto project project/.agentd",
            "c project/.pi/skills/c/SKILL.md auto project project/.pi",
            "d project/.agents/skills/d/SKILL.md auto project project/.agents",
            "e .agents/skills/e/SKILL.md auto project .agents",
            "f listed-by-user/f/SKILL.md local user -",
            "g agent/skills/g/SKILL.md auto user agent",
            "g2 agent/skills/g2.md auto user agent",
            "h home/.agents/skills/h/SKILL.md auto user home/.agents",
            "i flag/i/SKILL.md local temporary flag/i",
            "j one.md local temporary ",
        ],
        &[
            "t1 listed-by-project/t1.md local project -",
            "t2 project/.agentd/prompts/t2.md auto project project/.agentd",
            "t3 project/.pi/prompts/t3.md auto project project/.pi",
            "t4 listed-by-user/deep/t4.md local user -",
            "t5 agent/prompts/t5.md auto user agent",
            "t6 flag/t6.md local temporary flag",
        ],
    );
}

#[test]
fn a_project_that_is_not_trusted_adds_nothing() {
    let mut session = Session::new(&[
        ("project/.pi/skills/a/SKILL.md", &skill("a")),
        ("project/.agents/skills/b/SKILL.md", &skill("b")),
        ("project/.pi/prompts/t.md", "x"),
        ("agent/skills/c/SKILL.md", &skill("c")),
    ]);
    session.trusted = false;
    session.check(&["c agent/skills/c/SKILL.md auto user agent"], &[]);
}

#[test]
fn skills_of_ancestors_count_up_to_the_root_of_the_repository() {
    let session = Session::new(&[
        ("project/.git/HEAD", ""),
        ("project/.agents/skills/a/SKILL.md", &skill("a")),
        (".agents/skills/b/SKILL.md", &skill("b")),
    ]);
    session.check(&["a project/.agents/skills/a/SKILL.md auto project project/.agents"], &[]);
}

#[test]
fn flags_leave_only_what_they_name() {
    let mut session = Session::new(&[
        ("agent/skills/a/SKILL.md", &skill("a")),
        ("agent/prompts/t.md", "x"),
        ("flag/b/SKILL.md", &skill("b")),
        ("u.md", "x"),
    ]);
    session.flags = ResourceFlags {
        skills: vec!["../flag/b".into(), "../flag/b/SKILL.md".into()],
        no_skills: true,
        prompts: vec!["../u.md".into(), "~/none.md".into(), "../flag/b/x.txt".into()],
        no_prompts: true,
        ..ResourceFlags::default()
    };
    session.place.write("flag/b/x.txt", "");
    session.check(&["b flag/b/SKILL.md local temporary flag/b"], &["u u.md local temporary "]);
    assert_eq!(
        session.said(),
        [
            "home/none.md: this is named by --prompt-template and is not there (correct the path)",
            "flag/b/x.txt: this is named by --prompt-template and is neither a folder nor a Markdown file (name a folder or a \
             file that ends with .md)",
        ]
    );
}

#[test]
fn packages_come_behind_the_user_and_those_of_flags_before_all() {
    let mut session = Session::new(&[
        ("agent/skills/a/SKILL.md", &skill("a")),
        ("agent/prompts/t.md", "x"),
        ("p/skills/a/SKILL.md", &skill("a")),
        ("p/skills/b/SKILL.md", &skill("b")),
        ("e/skills/c/SKILL.md", &skill("c")),
        ("e/prompts/t.md", "y"),
        ("flag/d/SKILL.md", &skill("d")),
    ]);
    let file = |path: &str, source: &str, scope, is_of_flag| PackageFile {
        path: session.place.path(path),
        source: agentd_protocol::resources::SourceInfo {
            path: session.place.path(path).display().to_string(),
            source: source.to_owned(),
            scope,
            origin: agentd_protocol::resources::SourceOrigin::Package,
            base_dir: Some(session.place.path("p").display().to_string()),
        },
        is_of_flag,
    };
    session.packages = PackageResources {
        skills: vec![
            file("p/skills/a/SKILL.md", "npm:p", SourceScope::User, false),
            file("p/skills/b/SKILL.md", "npm:p", SourceScope::User, false),
            file("e/skills/c/SKILL.md", "cli", SourceScope::Temporary, true),
        ],
        prompts: vec![file("e/prompts/t.md", "cli", SourceScope::Temporary, true)],
    };
    session.flags.skills = vec!["../flag/d".into()];
    let prompts = ["t e/prompts/t.md cli temporary p"];
    session.check(
        &[
            "c e/skills/c/SKILL.md cli temporary p",
            "a agent/skills/a/SKILL.md auto user agent",
            "b p/skills/b/SKILL.md npm:p user p",
            "d flag/d/SKILL.md local temporary flag/d",
        ],
        &prompts,
    );
    session.flags.no_skills = true;
    session.check(
        &["c e/skills/c/SKILL.md cli temporary p", "d flag/d/SKILL.md local temporary flag/d"],
        &prompts,
    );
}

#[test]
fn settings_take_resources_out() {
    let mut session = Session::new(&[
        ("agent/skills/a/SKILL.md", &skill("a")),
        ("agent/skills/b/SKILL.md", &skill("b")),
        ("agent/prompts/t.md", "x"),
        ("project/.pi/skills/c/SKILL.md", &skill("c")),
    ]);
    session.lists.user = session.list("agent", &["!**/a", "../nowhere"], &["-prompts/t.md"]);
    session.check(
        &[
            "c project/.pi/skills/c/SKILL.md auto project project/.pi",
            "b agent/skills/b/SKILL.md auto user agent",
        ],
        &[],
    );
    assert_eq!(
        session.said(),
        [
            "nowhere: this is named by the setting \"skills\" of agent/settings.json and is not there (correct the path)"
        ]
    );
}

#[test]
fn the_first_of_a_name_counts_and_the_others_are_told() {
    let session = Session::new(&[
        ("project/.pi/skills/x/SKILL.md", &skill("same")),
        ("agent/skills/y/SKILL.md", &skill("same")),
        ("project/.pi/prompts/t.md", "x"),
        ("agent/prompts/t.md", "y"),
    ]);
    session.check(
        &["same project/.pi/skills/x/SKILL.md auto project project/.pi"],
        &["t project/.pi/prompts/t.md auto project project/.pi"],
    );
    assert_eq!(
        session.said(),
        [
            "agent/prompts/t.md: the prompt template \"t\" of project/.pi/prompts/t.md comes first; this one is not used \
             (give one of them another name)",
            "agent/skills/y/SKILL.md: the skill \"same\" of project/.pi/skills/x/SKILL.md comes first; this one is not \
             used (give one of them another name)",
        ]
    );
}

#[test]
fn skills_of_no_use_are_told_with_their_line() {
    let session = Session::new(&[
        ("agent/skills/a/SKILL.md", "no front matter"),
        ("agent/skills/b/SKILL.md", "---\nname: b\n---\nx"),
        ("agent/skills/c/SKILL.md", "---\nname: c\ndescription: [oops\n---\nx"),
        ("agent/skills/d/SKILL.md", "---\r\nname: d\r\ndescription: Use: now\r\n---\r\nx"),
        ("agent/skills/e/SKILL.md", "---\nname: Bad_Name\ndescription: d\n---\nx"),
        ("agent/skills/f/SKILL.md", &format!("---\ndescription: {}\n---\nx", "x".repeat(1025))),
        ("agent/skills/README.md", "---\ntitle: notes\n---\nnot a skill"),
    ]);
    let loaded = session.load();
    let names: Vec<&str> = loaded.skills.iter().map(|skill| skill.name.as_str()).collect();
    assert_eq!(names, ["d", "Bad_Name", "f"]);
    assert_eq!(loaded.skills[0].description, "Use: now");
    let said = session.said();
    let expected = [
        "agent/skills/a/SKILL.md:1: the file has no front matter with a description; the skill is not used",
        "agent/skills/b/SKILL.md:1: the front matter has no description; the skill is not used",
        "agent/skills/c/SKILL.md:3: the front matter is not valid YAML: unclosed bracket",
        "agent/skills/d/SKILL.md:3: the front matter is not valid YAML: mapping values are not allowed",
        "agent/skills/e/SKILL.md: the name \"Bad_Name\" is not one that all agents take",
        "agent/skills/f/SKILL.md: the description is 1025 characters long",
    ];
    assert_eq!(said.len(), expected.len(), "{said:#?}");
    for (said, expected) in said.iter().zip(expected) {
        assert!(said.starts_with(expected), "{said}\n{expected}");
    }
    let levels: Vec<DiagnosticLevel> = loaded.diagnostics.iter().map(|it| it.level).collect();
    let (error, warning) = (DiagnosticLevel::Error, DiagnosticLevel::Warning);
    assert_eq!(levels, [error, error, error, warning, warning, warning]);
}

#[test]
fn templates_describe_themselves() {
    let session = Session::new(&[
        ("agent/prompts/a.md", "---\ndescription: d\nargument-hint: \"[x]\"\n---\nbody"),
        ("agent/prompts/b.md", &format!("\n\n  {}\nmore", "\u{e9}".repeat(61))),
        ("agent/prompts/c.md", "---\n- list\n---\nfirst"),
        ("agent/prompts/d.md", "---\ndescription: [\n---\nx"),
        ("agent/prompts/e f.md", "x"),
        ("agent/prompts/g.md", "---\ndescription: g\n---\n"),
    ]);
    let loaded = session.load();
    let shown: Vec<(&str, &str)> =
        loaded.prompts.iter().map(|it| (it.name.as_str(), it.description.as_str())).collect();
    let long = format!("{}...", "\u{e9}".repeat(60));
    assert_eq!(shown, [("a", "d"), ("b", long.as_str()), ("c", "first"), ("e f", "x"), ("g", "g")]);
    assert_eq!(loaded.prompts[0].argument_hint.as_deref(), Some("[x]"));
    let said = session.said();
    let expected = [
        "agent/prompts/c.md:1: the front matter is not made of",
        "agent/prompts/d.md:2: the front matter is not valid YAML",
        "agent/prompts/e f.md: \"/e f\" cannot be typed",
        "agent/prompts/g.md: the prompt template has no text",
    ];
    assert_eq!(said.len(), expected.len(), "{said:#?}");
    for (said, expected) in said.iter().zip(expected) {
        assert!(said.starts_with(expected), "{said}\n{expected}");
    }
}

#[test]
fn messages_that_call_something_are_expanded() {
    let session = Session::new(&[
        (
            "agent/skills/one/SKILL.md",
            "---\r\nname: one\r\ndescription: d\r\n---\r\n\r\n  Do $1.\r\nNow.\r\n",
        ),
        ("agent/skills/quiet/SKILL.md", "---\ndescription: d\ndisable-model-invocation: true\n---\nHush."),
        ("agent/prompts/hi.md", "---\ndescription: d\n---\nHello $1${2:-!}\n"),
        ("agent/prompts/self.md", "again /self $@\n"),
    ]);
    let one = "<skill name=\"one\" location=\"/agent/skills/one/SKILL.md\">\nReferences are relative to \
               /agent/skills/one.\n\nDo $1.\nNow.\n</skill>";
    let check = |message: &str, expected: Option<&str>| {
        assert_eq!(session.expand(message).as_deref(), expected, "{message:?}");
    };
    check("/skill:one", Some(one));
    check("/skill:one  a \"b\" ", Some(&format!("{one}\n\na \"b\"")));
    check("/skill:one\na\nb", Some(&format!("{one}\n\na\nb")));
    check("/hi", Some("Hello !"));
    check("/hi you", Some("Hello you!"));
    check("/hi\tyou \"and me\"", Some("Hello youand me"));
    check("/self /self x", Some("again /self /self x\n"));
    for text in ["", "/", "hi", " /hi", "/HI", "/hi!", "/skill:", "/skill:none x", "/none", "//hi", "say /hi"]
    {
        check(text, None);
    }
    assert!(session.expand("/skill:quiet").unwrap().contains("Hush."));
    assert!(session.load().skills[1].only_by_user);
}

#[test]
fn arguments_of_any_length_are_refused() {
    let session = Session::new(&[("agent/prompts/hi.md", &"$@".repeat(20))]);
    let refused = |message: &str| {
        session.with(|query| expand(message, query, &DiscoveredResources::default())).unwrap_err().to_string()
    };
    let long = format!("/hi {}", "x".repeat(1024 * 1024));
    assert!(refused(&long).contains("longer than 16777216 bytes"));
    assert!(refused(&format!("{long}x")).starts_with("/hi takes at most 1048576 bytes of arguments"));
}

#[test]
fn commands_of_other_tools_come_last_and_take_any_arguments() {
    let session = Session::new(&[
        ("project/.pi/prompts/taken.md", "Own: $1"),
        ("project/c/taken.md", "Foreign"),
        ("project/c/plain.md", "---\ndescription: d\n---\nPlain."),
        ("project/c/placed.md", "From $@[2] on, $1 first; all: $ARGUMENTS"),
    ]);
    let template = |name: &str, file: &str| PromptTemplate {
        name: name.to_owned(),
        description: String::new(),
        argument_hint: None,
        file: session.place.path(file),
        source: session.load().prompts[0].source.clone(),
        appends_arguments: true,
        runs_commands: false,
    };
    let discovered = DiscoveredResources {
        skills: Vec::new(),
        prompts: vec![
            template("taken", "project/c/taken.md"),
            template("git:plain", "project/c/plain.md"),
            template("placed", "project/c/placed.md"),
        ],
    };
    let loaded = session.with(|query| load_resources(query, &discovered));
    let names: Vec<&str> = loaded.prompts.iter().map(|template| template.name.as_str()).collect();
    assert_eq!(names, ["taken", "git:plain", "placed"]);
    assert!(loaded.diagnostics.is_empty(), "{:?}", loaded.diagnostics);
    for (message, expected) in [
        ("/taken a", "Own: a"),
        ("/git:plain", "Plain."),
        ("/git:plain \"a b\" c", "Plain.\n\n\"a b\" c"),
        ("/placed a b c", "From b c on, a first; all: a b c"),
    ] {
        let expanded = session.with(|query| expand(message, query, &discovered));
        assert_eq!(expanded.unwrap().unwrap().text, expected, "{message}");
    }
}

#[test]
fn commands_of_a_text_get_plain_arguments_and_give_their_outputs() {
    let session = Session::new(&[
        ("project/.pi/prompts/taken.md", "Own"),
        ("project/c/diff.md", "On $1:\n!`git diff $1`\n```!\nls\n```\nThink of $2."),
        ("project/c/plain.md", "Now: !`git status`"),
        ("project/c/many.md", &"!`ls` ".repeat(21)),
    ]);
    let template = |name: &str, scope: SourceScope| PromptTemplate {
        name: name.to_owned(),
        description: String::new(),
        argument_hint: None,
        file: session.place.path(&format!("project/c/{name}.md")),
        source: agentd_protocol::resources::SourceInfo { scope, ..session.load().prompts[0].source.clone() },
        appends_arguments: true,
        runs_commands: true,
    };
    let discovered = DiscoveredResources {
        skills: Vec::new(),
        prompts: vec![
            template("diff", SourceScope::Project),
            template("plain", SourceScope::User),
            template("many", SourceScope::User),
        ],
    };
    let expanded = |message: &str| {
        let expansion = session.with(|query| expand(message, query, &discovered));
        expansion.unwrap().unwrap()
    };
    let Expansion { text, commands } = expanded("/diff main speed");
    assert_eq!(text, "On main:\n!`git diff main`\n```!\nls\n```\nThink of speed.");
    let commands = commands.unwrap();
    assert!(commands.is_of_project && commands.file.ends_with("c/diff.md"));
    assert_eq!(commands.lines().unwrap(), ["git diff main", "ls"]);
    let outputs = ["-a $1".to_owned(), "!`b`".to_owned()];
    assert_eq!(commands.text(&outputs).unwrap(), "On main:\n-a $1\n!`b`\nThink of speed.");
    let odd = expanded("/diff $(rm) x").commands.unwrap().lines().unwrap_err().to_string();
    assert!(odd.starts_with("/diff puts its arguments into the shell command `git diff $1`"), "{odd}");
    let plain = expanded("/plain and $(more)").commands.unwrap();
    assert!(!plain.is_of_project);
    assert_eq!(plain.lines().unwrap(), ["git status"]);
    assert_eq!(plain.text(&["clean".to_owned()]).unwrap(), "Now: clean\n\nand $(more)");
    let many = expanded("/many").commands.unwrap().lines().unwrap_err().to_string();
    assert_eq!(many, "/many has 21 shell commands, and 20 can be run");
    let long = plain.text(&["x".repeat(17 << 20)]).unwrap_err().to_string();
    assert!(long.contains("longer than 16777216 bytes"), "{long}");
}

#[test]
fn resources_that_are_switched_off_give_way() {
    let session = Session::new(&[
        ("project/.pi/prompts/a.md", "A of the project"),
        ("agent/prompts/a.md", "A of the user"),
        ("agent/skills/s/SKILL.md", "---\ndescription: d\n---\n"),
    ]);
    let names = |disabled: &[&str]| {
        let disabled: Vec<String> = disabled.iter().map(|id| (*id).to_owned()).collect();
        let loaded = session.with(|query| {
            load_resources(&ResourceQuery { disabled: &disabled, ..*query }, &DiscoveredResources::default())
        });
        (loaded.prompts.len(), loaded.skills.len())
    };
    assert_eq!(names(&[]), (1, 1));
    assert_eq!(names(&["prompt:a", "skill:a"]), (0, 1));
    assert_eq!(names(&["skill:s"]), (1, 0));
    let included = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let query = |query: &ResourceQuery<'_>| {
            let query = ResourceQuery { included_skills: &names, ..*query };
            load_resources(&query, &DiscoveredResources::default())
        };
        let loaded = session.with(query);
        (loaded.prompts.len(), loaded.skills.len())
    };
    assert_eq!((included(&["x", "s*"]), included(&["x"])), ((1, 1), (1, 0)));
    let (skills, prompts) = session.with(load_every);
    assert_eq!((skills.len(), prompts.len()), (1, 2), "those that are shadowed, too");
}
