//! A second, simplest accumulator, which checks the real one.

use std::sync::Arc;

use agentd_protocol::{
    event::AssistantMessageEvent,
    message::{ContentBlock, StopReason, Usage},
    model::Model,
    number::MAX_COUNT,
};

use crate::{
    Accumulator, BlockKind, Delta,
    failure::FailureKind,
    partial_json::{best_reading, parse_arguments},
};

/// Checks that the accumulator's message is the sum of these deltas, and that its events tell the same.
pub(super) fn check(deltas: &[Delta]) {
    let mut accumulator = Accumulator::new(Arc::new(Model::placeholder()), 0);
    let mut told: Vec<String> = Vec::new();
    let mut ends = 0;
    for delta in deltas {
        match accumulator.fold(delta.clone()) {
            Some(
                AssistantMessageEvent::TextStart { content_index }
                | AssistantMessageEvent::ThinkingStart { content_index }
                | AssistantMessageEvent::ToolcallStart { content_index, .. },
            ) => {
                assert_eq!(content_index, told.len());
                told.push(String::new());
            }
            Some(
                AssistantMessageEvent::TextDelta { content_index, delta }
                | AssistantMessageEvent::ThinkingDelta { content_index, delta }
                | AssistantMessageEvent::ToolcallDelta { content_index, delta },
            ) => told[content_index].push_str(&delta),
            Some(
                AssistantMessageEvent::TextEnd { .. }
                | AssistantMessageEvent::ThinkingEnd { .. }
                | AssistantMessageEvent::ToolcallEnd { .. },
            ) => ends += 1,
            None => assert!(
                !matches!(delta, Delta::Open { .. } | Delta::Extend { .. } | Delta::Seal { .. }),
                "clients are not told of {delta:?}"
            ),
        }
    }
    assert!(accumulator.is_finished());
    assert_eq!(ends, told.len(), "every block that begins ends");
    let failure = accumulator.failure().cloned();
    let message = accumulator.into_message();
    assert_eq!(message.content.len(), told.len());
    for (index, (block, text)) in message.content.iter().zip(&told).enumerate() {
        let sum: String = deltas
            .iter()
            .filter_map(|delta| match delta {
                Delta::Extend { index: at, delta } if *at == index => Some(delta.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(&sum, text);
        check_block(index, block, &sum, deltas);
    }
    match deltas.last() {
        Some(Delta::Done { stop_reason, .. }) => {
            assert_eq!((message.stop_reason, &failure), (*stop_reason, &None));
            assert!(matches!(stop_reason, StopReason::Stop | StopReason::Length | StopReason::ToolUse));
        }
        Some(Delta::Failed { failure: said, .. }) => {
            let aborted = said.kind == FailureKind::Aborted;
            assert_eq!(message.stop_reason, if aborted { StopReason::Aborted } else { StopReason::Error });
            assert!(message.error_message.as_deref().is_some_and(|text| !text.is_empty()), "{said:?}");
        }
        other => panic!("the last delta is {other:?}"),
    }
    let usage = deltas.iter().rev().find_map(|delta| match delta {
        Delta::Usage(usage) => Some(usage),
        _ => None,
    });
    let counts = |usage: &Usage| (usage.input.min(MAX_COUNT), usage.output.min(MAX_COUNT));
    assert_eq!(counts(&message.usage), usage.map_or((0, 0), counts));
}

fn check_block(index: usize, block: &ContentBlock, sum: &str, deltas: &[Delta]) {
    let kind = deltas.iter().find_map(|delta| match delta {
        Delta::Open { index: at, kind } if *at == index => Some(kind),
        _ => None,
    });
    let seal = deltas.iter().find_map(|delta| match delta {
        Delta::Seal { index: at, seal } if *at == index => Some(seal),
        _ => None,
    });
    let (Some(kind), Some(seal)) = (kind, seal) else { panic!("block {index} of {deltas:?}") };
    match (kind, block) {
        (BlockKind::Text, ContentBlock::Text { text, text_signature }) => {
            assert_eq!((text.as_str(), text_signature), (sum, &seal.signature));
        }
        (BlockKind::Thinking, ContentBlock::Thinking { thinking, thinking_signature, redacted }) => {
            assert_eq!((thinking.as_str(), thinking_signature), (sum, &seal.signature));
            assert_eq!(redacted.unwrap_or_default(), seal.redacted);
        }
        (BlockKind::ToolCall { id, name }, ContentBlock::ToolCall(call)) => {
            assert_eq!((&call.id, &call.name, &call.thought_signature), (id, name, &seal.signature));
            assert!(!id.is_empty(), "a call without an id cannot be answered");
            let expected = if seal.incomplete { Ok(best_reading(sum)) } else { parse_arguments(sum) };
            match expected {
                Ok(arguments) => {
                    assert_eq!((&call.arguments, &call.arguments_error), (&arguments, &None));
                }
                Err(error) => assert_eq!(call.arguments_error, Some(error.to_string())),
            }
        }
        (kind, block) => panic!("{kind:?} became {block:?}"),
    }
}
