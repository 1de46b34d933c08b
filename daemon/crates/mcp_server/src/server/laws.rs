//! Laws of any lines: nothing panics, what is written are whole messages, and every request gets one answer at most.

use std::collections::HashMap;

use proptest::prelude::*;
use serde_json::Value;

use super::{Effects, Server, ServerOptions};

/// Lines of both sides as they come, most of them.
const LINES: &[&str] = &[
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"a","version":"1"}}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#,
    r#"{"jsonrpc":"2.0","id":"p","method":"tools/call","params":{"name":"prompt","arguments":{"prompt":"a"},"_meta":{"progressToken":1}}}"#,
    r#"{"jsonrpc":"2.0","id":"m","method":"tools/call","params":{"name":"prompt","arguments":{"prompt":"a","sessionId":"s"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}"#,
    r#"{"jsonrpc":"2.0","id":"n","method":"tools/call","params":{"name":"prompt","requestState":"s:1","inputResponses":{"q":{"action":"accept","content":{"decision":"once"}}},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}"#,
    r#"{"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#,
    r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"steer","arguments":{"sessionId":"s","message":"a"}}}"#,
    r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"abort","arguments":{"sessionId":"s"}}}"#,
    r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"read_session","arguments":{"sessionId":"s"}}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"p"}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"l"}}"#,
    r#"{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"decision":"once"}}}"#,
    r#"{"id":2,"type":"response","command":"open_session","success":true,"data":{"model":{"id":"m","name":"M","api":"a","provider":"p","contextWindow":100},"thinkingLevel":"off","isStreaming":false,"isCompacting":false,"steeringMode":"all","followUpMode":"all","sessionId":"s","cwd":"/p","autoCompactionEnabled":true,"messageCount":0,"pendingMessageCount":0,"epoch":"e","seq":0}}"#,
    r#"{"id":2,"type":"response","command":"list_sessions","success":true,"data":{"sessions":[{"id":"s","path":"/f","cwd":"/p","created":"","modified":"","messageCount":1,"firstMessage":"a","live":false,"isStreaming":false,"clients":0}]}}"#,
    r#"{"id":3,"type":"response","command":"prompt","success":true,"data":{"disposition":"started"}}"#,
    r#"{"id":3,"type":"response","command":"prompt","success":false,"error":"no","code":"busy"}"#,
    r#"{"id":4,"type":"response","command":"get_entries","success":false,"error":"no","code":"session_not_found"}"#,
    r#"{"id":5,"type":"response","command":"get_state","success":false,"error":"no","code":"internal"}"#,
    r#"{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"a"}],"stopReason":"stop","timestamp":0},"sessionId":"s","seq":3}"#,
    r#"{"type":"tool_execution_start","toolCallId":"c","toolName":"bash","args":{"command":"ls"},"sessionId":"s","seq":4}"#,
    r#"{"type":"extension_ui_request","id":"q","method":"permission","title":"t","tool":"bash","reason":"r","options":[{"decision":"once","text":"Yes"},{"decision":"deny","text":"No"}],"timeout":1,"deadline":1,"sessionId":"s","seq":5}"#,
    r#"{"type":"ui_request_resolved","id":"q","sessionId":"s","seq":6}"#,
    r#"{"type":"agent_settled","aborted":false,"sessionId":"s","seq":7}"#,
    r#"{"type":"session_closed","sessionId":"s"}"#,
    r#"{"type":"lagged","sessionId":"s","fromSeq":1}"#,
];

/// A line as it comes, or with a piece of it replaced.
fn line() -> impl Strategy<Value = String> {
    let changed = |(line, from, length, text): (&str, prop::sample::Index, usize, String)| {
        let places: Vec<usize> = line.char_indices().map(|(place, _)| place).collect();
        let start = places[from.index(places.len())];
        let end = places.iter().copied().find(|place| *place >= start + length).unwrap_or(line.len());
        format!("{}{text}{}", &line[..start], &line[end..])
    };
    let any =
        (prop::sample::select(LINES), any::<prop::sample::Index>(), 0..20usize, "[a-z0-9\"{}\\[\\],:é]{0,6}");
    prop_oneof![4 => prop::sample::select(LINES).prop_map(str::to_owned), 1 => any.prop_map(changed)]
}

proptest! {
    #[test]
    fn any_lines_lead_to_whole_messages(lines in prop::collection::vec((any::<bool>(), line()), 0..60)) {
        let mut effects = Effects::default();
        let mut server = Server::start(ServerOptions::default(), &mut effects);
        let mut asked: HashMap<String, usize> = HashMap::new();
        for (number, (swapped, line)) in lines.iter().enumerate() {
            let is_of_client = line.starts_with("{\"jsonrpc\"") != (*swapped && number % 7 == 0);
            if is_of_client {
                let line_id = serde_json::from_str::<Value>(line).ok().map(|line| line["id"].to_string());
                *asked.entry(line_id.unwrap_or_default()).or_default() += 1;
                server.client_line(line, &mut effects);
            } else {
                server.daemon_line(line, &mut effects);
            }
            server.heartbeat(&mut effects);
        }
        server.client_gone(&mut effects);
        server.daemon_gone(&mut effects);
        prop_assert!(server.is_idle() && !server.wants_heartbeat());
        let text = String::from_utf8(effects.to_client).unwrap();
        prop_assert!(text.is_empty() || text.ends_with('\n'));
        for line in text.lines() {
            let message: Value = serde_json::from_str(line).unwrap();
            prop_assert_eq!(&message["jsonrpc"], "2.0");
            if message.get("method").is_none() && let Some(id) = message.get("id") {
                let open = asked.get_mut(&id.to_string()).filter(|open| **open > 0);
                prop_assert!(open.is_some(), "answered too often: {}", line);
                *open.unwrap() -= 1;
            }
        }
        for line in &effects.to_daemon {
            let command: Value = serde_json::from_str(line).unwrap();
            prop_assert!(command["type"].is_string());
        }
    }
}
