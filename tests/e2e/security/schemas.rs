//! Schemas of tools that clients provide: one that asks for more work than there is time or memory for is refused, and what
//! arguments can make of another has an end.

use std::fmt::Write as _;

use agentd_e2e::{Home, MockServer, Reply, Service, SocketClient, sse, usage};
use serde_json::{Map, Value, json};

use crate::support::{ended, text};

/// What the daemon may use at the end of each test: an attack took gigabytes.
const FAIR: u64 = 400 << 20;

struct Stage {
    service: Service,
    client: SocketClient,
}

impl Stage {
    fn new(replies: Vec<Reply>) -> (Home, MockServer, Self) {
        let server = MockServer::start(replies);
        let home = Home::with_model(&server);
        let service = Service::start(&home, &[]);
        let mut client = service.client();
        client.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}));
        client.done(json!({"type": "open_session", "cwd": home.project()}));
        (home, server, Self { service, client })
    }

    fn register(&mut self, parameters: &Value) -> Value {
        let tool = json!({"name": "odd", "description": "Does something.", "parameters": parameters});
        self.client.call(json!({"type": "register_tools", "tools": [tool]}))
    }

    #[track_caller]
    fn refused(&mut self, parameters: &Value, says: &str) {
        let answer = self.register(parameters);
        assert_eq!(answer["code"], "invalid_field", "{answer}");
        let error = answer["error"].as_str().expect("a text");
        assert!(error.contains(says) && error.contains("\"odd\""), "{says:?} is missing in {error:?}");
    }

    fn is_small(&self) {
        let used = usage::of(self.service.id());
        assert!(used.resident < FAIR, "{used:?}");
    }
}

/// Alternatives of alternatives: each level is the next one twice, so that the last is held against 2^levels times.
fn doubling(levels: usize) -> Value {
    let next = |level: usize| json!({"$ref": format!("#/$defs/d{}", level + 1)});
    let mut defs: Map<String, Value> = (0..levels)
        .map(|level| (format!("d{level}"), json!({"anyOf": [next(level), next(level)]})))
        .collect();
    defs.insert(format!("d{levels}"), json!({"type": "integer"}));
    json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": defs})
}

#[test]
fn a_schema_that_doubles_with_each_level_is_refused() {
    let call = sse::calls(&[("c1", "odd", json!({"a": "x"}))]);
    let (_home, _server, mut stage) =
        Stage::new(vec![Reply::stream(call), Reply::stream(sse::answer("Ok."))]);
    let attack = doubling(60);
    assert!(attack.to_string().len() < 6_000);
    stage.refused(&attack, "nest deeper");
    stage.refused(&doubling(14), "more than 10000 schemas");
    // Nobody can be called that was refused; the session works on.
    let results = stage.client.prompt("Go.");
    assert!(text(ended(&results, "toolResult")[0]).contains("not found"), "{results:?}");
    stage.is_small();
}

#[test]
fn schemas_without_an_end_and_huge_patterns_are_refused() {
    let (_home, _server, mut stage) = Stage::new(vec![Reply::stream(sse::answer("Fine."))]);
    let circle = json!({"type": "object", "allOf": [{"$ref": "#/$defs/a"}],
        "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}}});
    stage.refused(&circle, "refers to itself");
    let mut deep = json!({"type": "object"});
    for _ in 0..50 {
        deep = json!({"type": "object", "properties": {"a": deep}});
    }
    stage.refused(&deep, "nests deeper");
    let by_name: Map<String, Value> =
        (0..2_000).map(|number| (format!("(a{{99}}b{{99}}c{number}){{99}}"), json!({}))).collect();
    stage.refused(
        &json!({"type": "object", "patternProperties": by_name}),
        "regular expressions are too large",
    );
    let away = json!({"type": "object", "properties": {"a": {"$ref": "file:///etc/hostname#/a"}}});
    stage.refused(&away, "other documents");
    assert_eq!(text(crate::support::answers(&stage.client.prompt("Hi"))[0]), "Fine.");
    stage.is_small();
}

#[test]
fn arguments_that_multiply_in_a_recursive_schema_are_refused_and_the_run_goes_on() {
    let mut deep = String::from("\"x\"");
    for _ in 0..100 {
        deep = format!("{{\"a\":{deep}}}");
    }
    let arguments: Value = serde_json::from_str(&deep).unwrap();
    let call = sse::calls(&[("c1", "odd", arguments)]);
    let (_home, server, mut stage) =
        Stage::new(vec![Reply::stream(call), Reply::stream(sse::answer("I see."))]);
    let branch = json!({"type": "object", "properties": {"a": {"$ref": "#"}}});
    let registered = stage.register(&json!({"type": "object", "anyOf": [branch, branch]}));
    assert_eq!(registered["success"], true, "{registered}");
    let events = stage.client.prompt("Go.");
    let told = text(ended(&events, "toolResult")[0]);
    assert!(told.contains("too large or too deeply nested"), "{told}");
    assert_eq!(text(crate::support::answers(&events)[1]), "I see.");
    assert_eq!(server.requests().len(), 2);
    stage.is_small();
}

#[test]
fn many_items_against_a_long_enumeration_do_not_hold_up_others() {
    let mut items = String::new();
    for number in 0..40_000 {
        let _ = write!(items, "{}{number}", if number == 0 { "" } else { "," });
    }
    let arguments: Value = serde_json::from_str(&format!("{{\"a\":[{items}]}}")).unwrap();
    let call = sse::calls(&[("c1", "odd", arguments)]);
    let (home, _server, mut stage) =
        Stage::new(vec![Reply::stream(call), Reply::stream(sse::answer("I see."))]);
    let known: Vec<u32> = (100_000..106_000).collect();
    let schema = json!({"type": "object", "properties": {"a": {"items": {"enum": known}}}});
    assert_eq!(stage.register(&schema)["success"], true);
    stage.client.done(json!({"type": "prompt", "message": "Go."}));
    // Somebody else is answered meanwhile.
    let mut other = stage.service.client();
    other.done(json!({"type": "daemon_status"}));
    other.done(json!({"type": "open_session", "cwd": home.project()}));
    let events = stage.client.settled();
    let told = text(ended(&events, "toolResult")[0]);
    assert!(told.contains("too large or too deeply nested"), "{}", &told[..told.len().min(300)]);
}
