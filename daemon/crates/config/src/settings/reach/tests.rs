use std::fs;

use agentd_protocol::settings::Settings;
use serde_json::{Map, Value, json};

use super::{
    super::{load, schema::Schema},
    *,
};
use crate::{AgentDir, Environment};

/// A project that says `file`, as sessions see it.
fn loaded(file: &Value, folder: &str, approve: Option<bool>) -> Value {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("cwd").join(folder).join("settings.json");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, file.to_string()).unwrap();
    let agent_dir = AgentDir::at(place.path().join("agent"));
    let loaded = load(&agent_dir, &place.path().join("cwd"), &Environment::default(), approve);
    serde_json::to_value(loaded.settings).unwrap()
}

/// A value that the types take: the first of these that comes back as it was.
fn sample(keys: &[String]) -> Value {
    let nested = |value: &Value| keys.iter().rev().fold(value.clone(), |value, key| json!({ key: value }));
    let comes_back = |value: &Value| {
        let settings = serde_json::from_value::<Settings>(nested(value));
        settings.is_ok_and(|settings| serde_json::to_value(settings).unwrap() == nested(value))
    };
    let words = [
        "planted",
        "always",
        "all",
        "immediate",
        "high",
        "fsync",
        "resume",
        "fail",
        "sequential",
        "ask",
        "deny",
        "refuse",
        "block",
        "read-only",
        "bwrap",
        "http/json",
        "on",
        "branch",
        "worktree",
        "keep",
        "never",
        "after-gap",
        "accept-new",
        "warm",
        "ai",
    ];
    let mut candidates: Vec<Value> =
        vec![json!(7), json!(7.5), json!(true), json!(["planted"]), json!(["brave"])];
    candidates.extend(words.map(Value::from));
    candidates.extend([
        json!({"planted/model": "high"}),
        json!({"planted/model": {"enabled": false}}),
        json!({"brave": "planted"}),
        json!({}),
        json!([{"tool": "planted", "action": "deny"}]),
    ]);
    let found = candidates.iter().find(|value| comes_back(value));
    nested(found.unwrap_or_else(|| panic!("no value for {keys:?}")))
}

/// For each setting there is, by the schema: what a project can do by it, trusted and not, in either of its folders.
#[test]
fn no_setting_of_a_project_counts_where_it_must_not() {
    let schema = Schema::load();
    let nothing = serde_json::to_value(Settings::default()).unwrap();
    for key in schema.keys() {
        let keys = schema.find(&key).unwrap().keys;
        let reach = reach(&keys[0]).unwrap_or_else(|| {
            panic!(
                "{key} has no row in SETTINGS: may a project say something of it, and what does it decide?"
            )
        });
        let says = sample(&keys);
        for folder in [".agentd", ".pi"] {
            for approve in [None, Some(false)] {
                assert_eq!(loaded(&says, folder, approve), nothing, "{key} of an untrusted project counts");
            }
            let expected = if reach == UserOnly || !counts_from_project(&keys) { &nothing } else { &says };
            assert_eq!(&loaded(&says, folder, Some(true)), expected, "{key} of a trusted project");
        }
    }
}

#[test]
fn every_row_is_there_once_and_for_a_setting() {
    let schema = Schema::load();
    let settings: Vec<String> = schema.keys().into_iter().filter(|key| !key.contains('.')).collect();
    let foreign = ["cacheWarming"];
    for (at, (name, _)) in SETTINGS.iter().enumerate() {
        assert!(!SETTINGS[..at].iter().any(|(before, _)| before == name), "{name} is there twice");
        assert!(settings.iter().any(|key| key == name) || foreign.contains(name), "{name} is no setting");
    }
}

#[test]
fn a_project_cannot_take_the_users_exclusions_back() {
    let object = |value: Value| -> Map<String, Value> { value.as_object().unwrap().clone() };
    let merged = super::super::merge::merge(
        object(json!({"excludeTools": ["bash"], "daemon": {"maxClients": 5}})),
        object(json!({"excludeTools": ["write"], "daemon": {"maxClients": 0}})),
    );
    assert_eq!(
        Value::Object(merged),
        json!({"excludeTools": ["bash", "write"], "daemon": {"maxClients": 5}})
    );
}
