//! What a run knows of the rules on the stream: the answer that is watched, and the rules that have matched.

use std::{collections::HashMap, sync::Arc};

use agentd_protocol::event::{AssistantMessageEvent, ToolCallBlock};
use agentd_stream_rules::{AnswerWatch, StreamRule, StreamRules};

use crate::stream_rules::RuleChoices;

/// Interruptions of one run. After them, rules are told and stop nothing: a model that cannot do otherwise is not asked for ever.
pub(super) const MAX_INTERRUPTIONS: u32 = 20;

/// What a run knows of the rules.
#[derive(Default)]
pub(super) struct RunRules {
    pub(super) choices: Option<RuleChoices>,
    /// The answer that streams; `None` while no rule is watched.
    pub(super) watch: Option<AnswerWatch>,
    /// Rules that stop the answer now.
    pub(super) stopping: Vec<usize>,
    /// The interruption that ended the last answer.
    pub(super) interrupted: Option<Interrupted>,
    /// Rules that are told after the answer.
    pub(super) after_answer: Vec<usize>,
    /// Rules that are told with the result of a call: by the block of the call, then by its id.
    pub(super) of_blocks: HashMap<usize, Vec<usize>>,
    pub(super) of_calls: HashMap<String, Vec<usize>>,
    /// The rules of the result that is about to be stored.
    pub(super) with_result: Vec<String>,
    pub(super) interruptions: u32,
}

/// An answer that rules have stopped.
pub(super) struct Interrupted {
    pub(super) rules: Arc<StreamRules>,
    pub(super) which: Vec<usize>,
}

impl Interrupted {
    pub(super) fn rules(&self) -> Vec<&StreamRule> {
        self.which.iter().filter_map(|rule| self.rules.rules().get(*rule)).collect()
    }
}

/// The names of rules.
pub(super) fn names(rules: &StreamRules, which: &[usize]) -> Vec<String> {
    which.iter().filter_map(|rule| rules.rules().get(*rule)).map(|rule| rule.name.clone()).collect()
}

impl RunRules {
    /// Another answer is asked for.
    pub(super) fn begin(&mut self, rules: Option<Arc<StreamRules>>) {
        self.watch = rules.filter(|rules| !rules.is_empty()).map(AnswerWatch::new);
        self.stopping.clear();
        self.after_answer.clear();
        self.of_blocks.clear();
    }

    /// Whether an answer is watched.
    pub(super) fn is_watching(&self) -> bool {
        self.watch.is_some()
    }

    /// Looks at what was added to the answer: the rules that match it, by their place, and the block of the call where it is one.
    pub(super) fn look(&mut self, event: &AssistantMessageEvent) -> (Vec<usize>, Option<usize>) {
        let Some(watch) = &mut self.watch else { return (Vec::new(), None) };
        match event {
            AssistantMessageEvent::TextDelta { content_index, delta } => {
                (watch.text(*content_index, delta), None)
            }
            AssistantMessageEvent::ThinkingDelta { content_index, delta } => {
                (watch.thinking(*content_index, delta), None)
            }
            AssistantMessageEvent::TextEnd { content_index, .. }
            | AssistantMessageEvent::ThinkingEnd { content_index, .. } => {
                (watch.ends(*content_index, None), None)
            }
            AssistantMessageEvent::ToolcallStart { content_index, tool_name, .. } => {
                watch.call_begins(*content_index, tool_name);
                (Vec::new(), None)
            }
            AssistantMessageEvent::ToolcallDelta { content_index, delta } => {
                (watch.arguments(*content_index, delta), Some(*content_index))
            }
            AssistantMessageEvent::ToolcallEnd {
                content_index,
                tool_call: ToolCallBlock::ToolCall(call),
            } => {
                let whole = || serde_json::to_string(&call.arguments).unwrap_or_default();
                (watch.ends(*content_index, Some(&whole)), Some(*content_index))
            }
            AssistantMessageEvent::TextStart { .. } | AssistantMessageEvent::ThinkingStart { .. } => {
                (Vec::new(), None)
            }
        }
    }
}
