//! Skills, prompt templates and context files, as models, clients and users see them.

use agentd_e2e::{Daemon, Gate, Home, MockServer, Reply, Service, binaries, sse};
use serde_json::{Value, json};

use crate::support::{complaint, ended, prompt, records, text};

fn skill(name: &str) -> String {
    format!("---\nname: {name}\ndescription: About {name}.\n---\n\nDo {name}.\n")
}

/// A home with a model that always gives the same answer.
fn home() -> (MockServer, Home) {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    (server, home)
}

/// The system prompt of a request.
fn system(server: &MockServer, request: usize) -> String {
    text(&server.requests()[request].messages()[0])
}

/// The last user message of the last request.
fn last_said(server: &MockServer) -> String {
    let requests = server.requests();
    text(requests.last().expect("a request").messages().last().expect("a message"))
}

/// `name source path` of each command; paths are below the home's root.
fn commands(home: &Home, data: &Value) -> Vec<String> {
    let root = format!("{}/", home.root().display());
    let shown = |command: &Value| {
        let field = |value: &Value| value.as_str().expect("a text").replace(&root, "");
        let (name, info) = (field(&command["name"]), &command["sourceInfo"]);
        format!("{name} {} {}", field(&info["source"]), field(&info["path"]))
    };
    data["commands"].as_array().expect("a list").iter().map(shown).collect()
}

const GET: fn() -> Value = || json!({"type": "get_commands"});

#[test]
fn a_skill_is_told_to_the_model_and_called_by_the_user() {
    let (server, home) = home();
    home.write_agent("skills/pdf/SKILL.md", &skill("pdf"));
    home.write_agent(
        "skills/quiet/SKILL.md",
        "---\ndescription: q\ndisable-model-invocation: true\n---\nHush.",
    );
    home.write_home(".agents/skills/shared/SKILL.md", &skill("shared"));
    let mut daemon = Daemon::start(&home, &[]);
    let events = daemon.prompt("/skill:pdf  merge a.pdf ");
    let prompt = system(&server, 0);
    let location = home.agent_dir().join("skills/pdf/SKILL.md");
    for part in [
        "<available_skills>",
        "<name>pdf</name>",
        "<description>About pdf.</description>",
        &format!("<location>{}</location>", location.display()),
        "<name>shared</name>",
    ] {
        assert!(prompt.contains(part), "{part} in {prompt}");
    }
    assert!(!prompt.contains("quiet") && prompt.find("</skills>") < prompt.find("<cwd>"), "{prompt}");
    let said = format!(
        "<skill name=\"pdf\" location=\"{}\">\nReferences are relative to {}.\n\nDo pdf.\n</skill>\n\nmerge a.pdf",
        location.display(),
        location.parent().expect("a folder").display()
    );
    assert_eq!(last_said(&server), said);
    assert_eq!(text(ended(&events, "user")[0]), said, "events and the session file have what the model has");
    daemon.prompt("/skill:quiet");
    assert!(last_said(&server).contains("Hush."));
    for unknown in ["/skill:none a", "/nothing $1", "/"] {
        daemon.prompt(unknown);
        assert_eq!(last_said(&server), unknown);
    }
    // Without `read`, skills are not offered.
    Daemon::start(&home, &["--no-session", "--tools", "edit"]).prompt("Hi");
    assert!(!system(&server, server.requests().len() - 1).contains("available_skills"));
}

#[test]
fn templates_are_expanded_once() {
    let (server, home) = home();
    home.write_agent("prompts/review.md", "---\ndescription: d\n---\nReview $1 for ${2:-bugs}. $@");
    home.write_agent("prompts/self.md", "/self $@ ${@:2}");
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    for (message, expected) in [
        ("/review a.rs", "Review a.rs for bugs. a.rs"),
        ("/review \"my file\" '$1 ${@}'", "Review my file for $1 ${@}. my file $1 ${@}"),
        ("/self /self $@", "/self /self $@ $@"),
        ("say /review", "say /review"),
    ] {
        daemon.prompt(message);
        assert_eq!(last_said(&server), expected, "{message}");
    }
    daemon.done(json!({"type": "abort_and_prompt", "message": "/review b"}));
    daemon.settled();
    assert_eq!(last_said(&server), "Review b for bugs. b");
    let long =
        daemon.refused(json!({"type": "prompt", "message": format!("/review {}", "x".repeat(1 << 21))}));
    assert!(complaint(&long).contains("/review takes at most 1048576 bytes of arguments"), "{long}");
}

#[test]
fn queued_messages_are_expanded_as_they_are_queued() {
    let gate = Gate::new();
    let server =
        MockServer::start([Reply::stream(sse::text("Hm.")).gate(&gate).then(sse::end("stop", (1, 0, 1)))]);
    (0..4).for_each(|_| server.push(Reply::stream(sse::answer("Ok."))));
    let home = Home::with_model(&server);
    home.write_agent("prompts/hi.md", "Hello $1");
    home.write_agent("skills/pdf/SKILL.md", &skill("pdf"));
    let mut daemon = Daemon::start(&home, &[]);
    daemon.send(&prompt("Go."));
    daemon.event("message_update");
    // The list is available during the run.
    assert_eq!(daemon.done(GET())["commands"].as_array().map(Vec::len), Some(2));
    daemon.done(json!({"type": "follow_up", "message": "/skill:pdf x"}));
    daemon.done(json!({"type": "steer", "message": "/hi A"}));
    daemon.done(json!({"type": "steer", "message": "plain"}));
    daemon.done(json!({"type": "prompt", "message": "/hi B", "streamingBehavior": "steer"}));
    gate.open();
    let events = daemon.settled();
    let users: Vec<String> = ended(&events, "user").into_iter().map(text).collect();
    assert_eq!(users[..3], ["Hello A", "plain", "Hello B"]);
    assert!(users[3].starts_with("<skill name=\"pdf\"") && users[3].ends_with("</skill>\n\nx"), "{users:?}");
    daemon.done(json!({"type": "steer", "message": "/hi C"}));
    assert_eq!(daemon.done(json!({"type": "clear_queue"}))["steering"], json!(["Hello C"]));
}

#[test]
fn commands_name_their_sources() {
    let (_server, home) = home();
    home.settings(&json!({"skills": ["more"], "prompts": ["~/mine"], "enableSkillCommands": true}));
    home.write_agent("more/m/SKILL.md", &skill("m"));
    home.write_agent("skills/u/SKILL.md", &skill("u"));
    home.write_agent("prompts/t.md", "---\ndescription: d\nargument-hint: <file> [focus]\n---\nx");
    home.write_home("mine/h.md", "First line\nSecond");
    home.write_home(".agents/skills/a/SKILL.md", &skill("a"));
    home.write(".pi/prompts/p.md", "x");
    home.write(".pi/skills/p/SKILL.md", &skill("p"));
    home.write("extra/e/SKILL.md", &skill("e"));
    home.write("one.md", "x");
    let args = ["--no-session", "--approve", "--skill", "extra", "--prompt-template", "one.md"];
    let data = Daemon::start(&home, &args).done(GET());
    assert_eq!(
        commands(&home, &data),
        [
            "p auto project/.pi/prompts/p.md",
            "h local home/mine/h.md",
            "t auto agent/prompts/t.md",
            "one local project/one.md",
            "skill:p auto project/.pi/skills/p/SKILL.md",
            "skill:m local agent/more/m/SKILL.md",
            "skill:u auto agent/skills/u/SKILL.md",
            "skill:a auto home/.agents/skills/a/SKILL.md",
            "skill:e local project/extra/e/SKILL.md",
        ]
    );
    let path = |below: &str| home.root().join(below).display().to_string();
    let list = data["commands"].as_array().expect("a list");
    assert_eq!(
        list[1],
        json!({
            "name": "h", "description": "First line", "source": "prompt",
            "sourceInfo": {"path": path("home/mine/h.md"), "source": "local", "scope": "user", "origin": "top-level"},
        })
    );
    assert_eq!(list[2]["argumentHint"], "<file> [focus]");
    assert_eq!(
        list[8],
        json!({
            "name": "skill:e", "description": "About e.", "source": "skill",
            "sourceInfo": {
                "path": path("project/extra/e/SKILL.md"), "source": "local", "scope": "temporary", "origin": "top-level",
                "baseDir": path("project/extra/e"),
            },
        })
    );
    let args = ["--no-session", "--approve", "-ns", "-np", "--skill", "extra"];
    assert_eq!(
        commands(&home, &Daemon::start(&home, &args).done(GET())),
        ["skill:e local project/extra/e/SKILL.md"]
    );
}

#[test]
fn skills_can_be_left_out_of_the_list() {
    let (server, home) = home();
    home.settings(&json!({"enableSkillCommands": false}));
    home.write_agent("skills/u/SKILL.md", &skill("u"));
    home.write_agent("prompts/t.md", "x");
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    assert_eq!(commands(&home, &daemon.done(GET())), ["t auto agent/prompts/t.md"]);
    daemon.prompt("/skill:u");
    assert!(last_said(&server).contains("Do u."));
}

/// Resources of a project are used when it is trusted, in a folder of either name.
#[test]
fn a_project_has_to_be_trusted() {
    for folder in [".agentd", ".pi"] {
        let (server, home) = home();
        home.write(&format!("{folder}/skills/s/SKILL.md"), &skill("s"));
        home.write(&format!("{folder}/prompts/t.md"), "From the project.");
        home.write(&format!("{folder}/SYSTEM.md"), "Be a pirate.");
        home.write(&format!("{folder}/APPEND_SYSTEM.md"), "Say arr.");
        home.write(".agents/skills/shared/SKILL.md", &skill("shared"));
        let mut daemon = Daemon::start(&home, &["--no-session"]);
        assert_eq!(daemon.done(GET())["commands"], json!([]));
        daemon.prompt("/t");
        assert_eq!(last_said(&server), "/t");
        assert!(!system(&server, 0).contains("pirate") && !system(&server, 0).contains("skills"));
        let mut daemon = Daemon::start(&home, &["--no-session", "--approve"]);
        assert_eq!(
            commands(&home, &daemon.done(GET())),
            [
                format!("t auto project/{folder}/prompts/t.md"),
                format!("skill:s auto project/{folder}/skills/s/SKILL.md"),
                "skill:shared auto project/.agents/skills/shared/SKILL.md".to_owned(),
            ]
        );
        daemon.prompt("/t");
        assert_eq!(last_said(&server), "From the project.");
        let prompt = system(&server, 1);
        assert!(prompt.starts_with("Be a pirate.\n\n<addendum>\nSay arr.\n</addendum>"), "{prompt}");
        assert!(prompt.contains("<name>shared</name>"), "{prompt}");
    }
}

/// An agent directory of pi works unchanged.
#[test]
fn the_agent_directory_of_pi() {
    let (server, home) = home();
    let theirs = home.root().join("home/.pi/agent");
    std::fs::create_dir_all(theirs.parent().expect("a folder")).unwrap();
    home.write_agent("skills/s/SKILL.md", &skill("s"));
    home.write_agent("prompts/t.md", "Theirs: $@");
    home.write_agent("SYSTEM.md", "You are theirs.");
    std::fs::rename(home.agent_dir(), &theirs).unwrap();
    home.write(".pi/skills/p/SKILL.md", &skill("p"));
    let mut daemon = Daemon::start_with(&home, &["--no-session", "--compat", "pi", "--approve"], |command| {
        command.env_remove("AGENTD_DIR");
    });
    assert_eq!(
        commands(&home, &daemon.done(GET())),
        [
            "t auto home/.pi/agent/prompts/t.md",
            "skill:p auto project/.pi/skills/p/SKILL.md",
            "skill:s auto home/.pi/agent/skills/s/SKILL.md",
        ]
    );
    daemon.prompt("/t a b");
    assert_eq!(last_said(&server), "Theirs: a b");
    assert!(system(&server, 0).starts_with("You are theirs."));
}

#[test]
fn broken_files_are_reported_and_cost_only_themselves() {
    let (server, home) = home();
    home.write_agent("skills/good/SKILL.md", &skill("good"));
    home.write_agent(
        "skills/broken/SKILL.md",
        "---\nname: broken\ndescription: d\nmetadata:\n  a: b\n c: d\n---\nx",
    );
    home.write_agent("skills/silent/SKILL.md", "---\nname: silent\n---\nx");
    home.write_agent("prompts/good.md", "Good.");
    home.write_agent("prompts/broken.md", "---\ndescription: \"open\n---\nx");
    home.write_agent("SYSTEM.md/folder", "");
    home.write("AGENTS.md", &"x".repeat((1 << 20) + 1));
    home.write("CLAUDE.md", "not looked at");
    let mut daemon = Daemon::start(&home, &["--no-session", "--skill", "nowhere"]);
    assert_eq!(
        commands(&home, &daemon.done(GET())),
        ["good auto agent/prompts/good.md", "skill:good auto agent/skills/good/SKILL.md"]
    );
    let mut found = || {
        let data = daemon.done(json!({"type": "get_diagnostics"}));
        data["diagnostics"].as_array().expect("a list").clone()
    };
    let list = found();
    let kinds: Vec<&str> = list.iter().filter_map(|it| it["kind"].as_str()).collect();
    assert_eq!(kinds, ["context_file", "system_prompt", "prompt", "skill", "skill", "skill"], "{list:#?}");
    let broken = list
        .iter()
        .find(|it| it["message"].as_str().is_some_and(|text| text.contains("YAML")) && it["kind"] == "skill");
    let broken = broken.expect("the broken skill");
    assert_eq!((&broken["level"], &broken["line"]), (&json!("error"), &json!(6)), "{broken}");
    // A repaired file is no longer reported.
    home.write_agent("skills/broken/SKILL.md", &skill("broken"));
    assert_eq!(found().len(), list.len() - 1);
    daemon.prompt("/good");
    assert_eq!(last_said(&server), "Good.");
    assert!(system(&server, 0).starts_with("You are a coding agent"), "{}", system(&server, 0));
    let stderr = daemon.close().stderr;
    for part in [
        "agent/skills/broken/SKILL.md:6: the front matter is not valid YAML",
        "agent/skills/silent/SKILL.md:1: the front matter has no description",
        "agent/prompts/broken.md:",
        "agent/SYSTEM.md: this is no regular file",
        "project/AGENTS.md: the file is 1048577 bytes long",
        "project/nowhere: this is named by --skill and is not there",
    ] {
        assert!(stderr.contains(part), "{part} in {stderr}");
    }
}

/// Files are read at every run: changes reach the model in a system message.
#[test]
fn changes_between_runs_reach_the_model_in_the_next_one() {
    let (server, home) = home();
    home.write("AGENTS.md", "Whistle.");
    home.write_agent("skills/old/SKILL.md", &skill("old"));
    let mut daemon = Daemon::start(&home, &[]);
    let sections = |events: &[Value]| -> Vec<Value> {
        ended(events, "system").into_iter().map(|message| message["sections"].clone()).collect()
    };
    assert_eq!(sections(&daemon.prompt("One")).len(), 1);
    assert_eq!(sections(&daemon.prompt("Two")), Vec::<Value>::new(), "nothing changed");
    home.write("AGENTS.md", "Hum.");
    std::fs::remove_dir_all(home.agent_dir().join("skills")).unwrap();
    home.write_agent("APPEND_SYSTEM.md", "Be brief.");
    home.write_agent("prompts/new.md", "Brand new.");
    let changed = sections(&daemon.prompt("/new"));
    assert_eq!(changed.len(), 1);
    let keys: Vec<&String> = changed[0].as_object().expect("sections").keys().collect();
    assert_eq!(keys, ["addendum", "project_context", "skills"]);
    assert_eq!(changed[0]["skills"], Value::Null);
    assert_eq!(changed[0]["addendum"], "<addendum>\nBe brief.\n</addendum>");
    assert!(changed[0]["project_context"].as_str().expect("a text").contains("Hum."));
    assert_eq!(last_said(&server), "Brand new.");
    home.write("AGENTS.override.md", "Only this.");
    let changed = sections(&daemon.prompt("Four"));
    let context = changed[0]["project_context"].as_str().expect("a text");
    assert!(context.contains("Only this.") && !context.contains("Hum."), "{context}");
}

/// Sessions of a daemon have their own flags.
#[test]
fn a_session_of_the_daemon_takes_the_flags() {
    let (server, home) = home();
    home.write("extra/e/SKILL.md", &skill("e"));
    home.write_agent("skills/u/SKILL.md", &skill("u"));
    let service = Service::start(&home, &[]);
    let mut client = service.client();
    client
        .done(json!({"type": "open_session", "cwd": home.project(), "args": ["-ns", "--skill", "extra/e"]}));
    assert_eq!(commands(&home, &client.done(GET())), ["skill:e local project/extra/e/SKILL.md"]);
    client.prompt("/skill:e now");
    assert!(last_said(&server).ends_with("Do e.\n</skill>\n\nnow"));
    let mut other = service.client();
    other.done(json!({"type": "open_session", "cwd": home.project()}));
    assert_eq!(commands(&home, &other.done(GET())), ["skill:u auto agent/skills/u/SKILL.md"]);
    // An observer may list commands.
    let mut observer = service.client();
    observer.done(json!({"type": "hello", "protocol": 1, "client": {"name": "t"}, "role": "observe"}));
    let id = other.done(json!({"type": "get_state"}))["sessionId"].clone();
    observer.done(json!({"type": "attach_session", "sessionId": id}));
    assert_eq!(observer.done(GET())["commands"].as_array().map(Vec::len), Some(1));
}

/// The example of docs/resources.md works unchanged.
#[test]
fn the_example_of_the_documentation_runs() {
    let page = std::fs::read_to_string(binaries::workspace().join("docs/resources.md")).unwrap();
    let block = |language: &str| {
        let (_, rest) = page.split_once(&format!("```{language}\n")).expect("an example");
        rest.split_once("\n```").expect("its end").0
    };
    let home = Home::new();
    let folder = binaries::agentctl().parent().expect("a folder").display().to_string();
    let path = format!("{folder}:{}", std::env::var("PATH").unwrap_or_default());
    let mut command = home.command("/bin/sh");
    let done =
        command.args(["-e", "-c", block("sh")]).env("PATH", path).env_remove("AGENTD_DIR").output().unwrap();
    assert!(done.status.success(), "{done:?}");
    let mut said = Vec::new();
    let mut folders = vec![home.root().join("home/.agentd/sessions")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder of sessions") {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let users = records(&path).into_iter().filter(|record| record["message"]["role"] == "user");
                said.extend(users.map(|record| text(&record["message"])));
            }
        }
    }
    said.sort();
    let skill = block("text").replace("/home/u", &home.root().join("home").display().to_string());
    assert_eq!(said, [skill, "Review main.rs. Look for unsafe code, and say what to change.".to_owned()]);
}
