//! Reading and listing sessions.

use agentd_e2e::{Home, MockServer, Reply, sse};
use serde_json::{Value, json};

use super::agent::Agent;

#[test]
fn a_transcript_is_read_in_pages() {
    let server = MockServer::start([
        Reply::stream(sse::calls(&[("call_1", "bash", json!({"command": "echo hi; exit 3"}))])),
        Reply::stream(sse::answer("It said hi.")),
        Reply::stream(sse::answer(&"long ".repeat(5000))),
    ]);
    let home = Home::with_model(&server);
    let mut agent = Agent::ready(&home, &[], &json!({}));
    let session = agent.tool("prompt", &json!({"prompt": "Say hi."}))["sessionId"].clone();
    agent.tool("prompt", &json!({"prompt": "Talk.", "sessionId": session}));
    let mut seen: Vec<Value> = Vec::new();
    let mut given = json!({"sessionId": session, "limit": 2});
    loop {
        let page = agent.tool("read_session", &given);
        assert_eq!(page["total"], 6, "{page}");
        seen.extend(page["messages"].as_array().unwrap().iter().cloned());
        let Some(cursor) = page.get("nextCursor") else { break };
        given["cursor"] = cursor.clone();
    }
    let roles: Vec<&str> = seen.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant", "user", "assistant"]);
    assert_eq!(seen[0]["text"], "Say hi.");
    assert_eq!(
        seen[1]["toolCalls"][0],
        json!({"tool": "bash", "arguments": "{\"command\":\"echo hi; exit 3\"}"})
    );
    assert_eq!(seen[2]["isError"], true);
    assert!(seen[5]["text"].as_str().unwrap().ends_with("more bytes left out]"), "{}", seen[5]);
    let end = agent.tool("read_session", &json!({"sessionId": session, "last": 2}));
    assert_eq!(end["messages"][0]["text"], "Talk.");
    let text = agent.failure("read_session", &json!({"sessionId": session, "cursor": "nowhere"}));
    assert!(text.contains("cursor"), "{text}");
}

/// A session that is only a file is read, and does not begin to work by that.
#[test]
fn a_stored_session_is_read_by_another_process() {
    let server = MockServer::start([Reply::stream(sse::answer("Hello."))]);
    let home = Home::with_model(&server);
    let mut agent = Agent::ready(&home, &[], &json!({}));
    let session = agent.tool("prompt", &json!({"prompt": "Hi."}))["sessionId"].clone();
    agent.close();
    let mut agent = Agent::ready(&home, &[], &json!({}));
    let page = agent.tool("read_session", &json!({"sessionId": session}));
    assert_eq!(page["messages"][1]["text"], "Hello.");
    let beginning = &session.as_str().unwrap()[..30];
    let text = agent.failure("read_session", &json!({"sessionId": beginning}));
    assert!(text.contains("There is no session"), "{text}");
    let text = agent.failure("prompt", &json!({"prompt": "a", "sessionId": beginning}));
    assert!(text.contains("There is no session"), "{text}");
    let text = agent.failure("steer", &json!({"sessionId": session, "message": "a"}));
    assert!(text.contains("does not work on anything"), "{text}");
    assert_eq!(server.requests().len(), 1);
}

/// Another session would begin in the place of the file: the caller hears that its own is gone.
#[test]
fn a_session_whose_file_is_gone_is_none() {
    let server = MockServer::start([Reply::stream(sse::answer("Hello."))]);
    let home = Home::with_model(&server);
    let mut agent = Agent::ready(&home, &[], &json!({}));
    let session = agent.tool("prompt", &json!({"prompt": "Hi."}))["sessionId"].clone();
    agent.close();
    let mut agent = Agent::ready(&home, &[], &json!({}));
    assert_eq!(agent.tool("list_sessions", &json!({}))["sessions"][0]["sessionId"], session);
    std::fs::remove_file(&home.session_files()[0]).unwrap();
    for (tool, given) in [
        ("prompt", json!({"prompt": "a", "sessionId": session})),
        ("read_session", json!({"sessionId": session})),
    ] {
        let text = agent.failure(tool, &given);
        assert!(text.contains("There is no session"), "{text}");
    }
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn sessions_are_listed_in_pages_and_searched() {
    let server = MockServer::always(Reply::stream(sse::answer("Yes.")));
    let home = Home::with_model(&server);
    let mut agent = Agent::ready(&home, &[], &json!({}));
    for words in ["apples", "pears", "plums"] {
        agent.tool("prompt", &json!({"prompt": words}));
    }
    let first = agent.tool("list_sessions", &json!({"limit": 2}));
    let second = agent.tool("list_sessions", &json!({"limit": 2, "cursor": first["nextCursor"]}));
    let mut found: Vec<&str> = [&first, &second]
        .into_iter()
        .flat_map(|page| page["sessions"].as_array().unwrap())
        .map(|session| session["firstMessage"].as_str().unwrap())
        .collect();
    found.sort_unstable();
    assert_eq!((found, second.get("nextCursor")), (vec!["apples", "pears", "plums"], None));
    let pears = agent.tool("list_sessions", &json!({"search": "pear"}));
    assert_eq!(pears["sessions"].as_array().unwrap().len(), 1);
    assert_eq!(agent.tool("list_sessions", &json!({"cwd": "/"}))["sessions"], json!([]));
}
