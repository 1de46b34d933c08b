//! Rules on the stream in a run: what the model writes is matched as it is emitted; a match stops the answer, or is told later.

use std::sync::Arc;

use agentd_agent::HostError;
use agentd_ai::failure::{Failure, FailureKind};
use agentd_protocol::{
    Json,
    event::{AssistantMessageEvent, Event, ToolCallBlock},
    message::{AssistantMessage, Message, ToolResultMessage},
    stream_rules::TtsrTriggered,
};
use agentd_stream_rules::StreamRule;

use super::{
    host::RunHost,
    message::RunMessage,
    rule_watch::{Interrupted, MAX_INTERRUPTIONS, names},
};
use crate::{
    clock::now_ms,
    reply::encode,
    stream_rules::{RuleChoices, follow_up, interrupt_message, reminder},
    transcript::FailedAnswer,
};

impl RunHost {
    /// Watches the answer that is asked for next.
    pub(super) fn watch_answer(&mut self) {
        let choices = self.rules.choices.get_or_insert_with(|| RuleChoices::of(&self.context.settings));
        let rules = if choices.is_on { self.context.stream_rules.current() } else { None };
        if rules.is_some() {
            self.context.stream_rules.next_answer();
        }
        self.rules.begin(rules);
    }

    /// Matches what was added to an answer, once it was emitted.
    pub(super) async fn match_rules(&mut self, event: &AssistantMessageEvent) {
        let (matched, block) = self.rules.look(event);
        if let AssistantMessageEvent::ToolcallEnd {
            content_index,
            tool_call: ToolCallBlock::ToolCall(call),
        } = event
        {
            self.note_matches(matched, block).await;
            if let Some(rules) = self.rules.of_blocks.remove(content_index) {
                self.rules.of_calls.insert(call.id.clone(), rules);
            }
        } else if !matched.is_empty() {
            self.note_matches(matched, block).await;
        }
    }

    async fn note_matches(&mut self, matched: Vec<usize>, block: Option<usize>) {
        let (Some(watch), Some(choices)) = (&self.rules.watch, &self.rules.choices) else { return };
        let (rules, memory) = (Arc::clone(watch.rules()), self.context.stream_rules.clone());
        let is_due = |rule: &usize| {
            rules
                .rules()
                .get(*rule)
                .is_some_and(|rule| !choices.disables(&rule.name) && memory.tell(&rule.name, choices))
        };
        let may_stop = self.rules.interruptions < MAX_INTERRUPTIONS;
        let stops = |rule: &usize| {
            may_stop && rules.rules().get(*rule).is_some_and(|rule| choices.stops(rule, block.is_some()))
        };
        let (stopping, told): (Vec<usize>, Vec<usize>) = matched.into_iter().filter(is_due).partition(stops);
        if !told.is_empty() {
            self.tell_triggered(names(&rules, &told), false).await;
            match block {
                Some(block) => self.rules.of_blocks.entry(block).or_default().extend(told),
                None => self.rules.after_answer.extend(told),
            }
        }
        self.rules.stopping.extend(stopping);
    }

    async fn tell_triggered(&self, rules: Vec<String>, interrupted: bool) {
        let event = Event::from(TtsrTriggered { rules, interrupted });
        self.context.observe(&event);
        match encode(&event) {
            Ok(line) => self.send(RunMessage::Tell(line)).await,
            Err(error) => tracing::error!(%error, "cannot write an event"),
        }
    }

    /// Why the answer is to be stopped now.
    pub(super) fn rule_interruption(&mut self) -> Option<Failure> {
        if self.rules.stopping.is_empty() {
            return None;
        }
        let which = std::mem::take(&mut self.rules.stopping);
        let rules = Arc::clone(self.rules.watch.take()?.rules());
        let text = format!("Interrupted by a rule: {}", names(&rules, &which).join(", "));
        self.rules.interruptions += 1;
        self.rules.interrupted = Some(Interrupted { rules, which });
        Some(Failure::new(FailureKind::Aborted, text))
    }

    /// The message with which the run goes on after an answer that rules have stopped; what was written is left out of the context.
    pub(super) async fn answer_interruption(
        &mut self,
        answer: &AssistantMessage,
    ) -> Result<Option<Json<Message>>, HostError> {
        let Some(interrupted) = self.rules.interrupted.take() else { return Ok(None) };
        self.context.observe_answer(self.observed_call.take(), answer, None);
        let told = names(&interrupted.rules, &interrupted.which);
        self.tell_triggered(told.clone(), true).await;
        self.omit_failed(FailedAnswer::Interrupted).await?;
        self.record_rules(told).await?;
        let keeps = self.rules.choices.as_ref().is_some_and(|choices| choices.keeps);
        let message = interrupt_message(&interrupted.rules(), keeps.then_some(answer), now_ms());
        let message = Json::new(Message::Custom(message));
        message.map(Some).map_err(|error| HostError::NotStored(error.to_string()))
    }

    async fn record_rules(&self, rules: Vec<String>) -> Result<(), HostError> {
        self.ask(|done| RunMessage::RulesTold { rules, follow_up: None, done }).await?
    }

    /// Puts the rules of a call before its result.
    pub(super) fn remind_with(&mut self, mut message: ToolResultMessage) -> ToolResultMessage {
        let Some(which) = self.rules.of_calls.remove(&message.tool_call_id) else { return message };
        let Some(rules) = self.context.stream_rules.current() else { return message };
        let of_call: Vec<&StreamRule> = which.iter().filter_map(|rule| rules.rules().get(*rule)).collect();
        message.content.insert(0, reminder(&of_call));
        self.rules.with_result.extend(of_call.iter().map(|rule| rule.name.clone()));
        message
    }

    /// A message is stored: what the model is told with it is put on record, and what it is told after a good answer is queued.
    pub(super) async fn rules_after(&mut self, is_result: bool, answered: bool) -> Result<(), HostError> {
        if is_result && !self.rules.with_result.is_empty() {
            let rules = std::mem::take(&mut self.rules.with_result);
            self.record_rules(rules).await?;
        }
        if answered && !self.rules.after_answer.is_empty() {
            let which = std::mem::take(&mut self.rules.after_answer);
            if let Some(watch) = &self.rules.watch {
                let all = Arc::clone(watch.rules());
                let of_answer: Vec<&StreamRule> =
                    which.iter().filter_map(|rule| all.rules().get(*rule)).collect();
                let message = Some(Box::new(follow_up(&of_answer, now_ms())));
                let rules = names(&all, &which);
                self.ask(|done| RunMessage::RulesTold { rules, follow_up: message, done }).await??;
            }
        }
        Ok(())
    }
}
