//! What the programs get that a session starts.

use std::{collections::BTreeSet, fs, path::Path};

use agentd_e2e::{Daemon, Home, MockServer, Reply, Service, sse};
use serde_json::{Value, json};

/// The names that a part of the page lists, between its marker and the next one.
fn documented(part: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/security.md");
    let page = fs::read_to_string(path).unwrap();
    let (_, rest) = page.split_once(&format!("<!-- {part}: checked by a test -->")).expect(part);
    let (list, _) = rest.split_once("<!-- end -->").unwrap();
    list.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// What a user has beside keys.
const OF_USERS: [&str; 6] =
    ["DATABASE_URL", "GOOGLE_API_TOKEN_OF_MINE", "HTTPS_PROXY", "KUBECONFIG", "PI_OFFLINE", "SSH_AUTH_SOCK"];

/// What agentd sets for every command.
const OF_AGENTD: [&str; 4] = ["AGENTD_OWNER", "AI_AGENT", "PATH", "PI_CODING_AGENT"];

/// What agentd sets for commands of a model, in a session with a file.
const OF_SESSION: [&str; 5] =
    ["PI_MODEL", "PI_PROVIDER", "PI_REASONING_LEVEL", "PI_SESSION_FILE", "PI_SESSION_ID"];

/// What each home of a test has, and every shell makes.
const OF_TESTS: [&str; 7] = ["AGENTD_DIR", "HOME", "LANG", "PWD", "OLDPWD", "SHLVL", "TMPDIR"];

/// The names in `NAME=value` lines that end with NUL or LF.
fn names(output: &str) -> BTreeSet<String> {
    output
        .split(['\0', '\n'])
        .filter_map(|line| line.split_once('='))
        .map(|(name, _)| name.to_owned())
        .collect()
}

/// What a daemon has that was started with every variable that is spoken of.
struct Everything {
    withheld: Vec<String>,
    passed: Vec<String>,
}

impl Everything {
    fn documented() -> Self {
        Self { withheld: documented("withheld"), passed: documented("passed") }
    }

    fn variables(&self) -> impl Iterator<Item = (String, String)> {
        let fixed = ["WORK_KEY", "HEADER_TOKEN", "STORED_NAME", "AGENTD_RECORDING_OF_MINE"];
        let all = self.withheld.iter().chain(&self.passed).cloned();
        let all = all.chain(fixed.into_iter().chain(OF_USERS).map(str::to_owned));
        // The home of the test stays one.
        all.filter(|name| !OF_TESTS.contains(&name.as_str()) && !name.contains('*')).map(|name| {
            let value = format!("value-of-{name}");
            (name, value)
        })
    }
}

fn home(server: &MockServer) -> Home {
    let home = Home::new();
    let provider = json!({"baseUrl": server.base_url(), "api": "openai-completions", "apiKey": "k-$WORK_KEY",
        "headers": {"x-api-key": "$HEADER_TOKEN", "x-command": "!printf %s \"${OPENAI_API_KEY-none} $KUBECONFIG\"", "x-user": "$DATABASE_URL"},
        "models": [{"id": "fake"}]});
    home.configure(&json!({"providers": {"fake": provider}}));
    home.write_agent("auth.json", r#"{"other": {"type": "api_key", "key": "$STORED_NAME"}}"#);
    home
}

/// Prints the environment of the shell, and those of all that stand between it and the daemon.
const ALL: &str = r#"tr '\0' '\n' </proc/$$/environ; p=$PPID
while [ "$(cat /proc/$p/comm)" != agentd ]; do tr '\0' '\n' </proc/$p/environ; echo; p=$(cut -d' ' -f4 /proc/$p/stat); done"#;

#[test]
fn children_get_what_the_page_says_and_nothing_else() {
    let everything = Everything::documented();
    assert!(everything.withheld.len() > 35, "{:?}", everything.withheld);
    let call = sse::calls(&[("c1", "bash", json!({"command": ALL}))]);
    let server = MockServer::start([Reply::stream(call), Reply::stream(sse::answer("Done."))]);
    let home = home(&server);
    let mut daemon = Daemon::start_with(&home, &["--model", "fake/fake"], |command| {
        command.envs(everything.variables());
    });
    let mut expected: BTreeSet<String> =
        OF_USERS.iter().chain(&OF_AGENTD).chain(&OF_TESTS).map(|name| (*name).to_owned()).collect();
    expected.insert("AGENTD_RECORDING_OF_MINE".to_owned());
    expected
        .extend(everything.variables().map(|(name, _)| name).filter(|name| everything.passed.contains(name)));

    let of_user = daemon.done(json!({"type": "bash", "command": ALL}));
    let seen = names(of_user["output"].as_str().unwrap());
    let more: Vec<&String> = seen.difference(&expected).collect();
    assert!(more.is_empty(), "commands of the user get more than the page says: {more:?}");
    for name in expected.iter().filter(|name| !["OLDPWD", "SHLVL", "PWD"].contains(&name.as_str())) {
        assert!(seen.contains(name), "commands of the user do not get {name}: {seen:?}");
    }

    daemon.prompt("Look.");
    let requests = server.requests();
    let result = requests[1].messages().last().unwrap()["content"].to_string();
    let result: Value = serde_json::from_str(&result).unwrap();
    let text = result.as_str().map_or_else(|| result[0]["text"].as_str().unwrap().to_owned(), str::to_owned);
    let seen = names(&text);
    expected.extend(OF_SESSION.map(str::to_owned));
    let more: Vec<&String> = seen.difference(&expected).collect();
    assert!(more.is_empty(), "commands of a model get more than the page says: {more:?}");
    assert!(!text.contains("value-of-OPENAI_API_KEY") && text.contains("value-of-GITHUB_TOKEN"), "{text}");

    // What a command prints is made of what commands get: whoever can write `models.json` would else read all keys.
    let headers = &server.requests()[0].headers;
    let has = |name: &str, value: &str| headers.iter().any(|(key, is)| key == name && is == value);
    assert!(has("authorization", "Bearer k-value-of-WORK_KEY"), "{headers:?}");
    assert!(has("x-command", "none value-of-KUBECONFIG"), "{headers:?}");
}

#[test]
fn the_user_says_what_else_is_withheld_and_what_is_not() {
    let server = MockServer::start([]);
    let home = home(&server);
    let of = |settings: Value| {
        home.settings(&settings);
        let mut daemon = Daemon::start_with(&home, &["--no-session", "--approve"], |command| {
            command.envs([
                ("OPENAI_API_KEY", "1"),
                ("WORK_KEY", "2"),
                ("KUBECONFIG", "3"),
                ("HF_TOKEN", "4"),
            ]);
        });
        let output = daemon.done(json!({"type": "bash", "command": "env"}))["output"].clone();
        let told = daemon.done(json!({"type": "get_diagnostics"})).to_string();
        let seen = names(output.as_str().unwrap());
        let seen: Vec<&str> = ["HF_TOKEN", "KUBECONFIG", "OPENAI_API_KEY", "WORK_KEY"]
            .into_iter()
            .filter(|name| seen.contains(*name))
            .collect();
        (seen.join(" "), told)
    };
    assert_eq!(of(json!({})).0, "HF_TOKEN KUBECONFIG");
    assert_eq!(
        of(json!({"childEnvironment": {"pass": ["OPENAI_*"]}})).0,
        "HF_TOKEN KUBECONFIG OPENAI_API_KEY"
    );
    assert_eq!(of(json!({"childEnvironment": {"withhold": ["*"], "pass": ["KUBE*"]}})).0, "KUBECONFIG");
    assert_eq!(of(json!({"childEnvironment": {"withhold": ["HF_TOKEN"]}})).0, "KUBECONFIG");
    let (seen, told) = of(json!({"childEnvironment": {"pass": 5, "withhold": ["KUBECONFIG"]}}));
    assert_eq!(seen, "HF_TOKEN");
    assert!(told.contains("\\\"childEnvironment.pass\\\" is ignored"), "{told}");
    // A project, trusted or not, has no say.
    home.write(".agentd/settings.json", r#"{"childEnvironment": {"pass": ["*"]}}"#);
    assert_eq!(of(json!({})).0, "HF_TOKEN KUBECONFIG");
}

/// One key may be needed to get another: the user says which.
#[test]
fn what_prints_keys_gets_what_the_user_passes() {
    let server = MockServer::start([Reply::stream(sse::answer("Done."))]);
    let home = home(&server);
    home.settings(&json!({"childEnvironment": {"pass": ["OPENAI_API_KEY"], "withhold": ["KUBECONFIG"]}}));
    let mut daemon = Daemon::start_with(&home, &["--no-session", "--model", "fake/fake"], |command| {
        let names = ["OPENAI_API_KEY", "KUBECONFIG", "WORK_KEY", "HEADER_TOKEN", "DATABASE_URL"];
        command.envs(names.map(|name| (name, format!("value-of-{name}"))));
    });
    daemon.prompt("Look.");
    assert_eq!(server.requests()[0].header("x-command"), Some("value-of-OPENAI_API_KEY"));
}

/// A session of the common daemon has the environment of whoever opened it, and the daemon's own keys are in none.
#[test]
fn sessions_of_the_common_daemon_get_their_own() {
    let server = MockServer::start([]);
    let home = home(&server);
    let service = Service::start_with(&home, &[], |command| {
        command.env("OPENAI_API_KEY", "of-the-daemon").env("KUBECONFIG", "of-the-daemon");
    });
    let mut client = service.client();
    let env = json!({"PATH": "/usr/bin:/bin", "HOME": "/", "XAI_API_KEY": "mine", "MINE": "1"});
    client.done(json!({"type": "open_session", "cwd": home.project(), "env": env}));
    let output =
        client.done(json!({"type": "bash", "command": "env"}))["output"].as_str().unwrap().to_owned();
    assert!(output.contains("MINE=1\n") && !output.contains("XAI_API_KEY"), "{output}");
    assert!(!output.contains("of-the-daemon"), "{output}");
}
