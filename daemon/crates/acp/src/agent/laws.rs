//! Laws of any lines: nothing panics, and what is written are whole messages.

use proptest::prelude::*;

use super::{Agent, AgentOptions, Effects};
use crate::terminals::{TerminalCommand, TerminalRequest};

/// Lines of both sides as they come, most of them.
const LINES: &[&str] = &[
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"session":{"notices":{},"compaction":{}},"elicitation":{"form":{}},"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true}}}"#,
    r#"{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/p","mcpServers":[{"name":"x"}]}}"#,
    r#"{"jsonrpc":"2.0","id":3,"method":"session/load","params":{"cwd":"/p","sessionId":"s","mcpServers":[]}}"#,
    r#"{"jsonrpc":"2.0","id":"p","method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"a"}]}}"#,
    r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}"#,
    r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"p"}}"#,
    r#"{"jsonrpc":"2.0","id":4,"method":"session/set_mode","params":{"sessionId":"s","modeId":"ask"}}"#,
    r#"{"jsonrpc":"2.0","id":5,"method":"session/close","params":{"sessionId":"s"}}"#,
    r#"{"jsonrpc":"2.0","id":1,"result":{"outcome":{"outcome":"selected","optionId":"once"}}}"#,
    r#"{"jsonrpc":"2.0","id":1,"result":{"terminalId":"t"}}"#,
    r#"{"jsonrpc":"2.0","id":2,"result":{"exitCode":0}}"#,
    r#"{"id":2,"type":"response","command":"open_session","success":true,"data":{"model":{"id":"m","name":"M","api":"a","provider":"p","contextWindow":100},"thinkingLevel":"off","isStreaming":false,"isCompacting":false,"steeringMode":"all","followUpMode":"all","sessionId":"s","cwd":"/p","autoCompactionEnabled":true,"messageCount":0,"pendingMessageCount":0,"epoch":"e","seq":0}}"#,
    r#"{"id":3,"type":"response","command":"get_available_models","success":true,"data":{"models":[]}}"#,
    r#"{"id":4,"type":"response","command":"get_available_thinking_levels","success":true,"data":{"levels":["off","high"]}}"#,
    r#"{"id":5,"type":"response","command":"get_tools","success":true,"data":{"tools":[]}}"#,
    r#"{"type":"tools_changed","tools":[{"name":"mcp__a__b","active":true,"source":"mcp","server":"a","label":"L"}],"sessionId":"s","seq":2}"#,
    r#"{"id":6,"type":"response","command":"get_commands","success":true,"data":{"commands":[]}}"#,
    r#"{"id":7,"type":"response","command":"prompt","success":true,"data":{"disposition":"started"}}"#,
    r#"{"id":8,"type":"response","command":"get_session_stats","success":false,"error":"no","code":"internal"}"#,
    r#"{"type":"message_start","message":{"role":"assistant","content":[],"stopReason":"pending"},"sessionId":"s","seq":3}"#,
    r#"{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"a"},"sessionId":"s","seq":4}"#,
    r#"{"type":"message_update","assistantMessageEvent":{"type":"toolcall_start","contentIndex":1,"id":"c","toolName":"write"},"sessionId":"s","seq":5}"#,
    r#"{"type":"message_update","assistantMessageEvent":{"type":"toolcall_delta","contentIndex":1,"delta":"{\"path\":\"a\","},"sessionId":"s","seq":6}"#,
    r#"{"type":"tool_execution_end","toolCallId":"c","toolName":"write","result":{"content":[]},"isError":false,"sessionId":"s","seq":7}"#,
    r#"{"type":"extension_ui_request","id":"q","method":"confirm","title":"t","message":"m","sessionId":"s","seq":8}"#,
    r#"{"type":"ui_request_resolved","id":"q","sessionId":"s","seq":9}"#,
    r#"{"type":"compaction_start","reason":"manual","sessionId":"s","seq":10}"#,
    r#"{"type":"agent_settled","aborted":false,"sessionId":"s","seq":11}"#,
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
        let mut agent = Agent::start(AgentOptions { local_files: true, ..AgentOptions::default() }, &mut effects);
        for (number, (swapped, line)) in lines.iter().enumerate() {
            let is_of_editor = line.starts_with("{\"jsonrpc\"") != (*swapped && number % 7 == 0);
            if is_of_editor {
                agent.client_line(line, &mut effects);
            } else {
                agent.daemon_line(line, &mut effects);
            }
            if number % 5 == 0 {
                let terminal = || "t".to_owned();
                let requests = [
                    TerminalRequest::Create(TerminalCommand {
                        call: "c".into(),
                        program: "sh".into(),
                        args: vec!["-c".into(), "ls".into()],
                        env: Vec::new(),
                        cwd: "/p".into(),
                        output_limit: 1,
                    }),
                    TerminalRequest::Exit(terminal()),
                    TerminalRequest::Release(terminal()),
                ];
                for request in requests {
                    agent.terminal_wanted(number as u64, "s", request, &mut effects);
                }
            }
            for read in std::mem::take(&mut effects.reads) {
                agent.file_read(&read, Some("old".to_owned()));
            }
        }
        agent.client_gone(&mut effects);
        agent.daemon_gone(&mut effects);
        prop_assert!(agent.is_idle());
        let text = String::from_utf8(effects.to_client).unwrap();
        prop_assert!(text.is_empty() || text.ends_with('\n'));
        for line in text.lines() {
            let message: serde_json::Value = serde_json::from_str(line).unwrap();
            prop_assert_eq!(&message["jsonrpc"], "2.0");
        }
        for line in &effects.to_daemon {
            let command: serde_json::Value = serde_json::from_str(line).unwrap();
            prop_assert!(command["type"].is_string());
        }
    }
}
