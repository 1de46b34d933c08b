//! `agentctl tools`.

use agentd_e2e::{Home, MockServer, Reply, Service, ctl, sse};
use serde_json::{Value, json};

use crate::support::assert_says;

fn active(home: &Home, args: &[&str]) -> Vec<String> {
    let said = ctl::run(home, &[&["tools"], args, &["--json"]].concat());
    assert_eq!(said.code, 0, "{said:?}");
    let list: Value = serde_json::from_str(&said.stdout).expect("JSON");
    let tools = list["tools"].as_array().expect("a list").iter().filter(|tool| tool["active"] == true);
    tools.map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn without_an_id_it_lists_those_of_a_new_session_here() {
    let server = MockServer::start([]);
    let home = Home::with_model(&server);
    home.settings(&json!({"defaultTools": ["+grep"]}));
    let said = ctl::run(&home, &["tools"]);
    assert_eq!(said.code, 0, "{said:?}");
    let lines: Vec<&str> = said.stdout.lines().collect();
    assert_eq!(lines.len(), 7, "{said:?}");
    assert!(lines[0].starts_with("* read   built in  "), "{said:?}");
    assert!(lines[4].starts_with("* grep ") && lines[5].starts_with("  find "), "{said:?}");
    // Name, label, description, schema, snippet, guidelines.
    let said = ctl::run(&home, &["tools", "--json"]);
    let list: Value = serde_json::from_str(&said.stdout).expect("JSON");
    let edit = &list["tools"][2];
    assert_eq!(
        (&edit["name"], &edit["label"], &edit["active"]),
        (&json!("edit"), &json!("edit"), &json!(true))
    );
    assert_eq!(edit["parameters"]["type"], "object");
    assert!(
        edit["description"].is_string() && edit["snippet"].is_string() && edit["guidelines"][0].is_string()
    );
    let refused = ctl::run(&home, &["tools", "--activate", "ls"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert_says(&refused.stderr, &["ID is missing", "defaultTools"]);
}

#[test]
fn it_changes_the_tools_of_a_session_with_a_daemon_and_without() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut client = service.client();
    client.done(json!({"type": "open_session", "cwd": home.project(), "sessionId": "aaaa-1"}));
    client.done(json!({"type": "prompt", "message": "Go."}));
    client.settled();
    assert_eq!(
        active(&home, &["aaaa", "--activate", "grep,find", "--deactivate", "bash"]),
        ["read", "edit", "write", "grep", "find"]
    );
    let tools = client.done(json!({"type": "get_tools"}))["tools"].clone();
    assert_eq!(tools[1]["active"], json!(false), "{tools}");
    client.done(json!({"type": "hello", "protocol": 1, "client": {"name": "editor"}}));
    let tool = json!({"name": "open", "description": "Opens a file.", "parameters": {"type": "object"}});
    client.done(json!({"type": "register_tools", "tools": [tool]}));
    let said = ctl::run(&home, &["tools", "aaaa"]);
    assert_says(&said.stdout, &["* open   editor    Opens a file."]);
    for args in [["--activate", "grepp"], ["--deactivate", "grepp"]] {
        let refused = ctl::run(&home, &[&["tools", "aaaa"][..], &args].concat());
        assert_eq!(refused.code, 1, "{refused:?}");
        assert_says(&refused.stderr, &["Unknown tool \"grepp\"; this session has read, "]);
    }
    drop(client);
    drop(service);
    assert_eq!(active(&home, &["aaaa"]), ["read", "edit", "write", "grep", "find"]);
    assert_eq!(active(&home, &["aaaa", "--deactivate", "write"]), ["read", "edit", "grep", "find"]);
    assert_eq!(active(&home, &["aaaa"]), ["read", "edit", "grep", "find"]);
    assert_eq!(ctl::run(&home, &["tools", "nothing-like-it"]).code, 1);
}
