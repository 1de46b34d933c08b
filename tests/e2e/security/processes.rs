//! The environment of a session's commands, and commands that stop (SIGSTOP) their supervisors.

use std::{
    collections::BTreeSet,
    env,
    fs::{self, File},
    io::{Read as _, Write as _},
    path::Path,
};

use agentd_e2e::{
    Conversation, DEADLINE, Daemon, Home, MockServer, Reply, Service,
    conversation::LineTransport,
    ctl,
    processes::{self, Watched},
    sse,
};
use rustix::fs::{MemfdFlags, memfd_create};
use serde_json::{Value, json};

use crate::support::assert_says;

/// The names in a part of docs/security.md, between its marker and the next one.
fn documented(part: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/security.md");
    let page = fs::read_to_string(path).unwrap();
    let (_, rest) = page.split_once(&format!("<!-- {part}: checked by a test -->")).expect(part);
    let (list, _) = rest.split_once("<!-- end -->").unwrap();
    list.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Variables of a user without secrets.
const OF_USERS: [&str; 6] =
    ["DATABASE_URL", "GOOGLE_API_TOKEN_OF_MINE", "HTTPS_PROXY", "KUBECONFIG", "PI_OFFLINE", "SSH_AUTH_SOCK"];

/// Variables that agentd sets for every command.
const OF_AGENTD: [&str; 4] = ["AGENTD_OWNER", "AI_AGENT", "PATH", "PI_CODING_AGENT"];

/// Variables that agentd sets for a model's commands in a session with a file.
const OF_SESSION: [&str; 5] =
    ["PI_MODEL", "PI_PROVIDER", "PI_REASONING_LEVEL", "PI_SESSION_FILE", "PI_SESSION_ID"];

/// Variables of every test home and every shell.
const OF_TESTS: [&str; 7] = ["AGENTD_DIR", "HOME", "LANG", "PWD", "OLDPWD", "SHLVL", "TMPDIR"];

/// The names in `NAME=value` lines that end with NUL or LF.
fn names(output: &str) -> BTreeSet<String> {
    output
        .split(['\0', '\n'])
        .filter_map(|line| line.split_once('='))
        .map(|(name, _)| name.to_owned())
        .collect()
}

/// A daemon that was started with every documented variable.
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
        // The variables of the test's home stay.
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

/// Prints the environment of the shell and of each process between it and the daemon.
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

    // `!command` keys run with the environment of commands: otherwise a writer of `models.json` could read all keys.
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
    // A project's setting has no effect, even if trusted.
    home.write(".agentd/settings.json", r#"{"childEnvironment": {"pass": ["*"]}}"#);
    assert_eq!(of(json!({})).0, "HF_TOKEN KUBECONFIG");
}

/// A key may be needed to get another one: the user passes it.
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

/// A session of the shared daemon has the environment of its client, without the daemon's keys.
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

/// The parent of process `$1`.
const PARENT: &str = "parent() { local stat; stat=$(cat /proc/$1/stat); set -- ${stat##*) }; echo $2; }; ";

/// An attack on the supervisors, and the number of its processes without short-lived children.
type Attack = (&'static str, usize);

/// Stops the command's own supervisor, once.
const ONCE: Attack = ("kill -STOP $PPID; ", 2);

/// Stops it again whenever it is continued.
const ALWAYS: Attack = ("(trap '' TERM; while :; do kill -STOP $PPID; done) & echo pid $!; ", 3);

/// Stops the supervisor and the guard.
const BOTH: Attack = ("g=$(parent $PPID); kill -STOP $PPID; kill -STOP $g; ", 2);

/// Stops both again and again, from a process that left the command's session.
const BOTH_ALWAYS: Attack = (
    "g=$(parent $PPID); s=$PPID; setsid bash -c \"trap '' TERM; echo pid \\$\\$; while :; do kill -STOP $s $g; done\" & ",
    3,
);

/// Kills the guard, and stops the supervisor.
const KILLED: Attack = ("g=$(parent $PPID); kill -KILL $g; kill -STOP $PPID; ", 2);

/// A command that attacks its supervisors, prints its processes, and stays.
fn script((attack, _): Attack) -> String {
    format!(
        "{PARENT}{attack}setsid sleep 1000 > /dev/null 2>&1 & echo pid $!; trap '' TERM; echo pid $$; echo ready; \
         while :; do sleep 1000; done"
    )
}

fn said(output: &str) -> Vec<i32> {
    output.lines().filter_map(|line| line.strip_prefix("pid ")?.parse().ok()).collect()
}

/// Starts the attack, and waits for the ids of its processes.
fn start(client: &mut Conversation<impl LineTransport>, attack: Attack) -> Watched {
    client.send(&json!({"id": "work", "type": "bash", "command": script(attack)}));
    let mut output = String::new();
    while !output.contains("ready") || said(&output).len() < attack.1 {
        output.push_str(client.event("bash_execution_update")["delta"].as_str().expect("output"));
    }
    processes::watch(&said(&output))
}

#[test]
fn a_stopped_supervisor_keeps_no_command_alive() {
    for attack in [ONCE, ALWAYS, BOTH, BOTH_ALWAYS, KILLED] {
        let home = Home::new();
        let mut daemon = Daemon::start(&home, &["--no-session"]);
        let children = start(&mut daemon, attack);
        assert!(children.all_alive(), "{attack:?}");
        daemon.done(json!({"type": "abort_bash"}));
        children.assert_gone_within(DEADLINE);
        // Later commands run normally.
        let done = daemon.done(json!({"type": "bash", "command": "echo well"}));
        assert_eq!(done["output"], "well\n", "{attack:?}");
    }
}

#[test]
fn nothing_outlives_a_daemon_whose_guard_is_stopped() {
    for attack in [ONCE, ALWAYS, BOTH, BOTH_ALWAYS] {
        let home = Home::new();
        let service = Service::start(&home, &[]);
        let mut client = service.client();
        client.done(json!({"type": "open_session", "cwd": home.project(), "ephemeral": true}));
        let children = start(&mut client, attack);
        let guards = processes::watch(&processes::children(service.id()));
        let down = ctl::run(&home, &["down", "--abort"]);
        assert_eq!(down.code, 0, "{attack:?}: {down:?}");
        assert!(service.wait().status.success(), "{attack:?}");
        children.assert_gone_within(DEADLINE);
        guards.assert_gone_within(DEADLINE);
    }
}

/// Run by the next test as a command: holds memory in an unmapped memory file.
#[test]
fn holds_memory_when_it_is_told_to() {
    let Some(bytes) = env::var("AGENTD_TEST_HOLD").ok().and_then(|bytes| bytes.parse::<usize>().ok()) else {
        return;
    };
    let mut file = File::from(memfd_create("held", MemfdFlags::CLOEXEC).unwrap());
    let piece = vec![7; 1 << 20];
    for _ in 0..bytes >> 20 {
        file.write_all(&piece).unwrap();
    }
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

#[test]
fn memory_that_is_only_held_counts() {
    let home = Home::new();
    home.settings(&json!({"processes": {"maxMemoryBytes": 150_000_000}}));
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let program = env::current_exe().unwrap();
    let hold = |bytes: u64| {
        let module = module_path!().split_once("::").expect("the name of the crate").1;
        let test = format!("{module}::holds_memory_when_it_is_told_to");
        format!("sleep 1000 | AGENTD_TEST_HOLD={bytes} {} --exact {test} --nocapture", program.display())
    };
    let held = daemon.done(json!({"type": "bash", "command": hold(400 << 20)}));
    assert_says(held["output"].as_str().unwrap(), &["memory (setting processes.maxMemoryBytes)"]);
    // Shared memory counts once.
    let shared = "exec 3< <(sleep 1); for i in 1 2 3 4 5 6; do sleep 1 & done; wait; echo well";
    assert_eq!(daemon.done(json!({"type": "bash", "command": shared}))["output"], "well\n");
}
