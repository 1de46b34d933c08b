//! Recording provider exchanges and replaying them, also without the models and keys that they were made with.

use std::{fs, path::Path, process::Stdio};

use agentd_e2e::{
    Ctl, Daemon, Home, MockServer, Reply, Service,
    apis::ProviderApi,
    ctl::{self, Finished},
    home::models,
    sse,
};
use serde_json::{Value, json};

use crate::support::{answers, assert_says, text};

/// The same models, without server and key.
fn without_server(home: &Home) {
    let mut models = models("http://127.0.0.1:9/elsewhere/v1");
    models["providers"]["fake"]["apiKey"] = json!("$NO_SUCH_KEY");
    home.configure(&models);
}

fn record_count(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().count()
}

fn texts(events: &[Value]) -> Vec<String> {
    answers(events).into_iter().map(text).collect()
}

#[test]
fn a_recorded_session_plays_back_without_provider_and_key() {
    let server = MockServer::start([
        Reply::stream_in_pieces(
            sse::calls(&[("c1", "bash", json!({"command": "echo hi; env | grep -c ^AGENTD_RE"}))]),
            7,
        ),
        Reply::stream(sse::answer("It said hi.")),
        Reply::status(503, "application/json", r#"{"error":{"message":"overloaded"}}"#),
        Reply::stream(sse::answer("Again.")),
    ]);
    let home = Home::with_model(&server);
    home.settings(&json!({"retry": {"baseDelayMs": 1}}));
    let folder = home.root().join("recordings");
    let flags = ["--record", folder.to_str().unwrap()];
    let mut daemon = Daemon::start(&home, &flags);
    let recorded = [daemon.prompt("Say hi."), daemon.prompt("And now?")];
    daemon.close();
    assert_eq!(record_count(&folder), 4);
    // Variables of the daemon do not reach its commands.
    assert!(
        recorded[0].iter().any(|event| event["type"] == "tool_execution_end"
            && event["result"]["content"][0]["text"].as_str().is_some_and(|text| text.contains("hi\n0"))),
        "{recorded:?}"
    );
    drop(server);
    without_server(&home);
    let mut daemon = Daemon::start(&home, &["--replay", folder.to_str().unwrap()]);
    let played = [daemon.prompt("Say hi."), daemon.prompt("And now?")];
    for (recorded, played) in recorded.iter().zip(&played) {
        assert_eq!(texts(played), texts(recorded));
        // The number of progress events depends on timing.
        let kinds = |events: &[Value]| -> Vec<Value> {
            let kinds = events.iter().map(|event| event["type"].clone());
            kinds.filter(|kind| kind != "tool_execution_update").collect()
        };
        assert_eq!(kinds(played), kinds(recorded));
    }
    let over = daemon.prompt("More?");
    assert_says(&failed(&over), &["recordings", "no more requests"]);
    daemon.close();
    let mut daemon = Daemon::start(&home, &["--replay", folder.to_str().unwrap()]);
    let differs = daemon.prompt("Say hello.");
    assert_says(
        &failed(&differs),
        &["000001-openai-completions-fake.jsonl", "- ", "Say hi.", "+ ", "Say hello."],
    );
}

fn failed(events: &[Value]) -> String {
    answers(events).last().unwrap()["errorMessage"].as_str().unwrap().to_owned()
}

#[test]
fn every_api_is_recorded_and_replayed() {
    for api in [ProviderApi::Chat, ProviderApi::Messages, ProviderApi::Responses] {
        let server = MockServer::start([Reply::stream(api.answer("Recorded."))]);
        let home = Home::new();
        home.configure(&json!({"providers": {"p": api.provider(&server)}}));
        let folder = home.root().join("r");
        let record = ctl::agentd(&home, &["-p", "--no-session", "--record", folder.to_str().unwrap(), "Hi."]);
        let recorded = Ctl::start_with(record, std::process::Stdio::null()).finish();
        assert_eq!((recorded.code, recorded.stdout.as_str()), (0, "Recorded.\n"), "{recorded:?}");
        drop(server);
        let played =
            ctl::run(&home, &["prompt", "--no-session", "--replay", folder.to_str().unwrap(), "Hi."]);
        assert_eq!((played.code, played.stdout.as_str()), (0, "Recorded.\n"), "{played:?}");
    }
}

#[test]
fn what_cannot_be_recorded_or_played_is_said_before_anything_else() {
    let home = Home::new();
    home.write("not.jsonl", "{\"type\":\"session\"}\n");
    let check = |args: &[&str], parts: &[&str]| {
        let refused = Ctl::start_with(ctl::agentd(&home, args), std::process::Stdio::null()).finish();
        assert_eq!(refused.code, 1, "{refused:?}");
        assert_says(&refused.stderr, parts);
    };
    check(&["--stdio", "--replay", "nowhere"], &["--replay", "nowhere"]);
    check(&["-p", "x", "--replay", "not.jsonl"], &["not.jsonl", "line 1"]);
    check(&["--stdio", "--record", "not.jsonl"], &["--record", "not.jsonl"]);
    check(&["--stdio", "--record", "a", "--replay", "b"], &["cannot be combined"]);
    check(&["--stdio", "--shared", "--record", "a"], &["a process of its own"]);
}

#[test]
fn a_slow_provider_is_reported_to_those_who_said_hello() {
    let server = MockServer::start([
        Reply::silence(),
        Reply::stream(sse::answer("Here.")),
        Reply::silence(),
        Reply::stream(sse::answer("Here again.")),
    ]);
    let home = Home::with_model(&server);
    home.settings(&json!({"deadlines": {"firstByteMs": 1_500}, "retry": {"baseDelayMs": 1}}));
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let plain = daemon.prompt("Hello?");
    assert!(plain.iter().all(|event| event["type"] != "provider_stalled"), "{plain:?}");
    daemon.done(json!({"type": "hello", "protocol": 1}));
    let events = daemon.prompt("Hello again?");
    let at = |kind: &str| {
        events.iter().position(|event| event["type"] == kind).unwrap_or_else(|| panic!("{kind}: {events:?}"))
    };
    let mut stalled = events[at("provider_stalled")].clone();
    assert!(stalled["waitedMs"].as_u64().unwrap() >= 1_500, "{stalled}");
    stalled["waitedMs"] = json!(1_500);
    assert_eq!(
        stalled,
        json!({"type": "provider_stalled", "phase": "first_byte", "provider": "fake", "model": "fake",
        "waitedMs": 1_500, "limitMs": 1_500, "action": "retry"})
    );
    assert!(at("provider_stalled") < at("auto_retry_start"));
    let error = events[at("auto_retry_start")]["errorMessage"].as_str().unwrap();
    assert_says(error, &["began no answer within 1.5 s", "deadlines.firstByteMs (1500)"]);
    assert_eq!(texts(&events).last().unwrap(), "Here again.");
}

#[test]
fn the_daemon_of_all_clients_records() {
    let server = MockServer::start([Reply::stream(sse::answer("Shared."))]);
    let home = Home::with_model(&server);
    let folder = home.root().join("r");
    let service = Service::start(&home, &["--record", folder.to_str().unwrap()]);
    let answered = ctl::run(&home, &["prompt", "--no-session", "Hi."]);
    assert_eq!(answered.stdout, "Shared.\n", "{answered:?}");
    assert_eq!(record_count(&folder), 1);
    drop(service);
}

fn agentd(home: &Home, args: &[&str]) -> Finished {
    Ctl::start_with(ctl::agentd(home, args), Stdio::null()).finish()
}

/// Records a prompt to a model that is configured in more than one place.
fn recorded(home: &Home, api: ProviderApi, folder: &Path) {
    let server = MockServer::start([Reply::stream(api.answer("Recorded."))]);
    let mut provider = api.provider(&server);
    provider["models"][0]["maxTokens"] = json!(1234);
    provider["models"][0]["reasoning"] = json!(true);
    provider["models"][0]["samplingParams"] = json!({"temperature": 0.5});
    home.configure(&json!({"providers": {"p": provider}}));
    let done = agentd(home, &["-p", "--no-session", "--record", folder.to_str().unwrap(), "Hi."]);
    assert_eq!((done.code, done.stdout.as_str()), (0, "Recorded.\n"), "{done:?}");
}

fn replay(home: &Home, source: &str) -> [Finished; 2] {
    [
        ctl::run(home, &["prompt", "--no-session", "--replay", source, "Hi."]),
        agentd(home, &["-p", "--no-session", "--replay", source, "Hi."]),
    ]
}

#[test]
fn a_recording_is_answered_by_its_own_model_on_every_api() {
    for api in [ProviderApi::Chat, ProviderApi::Messages, ProviderApi::Responses] {
        let home = Home::new();
        let folder = home.root().join("r");
        recorded(&home, api, &folder);
        // The configuration is then missing, unreadable, or has another model.
        let other = json!({"providers": {"other": {"baseUrl": "http://127.0.0.1:9/v1", "api": "openai-completions",
            "apiKey": "k", "models": [{"id": "m"}]}}});
        for file in ["{}", "{", &other.to_string()] {
            home.write_agent("models.json", file);
            for played in replay(&home, folder.to_str().unwrap()) {
                assert_eq!((played.code, played.stdout.as_str()), (0, "Recorded.\n"), "{file}: {played:?}");
            }
        }
    }
}

#[test]
fn no_secret_is_in_the_definition_of_a_model() {
    let home = Home::new();
    let folder = home.root().join("r");
    recorded(&home, ProviderApi::Chat, &folder);
    let request = first_line(&folder);
    let definition = &request["definition"];
    assert_eq!((&definition["maxTokens"], &definition["id"]), (&json!(1234), &request["model"]), "{request}");
    assert!(definition["baseUrl"] == "" && definition.get("headers").is_none(), "{request}");
}

fn first_line(folder: &Path) -> Value {
    let text = fs::read_to_string(file_of(folder)).unwrap();
    serde_json::from_str(text.lines().next().unwrap()).unwrap()
}

fn file_of(folder: &Path) -> std::path::PathBuf {
    fs::read_dir(folder).unwrap().next().unwrap().unwrap().path()
}

fn change(folder: &Path, change: impl Fn(&mut Value)) {
    let (path, mut request) = (file_of(folder), first_line(folder));
    change(&mut request);
    let text = fs::read_to_string(&path).unwrap();
    let (_, rest) = text.split_once('\n').unwrap();
    fs::write(&path, format!("{request}\n{rest}")).unwrap();
}

/// A recording of an older version of agentd.
#[test]
fn a_recording_that_does_not_hold_enough_fails_and_says_what_is_missing() {
    let home = Home::new();
    let folder = home.root().join("r");
    recorded(&home, ProviderApi::Chat, &folder);
    home.write_agent("models.json", "{}");
    change(&folder, |request| {
        request.as_object_mut().unwrap().remove("definition").unwrap();
    });
    for played in replay(&home, folder.to_str().unwrap()) {
        assert_eq!((played.code, played.stdout.as_str()), (1, ""), "{played:?}");
        assert_says(
            &played.stderr,
            &["does not say how the model p/", "was configured", "--replay-match order"],
        );
    }
    let in_order =
        ["-p", "--no-session", "--replay", folder.to_str().unwrap(), "--replay-match", "order", "Hi."];
    let played = agentd(&home, &in_order);
    assert_eq!((played.code, played.stdout.as_str()), (0, "Recorded.\n"), "{played:?}");
    change(&folder, |request| request["api"] = json!("carrier-pigeon"));
    for played in replay(&home, folder.to_str().unwrap()) {
        assert_eq!((played.code, played.stdout.as_str()), (1, ""), "{played:?}");
        assert_says(&played.stderr, &["--replay: ", "carrier-pigeon", "openai-completions"]);
    }
}
