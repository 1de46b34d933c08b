//! The wire: framing, errors, the handshake, and the mandatory checks of the official kit by their ids.

use agentd_e2e::{Home, MockServer, Reply, Terminal, binaries, sse};
use serde_json::{Value, json};

use super::editor::{Editor, able};

fn with_answer(words: &str) -> (MockServer, Home) {
    let server = MockServer::start([Reply::stream(sse::answer(words))]);
    let home = Home::with_model(&server);
    (server, home)
}

/// TRANSPORT-001, TRANSPORT-002: stdout has messages alone, one a line; the process ends within 2 s of its input.
#[test]
fn stdout_has_messages_alone_and_the_end_of_the_input_ends_the_process() {
    let (_server, home) = with_answer("Hello there.");
    let mut editor = Editor::ready(&home, &[], &json!({}));
    let session = editor.new_session(&home);
    assert_eq!(editor.turn(&session, "Hello?"), "end_turn");
    assert_eq!(editor.text(), "Hello there.");
    let (rest, took, status) = editor.close();
    assert!(took.as_millis() < 2000 && status.success(), "{took:?} {status}");
    assert_eq!(rest, Vec::<Value>::new());
}

/// JSONRPC-001, JSONRPC-002, JSONRPC-003, EXT-001: each fault has its code, ids come back as they were, and the connection lives on.
#[test]
fn faults_have_their_codes_and_the_connection_lives_on() {
    let home = Home::new();
    let mut editor = Editor::start(&home, &[]);
    for (line, id, code) in [
        ("{", Value::Null, -32700),
        ("[]", Value::Null, -32600),
        (r#"{"jsonrpc":"2.0","id":"a","method":"no/such"}"#, json!("a"), -32601),
        (r#"{"jsonrpc":"2.0","id":null,"method":"_vendor/thing"}"#, Value::Null, -32601),
        (r#"{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{}}"#, json!(7), -32602),
        (
            r#"{"jsonrpc":"2.0","id":8,"method":"session/new","params":{"cwd":"relative","mcpServers":[]}}"#,
            json!(8),
            -32602,
        ),
        (
            r#"{"jsonrpc":"2.0","id":9,"method":"session/prompt","params":{"sessionId":"x","prompt":[{"type":"text","text":"a"}]}}"#,
            json!(9),
            -32002,
        ),
        (r#"{"jsonrpc":"2.0","id":10,"method":"authenticate","params":{"methodId":"x"}}"#, json!(10), -32602),
        (r#"{"jsonrpc":"1.0","id":11,"method":"initialize"}"#, json!(11), -32600),
    ] {
        editor.line(line);
        let reply = editor.next().unwrap();
        assert_eq!((&reply["id"], &reply["error"]["code"]), (&id, &json!(code)), "{line}: {reply}");
    }
    // Notifications get no answer, known or not.
    editor.notify("_vendor/news", json!({}));
    editor.notify("session/cancel", json!({"sessionId": "x"}));
    editor.notify("session/cancel", json!(5));
    editor.line("");
    // Optional fields that are null are absent.
    editor.line(r#"{"jsonrpc":"2.0","id":99,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":null,"clientInfo":null}}"#);
    assert!(editor.raw_next().contains("\"id\":99,\"result\""));
}

/// INIT-001, INIT-002, INIT-003: what is advertised; a version that we do not speak is answered with ours.
#[test]
fn the_handshake_says_what_there_is() {
    let home = Home::new();
    for version in [json!(1), json!(2), json!(0), json!(9999)] {
        let mut editor = Editor::start(&home, &[]);
        let said = editor.call("initialize", json!({"protocolVersion": version}));
        assert_eq!(said["protocolVersion"], 1);
        assert_eq!(said["agentInfo"]["name"], "agentd");
        let capabilities = &said["agentCapabilities"];
        assert_eq!(capabilities["loadSession"], true);
        assert_eq!(
            capabilities["promptCapabilities"],
            json!({"image": true, "audio": false, "embeddedContext": true})
        );
        assert_eq!(capabilities["mcpCapabilities"], json!({"http": true, "sse": false}));
        for method in ["list", "resume", "close", "delete"] {
            assert!(capabilities["sessionCapabilities"][method].is_object(), "{capabilities}");
        }
        // AUTH-002: what is advertised can be asked for.
        assert_eq!(said["authMethods"].as_array().map(Vec::len), Some(1));
    }
}

/// AUTH-002: without a model, a session is refused with the way to one, and `authenticate` looks again.
#[test]
fn without_a_model_the_way_to_one_is_told() {
    let home = Home::new();
    let mut editor = Editor::ready(&home, &[], &json!({}));
    let error = editor.refused("session/new", json!({"cwd": home.project(), "mcpServers": []}));
    assert_eq!(error["code"], -32000);
    assert!(error["message"].as_str().unwrap().contains("agentctl login"), "{error}");
    let error = editor.refused("authenticate", json!({"methodId": "agentd-login"}));
    assert_eq!(error["code"], -32000);
    let server = MockServer::start([]);
    home.configure(&agentd_e2e::home::models(&server.base_url()));
    editor.call("authenticate", json!({"methodId": "agentd-login"}));
    editor.new_session(&home);
}

/// SESSION-001, SESSION-002: sessions have ids of their own, and stand beside each other.
#[test]
fn sessions_stand_beside_each_other() {
    let server = MockServer::answering(|request| {
        let asked = request.messages().last().unwrap().to_string();
        Reply::stream(sse::answer(if asked.contains("first") { "one" } else { "two" }))
    });
    let home = Home::with_model(&server);
    let mut editor = Editor::ready(&home, &[], &json!({}));
    let (first, second) = (editor.new_session(&home), editor.new_session(&home));
    assert_ne!(first, second);
    let asked = [editor.prompt(&first, "first"), editor.prompt(&second, "second")];
    let mut replies = Vec::new();
    while replies.len() < 2 {
        let message = editor.next().unwrap();
        if message.get("result").is_some() {
            replies.push(message["id"].as_u64().unwrap());
        }
    }
    replies.sort_unstable();
    assert_eq!(replies, asked);
    for (session, words) in [(&first, "one"), (&second, "two")] {
        let chunk =
            editor.seen.iter().find(|message| message["params"]["update"]["content"]["text"] == words);
        assert_eq!(chunk.unwrap()["params"]["sessionId"], **session);
    }
}

/// CLIENTCAP-001, CLIENTCAP-002, CLIENTCAP-003: a client that advertised nothing is asked for no files, terminals and forms, and gets
/// no updates that it does not know.
#[test]
fn a_client_that_advertised_nothing_is_spared() {
    let server = MockServer::start([
        Reply::stream(sse::calls(&[
            ("call_1", "read", json!({"path": "a.txt"})),
            ("call_2", "write", json!({"path": "b.txt", "content": "b"})),
            ("call_3", "bash", json!({"command": "echo hi"})),
        ])),
        Reply::stream(sse::answer("Done.")),
    ]);
    let home = Home::with_model(&server);
    home.write("a.txt", "a");
    home.write_agent("mcp.json", r#"{"mcpServers": {"a b": {}}}"#);
    let mut editor = Editor::ready(&home, &[], &json!({}));
    let opened = editor.call("session/new", json!({"cwd": home.project(), "mcpServers": []}));
    let session = opened["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(editor.turn(&session, "Do it."), "end_turn");
    assert!(editor.text().contains("server \"a b\" is left out"), "{}", editor.text());
    for message in &editor.seen {
        assert!(message["method"].is_null() || message["method"] == "session/update", "{message}");
        let kind = message["params"]["update"]["sessionUpdate"].as_str().unwrap_or_default();
        assert!(!["notice", "compaction_update"].contains(&kind), "{message}");
    }
}

#[test]
fn a_client_that_shows_notices_gets_them_at_once() {
    let (_server, home) = with_answer("Hello.");
    home.write_agent("mcp.json", r#"{"mcpServers": {"a b": {}}}"#);
    let mut editor = Editor::ready(&home, &[], &able());
    editor.call("session/new", json!({"cwd": home.project(), "mcpServers": []}));
    let notice = editor.update("notice");
    assert_eq!(notice["severity"], "warning");
    assert!(notice["title"].as_str().unwrap().contains("a b"), "{notice}");
}

#[test]
fn flags_of_a_session_do_not_go_with_an_editor() {
    let home = Home::new();
    for (args, says) in [
        (&["--continue"][..], "--continue does not go with `agentd acp`"),
        (&["--session", "x"], "--session does not go"),
        (&["hello"], "hello does not go"),
    ] {
        for mode in [&["acp"][..], &["--mode", "acp"]] {
            let said = agentd_e2e::ctl::agentd(&home, &[mode, args].concat()).output().unwrap();
            let stderr = String::from_utf8_lossy(&said.stderr);
            assert!(stderr.contains(says) && said.stdout.is_empty(), "{mode:?} {args:?}: {stderr}");
        }
    }
}

#[test]
fn flags_of_the_model_count_for_each_session() {
    let home = Home::new();
    let mut editor = Editor::ready(&home, &["--demo", "--permissions", "ask"], &json!({}));
    let opened = editor.call("session/new", json!({"cwd": home.project(), "mcpServers": []}));
    assert_eq!(opened["modes"]["currentModeId"], "ask");
    let model = opened["configOptions"].as_array().unwrap().iter().find(|option| option["id"] == "model");
    assert_eq!(model.unwrap()["currentValue"], "demo/demo");
}

/// AUTH: a way to log in that needs a terminal is only offered to editors that have one for it.
#[test]
fn the_way_to_log_in_is_one_that_the_editor_can_show() {
    let methods = |capabilities: Value| {
        let home = Home::new();
        Editor::start(&home, &["--demo"]).initialize(&capabilities)["authMethods"].clone()
    };
    let plain = methods(able());
    assert_eq!(
        (&plain[0]["id"], &plain[0]["type"], plain.as_array().unwrap().len()),
        (&json!("agentd-login"), &Value::Null, 1)
    );
    let terminal = methods(json!({"auth": {"terminal": true}}));
    assert_eq!((&terminal[0]["type"], &terminal[0]["args"]), (&json!("terminal"), &json!(["login"])));
    let older = methods(json!({"_meta": {"terminal-auth": true}}));
    let command = &older[0]["_meta"]["terminal-auth"];
    assert_eq!((&older[0]["type"], &command["args"]), (&Value::Null, &json!(["acp", "login"])));
    assert!(std::path::Path::new(command["command"].as_str().unwrap()).is_file(), "{command}");
}

/// What such an editor runs: its command line, with `login` at the end.
#[test]
fn an_editors_terminal_logs_in() {
    let home = Home::new();
    let mut terminal = Terminal::start(&home, &binaries::agentd(), &["acp", "--shared", "login"]);
    terminal.wait_for("Provider: ");
    terminal.press("openai\r");
    terminal.wait_for("Key for openai (it is not shown): ");
    terminal.press("sk-typed-1234\r");
    let done = terminal.finish();
    assert_eq!(done.code, 0, "{done:?}");
    let stored = std::fs::read_to_string(home.agent_dir().join("auth.json")).unwrap();
    assert!(stored.contains("sk-typed-1234") && !done.stdout.contains("sk-typed"), "{done:?}");
    let mut terminal = Terminal::start(&home, &binaries::agentd(), &["acp", "login"]);
    terminal.wait_for("Provider: ");
    terminal.press("\r");
    let done = terminal.finish();
    assert!(done.code != 0 && done.stdout.contains("no provider was named"), "{done:?}");
}
