//! Long lines in parts (`rpc_chunk`), for a connection that negotiated version 2 of the frames.
//!
//! It is a view of one connection on batches that are finished: a connection that did not ask for it keeps no state, and a batch
//! that is shorter than a frame is not looked at.

use agentd_protocol::{
    chunked::{CHUNK_BYTES, MAX_FRAME_BYTES, MAX_REASSEMBLED_FRAME_BYTES, RpcChunk, RpcFrameError},
    error::{ErrorCode, Failure},
    event::Event,
    frame::Response,
    lines::write_line,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::transport::Output;

/// The text of what stands in place of a line that is too long for parts.
const TOO_LONG: &str = "The line is longer than 64 MiB, the most that can be sent in parts.";

/// Splits the long lines of a connection.
#[derive(Debug, Default)]
pub(super) struct LongLines {
    /// The lines that were split so far; names the next.
    count: u64,
}

impl LongLines {
    /// Writes a batch of finished lines, long ones in parts; false when writing has failed. Beside the batch itself, one part is in
    /// memory at a time.
    pub(super) async fn write(&mut self, batch: Vec<u8>, output: &Output) -> bool {
        if batch.len() <= MAX_FRAME_BYTES {
            return output.write(batch).await;
        }
        let mut short = Vec::new();
        for line in batch.split_inclusive(|byte| *byte == b'\n') {
            if line.len() <= MAX_FRAME_BYTES {
                short.extend_from_slice(line);
                continue;
            }
            if !short.is_empty() && !output.write(std::mem::take(&mut short)).await {
                return false;
            }
            self.count += 1;
            for part in parts(line.strip_suffix(b"\n").unwrap_or(line), self.count) {
                if !output.write(part).await {
                    return false;
                }
            }
        }
        short.is_empty() || output.write(short).await
    }
}

/// The parts of a line, each a line with its LF. A line that is too long for parts has one: what stands in its place.
fn parts(line: &[u8], number: u64) -> impl Iterator<Item = Vec<u8>> {
    let is_too_long = line.len() > MAX_REASSEMBLED_FRAME_BYTES;
    let count = line.len().div_ceil(CHUNK_BYTES) as u64;
    let chunks = if is_too_long { [].chunks(CHUNK_BYTES) } else { line.chunks(CHUNK_BYTES) };
    let chunk = move |(index, bytes): (usize, &[u8])| {
        finished(&Event::from(RpcChunk {
            chunk_id: format!("line-{number}"),
            index: index as u64,
            count,
            byte_length: line.len() as u64,
            data: STANDARD.encode(bytes),
        }))
    };
    is_too_long.then(|| substitute(line)).into_iter().chain(chunks.enumerate().map(chunk))
}

/// The line in place of one that is too long for parts: a failed response, an end of a run without messages, or a line that names
/// the event.
fn substitute(line: &[u8]) -> Vec<u8> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Head {
        id: Option<Value>,
        #[serde(rename = "type")]
        kind: Option<String>,
        command: Option<String>,
        will_retry: Option<bool>,
        session_id: Option<String>,
        seq: Option<u64>,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct RunEnd {
        #[serde(rename = "type")]
        kind: &'static str,
        messages: [(); 0],
        will_retry: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        session_id: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        seq: Option<u64>,
    }
    let head = serde_json::from_slice::<Head>(line).ok();
    match head {
        Some(Head { id, kind, command, .. }) if kind.as_deref() == Some("response") => {
            let failure = Failure::new(ErrorCode::TooLarge, TOO_LONG)
                .hint("Ask for less at a time: get_messages_page, get_entries with since.");
            finished(&Response::<()>::failed(id, command.as_deref(), failure))
        }
        Some(Head { kind, will_retry, session_id, seq, .. }) if kind.as_deref() == Some("agent_end") => {
            let will_retry = will_retry.unwrap_or_default();
            finished(&RunEnd { kind: "agent_end", messages: [], will_retry, session_id, seq })
        }
        head => finished(&Event::from(RpcFrameError {
            original_type: head.and_then(|head| head.kind),
            error: TOO_LONG.to_owned(),
        })),
    }
}

/// A record as a line with its LF; empty when it cannot be written.
fn finished<T: Serialize>(record: &T) -> Vec<u8> {
    let mut out = Vec::new();
    match serde_json::to_vec(record) {
        Ok(line) => write_line(&line, &mut out),
        Err(error) => tracing::error!(%error, "cannot write a part of a line"),
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::transport::in_process_pair;

    /// Writes a batch, and gives the lines that arrive.
    async fn written(batch: Vec<u8>) -> Vec<String> {
        let (mut client, _lines, output) = in_process_pair();
        let writing = tokio::spawn(async move {
            let mut long = LongLines::default();
            assert!(long.write(batch, &output).await);
            output.finish().await
        });
        let mut bytes = Vec::new();
        while let Some(batch) = client.next().await {
            bytes.extend(batch);
        }
        writing.await.unwrap().unwrap();
        let lines = String::from_utf8(bytes).unwrap();
        lines.lines().map(str::to_owned).collect()
    }

    /// Joins the parts of lines, as a client does.
    fn joined(lines: &[String]) -> Vec<String> {
        let mut whole = Vec::new();
        let mut open: Vec<RpcChunk> = Vec::new();
        for line in lines {
            assert!(line.len() < MAX_FRAME_BYTES, "{} bytes", line.len());
            let Ok(chunk) = serde_json::from_str::<RpcChunk>(line) else {
                assert!(open.is_empty(), "parts follow each other");
                whole.push(line.clone());
                continue;
            };
            assert_eq!(chunk.index, open.len() as u64);
            if let Some(first) = open.first() {
                assert_eq!(
                    (&first.chunk_id, first.count, first.byte_length),
                    (&chunk.chunk_id, chunk.count, chunk.byte_length)
                );
            }
            let (count, length) = (chunk.count, chunk.byte_length);
            open.push(chunk);
            if open.len() as u64 == count {
                let bytes: Vec<u8> =
                    open.drain(..).flat_map(|chunk| STANDARD.decode(chunk.data).unwrap()).collect();
                assert!(bytes.len() as u64 == length && bytes.len() >= MAX_FRAME_BYTES);
                whole.push(String::from_utf8(bytes).unwrap());
            }
        }
        assert!(open.is_empty());
        whole
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn lines_of_any_length_are_what_they_were(lengths in prop::collection::vec(
            prop_oneof![1_usize..2000, MAX_FRAME_BYTES - 2..MAX_FRAME_BYTES + 2, MAX_FRAME_BYTES..3 * MAX_FRAME_BYTES],
            1..5,
        )) {
            let lines: Vec<String> = lengths.iter().map(|length| "é".repeat(length / 2) + &"x".repeat(length % 2)).collect();
            let batch = lines.iter().fold(Vec::new(), |mut batch, line| {
                write_line(line.as_bytes(), &mut batch);
                batch
            });
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            prop_assert_eq!(joined(&runtime.block_on(written(batch))), lines);
        }
    }

    #[tokio::test]
    async fn a_batch_of_short_lines_is_passed_on_as_it_is() {
        assert_eq!(written(b"{\"a\":1}\n{\"b\":2}\n".to_vec()).await, ["{\"a\":1}", "{\"b\":2}"]);
    }

    #[test]
    fn lines_too_long_for_parts_are_told_of() {
        let pad = "x".repeat(MAX_REASSEMBLED_FRAME_BYTES);
        let check = |line: String, expected: &str| {
            let parts: Vec<_> = parts(line.as_bytes(), 1).collect();
            let text = parts.concat();
            let value: Value = serde_json::from_slice(&text).unwrap();
            assert_eq!(parts.len(), 1);
            assert!(text.starts_with(expected.as_bytes()), "{value}");
        };
        check(
            format!(r#"{{"id":7,"type":"response","command":"get_messages","success":true,"data":"{pad}"}}"#),
            r#"{"id":7,"type":"response","command":"get_messages","success":false,"error":"The line is longer"#,
        );
        check(
            format!(
                r#"{{"type":"agent_end","messages":["{pad}"],"willRetry":true,"sessionId":"s","seq":9}}"#
            ),
            r#"{"type":"agent_end","messages":[],"willRetry":true,"sessionId":"s","seq":9}"#,
        );
        check(
            format!(r#"{{"type":"turn_end","message":"{pad}"}}"#),
            r#"{"type":"rpc_frame_error","originalType":"turn_end","error":"The line is longer"#,
        );
    }
}
