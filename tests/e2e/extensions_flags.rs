//! Flags of the command line that extensions register, and commands that they add when the session begins.

use std::process::Stdio;

use agentd_e2e::{
    Daemon, Home, MockServer, Service,
    ctl::{Ctl, agentd},
};
use serde_json::{Value, json};

use crate::extensions::{extension, told};

fn with_flags() -> Home {
    let home = Home::new();
    let flag = |name: &str, kind: &str| json!({"kind": "flag", "name": name, "valueType": kind});
    let script = json!({"registers": [flag("plan", "boolean"), flag("config", "string")]});
    extension(&home, "test", &script);
    home
}

#[test]
fn extensions_get_their_flags() {
    let home = with_flags();
    let mut daemon = Daemon::start(&home, &["--plan", "--config=a b", "--no-session"]);
    // Answered once they have begun.
    daemon.done(json!({"type": "get_commands"}));
    let bound = told(&home, "bind");
    assert_eq!(bound[0]["flags"], json!({"plan": true, "config": "a b"}), "{bound:?}");
    // They stay when the extensions are started anew.
    daemon.done(json!({"type": "restart_extensions"}));
    let bound = told(&home, "bind");
    assert_eq!((bound.len(), &bound[1]["flags"]), (2, &bound[0]["flags"]));
}

#[test]
fn flags_that_no_extension_has_are_errors() {
    let home = with_flags();
    let check = |args: &[&str], says: &str| {
        let command = agentd(&home, &[&["--stdio"], args].concat());
        let said = Ctl::start_with(command, Stdio::null()).finish();
        assert_eq!(said.code, 1, "{args:?}: {said:?}");
        assert!(said.stderr.starts_with(&format!("Error: {says}")), "{args:?}: {said:?}");
    };
    check(&["--plan", "--plans"], "Unknown option: --plans.");
    check(&["--plan", "--config"], "Extension flag \"--config\" requires a value");
    check(&["--no-extensions", "--plan"], "Unknown option: --plan.");
}

#[test]
fn commands_are_listed_once_the_session_has_begun() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    let late = json!({"registers": [{"kind": "command", "name": "late", "completes": false}], "value": null});
    extension(&home, "test", &json!({"handlers": {"session_start": late}}));
    let mut daemon = Daemon::start(&home, &[]);
    let commands = daemon.done(json!({"type": "get_commands"}))["commands"].clone();
    let names: Vec<&Value> = commands.as_array().unwrap().iter().map(|command| &command["name"]).collect();
    assert!(names.contains(&&json!("late")), "{commands}");
}

/// The handlers may be quicker than the client that opens the session.
#[test]
fn what_is_shown_at_the_start_is_shown_to_the_client_that_comes() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    let note = json!({"method": "notify", "message": "Here.", "notifyType": "info"});
    extension(&home, "test", &json!({"handlers": {"session_start": {"notes": [note], "value": null}}}));
    let mut daemon = Daemon::start(&home, &[]);
    assert_eq!(daemon.event("extension_ui_request")["message"], "Here.");
    daemon.close();
    let service = Service::start(&home, &[]);
    let mut client = service.client();
    client.done(json!({
        "type": "hello", "protocol": 1, "client": {"name": "one"}, "capabilities": {"sessions": true, "ui": true},
    }));
    client.send(&json!({"id": "o", "type": "open_session", "cwd": home.project()}));
    assert_eq!(client.event("extension_ui_request")["message"], "Here.");
}
