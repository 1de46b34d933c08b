//! Packages: `agentctl install`, `remove`, `list` and `update`, what sessions get of packages, and what `agentctl doctor` says of them. The
//! package manager is a script here; `tests/outside/install` has the real npm and git.

use std::{fs, os::unix::fs::PermissionsExt as _};

use agentd_e2e::{
    Daemon, Home, MockServer, Reply, binaries,
    ctl::{self, Finished},
    sse,
};
use serde_json::{Value, json};

use crate::support::{assert_says, text};

/// A package manager that installs from `registry/NAME` below the home's root, notes its arguments and fails for names that are not there.
const NPM: &str = r#"#!/bin/sh
root=$(dirname "$0")
echo "$@" >> "$root/npm-calls"
verb=$1; spec=$2; shift 2
while [ $# -gt 0 ]; do case $1 in --prefix) prefix=$2; shift;; esac; shift; done
name=${spec%@[0-9^]*}
case $verb in
  install)
    mkdir -p "$prefix/node_modules"
    echo '{"changed": true}' > "$prefix/package.json"
    [ -d "$root/registry/$name" ] || { echo "404 $name is not in this registry" >&2; exit 1; }
    cp -r "$root/registry/$name" "$prefix/node_modules/"
    # Something that its scripts left running, with the output open.
    [ "$name" != lingers ] || sleep 1000 & ;;
  uninstall) rm -r "$prefix/node_modules/$name";;
esac
"#;

/// A home with a package manager, a model, and one package in its registry.
fn home(server: &MockServer) -> Home {
    let home = Home::with_model(server);
    let npm = home.root().join("npm");
    fs::write(&npm, NPM).expect("a script");
    fs::set_permissions(&npm, fs::Permissions::from_mode(0o755)).expect("its mode");
    write_package(&home, "registry/tools");
    home.write_agent(
        "settings.json",
        &format!("{{\n  // mine\n  \"npmCommand\": [\"{}\"]\n}}\n", npm.display()),
    );
    home
}

/// A package with a skill and a prompt template.
fn write_package(home: &Home, below: &str) {
    for (path, content) in [
        ("package.json", r#"{"name":"tools","version":"1.0.0"}"#),
        ("prompts/hello.md", "Say hello to $1.\n"),
        ("skills/dig/SKILL.md", "---\nname: dig\ndescription: About digging.\n---\nDig.\n"),
    ] {
        let path = home.root().join(below).join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, content).expect("a file");
    }
}

fn read(home: &Home, path: &str) -> String {
    fs::read_to_string(home.root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn calls(home: &Home) -> Vec<String> {
    let root = format!("{}/", home.root().display());
    let calls = fs::read_to_string(home.root().join("npm-calls")).unwrap_or_default();
    calls.lines().map(|line| line.replace(&root, "")).collect()
}

fn packages(home: &Home, settings: &str) -> Value {
    let text = read(home, settings).lines().filter(|line| !line.trim().starts_with("//")).collect::<String>();
    serde_json::from_str::<Value>(&text).expect("JSON")["packages"].clone()
}

fn names(data: &Value) -> Vec<&str> {
    data["commands"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|command| command["name"].as_str())
        .collect()
}

#[test]
fn a_package_is_installed_used_and_removed() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = home(&server);
    let installed = ctl::run(&home, &["install", "npm:tools@1.0.0"]);
    assert_eq!(installed.code, 0, "{installed:?}");
    assert_says(&installed.stdout, &["Installed npm:tools@1.0.0, added to", "agent/settings.json"]);
    assert_says(&installed.stderr, &["Installing npm:tools@1.0.0..."]);
    assert_eq!(
        calls(&home),
        ["install tools@1.0.0 --prefix agent/npm --legacy-peer-deps --no-audit --no-fund"]
    );
    assert!(read(&home, "agent/settings.json").starts_with("{\n  // mine\n"));
    assert_eq!(packages(&home, "agent/settings.json"), json!(["npm:tools@1.0.0"]));

    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let commands = daemon.done(json!({"type": "get_commands"}));
    assert_eq!(names(&commands), ["hello", "skill:dig"]);
    let base = home.agent_dir().join("npm/node_modules/tools");
    assert_eq!(
        commands["commands"][0]["sourceInfo"],
        json!({"path": base.join("prompts/hello.md"), "source": "npm:tools@1.0.0", "scope": "user", "origin": "package", "baseDir": base})
    );
    daemon.prompt("/hello world");
    let request = &server.requests()[0];
    assert_eq!(text(request.messages().last().expect("a message")), "Say hello to world.\n");
    // The model is told of the skill.
    assert!(text(&request.messages()[0]).contains("About digging."));
    drop(daemon);

    let listed = ctl::run(&home, &["list"]);
    assert_says(&listed.stdout, &["User packages:\n  npm:tools@1.0.0\n", "agent/npm/node_modules/tools"]);
    let again = ctl::run(&home, &["install", "npm:tools"]);
    assert_eq!(again.code, 0, "{again:?}");
    assert_eq!(packages(&home, "agent/settings.json"), json!(["npm:tools"]));
    let removed = ctl::run(&home, &["remove", "npm:tools"]);
    assert_eq!(removed.code, 0, "{removed:?}");
    assert_eq!(packages(&home, "agent/settings.json"), json!([]));
    assert!(!base.exists());
    let missing = ctl::run(&home, &["remove", "npm:tools"]);
    assert_eq!(missing.code, 1, "{missing:?}");
    assert_says(&missing.stderr, &["No matching package found for npm:tools"]);
}

#[test]
fn what_cannot_be_installed_leaves_nothing() {
    let home = home(&MockServer::start([]));
    let before = read(&home, "agent/settings.json");
    let fails = |args: &[&str], says: &[&str]| {
        let failed = ctl::run(&home, args);
        assert_eq!(failed.code, 1, "{failed:?}");
        assert_says(&failed.stderr, says);
        assert_eq!(read(&home, "agent/settings.json"), before, "{args:?}");
        assert!(!home.agent_dir().join("npm").exists() && !home.agent_dir().join("git").exists(), "{args:?}");
    };
    fails(
        &["install", "npm:nothing"],
        &["install nothing", "failed with code 1: 404 nothing is not in this registry"],
    );
    fails(&["install", "npm:../x"], &["\"npm:../x\" is no source of a package"]);
    fails(&["install", "./nowhere"], &["Path does not exist: ", "project/nowhere"]);
    fails(&["install", "https://me:hush@host/a"], &["https://…@host/a"]);
    fails(&["update", "npm:nothing"], &["No matching package found for npm:nothing"]);

    home.settings(&json!({"npmCommand": ["no-such-npm"]}));
    let failed = ctl::run(&home, &["install", "npm:tools"]);
    assert_says(&failed.stderr, &["no-such-npm is not there", "name another program as npmCommand"]);
    home.settings(&json!({"npmCommand": [""]}));
    assert_says(&ctl::run(&home, &["install", "npm:tools"]).stderr, &["npmCommand is not usable"]);
    home.settings(&json!({"packages": {}}));
    let failed = ctl::run(&home, &["install", "./."]);
    assert_says(&failed.stderr, &["\"packages\" must be a list"]);
    home.write_agent("settings.json", "{");
    assert_eq!(ctl::run(&home, &["install", "./."]).code, 1);
    assert_eq!(read(&home, "agent/settings.json"), "{");
}

#[test]
fn what_a_package_leaves_running_is_ended_and_not_waited_for() {
    let home = home(&MockServer::start([]));
    write_package(&home, "registry/lingers");
    let installed = ctl::run(&home, &["install", "npm:lingers"]);
    assert_eq!(installed.code, 0, "{installed:?}");
}

#[test]
fn a_path_counts_from_the_settings_that_name_it() {
    let server = MockServer::start([]);
    let home = home(&server);
    write_package(&home, "project/mine");
    assert_eq!(ctl::run(&home, &["install", "./mine"]).code, 0);
    assert_eq!(packages(&home, "agent/settings.json"), json!(["../project/mine"]));
    let again = ctl::run(&home, &["install", "mine/../mine/"]);
    assert_says(&again.stdout, &["already in"]);
    let local = ctl::run(&home, &["install", "-l", "mine"]);
    assert_eq!(local.code, 0, "{local:?}");
    assert_says(&local.stderr, &["count once the project is trusted"]);
    assert_eq!(packages(&home, "project/.agentd/settings.json"), json!(["../mine"]));
    assert_eq!(calls(&home), Vec::<String>::new());

    // The project has settings now, and so needs trust.
    let refused = ctl::run(&home, &["remove", "-l", "mine"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert_says(&refused.stderr, &["Project is not trusted. Use --approve"]);
    let listed = |args: &[&str]| -> Vec<String> {
        let listed: Value = serde_json::from_str(&ctl::run(&home, args).stdout).expect("JSON");
        let shown =
            |it: &Value| format!("{} {}", it["scope"].as_str().unwrap(), it["source"].as_str().unwrap());
        listed.as_array().expect("a list").iter().map(shown).collect()
    };
    assert_eq!(listed(&["list", "--json"]), ["user ../project/mine"]);
    assert_eq!(listed(&["list", "--json", "--approve"]), ["user ../project/mine", "project ../mine"]);
    let scope = |args: &[&str]| {
        let mut daemon = Daemon::start(&home, &[&["--no-session"], args].concat());
        daemon.done(json!({"type": "get_commands"}))["commands"][0]["sourceInfo"]["scope"].clone()
    };
    assert_eq!(scope(&[]), "user");
    assert_eq!(scope(&["--approve"]), "project");
    assert_eq!(ctl::run(&home, &["remove", "-l", "--approve", "./mine"]).code, 0);
    assert_eq!(packages(&home, "project/.agentd/settings.json"), json!([]));
    assert_eq!(ctl::run(&home, &["remove", "./mine"]).code, 0);
    assert!(home.project().join("mine/package.json").exists());
}

#[test]
fn a_session_installs_what_is_missing_and_says_what_it_could_not() {
    let server = MockServer::start([]);
    let home = home(&server);
    let npm = home.root().join("npm");
    home.settings(&json!({"npmCommand": [npm], "packages": ["npm:tools", "npm:late", "npm:../x"]}));
    let look = |args: &[&str]| {
        let mut daemon = Daemon::start(&home, &[&["--no-session"], args].concat());
        let commands = daemon.done(json!({"type": "get_commands"}));
        let found = daemon.done(json!({"type": "get_diagnostics"}));
        let of_packages: Vec<Value> = found["diagnostics"]
            .as_array()
            .expect("a list")
            .iter()
            .filter(|it| it["kind"] == "package")
            .cloned()
            .collect();
        (names(&commands).iter().map(|name| (*name).to_owned()).collect::<Vec<_>>(), of_packages)
    };
    let (commands, told) = look(&["--offline"]);
    assert!(commands.is_empty() && calls(&home).is_empty(), "{commands:?}");
    assert_eq!(told.iter().filter(|it| it["level"] == "info").count(), 2, "{told:#?}");

    let (commands, told) = look(&[]);
    assert_eq!(commands, ["hello", "skill:dig"]);
    let failure =
        told.iter().find(|it| it["hint"].is_string() && it["level"] == "warning").expect("a failure");
    assert_says(
        failure["message"].as_str().expect("a text"),
        &["Extension package \"npm:late\": failed to install (", "404 late is not in this registry", ")."],
    );
    assert_eq!(failure["hint"], "Run \"agentctl remove npm:late\" to remove it from settings.json.");
    assert!(
        told.iter()
            .any(|it| it["message"].as_str().unwrap().contains("\"npm:../x\" is no source of a package"))
    );
    // What is there is left alone; what is not is tried again.
    write_package(&home, "registry/late");
    fs::write(home.root().join("registry/late/prompts/hello.md"), "x").expect("a file");
    fs::rename(
        home.root().join("registry/late/prompts/hello.md"),
        home.root().join("registry/late/prompts/late.md"),
    )
    .expect("a name");
    let (commands, _) = look(&[]);
    assert_eq!(commands, ["hello", "late", "skill:dig"]);
    let installs: Vec<String> =
        calls(&home).iter().map(|call| call.split(" --").next().unwrap().to_owned()).collect();
    assert_eq!(installs, ["install tools", "install late", "install late"]);
    // Verbs that only look at something install nothing.
    home.settings(&json!({"npmCommand": [npm], "packages": ["npm:other"]}));
    for verb in [&["doctor"][..], &["config", "check"], &["models"]] {
        ctl::run(&home, verb);
    }
    assert_eq!(calls(&home).len(), 3);
}

#[test]
fn nothing_of_a_project_is_installed_before_its_trust() {
    let home = home(&MockServer::start([]));
    home.write(".pi/settings.json", r#"{"packages": ["npm:tools"]}"#);
    let look = |args: &[&str]| {
        let mut daemon = Daemon::start(&home, &[&["--no-session"], args].concat());
        names(&daemon.done(json!({"type": "get_commands"}))).len()
    };
    assert_eq!((look(&[]), calls(&home).len()), (0, 0));
    assert!(!home.project().join(".pi/npm").exists());
    assert_eq!(look(&["--approve"]), 2);
    assert!(home.project().join(".pi/npm/node_modules/tools").exists());
    assert!(!home.agent_dir().join("npm").exists());
}

#[test]
fn a_flag_brings_a_package_for_one_session() {
    let home = home(&MockServer::start([]));
    write_package(&home, "project/mine");
    let mut daemon = Daemon::start(&home, &["--no-session", "-e", "./mine", "--no-skills"]);
    let commands = daemon.done(json!({"type": "get_commands"}));
    assert_eq!(names(&commands), ["hello", "skill:dig"]);
    let of = |at: usize| commands["commands"][at]["sourceInfo"].clone();
    assert_eq!(
        (&of(0)["source"], &of(0)["origin"], &of(0)["scope"]),
        (&json!("./mine"), &json!("package"), &json!("temporary"))
    );
    assert_eq!(
        (&of(1)["source"], &of(1)["origin"], &of(1)["scope"]),
        (&json!("cli"), &json!("top-level"), &json!("temporary"))
    );
}

#[test]
fn the_doctor_names_what_is_missing() {
    let home = home(&MockServer::start([]));
    let doctor = |home: &Home| -> Finished { ctl::run(home, &["doctor"]) };
    assert!(!doctor(&home).stdout.contains("packages:"));
    home.settings(&json!({"packages": ["npm:gone", "./nowhere"], "extensionHost": {"node": "no-such-node"}}));
    let said = doctor(&home);
    assert_says(
        &said.stdout,
        &[
            "packages: 2 packages",
            "warn packages: npm:gone is not installed",
            "agentctl install npm:gone",
            "warn extensions: ",
            "the package \"./nowhere\" is not there",
        ],
    );
    assert!(!said.stdout.contains("Node.js"), "{}", said.stdout);
    home.write_agent("extensions/mine.ts", "export default function () {}\n");
    assert_says(
        &doctor(&home).stdout,
        &[
            "extensions: 1 extension",
            "warn Node.js: extensions need it: no-such-node is not there",
            "extensionHost.node",
        ],
    );
    for (version, status) in
        [("v18.20.4", "warn Node.js"), ("v22.19.0", "ok   Node.js: 22.19.0"), ("hello", "warn Node.js")]
    {
        let node = home.root().join("node");
        fs::write(&node, format!("#!/bin/sh\necho {version}\n")).expect("a script");
        fs::set_permissions(&node, fs::Permissions::from_mode(0o755)).expect("its mode");
        home.settings(&json!({"extensionHost": {"node": node}}));
        assert_says(&doctor(&home).stdout, &[status]);
    }
}

/// The first example of docs/packages.md works unchanged.
#[test]
fn the_example_of_the_documentation_runs() {
    let page = fs::read_to_string(binaries::workspace().join("docs/packages.md")).expect("the page");
    let (_, rest) = page.split_once("```sh\n").expect("an example");
    let script = rest.split_once("\n```").expect("its end").0;
    let home = Home::new();
    let folder = binaries::agentctl().parent().expect("a folder").display().to_string();
    let path = format!("{folder}:{}", std::env::var("PATH").unwrap_or_default());
    let done =
        home.command("/bin/sh").args(["-e", "-c", script]).env("PATH", path).output().expect("a shell");
    assert!(done.status.success(), "{done:?}");
    let said = String::from_utf8_lossy(&done.stdout);
    assert_says(&said, &["Installed ./my-package, added to", "User packages:", "Removed ./my-package from"]);
}
