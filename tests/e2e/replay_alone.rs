//! A recording is all that a replay needs: the models and keys that it was made with may be gone.

use std::{fs, path::Path, process::Stdio};

use agentd_e2e::{
    Ctl, Home, MockServer, Reply,
    ctl::{self, Finished},
    wires::Wire,
};
use serde_json::{Value, json};

use crate::support::assert_says;

fn agentd(home: &Home, args: &[&str]) -> Finished {
    Ctl::start_with(ctl::agentd(home, args), Stdio::null()).finish()
}

/// Records a prompt to a model that is configured in more ways than one.
fn recorded(home: &Home, wire: Wire, folder: &Path) {
    let server = MockServer::start([Reply::stream(wire.answer("Recorded."))]);
    let mut provider = wire.provider(&server);
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
fn a_recording_is_answered_by_its_own_model_on_every_wire() {
    for wire in [Wire::Chat, Wire::Messages, Wire::Responses] {
        let home = Home::new();
        let folder = home.root().join("r");
        recorded(&home, wire, &folder);
        // Nothing, something that cannot be read, and another model are left of the configuration.
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
    recorded(&home, Wire::Chat, &folder);
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

/// As older versions of agentd recorded it.
#[test]
fn a_recording_that_does_not_hold_enough_fails_and_says_what_is_missing() {
    let home = Home::new();
    let folder = home.root().join("r");
    recorded(&home, Wire::Chat, &folder);
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
