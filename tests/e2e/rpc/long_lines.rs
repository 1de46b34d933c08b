//! The first line with `--ready`, and long lines in parts.

use agentd_e2e::{Conversation, Daemon, Home, MockServer, Reply, conversation::LineTransport, sse};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::support::{assert_says, complaint};

/// Takes lines until one is whole: joins the parts of a long one.
fn whole_line<W: LineTransport>(client: &mut Conversation<W>) -> Value {
    let mut bytes = Vec::new();
    loop {
        let line = client.line();
        assert!(line.to_string().len() < 1 << 20, "a line is short");
        if line["type"] != "rpc_chunk" {
            assert!(bytes.is_empty(), "nothing comes between the parts of a line: {line}");
            return line;
        }
        bytes.extend(STANDARD.decode(line["data"].as_str().expect("data")).expect("base64"));
        if line["index"].as_u64().map(|index| index + 1) == line["count"].as_u64() {
            assert_eq!(line["byteLength"], bytes.len());
            return serde_json::from_slice(&bytes).expect("a line");
        }
    }
}

#[test]
fn the_first_line_tells_what_can_be_negotiated() {
    let home = Home::new();
    let ready = json!({
        "type": "ready", "protocolVersion": 1, "supportedProtocolVersions": [1, 2],
        "maxFrameBytes": 1 << 20, "maxReassembledFrameBytes": 64 << 20,
    });
    let mut daemon = Daemon::start(&home, &["--no-session", "--ready"]);
    assert_eq!(daemon.line(), ready);
    let mut bridge = Daemon::start_shared(&home, &["--no-session", "--ready"]);
    assert_eq!(bridge.line(), ready);
    // Without the flag the first line is an answer, as in pi.
    let mut plain = Daemon::start(&home, &["--no-session"]);
    plain.send(&json!({"id": "1", "type": "abort"}));
    assert_eq!(plain.line()["command"], "abort");
}

#[test]
fn long_lines_come_in_parts_once_that_is_negotiated() {
    let words = "Lang, länger, am längsten. ".repeat(60_000);
    let server = MockServer::start([Reply::stream(sse::answer(&words))]);
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &["--ready"]);
    assert_eq!(daemon.line()["type"], "ready");
    let refused = daemon.refused(json!({"type": "negotiate_protocol", "protocolVersion": 3}));
    assert_eq!(
        (&refused["code"], &refused["error"]),
        (&json!("unsupported"), &json!("Unsupported RPC protocol version: 3"))
    );
    assert_says(&complaint(&refused), &["1 (whole lines)", "2 (long lines in parts)"]);
    let negotiated = daemon.done(json!({"type": "negotiate_protocol", "protocolVersion": 2}));
    assert_eq!(negotiated, json!({"protocolVersion": 2}));
    daemon.send(&json!({"id": "p", "type": "prompt", "message": "Much."}));
    let mut said = None;
    loop {
        let line = whole_line(&mut daemon);
        match line["type"].as_str() {
            Some("message_end") if line["message"]["role"] == "assistant" => {
                said = line["message"]["content"][0]["text"].as_str().map(str::to_owned);
            }
            Some("agent_settled") => break,
            _ => {}
        }
    }
    assert_eq!(said.as_deref(), Some(words.as_str()));
    daemon.send(&json!({"id": "m", "type": "get_messages"}));
    let messages = loop {
        let line = whole_line(&mut daemon);
        if line["id"] == "m" {
            break line["data"]["messages"].clone();
        }
    };
    assert_eq!(messages[2]["content"][0]["text"], words);
    // Back to whole lines.
    daemon.done(json!({"type": "negotiate_protocol", "protocolVersion": 1}));
    let messages = daemon.done(json!({"type": "get_messages"}));
    assert_eq!(messages["messages"][2]["content"][0]["text"], words);
}
