//! Providers and virtual models of extensions.

use agentd_e2e::{
    Daemon, Home, MockServer, Reply, conversation::Conversation, conversation::LineTransport, sse,
};
use serde_json::{Value, json};

use crate::{
    extensions::{events, extension, told},
    support::{assert_says, ended, kinds, records, text},
};

/// A provider whose requests the host answers.
fn own_provider() -> Value {
    json!({"kind": "provider", "name": "own", "config": {
        "name": "Own", "api": "own-api", "baseUrl": "http://127.0.0.1:1", "apiKey": "sk-own", "streamSimple": {"cb": 1},
        "headers": {"x-team": "blue"},
        "models": [{
            "id": "m", "name": "M", "reasoning": false, "input": ["text"], "contextWindow": 100_000, "maxTokens": 100,
            "cost": {"input": 1, "output": 2, "cacheRead": 0, "cacheWrite": 0},
        }],
    }})
}

fn answer(words: &str, stop_reason: &str) -> Value {
    json!({"message": {
        "role": "assistant", "content": [{"type": "text", "text": words, "textSignature": "signed"}], "api": "own-api",
        "provider": "own", "model": "m", "stopReason": stop_reason, "timestamp": 5,
        "usage": {
            "input": 30, "output": 4, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 34,
            "cost": {"input": 0.1, "output": 0.2, "cacheRead": 0, "cacheWrite": 0, "total": 0.3},
        },
    }})
}

fn streamed(words: &str) -> Value {
    json!([
        {"type": "start", "message": {}},
        {"type": "text_start", "contentIndex": 0},
        {"type": "text_delta", "contentIndex": 0, "delta": words},
    ])
}

/// A daemon with an extension that does what the script says.
fn started_with(model: &MockServer, script: &Value, args: &[&str]) -> (Home, Daemon) {
    let home = Home::with_model(model);
    extension(&home, "test", script);
    let args: Vec<&str> = ["--stdio"].into_iter().chain(args.iter().copied()).collect();
    let daemon = Daemon::start(&home, &args);
    (home, daemon)
}

fn command<W: LineTransport>(daemon: &mut Conversation<W>, command: &str) {
    daemon.done(json!({"type": "prompt", "message": command}));
}

fn available<W: LineTransport>(daemon: &mut Conversation<W>) -> Vec<String> {
    let models = daemon.done(json!({"type": "get_available_models"}))["models"].clone();
    let name =
        |model: &Value| format!("{}/{}", model["provider"].as_str().unwrap(), model["id"].as_str().unwrap());
    models.as_array().unwrap().iter().map(name).collect()
}

#[test]
fn an_extension_answers_for_its_provider() {
    let server = MockServer::start([]);
    let script = json!({
        "registers": [own_provider()],
        "handlers": {"before_provider_request": {"value": {"replaced": 1}}, "after_provider_response": {}},
        "requests": {"provider.stream": {
            "calls": [
                ["provider.payload", {"call": "within", "payload": {"a": 1}}],
                ["provider.response", {"call": "within", "status": 201, "headers": {"h": "v"}}],
            ],
            "events": streamed("Hi."), "value": answer("Hi.", "stop"),
        }},
    });
    // The model of the extension is there when the session chooses its first.
    let (home, mut daemon) = started_with(&server, &script, &["--model", "own/m"]);
    let seen = daemon.prompt("Go.");
    let message = ended(&seen, "assistant")[0];
    assert_eq!((text(message), &message["provider"]), ("Hi.".to_owned(), &json!("own")));
    assert_eq!(message["content"][0]["textSignature"], "signed");
    assert_eq!(
        (&message["usage"]["totalTokens"], &message["usage"]["cost"]["total"]),
        (&json!(34), &json!(0.3))
    );
    assert!(kinds(&seen).contains(&"message_update"), "{:?}", kinds(&seen));
    let request = &told(&home, "provider.stream")[0];
    assert_eq!((&request["cb"], &request["options"]["apiKey"]), (&json!(1), &json!("sk-own")));
    assert_eq!(request["options"]["headers"], json!({"x-team": "blue"}));
    assert_eq!(request["hooks"], json!(["payload", "response"]));
    assert_says(&request["context"].to_string(), &["Go.", "coding agent"]);
    let results = told(&home, "result");
    assert_eq!(results[0]["value"], json!({"payload": {"replaced": 1}}));
    let response = events(&home).into_iter().find(|event| event["type"] == "after_provider_response");
    assert_eq!(response.expect("the event")["status"], 201);
    assert!(server.requests().is_empty());
}

#[test]
fn an_abort_reaches_the_extension_that_answers() {
    let server = MockServer::start([]);
    let script = json!({
        "registers": [own_provider()],
        "requests": {"provider.stream": {
            "until_cancelled": true, "events": streamed("Half"), "value": answer("Half", "aborted"),
        }},
    });
    let (home, mut daemon) = started_with(&server, &script, &["--model", "own/m"]);
    daemon.send(&json!({"id": "1", "type": "prompt", "message": "Go."}));
    daemon.event("message_update");
    daemon.send(&json!({"id": "2", "type": "abort"}));
    let seen = daemon.settled();
    let message = ended(&seen, "assistant")[0];
    assert_eq!((text(message), &message["stopReason"]), ("Half".to_owned(), &json!("aborted")));
    assert_eq!(told(&home, "cancel").len(), 1);
}

#[test]
fn a_failure_of_the_extension_is_one_of_the_answer() {
    let server = MockServer::start([]);
    let script = json!({
        "registers": [own_provider()], "requests": {"provider.stream": {"throw": "401 no such key"}},
    });
    let (_home, mut daemon) = started_with(&server, &script, &["--model", "own/m"]);
    let seen = daemon.prompt("Go.");
    let message = ended(&seen, "assistant")[0];
    assert_eq!(
        (&message["stopReason"], &message["errorMessage"]),
        (&json!("error"), &json!("401 no such key"))
    );
}

#[test]
fn providers_come_and_go_and_models_json_lies_above() {
    let server = MockServer::start([]);
    let acme = json!({"kind": "provider", "name": "acme", "config": {
        "api": "openai-completions", "baseUrl": "http://127.0.0.1:1", "apiKey": "sk-acme",
        "models": [{"id": "a"}, {"id": "b"}],
    }});
    let script = json!({
        "commands": {
            "on": {"registers": [acme], "calls": []},
            "off": {"registers": [{"type": "unregister", "kind": "provider", "name": "acme"}]},
        },
    });
    let home = Home::new();
    home.configure(&json!({"providers": {
        "fake": {"baseUrl": server.base_url(), "api": "openai-completions", "apiKey": "k", "models": [{"id": "fake"}]},
        "acme": {"baseUrl": server.base_url()},
    }}));
    extension(&home, "test", &script);
    let mut daemon = Daemon::start(&home, &["--stdio"]);
    assert_eq!(available(&mut daemon), ["fake/fake"]);
    command(&mut daemon, "/on");
    assert_eq!(available(&mut daemon), ["acme/a", "acme/b", "fake/fake"]);
    daemon.done(json!({"type": "set_model", "provider": "acme", "modelId": "b"}));
    server.push(Reply::stream(sse::answer("Ok.")));
    daemon.prompt("Go.");
    let request = &server.requests()[0];
    assert_eq!(
        (request.header("authorization"), &request.body["model"]),
        (Some("Bearer sk-acme"), &json!("b"))
    );
    command(&mut daemon, "/off");
    assert_eq!(available(&mut daemon), ["fake/fake"]);
    let failure = daemon.refused(json!({"type": "prompt", "message": "Go."}));
    assert_eq!(failure["code"], "no_model", "{failure}");
}

#[test]
fn a_provider_that_cannot_be_used_is_told_of() {
    let server = MockServer::start([]);
    let broken = json!({"kind": "provider", "name": "acme", "config": {"models": [{"id": "a"}]}});
    let script = json!({"commands": {"on": {"registers": [broken]}}});
    let (_home, mut daemon) = started_with(&server, &script, &[]);
    daemon.send(&json!({"id": "1", "type": "prompt", "message": "/on"}));
    let failure = daemon.event("extension_error");
    assert_eq!(failure["event"], "register_provider");
    assert_says(failure["error"].as_str().unwrap(), &["Provider acme, model a: no \"api\" specified"]);
}

#[test]
fn a_provider_object_authorises_its_requests() {
    let server = MockServer::start([]);
    let provider = json!({"kind": "provider", "name": "own", "native": true, "provider": {
        "id": "own", "name": "Own", "baseUrl": "http://127.0.0.1:1", "streamSimple": {"cb": 1},
        "auth": {"apiKey": {"name": "key", "resolve": {"cb": 2}}},
        "models": [{"id": "m", "api": "own-api", "provider": "own", "baseUrl": "http://127.0.0.1:1"}],
    }});
    let script = json!({
        "registers": [provider],
        "requests": {
            "provider.auth": {"value": {"auth": {"apiKey": "resolved", "headers": {"h": "v"}}}},
            "provider.stream": {"events": streamed("Hi."), "value": answer("Hi.", "stop")},
        },
    });
    let (home, mut daemon) = started_with(&server, &script, &["--model", "own/m"]);
    let seen = daemon.prompt("Go.");
    assert_eq!(text(ended(&seen, "assistant")[0]), "Hi.");
    assert_eq!(told(&home, "provider.auth")[0]["cb"], 2);
    let options = &told(&home, "provider.stream")[0]["options"];
    assert_eq!((&options["apiKey"], &options["headers"]), (&json!("resolved"), &json!({"h": "v"})));
}

fn router(route: &Value) -> Value {
    json!({
        "registers": [{"kind": "virtualModel", "cb": 7, "model": {
            "provider": "router", "id": "auto", "name": "Auto", "thinkingLevels": ["off", "high"],
        }}],
        "requests": {"vmodel.route": {"value": route}},
    })
}

#[test]
fn a_router_chooses_the_model_of_each_request() {
    let server = MockServer::start([]);
    let route = json!({
        "provider": "fake", "modelId": "fake", "thinkingLevel": "high", "keepState": false, "state": {"n": 1},
    });
    let (home, mut daemon) = started_with(&server, &router(&route), &["--model", "router/auto"]);
    server.push(Reply::stream(sse::calls(&[("c1", "bash", json!({"command": "true"}))])));
    server.push(Reply::stream(sse::answer("Ok.")));
    let seen = daemon.prompt("Go.");
    assert_eq!(server.requests()[0].body["model"], "fake");
    assert_eq!(ended(&seen, "assistant")[0]["provider"], "fake");
    let asked = told(&home, "vmodel.route");
    let reasons: Vec<&Value> = asked.iter().map(|asked| &asked["request"]["reason"]).collect();
    assert_eq!(reasons, ["user", "continuation"]);
    let second = &asked[1]["request"];
    assert_eq!((&second["state"], &second["previous"]["model"]["id"]), (&json!({"n": 1}), &json!("fake")));
    assert_eq!(daemon.done(json!({"type": "get_state"}))["model"]["id"], "auto");
    drop(daemon);
    let file = home.session_files().remove(0);
    let states: Vec<Value> = records(&file)
        .into_iter()
        .filter(|record| record["customType"] == "pi.virtual-model-state")
        .collect();
    assert_eq!(states.len(), 1, "the same state again is not stored");
    assert_eq!(states[0]["data"], json!({"provider": "router", "modelId": "auto", "state": {"n": 1}}));
    // The session goes on with the virtual model.
    let mut daemon = Daemon::start(&home, &["--stdio", "--session", &file.display().to_string()]);
    assert_eq!(daemon.done(json!({"type": "get_state"}))["model"]["id"], "auto");
}

#[test]
fn a_route_that_leads_nowhere_ends_the_request() {
    let server = MockServer::start([]);
    let route = json!({"provider": "nobody", "modelId": "x", "thinkingLevel": "off", "keepState": true});
    let (_home, mut daemon) = started_with(&server, &router(&route), &["--model", "router/auto"]);
    let seen = daemon.prompt("Go.");
    let message = ended(&seen, "assistant")[0];
    let expected = "Virtual model router/auto routed to nobody/x, which is not a physical model.";
    assert_eq!((&message["errorMessage"], &message["model"]), (&json!(expected), &json!("auto")));
    assert!(server.requests().is_empty());
}

#[test]
fn an_extension_renews_the_login_of_its_provider() {
    let server = MockServer::start([]);
    let mut provider = own_provider();
    let config = provider["config"].as_object_mut().expect("fields");
    config.remove("apiKey");
    config.insert(
        "oauth".to_owned(),
        json!({"name": "Own", "refreshToken": {"cb": 7}, "getApiKey": {"cb": 8}}),
    );
    let renewed = json!({"access": "new-access", "refresh": "r-2", "expires": 4_102_444_800_000_i64, "team": {"id": 7}});
    let script = json!({
        "registers": [provider],
        "oauth": {"refresh": {"value": renewed}, "apiKey": {"value": "key-of-login"}},
        "requests": {"provider.stream": {"events": streamed("Hi."), "value": answer("Hi.", "stop")}},
    });
    let home = Home::with_model(&server);
    extension(&home, "test", &script);
    let stored =
        json!({"type": "oauth", "access": "old-access", "refresh": "r-1", "expires": 1, "mine": true});
    home.write_agent("auth.json", &json!({"own": stored}).to_string());
    let mut daemon = Daemon::start(&home, &["--stdio", "--model", "own/m"]);
    for _ in 0..2 {
        assert_eq!(text(ended(&daemon.prompt("Go."), "assistant")[0]), "Hi.");
    }
    let keys: Vec<Value> =
        told(&home, "provider.stream").iter().map(|it| it["options"]["apiKey"].clone()).collect();
    assert_eq!(keys, ["key-of-login", "key-of-login"]);
    let steps = told(&home, "provider.oauth");
    let refreshes: Vec<&Value> = steps.iter().filter(|step| step["step"] == "refresh").collect();
    assert_eq!(refreshes.len(), 1);
    assert_eq!((&refreshes[0]["cb"], &refreshes[0]["credential"]), (&json!(7), &stored));
    let text = std::fs::read_to_string(home.agent_dir().join("auth.json")).expect("the file");
    let mut expected = renewed;
    expected["type"] = "oauth".into();
    assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON")["own"], expected);
}

/// A provider with a model of each kind that does not chat.
fn media() -> Value {
    json!({"kind": "provider", "name": "media", "config": {
        "apiKey": "sk-media", "api": "shapes", "baseUrl": "http://127.0.0.1:1", "headers": {"x-team": "blue"},
        "images": {"shapes": {"generateImages": {"cb": 11}}}, "classifiers": {"judge": {"classify": {"cb": 12}}},
        "models": [
            {"id": "i", "type": "image", "name": "I", "input": ["text"], "output": ["image"], "headers": {"x-own": "i"}},
            {"id": "c", "type": "classifier", "name": "C", "api": "judge", "input": ["text"], "contextWindow": 1000},
            {"id": "other", "type": "classifier", "name": "O", "input": ["text"], "contextWindow": 1000},
        ],
    }})
}

#[test]
fn an_extension_runs_models_that_make_images_and_that_classify() {
    let server = MockServer::start([]);
    let context = json!({"input": [{"type": "text", "text": "A circle."}]});
    let given = json!({"headers": {"x-asked": "yes"}, "n": 2});
    let named = |id: &str| json!({"provider": "media", "id": id});
    let calls = json!([
        ["read", {"topic": "models"}],
        ["model.images", {"model": named("i"), "context": context, "options": given}],
        ["model.classify", {"model": named("c"), "context": {"state": {}}, "options": {"apiKey": "sk-asked"}}],
        ["model.classify", {"model": named("c"), "context": {"images": [{}]}, "options": {}}],
        ["model.classify", {"model": named("other"), "context": {}, "options": {}}],
        ["model.classify", {"model": named("i"), "context": {}, "options": {}}],
        ["model.images", {"model": {"provider": "fake", "id": "fake", "type": "image"}, "context": {}, "options": {}}],
    ]);
    let script = json!({
        "registers": [media()],
        "commands": {"draw": {"calls": calls}},
        "requests": {
            "provider.images": {"value": {"output": ["drawn"]}}, "provider.classify": {"value": {"answers": {"q": "a"}}},
        },
    });
    let (home, mut daemon) = started_with(&server, &script, &[]);
    // They are no models of conversations.
    assert_eq!(available(&mut daemon), ["fake/fake"]);
    command(&mut daemon, "/draw");
    let results = told(&home, "result");
    let read = &results[0]["value"]["value"];
    let listed: Vec<Value> =
        read["models"].as_array().unwrap().iter().filter(|model| !model["type"].is_null()).cloned().collect();
    let facts = |model: &Value| [model["id"].clone(), model["api"].clone(), model["baseUrl"].clone()];
    assert_eq!(facts(&listed[0]), ["i", "shapes", "http://127.0.0.1:1"]);
    assert_eq!((facts(&listed[1]), listed.len()), (["c", "judge", "http://127.0.0.1:1"].map(Value::from), 3));
    assert_eq!(read["providers"]["media"]["configured"], true);
    assert_eq!(
        (&results[1]["value"], &results[2]["value"]),
        (&json!({"output": ["drawn"]}), &json!({"answers": {"q": "a"}}))
    );
    let errors: Vec<&Value> = results[3..].iter().map(|result| &result["error"]["message"]).collect();
    assert_eq!(
        errors,
        [
            "Model media/c does not accept image input",
            "Provider media has no classifier implementation for \"shapes\"",
            "Model media/i is not a classifier model",
            "Provider fake does not support image generation",
        ]
    );
    // The functions get the whole model, and the credentials of the session.
    let asked = &told(&home, "provider.images")[0];
    assert_eq!(
        (&asked["cb"], &asked["args"][0]["output"], &asked["args"][1]),
        (&json!(11), &json!(["image"]), &context)
    );
    let options = &asked["args"][2];
    assert_eq!(
        (&options["apiKey"], &options["n"], &options["signal"]),
        (&json!("sk-media"), &json!(2), &json!(true))
    );
    assert_eq!(options["headers"], json!({"x-team": "blue", "x-own": "i", "x-asked": "yes"}));
    let asked = &told(&home, "provider.classify")[0];
    assert_eq!((&asked["cb"], &asked["args"][2]["apiKey"]), (&json!(12), &json!("sk-asked")));
}

#[test]
fn a_model_that_makes_images_is_stopped_with_the_request() {
    let server = MockServer::start([]);
    let call =
        json!(["model.images", {"model": {"provider": "media", "id": "i"}, "context": {}, "options": {}}]);
    let script = json!({
        "registers": [media()],
        "commands": {"draw": {"cancelled_calls": [call]}},
        "requests": {"provider.images": {"until_cancelled": true, "value": {"output": []}}},
    });
    let (home, mut daemon) = started_with(&server, &script, &[]);
    command(&mut daemon, "/draw");
    let result = told(&home, "result").remove(0);
    assert_eq!(result["error"]["code"], "aborted", "{result}");
}

#[test]
fn a_provider_object_authorises_its_images_too() {
    let server = MockServer::start([]);
    let provider = json!({"kind": "provider", "name": "own", "native": true, "provider": {
        "id": "own", "name": "Own", "generateImages": {"cb": 1}, "auth": {"apiKey": {"name": "key", "resolve": {"cb": 2}}},
        "models": [{"id": "i", "type": "image", "api": "own-api", "provider": "own", "baseUrl": "http://127.0.0.1:1"}],
    }});
    let call =
        json!(["model.images", {"model": {"provider": "own", "id": "i"}, "context": {}, "options": {}}]);
    let script = json!({
        "registers": [provider],
        "commands": {"draw": {"calls": [call]}},
        "requests": {
            "provider.auth": {"value": {"auth": {"apiKey": "resolved", "baseUrl": "http://127.0.0.1:2"}}},
            "provider.images": {"value": {"output": []}},
        },
    });
    let (home, mut daemon) = started_with(&server, &script, &[]);
    command(&mut daemon, "/draw");
    assert_eq!(told(&home, "result")[0]["value"], json!({"output": []}));
    let asked = &told(&home, "provider.images")[0]["args"];
    assert_eq!(
        (&asked[2]["apiKey"], &asked[0]["baseUrl"]),
        (&json!("resolved"), &json!("http://127.0.0.1:2"))
    );
}
