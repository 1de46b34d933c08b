//! Logins with accounts, through the real programs and a provider of the test; the models of an account of GitHub Copilot.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    os::unix::fs::PermissionsExt,
    thread,
    time::{SystemTime, UNIX_EPOCH},
};

use agentd_e2e::{Daemon, Home, MockServer, Reply, apis::ProviderApi, ctl, sse};
use serde_json::{Value, json};

use crate::support::{answers, assert_says, complaint, text};

/// A home whose provider `p` has its models and tokens at `server`.
fn home_of(server: &MockServer) -> Home {
    let home = Home::new();
    let url = server.base_url();
    home.configure(
        &json!({"providers": {"p": {"baseUrl": url, "api": "openai-completions", "models": [{"id": "m"}],
        "oauth": {"clientId": "mine", "authorizeUrl": "https://auth.invalid/authorize",
            "tokenUrl": format!("{url}/token"), "deviceUrl": format!("{url}/device")}}}}),
    );
    home
}

fn json_reply(status: u16, body: &Value) -> Reply {
    Reply::status(status, "application/json", body.to_string())
}

fn tokens(access: &str) -> Reply {
    json_reply(200, &json!({"access_token": access, "refresh_token": "hush-r2", "expires_in": 3600}))
}

/// Stores a login that expires in so many seconds.
fn login_ending_in(home: &Home, seconds: i64) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64;
    let entry = json!({"type": "oauth", "access": "hush-1", "refresh": "hush-r1", "expires": now + seconds * 1000, "x": 1});
    home.write_agent("auth.json", &json!({ "p": entry }).to_string());
}

fn stored(home: &Home) -> Value {
    serde_json::from_str(&fs::read_to_string(home.agent_dir().join("auth.json")).unwrap()).unwrap()
}

fn bearers(server: &MockServer) -> Vec<String> {
    let requests = server.requests();
    let of_model = requests.iter().filter(|request| request.target.contains("chat/completions"));
    of_model.map(|request| request.header("authorization").unwrap().to_owned()).collect()
}

/// Requests an address as a browser does.
pub(crate) fn visit(url: &str) -> String {
    let rest = url.strip_prefix("http://127.0.0.1:").unwrap();
    let (port, target) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(("127.0.0.1", port.parse().unwrap())).unwrap();
    stream.write_all(format!("GET /{target} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

pub(crate) fn member(url: &str, name: &str) -> String {
    let found = url.split(['?', '&']).find_map(|pair| pair.strip_prefix(&format!("{name}=")));
    found.unwrap().to_owned()
}

#[test]
fn a_token_that_is_refused_in_mid_run_is_renewed_and_the_turn_goes_on() {
    let refused = || json_reply(401, &json!({"error": {"message": "expired"}}));
    let server = MockServer::start([
        refused(),
        tokens("hush-2"),
        Reply::stream(ProviderApi::Chat.answer("Hello.")),
        // From the next prompt on, everything is refused.
        refused(),
        tokens("hush-3"),
        refused(),
    ]);
    let home = home_of(&server);
    login_ending_in(&home, 3600);
    let mut daemon = Daemon::start(&home, &["--model", "p/m"]);
    let events = daemon.prompt("Hi");
    let text = Value::from(events).to_string();
    assert!(
        text.contains("Hello.") && !text.contains("errorMessage") && !text.contains("auto_retry"),
        "{text}"
    );
    assert_eq!(bearers(&server), ["Bearer hush-1", "Bearer hush-2"]);
    let entry = stored(&home)["p"].clone();
    assert_eq!(
        (&entry["access"], &entry["refresh"], &entry["x"]),
        (&json!("hush-2"), &json!("hush-r2"), &json!(1))
    );

    let text = Value::from(daemon.prompt("And now?")).to_string();
    assert_says(&text, &["401", "refused again", "agentctl login p"]);
    assert!(!text.contains("hush"), "{text}");
    assert_eq!(server.requests().len(), 6, "one renewal, and no retries of what is refused");
}

#[test]
fn programs_whose_login_ends_together_renew_it_once() {
    let server = MockServer::start([]);
    let home = home_of(&server);
    login_ending_in(&home, 10);
    server.push(tokens("hush-2"));
    for _ in 0..3 {
        server.push(Reply::stream(ProviderApi::Chat.answer("Hello.")));
    }
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let done = ctl::run(&home, &["prompt", "--model", "p/m", "Hi"]);
                assert_eq!((done.code, done.stdout.as_str()), (0, "Hello.\n"), "{done:?}");
            });
        }
    });
    let renewals = server.requests().iter().filter(|request| request.target.ends_with("/token")).count();
    assert_eq!(renewals, 1);
    assert_eq!(bearers(&server), ["Bearer hush-2"; 3]);
    let file = home.agent_dir().join("auth.json");
    assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_client_of_the_protocol_shows_a_login_and_finishes_it() {
    let server = MockServer::start([tokens("hush-a")]);
    let home = home_of(&server);
    let mut daemon = Daemon::start(&home, &[]);
    let started = daemon.done(json!({"type": "login_start", "provider": "p"}));
    assert_eq!(started["flow"], json!("browser"), "{started}");
    let url = started["url"].as_str().unwrap();
    assert!(url.starts_with("https://auth.invalid/authorize?response_type=code&client_id=mine&"), "{url}");
    daemon.send(&json!({"id": "f", "type": "login_finish", "loginId": started["loginId"]}));
    // The client can send other commands meanwhile.
    daemon.done(json!({"type": "get_state"}));
    let refused =
        daemon.refused(json!({"type": "login_finish", "loginId": started["loginId"], "code": "hush#no"}));
    assert_says(&refused.to_string(), &["what was pasted is of no use"]);
    let redirect = started["redirectUri"].as_str().unwrap();
    let page = visit(&format!("{redirect}?code=c&state={}", member(url, "state")));
    assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    let done = daemon.until("the login", |line| line["id"] == "f");
    assert_eq!(
        (&done["success"], &done["data"]["provider"], &done["data"]["models"]),
        (&json!(true), &json!("p"), &json!(1))
    );
    assert_eq!(stored(&home)["p"]["access"], json!("hush-a"));
    assert!(!done.to_string().contains("hush"), "{done}");

    let other = daemon.done(json!({"type": "login_start", "provider": "p"}));
    let cancel = json!({"type": "login_cancel", "loginId": other["loginId"]});
    assert_eq!(daemon.done(cancel.clone())["cancelled"], json!(true));
    assert_eq!(daemon.done(cancel)["cancelled"], json!(false));
    let refused = daemon.refused(json!({"type": "login_start", "provider": "xai"}));
    assert_says(
        &refused.to_string(),
        &["needs a client id", "uses no other program's", "clientId", "agentctl login xai"],
    );
    let refused = daemon.refused(json!({"type": "login_start", "provider": "opnai"}));
    assert_says(&refused.to_string(), &["Unknown provider \\\"opnai\\\". Did you mean \\\"openai\\\"?"]);
}

#[test]
fn agentctl_logs_in_by_a_code_for_another_device() {
    let device = json!({"device_code": "hush-d", "user_code": "ABCD-EFGH", "interval": 1,
        "verification_uri": "https://auth.invalid/device", "expires_in": 300});
    let server = MockServer::start([json_reply(200, &device), tokens("hush-a")]);
    let home = home_of(&server);
    let done = ctl::run(&home, &["login", "p", "--device", "--no-browser"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_says(
        &done.stderr,
        &["enter the code ABCD-EFGH", "https://auth.invalid/device", "Ctrl-C to give up"],
    );
    assert_says(
        &done.stdout,
        &["Logged in to p; the login is stored in ", "auth.json", "agentctl models 'p/*'"],
    );
    assert!(!format!("{done:?}").contains("hush"), "{done:?}");
    let done = ctl::run(&home, &["auth", "status"]);
    assert_says(&done.stdout, &["p  stored in auth.json: login (expires in 59 min)"]);
    assert_eq!(ctl::run(&home, &["logout", "p"]).code, 0);
    assert_eq!(stored(&home), json!({}));
}

#[test]
fn ctrl_c_leaves_nothing_of_a_login() {
    let server = MockServer::start([]);
    let home = home_of(&server);
    let mut login = ctl::Ctl::start(&home, &["login", "p", "--no-browser"]);
    login.wait_for_stderr("Ctrl-C to give up");
    login.signal(rustix::process::Signal::INT);
    let done = login.finish();
    assert_eq!((done.code, done.stdout.as_str()), (130, ""), "{done:?}");
    assert!(!home.agent_dir().join("auth.json").exists());
    let redirect =
        done.stderr.lines().find_map(|line| line.trim().strip_prefix("https://auth.invalid/")).unwrap();
    let port: u16 = member(redirect, "redirect_uri")
        .split("%3A")
        .nth(2)
        .unwrap()
        .split("%2F")
        .next()
        .unwrap()
        .parse()
        .unwrap();
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
}

/// A home with a login whose account has the models `ids`; `None` if they are unknown.
fn home(server: &MockServer, ids: Option<&[&str]>) -> Home {
    let home = Home::new();
    let model = |id: &str| json!({"id": id, "api": "openai-completions"});
    home.configure(&json!({"providers": {"github-copilot": {"baseUrl": server.base_url(),
        "models": [model("test-one"), model("test-two")]}}}));
    let mut login =
        json!({"type": "oauth", "access": "tid=1", "refresh": "ghu_1", "expires": 9_000_000_000_000_u64});
    if let Some(ids) = ids {
        login["availableModelIds"] = json!(ids);
    }
    home.write_agent("auth.json", &json!({"github-copilot": login}).to_string());
    home
}

fn ids(models: &Value) -> Vec<&str> {
    models.as_array().unwrap().iter().filter_map(|model| model["id"].as_str()).collect()
}

#[test]
fn only_copilot_models_of_the_plan_are_offered() {
    let server = MockServer::always(Reply::stream(sse::answer("Hello.")));
    let home = home(&server, Some(&["test-one", "of-tomorrow"]));
    let mut daemon = Daemon::start(&home, &[]);
    let offered = daemon.done(json!({"type": "get_available_models"}));
    assert_eq!(ids(&offered["models"]), ["test-one"]);
    assert_eq!(daemon.done(json!({"type": "get_state"}))["model"]["id"], "test-one");
    let refused =
        daemon.refused(json!({"type": "set_model", "provider": "github-copilot", "modelId": "test-two"}));
    assert_eq!(refused["code"], "no_model");
    let why = "Model \"github-copilot/test-two\" is not in the plan of the github-copilot account, which has test-one, of-tomorrow.";
    assert_says(&complaint(&refused), &[why, "agentctl login github-copilot --force"]);
    assert_eq!(text(answers(&daemon.prompt("Hi"))[0]), "Hello.");

    let listed = ctl::run(&home, &["models"]);
    assert!(listed.stdout.contains("test-one") && !listed.stdout.contains("test-two"), "{listed:?}");
    let listed = ctl::run(&home, &["models", "github-copilot/*"]);
    assert!(listed.stdout.contains("test-one") && !listed.stdout.contains("test-two"), "{listed:?}");
    let done = ctl::run(&home, &["prompt", "--private", "--model", "github-copilot/test-two", "Hi"]);
    assert_eq!(done.code, 1, "{done:?}");
    assert_says(&done.stderr, &[why]);
    let done = ctl::run(&home, &["prompt", "--private", "--model", "github-copilot/of-tomorrow", "Hi"]);
    assert_eq!((done.code, done.stdout.as_str()), (0, "Hello.\n"), "the provider knows it: {done:?}");
}

#[test]
fn a_plan_that_changes_counts_at_once_and_an_unknown_one_is_no_limit() {
    let server = MockServer::always(Reply::stream(sse::answer("Hello.")));
    let home = home(&server, None);
    let mut daemon = Daemon::start(&home, &[]);
    let offered = daemon.done(json!({"type": "get_available_models"}));
    let all = ids(&offered["models"]);
    assert!(all.contains(&"test-one") && all.contains(&"test-two"), "{all:?}");
    let file = home.agent_dir().join("auth.json");
    let mut auth: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    auth["github-copilot"]["availableModelIds"] = json!(["test-two"]);
    fs::write(&file, auth.to_string()).unwrap();
    let offered = daemon.done(json!({"type": "get_available_models"}));
    assert_eq!(ids(&offered["models"]), ["test-two"]);
}
