//! The files of other coding agents: what counts of them, what is shadowed, what waits for trust.

use std::fs;

use agentd_e2e::{Conversation, Daemon, Home, MockServer, Reply, conversation::LineTransport, ctl, sse};
use serde_json::{Value, json};

use crate::{
    mcp::{direct, servers},
    support::{assert_says, text},
};

/// A repository that several tools are set up in.
fn repository() -> (MockServer, Home) {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    fs::create_dir(home.project().join(".git")).expect("a repository");
    for (name, content) in [
        ("CLAUDE.md", "Claude: see @docs/testing.md.\n"),
        ("docs/testing.md", "run make test\n"),
        (".claude/commands/git/commit.md", "---\ndescription: Commit\n---\nCommit as $ARGUMENTS.\n"),
        (".claude/commands/review.md", "Review the changes.\n"),
        (".claude/agents/reviewer.md", "---\nname: reviewer\ndescription: Reviews\n---\nYou review.\n"),
        (
            ".claude/skills/notes/SKILL.md",
            "---\nname: notes\ndescription: Release notes\n---\nGroup by area.\n",
        ),
        (
            ".cursor/rules/general.mdc",
            "---\ndescription:\nglobs:\nalwaysApply: true\n---\nTypeScript everywhere.\n",
        ),
        (
            ".cursor/rules/react.mdc",
            "---\ndescription: React: hooks\nglobs: *.tsx\nalwaysApply: false\n---\nFunctions.\n",
        ),
        (".github/copilot-instructions.md", "Copilot text.\n"),
        (".github/prompts/review.prompt.md", "Review as Copilot.\n"),
        (".github/prompts/model.prompt.md", "---\ndescription: Add a model\n---\nAdd it.\n"),
    ] {
        home.write(name, content);
    }
    let mut entry = direct(&[]);
    entry.as_object_mut().expect("an entry").remove("exposure");
    home.write(".mcp.json", &json!({"mcpServers": {"theirs": entry}}).to_string());
    (server, home)
}

/// The system prompt of a request.
fn system(server: &MockServer, request: usize) -> String {
    text(&server.requests()[request].messages()[0])
}

fn items<W: LineTransport>(client: &mut Conversation<W>, kind: &str) -> Vec<Value> {
    let list = client.done(json!({"type": "get_capabilities", "kind": kind, "includeShadowed": true}));
    list["items"].as_array().expect("a list").clone()
}

fn named(items: &[Value], name: &str) -> Value {
    items.iter().find(|item| item["name"] == name).unwrap_or_else(|| panic!("{name} in {items:#?}")).clone()
}

#[test]
fn agentctl_lists_what_counts_and_what_does_not() {
    let (_server, home) = repository();
    home.write_home(".claude/CLAUDE.md", "Mine.");
    let shown = ctl::run(&home, &["config", "explain"]);
    assert_eq!(shown.code, 0, "{shown:?}");
    let lines: Vec<&str> = shown.stdout.lines().collect();
    let line = |parts: &[&str]| {
        let found = lines.iter().find(|line| parts.iter().all(|part| line.contains(part)));
        *found.unwrap_or_else(|| panic!("{parts:?} in {}", shown.stdout))
    };
    for counts in [
        vec!["* CLAUDE.md", "project", "CLAUDE.md", "/project/CLAUDE.md"],
        vec!["* general", "Cursor", "/.cursor/rules/general.mdc"],
        vec!["* react", "Cursor"],
        vec!["* notes", "Claude Code"],
        vec!["* git:commit", "Claude Code"],
        vec!["* commit", "Claude Code"],
        vec!["* reviewer", "Claude Code"],
        vec!["* model", "GitHub Copilot"],
    ] {
        line(&counts);
    }
    line(&["  copilot-instructions.md", "GitHub Copilot", "(shadowed by ", "/project/CLAUDE.md)"]);
    line(&["  theirs", "/project/.mcp.json", "(waits for trust)"]);
    assert!(!shown.stdout.contains("/home/.claude"), "folders of the user are opt-in: {}", shown.stdout);

    let trusted = ctl::run(&home, &["config", "explain", "--kind", "mcps", "--approve", "--json"]);
    let list: Value = serde_json::from_str(&trusted.stdout).expect("JSON");
    assert_eq!(list["items"].as_array().map(Vec::len), Some(1), "{list}");
    assert_eq!(
        (&list["items"][0]["counts"], &list["items"][0]["source"]["provider"]),
        (&json!(true), &json!("mcp-json"))
    );
    let wrong = ctl::run(&home, &["config", "explain", "--kind", "rule"]);
    assert_eq!(wrong.code, 2, "{wrong:?}");
    assert_says(&wrong.stderr, &["there are context-files, rules, "]);
    let doctor = ctl::run(&home, &["doctor"]);
    assert_says(&doctor.stdout, &["of other tools, of which", "`agentctl config explain` lists them"]);
}

#[test]
fn they_reach_the_model_and_the_user_can_call_them() {
    let (server, home) = repository();
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    daemon.prompt("Hi");
    let prompt = system(&server, 0);
    let rule = home.project().canonicalize().expect("the project").join(".cursor/rules/react.mdc");
    for part in [
        "Claude: see run make test.",
        "<project_rules>",
        "\nTypeScript everywhere.\n</rule>",
        &format!("- react (*.tsx): React: hooks [{}]", rule.display()),
        "<name>notes</name>",
    ] {
        assert!(prompt.contains(part), "{part} in {prompt}");
    }
    assert!(!prompt.contains("Copilot text") && !prompt.contains("Functions."), "{prompt}");
    let last = || {
        let requests = server.requests();
        text(requests.last().expect("a request").messages().last().expect("a message"))
    };
    for (message, expected) in [
        ("/git:commit a fix", "Commit as a fix."),
        ("/commit x", "Commit as x."),
        ("/review src/main.rs", "Review the changes.\n\nsrc/main.rs"),
        ("/model", "Add it."),
        ("/none", "/none"),
    ] {
        daemon.prompt(message);
        assert_eq!(last(), expected, "{message}");
    }
    daemon.prompt("/skill:notes now");
    assert_says(&last(), &["<skill name=\"notes\"", "Group by area.", "\n\nnow"]);
    let commands = daemon.done(json!({"type": "get_commands"}));
    let command = named(commands["commands"].as_array().expect("a list"), "git:commit");
    assert_eq!((&command["source"], &command["sourceInfo"]["source"]), (&json!("prompt"), &json!("claude")));
    // A change counts from the next message on.
    home.write("CLAUDE.md", "Changed.");
    home.write(".cursor/rules/new.md", "---\nalwaysApply: true\n---\nNew rule.");
    daemon.prompt("Hi again");
    let requests = server.requests();
    let sent = serde_json::to_string(requests.last().expect("a request").messages()).expect("JSON");
    assert_says(&sent, &["Changed.", "New rule."]);
}

#[test]
fn nothing_of_them_counts_where_the_user_does_not_want_it() {
    let (server, home) = repository();
    home.settings(&json!({"discovery": {"foreign": false}}));
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    daemon.prompt("/git:commit a fix");
    let prompt = system(&server, 0);
    assert!(prompt.contains("Claude: see @docs/testing.md."), "as pi: {prompt}");
    assert!(!prompt.contains("project_rules") && !prompt.contains("notes"), "{prompt}");
    assert_eq!(text(server.requests()[0].messages().last().expect("a message")), "/git:commit a fix");
    // With nothing that needs trust, nobody is asked.
    let state = daemon.done(json!({"type": "get_diagnostics"}));
    assert!(!state.to_string().contains("not trusted"), "{state}");
    drop(daemon);

    home.settings(&json!({"discovery": {"disabledProviders": ["cursor"], "enabledProviders": ["claude"]}}));
    home.write_home(".claude/commands/mine.md", "My command.");
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    assert_eq!(items(&mut daemon, "rules"), Vec::<Value>::new());
    let mine = named(&items(&mut daemon, "slash-commands"), "mine");
    assert_eq!((&mine["counts"], &mine["source"]["level"]), (&json!(true), &json!("user")));
}

#[test]
fn servers_wait_for_trust() {
    let (_model, home) = repository();
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    assert_eq!(servers(&mut daemon), Vec::<Value>::new());
    let waiting = named(&items(&mut daemon, "mcps"), "theirs");
    assert_eq!((&waiting["counts"], &waiting["reason"]), (&json!(false), &json!("waits for trust")));
    drop(daemon);
    let mut daemon = Daemon::start(&home, &["--no-session", "--approve"]);
    let connected = daemon.done(json!({"type": "reconnect_mcp_server", "name": "theirs"}));
    assert_eq!(connected["servers"][0]["state"], "connected", "{connected}");
    assert_eq!(named(&items(&mut daemon, "mcps"), "theirs")["counts"], true);
    drop(daemon);
    // A server of the user's own file comes first, and one that is switched off is not started.
    home.write_agent(
        "mcp.json",
        &json!({"mcpServers": {"theirs": {"command": "true", "enabled": false}}}).to_string(),
    );
    let mut daemon = Daemon::start(&home, &["--no-session", "--approve"]);
    let all = items(&mut daemon, "mcps");
    assert_eq!(
        (&all[0]["reason"], &all[1]["shadowed"]),
        (&json!("switched off in its file"), &json!(true)),
        "{all:#?}"
    );
    fs::remove_file(home.agent_dir().join("mcp.json")).expect("the file");
    drop(daemon);
    home.settings(&json!({"discovery": {"disabledItems": ["mcp:theirs"]}}));
    let mut daemon = Daemon::start(&home, &["--no-session", "--approve"]);
    assert_eq!(servers(&mut daemon), Vec::<Value>::new());
}

#[test]
fn an_item_is_switched_off_and_on() {
    let (server, home) = repository();
    home.write_agent("settings.json", "{\n  // mine\n  \"theme\": \"dark\"\n}\n");
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let set =
        |id: &str, enabled: bool| json!({"type": "set_capability", "capabilityId": id, "enabled": enabled});
    let answer = daemon.done(set("rule:general", false));
    assert_eq!(answer["items"].as_array().map(Vec::len), Some(1), "{answer}");
    assert_eq!(
        (&answer["items"][0]["disabled"], &answer["items"][0]["counts"]),
        (&json!(true), &json!(false))
    );
    daemon.done(set("skill:notes", false));
    daemon.done(set("context-file:project:CLAUDE.md", false));
    let written = fs::read_to_string(home.agent_dir().join("settings.json")).expect("the settings");
    assert_says(&written, &["// mine", "disabledItems", "rule:general", "skill:notes"]);
    daemon.prompt("Hi");
    let prompt = system(&server, 0);
    assert!(!prompt.contains("TypeScript everywhere") && !prompt.contains("<name>notes"), "{prompt}");
    // What comes next of the folder counts now.
    assert!(prompt.contains("Copilot text.") && !prompt.contains("Claude: see"), "{prompt}");
    let refused = daemon.refused(set("rule:nothing", false));
    assert_eq!(
        (&refused["code"], &refused["error"]),
        (&json!("not_found"), &json!("There is no item \"rule:nothing\"."))
    );
    drop(daemon);
    // Another session has it so, too, and switches it on again.
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    assert_eq!(named(&items(&mut daemon, "rules"), "general")["disabled"], true);
    let answer = daemon.done(set("rule:general", true));
    assert_eq!(answer["items"][0]["counts"], true);
    let written = fs::read_to_string(home.agent_dir().join("settings.json")).expect("the settings");
    assert!(!written.contains("rule:general") && written.contains("skill:notes"), "{written}");
}

#[test]
fn only_the_skills_that_are_named_count_where_some_are() {
    let (server, home) = repository();
    home.settings(&json!({"discovery": {"includeSkills": ["write-*"]}}));
    for name in ["write-docs", "draft"] {
        home.write_agent(&format!("skills/{name}/SKILL.md"), "---\ndescription: For something\n---\nText.\n");
    }
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let skills = items(&mut daemon, "skills");
    let of = |name: &str| {
        let item = named(&skills, name);
        (item["counts"].clone(), item["reason"].clone())
    };
    assert_eq!(of("write-docs"), (json!(true), Value::Null));
    for name in ["draft", "notes"] {
        assert_eq!(of(name), (json!(false), json!("left out by discovery.includeSkills")), "{name}");
    }
    daemon.prompt("Hi");
    let prompt = system(&server, 0);
    assert!(prompt.contains("<name>write-docs<") && !prompt.contains("<name>draft<"), "{prompt}");
    assert!(!prompt.contains("<name>notes<"), "{prompt}");
}
