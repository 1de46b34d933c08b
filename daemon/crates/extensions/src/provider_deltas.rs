//! The events of a stream of pi as deltas. Pure.

use agentd_ai::{BlockKind, BlockSeal, Delta};
use serde_json::Value;

/// The blocks of an answer that streams.
#[derive(Debug, Default)]
pub(crate) struct StreamedBlocks {
    /// The bytes of each block so far; `None` once it is sealed.
    blocks: Vec<Option<usize>>,
    is_started: bool,
}

impl StreamedBlocks {
    /// The deltas of an event. Events out of order give none: the whole answer follows.
    pub(crate) fn take(&mut self, mut event: Value) -> Vec<Delta> {
        let mut deltas = Vec::new();
        if !std::mem::replace(&mut self.is_started, true) {
            deltas.push(Delta::Started);
        }
        if let Some(usage) = event.get_mut("usage").map(Value::take)
            && let Ok(usage) = serde_json::from_value(usage)
        {
            deltas.push(Delta::Usage(usage));
        }
        let Some(index) = event["contentIndex"].as_u64().and_then(|index| usize::try_from(index).ok()) else {
            return deltas;
        };
        let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        let kind = event["type"].as_str().unwrap_or_default();
        let (what, step) = kind.rsplit_once('_').unwrap_or_default();
        match step {
            "start" => {
                let kind = match what {
                    "text" => BlockKind::Text,
                    "thinking" => BlockKind::Thinking,
                    "toolcall" => BlockKind::ToolCall { id: text("id"), name: text("toolName") },
                    _ => return deltas,
                };
                if index == self.blocks.len() {
                    self.blocks.push(Some(0));
                    deltas.push(Delta::Open { index, kind });
                }
            }
            "delta" => self.extend(index, text("delta"), &mut deltas),
            "end" => {
                // Some providers tell the content only at its end.
                if self.blocks.get(index) == Some(&Some(0)) {
                    let whole = match what {
                        "toolcall" => event["toolCall"]["arguments"].to_string(),
                        _ => text("content"),
                    };
                    self.extend(index, whole, &mut deltas);
                }
                if let Some(block @ Some(_)) = self.blocks.get_mut(index) {
                    *block = None;
                    deltas.push(Delta::Seal { index, seal: BlockSeal::default() });
                }
            }
            _ => {}
        }
        deltas
    }

    fn extend(&mut self, index: usize, delta: String, deltas: &mut Vec<Delta>) {
        if let Some(Some(bytes)) = self.blocks.get_mut(index) {
            *bytes += delta.len();
            deltas.push(Delta::Extend { index, delta });
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_become_deltas_in_their_legal_order() {
        let mut blocks = StreamedBlocks::default();
        let events = [
            json!({"type": "start", "message": {}}),
            json!({"type": "text_start", "contentIndex": 0}),
            json!({"type": "text_delta", "contentIndex": 0, "delta": "a"}),
            json!({"type": "text_delta", "contentIndex": 4, "delta": "lost"}),
            json!({"type": "text_end", "contentIndex": 0, "content": "a"}),
            json!({"type": "toolcall_start", "contentIndex": 1, "id": "c", "toolName": "t"}),
            json!({"type": "toolcall_end", "contentIndex": 1, "toolCall": {"arguments": {"x": 1}}}),
            json!({"type": "done", "usage": {"input": 3}}),
        ];
        let deltas: Vec<Delta> = events.into_iter().flat_map(|event| blocks.take(event)).collect();
        let seal = |index| Delta::Seal { index, seal: BlockSeal::default() };
        let call = BlockKind::ToolCall { id: "c".into(), name: "t".into() };
        assert_eq!(
            deltas[..7],
            [
                Delta::Started,
                Delta::Open { index: 0, kind: BlockKind::Text },
                Delta::Extend { index: 0, delta: "a".into() },
                seal(0),
                Delta::Open { index: 1, kind: call },
                Delta::Extend { index: 1, delta: "{\"x\":1}".into() },
                seal(1),
            ]
        );
        assert!(matches!(&deltas[7], Delta::Usage(usage) if usage.input == 3));
    }
}
