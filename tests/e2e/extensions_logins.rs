//! Logins with providers of extensions.

use std::{fs, os::unix::fs::PermissionsExt};

use agentd_e2e::{Daemon, Home, MockServer, binaries, ctl, ctl::Terminal};
use serde_json::{Value, json};

use crate::{
    extensions::{extension, told},
    support::{assert_says, complaint},
};

const URL: &str = "https://login.invalid/authorize?state=s";

/// A provider that wants a login, with a model that costs and one that only some accounts have.
fn provider() -> Value {
    let model = |id: &str| {
        json!({
            "id": id, "name": id, "reasoning": false, "input": ["text"], "contextWindow": 1000, "maxTokens": 100,
            "cost": {"input": 1, "output": 2, "cacheRead": 0, "cacheWrite": 0}, "headers": {"x-team": "blue"},
        })
    };
    json!({"kind": "provider", "name": "own", "config": {
        "name": "Own", "api": "openai-completions", "baseUrl": "http://127.0.0.1:1", "models": [model("m"), model("n")],
        "oauth": {
            "name": "Own", "login": {"cb": 6}, "refreshToken": {"cb": 7}, "getApiKey": {"cb": 8}, "modifyModels": {"cb": 9},
        },
    }})
}

fn ask(kind: &str, fields: Value) -> Value {
    let mut params = json!({"call": "within", "kind": kind});
    params.as_object_mut().expect("fields").extend(fields.as_object().cloned().expect("fields"));
    json!(["oauth.prompt", params])
}

/// A home whose extension does this when somebody logs in.
fn home_with(login: Value) -> Home {
    let home = Home::with_model(&MockServer::start([]));
    let modified = json!([{
        "id": "m", "name": "Mine", "api": "openai-completions", "baseUrl": "http://127.0.0.1:2", "provider": "own",
        "reasoning": false, "input": ["text"], "contextWindow": 2000, "maxTokens": 100,
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
    }]);
    let script = json!({
        "registers": [provider()],
        "oauth": {"login": login, "apiKey": {"value": "hush-key"}, "modifyModels": {"value": modified}},
    });
    extension(&home, "test", &script);
    home
}

fn credential() -> Value {
    json!({"access": "hush-access", "refresh": "hush-refresh", "expires": 4_102_444_800_000_i64, "team": {"id": 7}})
}

/// The login that asks for everything that one can ask for, in turn.
fn whole() -> Value {
    json!({
        "calls": [
            ask("auth", json!({"url": URL, "instructions": "Allow it."})),
            ask("progress", json!({"message": "Half of it."})),
            ask("select", json!({"message": "Which team?", "options": [
                {"id": "b", "label": "Blue"}, {"id": "r", "label": "Red"},
            ]})),
            ask("prompt", json!({"message": "The code?", "placeholder": "AB-12"})),
        ],
        "takes_answer": "access", "obeys": true,
        "value": credential(),
    })
}

fn available(daemon: &mut Daemon) -> Vec<Value> {
    let models = daemon.done(json!({"type": "get_available_models"}))["models"].take();
    models.as_array().expect("models").iter().filter(|model| model["provider"] == "own").cloned().collect()
}

fn stored(home: &Home) -> Value {
    let text = fs::read_to_string(home.agent_dir().join("auth.json")).unwrap_or_else(|_| "{}".to_owned());
    serde_json::from_str(&text).expect("JSON")
}

fn begin(daemon: &mut Daemon) -> Value {
    let started = daemon.done(json!({"type": "login_start", "provider": "own"}));
    daemon.send(&json!({"id": "f", "type": "login_finish", "loginId": started["loginId"]}));
    started
}

/// Waits for a dialog and answers it.
fn answer(daemon: &mut Daemon, method: &str, answer: &Value) -> Value {
    let asked =
        daemon.until(method, |line| line["type"] == "extension_ui_request" && line["method"] == method);
    let mut response = json!({"type": "extension_ui_response", "id": asked["id"]});
    response.as_object_mut().expect("fields").extend(answer.as_object().cloned().expect("fields"));
    daemon.send(&response);
    asked
}

fn end(daemon: &mut Daemon) -> Value {
    daemon.until("the end of the login", |line| line["id"] == "f")
}

#[test]
fn an_extension_logs_in_and_its_models_are_there() {
    let home = home_with(whole());
    let mut daemon = Daemon::start(&home, &["--stdio"]);
    assert_eq!(available(&mut daemon), [] as [Value; 0]);
    let started = begin(&mut daemon);
    assert_eq!(
        (&started["url"], &started["instructions"], &started["flow"], &started["expiresInSeconds"]),
        (&json!(URL), &json!("Allow it."), &Value::Null, &Value::Null)
    );
    let told_of = daemon.until("progress", |line| line["type"] == "login_update");
    assert_eq!(
        (&told_of["loginId"], &told_of["provider"], &told_of["message"]),
        (&started["loginId"], &json!("own"), &json!("Half of it."))
    );
    let select = answer(&mut daemon, "select", &json!({"value": "Red"}));
    assert_eq!((&select["title"], &select["options"]), (&json!("Which team?"), &json!(["Blue", "Red"])));
    let input = answer(&mut daemon, "input", &json!({"value": "hush-typed"}));
    assert_eq!((&input["title"], &input["placeholder"]), (&json!("The code?"), &json!("AB-12")));
    let done = end(&mut daemon);
    assert_eq!(
        (&done["success"], &done["data"]["provider"], &done["data"]["models"], &done["data"]["replaced"]),
        (&json!(true), &json!("own"), &json!(1), &json!(false)),
        "{done}"
    );
    assert!(!done.to_string().contains("hush"), "{done}");
    let answers: Vec<Value> = told(&home, "result").iter().map(|result| result["value"].clone()).collect();
    assert!(answers.contains(&json!("r")), "the id of the option, not its label: {answers:?}");

    let mut expected = credential();
    expected["access"] = "hush-typed".into();
    expected["type"] = "oauth".into();
    assert_eq!(stored(&home)["own"], expected);
    let mode = fs::metadata(home.agent_dir().join("auth.json")).expect("the file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    // `modifyModels` has left one of two, at another address.
    let models = available(&mut daemon);
    assert_eq!(models.len(), 1, "{models:?}");
    assert_eq!((&models[0]["id"], &models[0]["name"]), (&json!("m"), &json!("Mine")));
    let steps = told(&home, "provider.oauth");
    let modify = steps.iter().find(|step| step["step"] == "modifyModels").expect("the step");
    assert_eq!((&modify["cb"], &modify["credential"]), (&json!(9), &expected));
    let ids: Vec<&Value> = modify["models"].as_array().expect("models").iter().map(|it| &it["id"]).collect();
    assert_eq!(ids, ["m", "n"]);
    assert_eq!(modify["models"][0]["baseUrl"], "http://127.0.0.1:1");
    daemon.done(json!({"type": "set_model", "provider": "own", "modelId": "m"}));

    // Another session has them from its beginning.
    assert!(daemon.close().status.success());
    let mut daemon = Daemon::start(&home, &["--stdio", "--model", "own/m"]);
    assert_eq!(available(&mut daemon).len(), 1);
    daemon.done(json!({"type": "logout", "provider": "own"}));
    assert_eq!(available(&mut daemon), [] as [Value; 0]);
    assert_eq!(stored(&home), json!({}));
    for file in home.session_files() {
        assert!(!fs::read_to_string(&file).expect("a session").contains("hush"));
    }
}

#[test]
fn a_login_ends_when_it_is_cancelled_aborted_or_refused() {
    let waits =
        json!({"calls": [ask("auth", json!({"url": URL}))], "until_cancelled": true, "throw": "late"});
    let home = home_with(waits);
    let mut daemon = Daemon::start(&home, &["--stdio"]);
    let started = begin(&mut daemon);
    let cancelled = daemon.done(json!({"type": "login_cancel", "loginId": started["loginId"]}));
    assert_eq!(cancelled["cancelled"], true);
    let failed = end(&mut daemon);
    assert_says(&complaint(&failed), &["Nothing was stored: the login was cancelled."]);

    begin(&mut daemon);
    daemon.done(json!({"type": "abort"}));
    assert_says(&complaint(&end(&mut daemon)), &["Nothing was stored: the login was aborted."]);

    let first = begin(&mut daemon);
    let second = daemon.done(json!({"type": "login_start", "provider": "own"}));
    assert_ne!(first["loginId"], second["loginId"]);
    assert_says(&complaint(&end(&mut daemon)), &["the login was cancelled"]);
    daemon.done(json!({"type": "login_cancel", "loginId": second["loginId"]}));
    // The extension heard of each.
    let begun = told(&home, "provider.oauth").len();
    daemon.done(json!({"type": "get_state"}));
    assert_eq!(begun, 4);
    assert!(told(&home, "cancel").len() >= 3);
    assert_eq!(stored(&home), json!({}));
}

#[test]
fn what_an_extension_says_of_its_failure_is_told_without_secrets() {
    let asks = json!({
        "calls": [ask("prompt", json!({"message": "The code?"}))],
        "throw": "No account for hush-typed-4711-code.",
    });
    let home = home_with(asks);
    let mut daemon = Daemon::start(&home, &["--stdio"]);
    let started = begin(&mut daemon);
    assert_eq!(started["url"], Value::Null);
    answer(&mut daemon, "input", &json!({"value": "hush-typed-4711-code"}));
    let failed = end(&mut daemon);
    assert_says(&complaint(&failed), &["Nothing was stored: No account for [redacted]."]);
    assert!(!failed.to_string().contains("hush"), "{failed}");

    // A question that is closed is an exception in the extension, which ends its login.
    let closed = json!({"calls": [ask("prompt", json!({"message": "The code?"}))], "obeys": true, "value": credential()});
    let home = home_with(closed);
    let mut daemon = Daemon::start(&home, &["--stdio"]);
    begin(&mut daemon);
    answer(&mut daemon, "input", &json!({"cancelled": true}));
    assert_says(&complaint(&end(&mut daemon)), &["Nothing was stored: Login cancelled."]);
    assert_eq!(stored(&home), json!({}));

    // What is no login is not stored.
    let home = home_with(json!({"value": {"token": "hush"}}));
    let mut daemon = Daemon::start(&home, &["--stdio"]);
    begin(&mut daemon);
    let failed = end(&mut daemon);
    assert_says(&complaint(&failed), &["what the login gave cannot be used"]);
    assert_eq!(stored(&home), json!({}));
}

#[test]
fn a_login_ends_with_its_host() {
    let home = home_with(json!({"calls": [ask("auth", json!({"url": URL}))], "crash": 3}));
    let mut daemon = Daemon::start(&home, &["--stdio"]);
    begin(&mut daemon);
    let failed = end(&mut daemon);
    assert_says(&complaint(&failed), &["Nothing was stored: ", "xtension host", "\"login\""]);
    assert_eq!(failed["success"], false);
    assert_eq!(stored(&home), json!({}));
}

#[test]
fn only_addresses_of_the_web_are_told() {
    let odd = json!({"calls": [ask("auth", json!({"url": "file:///etc/passwd"}))], "obeys": true, "value": credential()});
    let home = home_with(odd);
    let mut daemon = Daemon::start(&home, &["--stdio"]);
    let started = begin(&mut daemon);
    assert_eq!(started["url"], Value::Null);
    assert_says(&complaint(&end(&mut daemon)), &["neither http nor https"]);
}

#[test]
fn a_stored_key_is_replaced_on_request_only_and_unknown_names_are_told() {
    let home = home_with(json!({"value": credential()}));
    home.write_agent("auth.json", &json!({"own": {"type": "api_key", "key": "sk-hush"}}).to_string());
    let mut daemon = Daemon::start(&home, &["--stdio"]);
    let refused = daemon.refused(json!({"type": "login_start", "provider": "own"}));
    assert_says(&complaint(&refused), &["holds a key for own", "--force"]);
    let started = daemon.done(json!({"type": "login_start", "provider": "own", "force": true}));
    let done = daemon.done(json!({"type": "login_finish", "loginId": started["loginId"]}));
    assert_eq!(done["replaced"], true);
    assert_eq!(stored(&home)["own"]["access"], "hush-access");
    let refused = daemon.refused(json!({"type": "login_start", "provider": "nobody"}));
    assert_says(&complaint(&refused), &["Unknown provider \"nobody\"", "Extensions log in to: own."]);
}

#[test]
fn agentctl_logs_in_and_out() {
    let home = home_with(whole());
    let done = ctl::run_with_input(&home, &["login", "own", "--no-browser"], "2\nhush-typed\n");
    assert_eq!(done.code, 0, "{done:?}");
    assert_says(&done.stdout, &["Logged in to own", "auth.json", "agentctl models"]);
    assert_says(
        &done.stderr,
        &[URL, "Allow it.", "Half of it.", "? Which team?", "2. Red", "? The code?", "AB-12"],
    );
    assert_eq!(stored(&home)["own"]["access"], "hush-typed");
    assert!(!format!("{}{}", done.stdout, done.stderr).contains("hush"), "{done:?}");
    let done = ctl::run(&home, &["logout", "own"]);
    assert_eq!((done.code, stored(&home)), (0, json!({})), "{done:?}");

    // Where nothing more can be typed, that is a no.
    let done = ctl::run_with_input(&home, &["login", "own", "--no-browser"], "");
    assert_eq!(done.code, 1, "{done:?}");
    assert_says(&done.stderr, &["The input has ended", "Nothing was stored"]);
    let done = ctl::run(&home, &["login", "nobody", "--oauth"]);
    assert_eq!(done.code, 1, "{done:?}");
    assert_says(&done.stderr, &["Unknown provider \"nobody\"", "Extensions log in to: own."]);
    assert_eq!(stored(&home), json!({}));
}

#[test]
fn agentctl_asks_at_a_terminal_what_the_extension_asks() {
    let home = home_with(whole());
    let mut terminal = Terminal::start(&home, &binaries::agentctl(), &["login", "own"]);
    terminal.wait_for("Type a number from 1 to 2");
    terminal.press_until("1\r", "? The code?");
    terminal.wait_for("an empty line for no answer");
    terminal.press_until("typed-code\r", "Logged in to own");
    assert_eq!(terminal.wait_for_end(), 0);
    assert_eq!(stored(&home)["own"]["access"], "typed-code");
}
