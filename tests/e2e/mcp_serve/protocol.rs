//! The wire: the handshake, faults, lists, the end.

use agentd_e2e::{Home, MockServer, Reply, ctl, sse};
use serde_json::{Value, json};

use super::agent::{Agent, LEGACY};

#[test]
fn the_handshake_says_what_there_is() {
    let home = Home::new();
    for (asked, answered) in [
        (LEGACY, LEGACY),
        ("2025-06-18", "2025-06-18"),
        ("2024-11-05", "2024-11-05"),
        ("2026-07-28", LEGACY),
        ("1999-01-01", LEGACY),
    ] {
        let mut agent = Agent::start(&home, &[]);
        let said = agent.initialize(asked, &json!({}));
        assert_eq!(said["protocolVersion"], answered, "{asked}");
        assert_eq!(said["capabilities"], json!({"tools": {}}));
        assert_eq!(said["serverInfo"]["name"], "agentd");
        assert!(said["instructions"].as_str().unwrap().contains("sessionId"));
        assert_eq!(agent.call("ping", json!({})), json!({}));
    }
}

#[test]
fn faults_have_their_codes_and_the_connection_lives_on() {
    let home = Home::new();
    let mut agent = Agent::start(&home, &[]);
    // A line whose id cannot be read is answered without one: ids of this protocol are never null.
    for (line, code) in [
        ("{", -32700),
        ("nonsense", -32700),
        ("[]", -32600),
        ("7", -32600),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"1.0","method":"ping"}"#, -32600),
    ] {
        agent.line(line);
        let reply = agent.next().unwrap();
        assert_eq!((reply.get("id"), &reply["error"]["code"]), (None, &json!(code)), "{line}: {reply}");
    }
    // Notifications and stray answers get none.
    agent.notify("notifications/whatever", &json!({}));
    agent.notify("notifications/cancelled", &json!({"requestId": 99}));
    agent.notify("notifications/cancelled", &json!(5));
    agent.line(r#"{"jsonrpc":"2.0","id":99,"result":{}}"#);
    agent.line("");
    for method in ["tools/list", "tools/call"] {
        let error = agent.refused(method, json!({"name": "prompt"}));
        assert_eq!(error["code"], -32600, "{error}");
        assert!(error["message"].as_str().unwrap().contains("`initialize` comes first"), "{error}");
    }
    assert_eq!(agent.refused("initialize", json!({}))["code"], -32602);
    agent.initialize(LEGACY, &Value::Null);
    for method in [
        "resources/list",
        "prompts/list",
        "logging/setLevel",
        "completion/complete",
        "no/such",
        "resources/subscribe",
    ] {
        assert_eq!(agent.refused(method, json!({}))["code"], -32601, "{method}");
    }
}

#[test]
fn a_line_of_20_mib_costs_itself_alone() {
    let home = Home::new();
    let mut agent = Agent::ready(&home, &[], &json!({}));
    agent.line(&"x".repeat(20 << 20));
    assert_eq!(agent.next().unwrap()["error"]["code"], -32700);
    let text = agent.failure("prompt", &json!({"prompt": "x".repeat(20 << 20)}));
    assert!(text.contains("prompt: it is longer than 8 MiB"), "{text}");
    assert_eq!(agent.call("ping", json!({})), json!({}));
    drop(agent);
    home.settings(&json!({"daemon": {"maxLineBytes": 1 << 20}}));
    let mut agent = Agent::ready(&home, &[], &json!({}));
    agent.line(&"x".repeat(20 << 20));
    let reply = agent.next().unwrap();
    assert_eq!(reply["error"]["code"], -32600);
    assert!(reply["error"]["message"].as_str().unwrap().contains("1048576 bytes"), "{reply}");
    assert_eq!(agent.call("ping", json!({})), json!({}));
}

#[test]
fn the_list_of_tools_has_one_page() {
    let home = Home::new();
    let mut agent = Agent::ready(&home, &[], &json!({}));
    let list = agent.call("tools/list", json!({}));
    let names: Vec<&str> =
        list["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["prompt", "steer", "abort", "read_session", "list_sessions"]);
    assert_eq!((list.get("nextCursor"), list.get("ttlMs")), (None, None));
    assert_eq!(agent.call("tools/list", json!({"cursor": null}))["tools"], list["tools"]);
    assert_eq!(agent.refused("tools/list", json!({"cursor": "x"}))["code"], -32602);
}

#[test]
fn calls_that_are_none_are_refused_and_arguments_are_named() {
    let home = Home::new();
    let mut agent = Agent::ready(&home, &[], &json!({}));
    for (params, says) in [
        (json!({"name": "no_such_tool"}), "Unknown tool: no_such_tool"),
        (json!({}), "missing field `name`"),
        (json!({"name": 5}), "name: invalid type"),
        (json!({"name": "prompt", "arguments": [1]}), "arguments: expected an object"),
    ] {
        let error = agent.refused("tools/call", params.clone());
        assert_eq!(error["code"], -32602, "{params}");
        assert!(error["message"].as_str().unwrap().contains(says), "{params}: {error}");
    }
    for (tool, arguments, says) in [
        ("prompt", json!({}), "missing field `prompt`"),
        (
            "prompt",
            json!({"prompt": "a", "cwd": "src"}),
            "cwd: expected the absolute path of a folder, got \"src\"",
        ),
        (
            "prompt",
            json!({"prompt": "a", "cwd": "/no/such/folder"}),
            "expected the absolute path of a folder, got \"/no/such/folder\"",
        ),
        ("prompt", json!({"prompt": "a", "folder": "/"}), "unknown field `folder`"),
        ("prompt", json!({"prompt": "a", "thinkingLevel": "much"}), "thinkingLevel: unknown variant `much`"),
        (
            "prompt",
            json!({"prompt": "a", "sessionId": "no-such-session"}),
            "There is no session \"no-such-session\"",
        ),
        ("prompt", json!({"prompt": "a", "sessionId": "../x"}), "sessionId: there is no session"),
        ("read_session", json!({"sessionId": "no-such-session"}), "There is no session \"no-such-session\""),
        ("steer", json!({"sessionId": "no-such-session", "message": "a"}), "does not work on anything"),
        ("abort", json!({"sessionId": "no-such-session"}), "does not work on anything"),
    ] {
        let text = agent.failure(tool, &arguments);
        assert!(text.contains(says), "{tool} {arguments}: {text}");
    }
}

#[test]
fn without_a_model_the_caller_hears_what_to_do() {
    let home = Home::new();
    let mut agent = Agent::ready(&home, &[], &json!({}));
    let text = agent.failure("prompt", &json!({"prompt": "Hello?"}));
    assert!(
        text.contains("agentd has no model that it can use") && text.contains("agentctl setup"),
        "{text}"
    );
    let text = agent.failure("prompt", &json!({"prompt": "Hello?", "model": "no-such-model"}));
    assert!(text.contains("no-such-model"), "{text}");
    assert_eq!(home.session_files(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn stdout_has_messages_alone_and_the_end_of_the_input_ends_the_process() {
    let server = MockServer::start([Reply::stream(sse::answer("Hello there."))]);
    let home = Home::with_model(&server);
    let mut agent = Agent::ready(&home, &[], &json!({}));
    assert_eq!(agent.tool("prompt", &json!({"prompt": "Hello?"}))["answer"], "Hello there.");
    let (rest, took, status) = agent.close();
    assert!(took.as_millis() < 2000 && status.success(), "{took:?} {status}");
    assert_eq!(rest, Vec::<Value>::new());
}

/// Requests that came before the end of the input are answered.
#[test]
fn requests_from_a_pipe_are_answered_before_the_end() {
    let home = Home::new();
    let mut agent = Agent::start(&home, &["--demo"]);
    let info = json!({"name": "pipe", "version": "1"});
    let first =
        agent.ask("initialize", json!({"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": info}));
    let second = agent.ask("tools/list", json!({}));
    let third = agent.begin("list_sessions", &json!({}));
    let (rest, _, _) = agent.close();
    for id in [first, second, third] {
        assert!(rest.iter().any(|message| message["id"] == id && message["result"].is_object()), "{rest:#?}");
    }
}

#[test]
fn the_command_line_says_what_goes_and_what_does_not() {
    let home = Home::new();
    for (args, says) in [
        (&["mcp", "serve", "--continue"][..], "--continue does not go with `agentd mcp serve`"),
        (&["mcp", "serve", "hello"], "hello does not go with `agentd mcp serve`"),
        (&["mcp", "serve", "--mode", "json"], "`mcp serve` is a mode of its own"),
        (&["mcp"], "`agentd mcp serve` is an MCP server on stdin and stdout"),
        (&["mcp", "list"], "`agentctl mcp`"),
    ] {
        let said = ctl::agentd(&home, args).output().unwrap();
        let stderr = String::from_utf8_lossy(&said.stderr);
        assert!(stderr.contains(says) && said.stdout.is_empty(), "{args:?}: {stderr}");
        assert_eq!(said.status.code(), Some(1));
    }
    for args in [&["--help"][..], &["mcp", "serve", "--help"], &["mcp", "--help"]] {
        let said = ctl::agentd(&home, args).output().unwrap();
        assert!(String::from_utf8_lossy(&said.stdout).contains("agentd mcp serve [--shared]"), "{args:?}");
    }
}
