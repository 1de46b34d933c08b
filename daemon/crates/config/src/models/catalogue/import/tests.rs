use std::{fs, os::unix::fs::PermissionsExt};

use serde_json::json;

use super::*;
use crate::models::SharedModels;

/// A model with other members over these.
fn model(over: Value) -> Value {
    let mut model = json!({"id": "m", "name": "M", "api": "openai-completions", "provider": "p", "baseUrl": "http://h/v1",
        "input": ["text"], "cost": {"input": 1.0, "output": 2}, "contextWindow": 1000, "maxTokens": 100});
    let Value::Object(over) = over else { panic!("{over}") };
    model.as_object_mut().unwrap().extend(over);
    model
}

fn small() -> String {
    json!({"source": "mine", "date": "2027-01-01", "defaults": {"q": "b"}, "names": {"q": "Queue"}, "models": [
        model(json!({})), model(json!({"id": "b", "provider": "q", "reasoning": true, "speed": {"of": 3.0}})),
        model(json!({"id": "c:high", "provider": "q", "api": "morse",
            "headers": {"User-Agent": "other/1", "Editor-Version": "x", "X-Fine": "1"}})),
    ], "otherModels": [{"type": "classifier"}], "more": 1})
    .to_string()
}

/// The built-in catalogue as a document.
fn whole() -> String {
    let builtin = Catalogue::builtin();
    let defaults: Map<String, Value> =
        builtin.defaults().map(|(id, model)| (id.to_owned(), model.into())).collect();
    let models: Vec<Arc<Model>> =
        (0..builtin.providers().len()).flat_map(|place| builtin.models(place).to_vec()).collect();
    let models: Vec<&Model> = models.iter().map(|model| &**model).collect();
    json!({"source": "pi-ai", "defaults": defaults, "models": models}).to_string()
}

fn spoken(api: &str) -> bool {
    api != "morse"
}

#[test]
fn what_is_stored_is_used_until_it_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let agent_dir = AgentDir::at(folder.path());
    let shared = SharedModels::default();
    let before = shared.load(&agent_dir);
    let update = update_catalogue(&agent_dir, &small(), &spoken).unwrap();
    assert_eq!((update.providers, update.models, update.added_models, update.changed_models), (2, 3, 3, 0));
    assert_eq!((update.removed_models, update.other_models), (1643, 1));
    assert_eq!(update.added_providers, ["p", "q"]);
    assert_eq!(update.removed_providers.len(), 42);
    let dropped: Vec<_> =
        update.dropped_headers.iter().map(|header| (header.name.as_str(), header.models)).collect();
    assert_eq!(dropped, [("Editor-Version", 1), ("User-Agent", 1)]);
    assert_eq!(update.not_spoken, [NotSpoken { api: "morse".into(), models: 1 }]);
    let path = agent_dir.catalogue_file();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);

    let after = shared.load(&agent_dir);
    assert!(!Arc::ptr_eq(&before, &after) && Arc::ptr_eq(&after, &shared.load(&agent_dir)));
    assert_eq!(before.providers().count(), 42);
    assert_eq!(after.providers().collect::<Vec<_>>(), ["p", "q"]);
    assert_eq!(after.defaults().collect::<Vec<_>>(), [("q", "b"), ("p", "m")]);
    assert_eq!((&*after.provider("q").unwrap().name, &*after.provider("p").unwrap().name), ("Queue", "p"));
    assert_eq!(
        (&*update.catalogue.to_string(), after.catalogue()),
        (&*after.catalogue().to_string(), &update.catalogue)
    );
    assert!(after.catalogue().to_string().ends_with("Z, of 2027-01-01 (mine)"));
    assert!(after.may_speak("q", &["morse"]) && !after.may_speak("p", &["morse"]));
    assert!(after.may_hold("q", "c:high") && !after.may_hold("p", "c:high") && after.may_have("q", "C:HIGH"));
    assert_eq!(after.unpacked_providers().count(), 0);
    let found = after.find("q", "b").unwrap();
    assert_eq!(after.unpacked_providers().collect::<Vec<_>>(), ["q"]);
    assert_eq!((found.reasoning, &found.other), (true, json!({"speed": {"of": 3}}).as_object().unwrap()));
    assert_eq!(serde_json::to_value(&*found).unwrap()["speed"], json!({"of": 3}));
    let headers = after.find("q", "c:high").unwrap().headers.clone();
    assert_eq!(Value::from(headers.unwrap()), json!({"X-Fine": "1"}));

    let again = update_catalogue(&agent_dir, &small().replace("1000", "2000"), &spoken).unwrap();
    assert_eq!((again.added_models, again.removed_models, again.changed_models), (0, 0, 3));
    assert_eq!(shared.load(&agent_dir).find("p", "m").unwrap().context_window, 2000);
    let reset = reset_catalogue(&agent_dir).unwrap();
    assert_eq!((reset.added_models, reset.removed_models, path.exists()), (1643, 3, false));
    assert_eq!(shared.load(&agent_dir).providers().count(), 42);
    assert_eq!(reset_catalogue(&agent_dir).unwrap().added_models, 0);
}

#[test]
fn models_json_lies_over_it() {
    let folder = tempfile::tempdir().unwrap();
    let agent_dir = AgentDir::at(folder.path());
    update_catalogue(&agent_dir, &small(), &spoken).unwrap();
    let file = json!({"providers": {"p": {"baseUrl": "http://proxy"}, "q": {"models": [{"id": "d"}]},
        "anthropic": {"baseUrl": "http://h", "api": "a", "models": [{"id": "x"}]}}});
    fs::write(agent_dir.models_file(), file.to_string()).unwrap();
    let registry = ModelRegistry::of_agent_dir(&agent_dir);
    assert_eq!(registry.diagnostics().count(), 0);
    assert_eq!(registry.find("p", "m").unwrap().base_url, "http://proxy");
    assert_eq!(registry.find("q", "d").unwrap().api, "openai-completions");
    assert_eq!(registry.models_of("anthropic").count(), 1);
    assert_eq!(registry.providers().collect::<Vec<_>>(), ["p", "q", "anthropic"]);
}

#[test]
fn the_built_in_one_survives_the_way_through_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let agent_dir = AgentDir::at(folder.path());
    let update = update_catalogue(&agent_dir, &whole(), &spoken).unwrap();
    let (builtin, stored) = (Catalogue::builtin(), ModelRegistry::of_agent_dir(&agent_dir).into_catalogue());
    assert_eq!((update.providers, update.models), (42, 1643));
    assert_eq!((update.added_models, update.removed_models, update.changed_models), (0, 0, 0));
    assert!(update.dropped_headers.is_empty());
    assert!(builtin.defaults().eq(stored.defaults()));
    for (place, (ours, theirs)) in builtin.providers().iter().zip(stored.providers()).enumerate() {
        assert_eq!((&ours.id, &ours.name, &ours.apis), (&theirs.id, &theirs.name, &theirs.apis));
        assert_eq!((&ours.ids, ours.unpacked), (&theirs.ids, theirs.unpacked), "{}", ours.id);
        assert_eq!(builtin.models(place), stored.models(place), "{}", ours.id);
    }
}

#[test]
fn faults_are_told_with_place_and_line_and_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let agent_dir = AgentDir::at(folder.path());
    update_catalogue(&agent_dir, &small(), &spoken).unwrap();
    let stored = fs::read(agent_dir.catalogue_file()).unwrap();
    let check = |text: &str, expected: &str| {
        let error = update_catalogue(&agent_dir, text, &spoken).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
        assert_eq!(fs::read(agent_dir.catalogue_file()).unwrap(), stored);
    };
    check("", "line 1: EOF while parsing a value");
    check("{\n\"defaults\": {},\n}", "line 3: trailing comma");
    check("[]", "line 1: invalid");
    check("{\"models\": []}", "missing field `defaults`");
    check("{\"defaults\": {}, \"models\": []}", "line 1: models: there is no model in it");
    check("{\"defaults\": {}, \"models\": []} x", "line 1: trailing characters");
    check("{\"defaults\": {},\n\"models\": 5}", "line 2: models: ");
    check("{\"source\":\n5}", "line 2: source: ");

    let with = |defaults: Value, models: &[Value]| {
        serde_json::to_string_pretty(&json!({"defaults": defaults, "models": models})).unwrap()
    };
    check(
        &with(json!({"zz": "m"}), &[model(json!({}))]),
        "line 3: defaults.zz: no model is of this provider",
    );
    check(
        &with(json!({"p": "n"}), &[model(json!({}))]),
        "line 3: defaults.p: the provider has no model \"n\"",
    );
    check(&with(json!({"p": 5}), &[model(json!({}))]), "defaults.p: expected the id of a model");
    let twice = [model(json!({})), model(json!({}))];
    check(&with(json!({}), &twice), "line 21: models[1].id: p/m is there twice");
    for (over, expected) in [
        (json!({"id": ""}), "models[0].id: expected a text"),
        (json!({"name": null}), "models[0].name: "),
        (json!({"provider": "a/b"}), "models[0].provider: \"a/b\" cannot be the name of a provider"),
        (json!({"provider": "demo"}), "models[0].provider: "),
        (json!({"baseUrl": null}), "models[0].baseUrl: "),
        (json!({"input": []}), "models[0].input: expected a list"),
        (json!({"input": [5]}), "models[0].input[0]: expected a string"),
        (json!({"contextWindow": "many"}), "models[0].contextWindow: expected a number of tokens above 0"),
        (json!({"maxTokens": "many"}), "models[0].maxTokens: "),
        (json!({"cost": {"input": "free"}}), "models[0].cost.input: "),
        (json!({"compat": 5}), "models[0].compat: "),
        (json!({"headers": {"X": 5}}), "models[0].headers: X: expected a text"),
        (
            json!({"headers": {"X": "!rm"}}),
            "models[0].headers: X: a catalogue may not name variables or commands",
        ),
        (json!({"headers": {"X": "a$HOME"}}), "models[0].headers: X: a catalogue may not name"),
        (
            json!({"headers": {"Authorization": "hush"}}),
            "models[0].headers: Authorization: a catalogue may not hold",
        ),
    ] {
        check(&with(json!({}), &[model(over)]), expected);
    }
    check(&with(json!({}), &[json!(5)]), "line 4: models[0]: expected an object");
    let many: Vec<Value> = (0..14).map(|id| model(json!({"id": id.to_string(), "input": []}))).collect();
    check(&with(json!({}), &many), "\nand 4 more");
}

#[test]
fn a_file_that_cannot_be_used_gives_way_to_the_built_in_catalogue() {
    let folder = tempfile::tempdir().unwrap();
    let agent_dir = AgentDir::at(folder.path());
    update_catalogue(&agent_dir, &small(), &spoken).unwrap();
    let path = agent_dir.catalogue_file();
    let stored = fs::read(&path).unwrap();
    let shared = SharedModels::default();
    let good = shared.load(&agent_dir);
    let check = |bytes: &[u8], expected: &str| {
        fs::remove_file(&path).unwrap();
        fs::write(&path, bytes).unwrap();
        let registry = shared.load(&agent_dir);
        let problem = registry.catalogue_problem().expect(expected).to_string();
        assert!(problem.contains(expected) && problem.contains("models-catalogue.bin"), "{problem}");
        assert!(problem.contains("--reset-catalogue"), "{problem}");
        assert_eq!(registry.providers().count(), 42);
        assert!(Arc::ptr_eq(&registry, &shared.load(&agent_dir)));
    };
    check(b"", "is no stored catalogue");
    check(b"{}\n", "is no stored catalogue");
    check(&stored[..stored.len() - 1], "its checksum is wrong");
    let at = stored.len() / 2;
    let mut flipped = stored.clone();
    flipped[at] ^= 1;
    check(&flipped, "its checksum is wrong");
    check(b"agentd model catalogue 99 x\n", "a newer agentd: its format is 99, this one reads 1");
    // A checksum that is right, of an index that is not.
    let index = Index {
        source: None,
        date: None,
        updated_at: String::new(),
        providers: Vec::new(),
        preferred: vec![7],
    };
    check(&stored::written(&index, &[]).unwrap(), "do not agree");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(shared.load(&agent_dir).catalogue_problem().unwrap().message.contains("no regular file"));
    fs::remove_dir(&path).unwrap();
    fs::write(&path, &stored).unwrap();
    assert_eq!(shared.load(&agent_dir).providers().count(), 2);
    assert_eq!(good.providers().count(), 2);
}

#[test]
fn nothing_is_kept_that_nobody_uses() {
    let folder = tempfile::tempdir().unwrap();
    let agent_dir = AgentDir::at(folder.path());
    update_catalogue(&agent_dir, &small(), &spoken).unwrap();
    let catalogue = stored::load(&agent_dir).unwrap();
    assert!(Arc::ptr_eq(&catalogue, &stored::load(&agent_dir).unwrap()));
    let weak = Arc::downgrade(&catalogue);
    drop(catalogue);
    assert!(weak.upgrade().is_none());
}
