//! Clients that read as fast as they can, each on a thread.

use std::{
    io::Read,
    net::Shutdown,
    os::unix::net::UnixStream,
    thread::{self, JoinHandle},
};

use agentd_e2e::{DEADLINE, Service};
use serde_json::{Value, json};

const END: &[u8] = b"\"type\":\"agent_settled\"";

/// A client that has attached to a session.
pub(crate) fn attach(service: &Service, session: &Value) -> UnixStream {
    let mut client = service.client();
    client.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}));
    client.done(json!({"type": "attach_session", "sessionId": session}));
    client.stream()
}

/// Reads until the run has ended, and gives everything.
pub(crate) fn until_settled(mut stream: UnixStream) -> JoinHandle<Vec<u8>> {
    stream.set_read_timeout(Some(4 * DEADLINE)).expect("a time limit");
    let reading = move || {
        let (mut all, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
        loop {
            let count = stream.read(&mut buffer).expect("agentd writes");
            assert!(count > 0, "agentd left before the end of the run");
            let look = all.len().saturating_sub(END.len());
            all.extend_from_slice(&buffer[..count]);
            if all.ends_with(b"\n") && all[look..].windows(END.len()).any(|window| window == END) {
                let _ = stream.shutdown(Shutdown::Both);
                return all;
            }
        }
    };
    thread::Builder::new().stack_size(128 << 10).spawn(reading).expect("a thread")
}

/// Checks that events are numbered without a hole, and gives what the deltas add up to and the text of the last message.
pub(crate) fn check(all: &[u8]) -> (String, String) {
    let (mut streamed, mut message, mut seq) = (String::new(), String::new(), None);
    for line in all.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let line: Value = serde_json::from_slice(line).expect("a record");
        if line["type"] == "response" {
            continue;
        }
        let number = line["seq"].as_u64();
        assert!(seq.is_none() || number == seq.map(|seq: u64| seq + 1), "after {seq:?}: {line}");
        seq = number;
        let delta = &line["assistantMessageEvent"];
        if delta["type"] == "text_delta" {
            streamed.push_str(delta["delta"].as_str().expect("a text"));
        }
        if line["type"] == "message_end" && line["message"]["role"] == "assistant" {
            message = line["message"]["content"][0]["text"].as_str().expect("a text").to_owned();
        }
    }
    (streamed, message)
}
