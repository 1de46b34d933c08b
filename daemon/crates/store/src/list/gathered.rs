//! Gathers what a list says of a session, line by line.

use std::path::Path;

use agentd_protocol::{
    message::{ContentBlock, MessageContent, Usage},
    model::ModelName,
    prompt_text::typed_words,
};
use memchr::memmem;
use serde::Deserialize;

use super::summary::{ListText, SessionSummary};
use crate::{
    Entry, Header, Role,
    object::{each_member, name, string},
    spending::spending,
    time::parse_timestamp,
};

/// What the lines of a session file said so far.
#[derive(Default)]
pub(super) struct Gathered {
    text: ListText,
    header: Option<Header>,
    is_invalid: bool,
    name: Option<String>,
    count: u64,
    turns: u64,
    cost: f64,
    model: Option<ModelName>,
    last_ms: Option<i64>,
    first: Option<String>,
    all: String,
}

/// The members of a message that are read of every one.
#[derive(Deserialize, Default)]
struct MessageFacts {
    timestamp: Option<f64>,
    #[serde(default)]
    provider: Option<String>,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    usage: Option<Usage>,
}

/// Facts of a message without those that are not of the usual form.
#[derive(Deserialize)]
struct Time {
    timestamp: Option<f64>,
}

impl MessageFacts {
    fn of(message: &str) -> Self {
        agentd_protocol::parse_json::<Self>(message).unwrap_or_else(|_| {
            let time = serde_json::from_str::<Time>(message).ok();
            Self { timestamp: time.and_then(|time| time.timestamp), ..Self::default() }
        })
    }
}

impl Gathered {
    pub(super) fn new(text: ListText) -> Self {
        Self { text, ..Self::default() }
    }

    pub(super) fn line(&mut self, line: &str) {
        if line.is_empty() || self.is_invalid {
            return;
        }
        if self.header.is_none() {
            self.header = Header::parse(line);
            self.is_invalid =
                self.header.is_none() && serde_json::from_str::<serde::de::IgnoredAny>(line).is_ok();
            return;
        }
        let (mut kind, mut label, mut time, mut message) = (None, None, None, None);
        let (mut provider, mut model) = (None, None);
        let is_object = each_member(line, |key, value| match &*name(key) {
            "type" => kind = string(value),
            "name" => label = string(value),
            "timestamp" => time = string(value),
            "provider" => provider = string(value),
            "modelId" => model = string(value),
            "message" => message = Some(value),
            _ => {}
        });
        if !is_object {
            return;
        }
        match kind.as_deref() {
            Some("session_info") => {
                self.name = label.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
            }
            Some("message") => {
                self.count += 1;
                self.message(message.unwrap_or_default(), time.as_deref());
            }
            Some("model_change") => {
                let chosen = provider.zip(model);
                let chosen =
                    chosen.map(|(provider, id)| ModelName { provider: provider.into(), id: id.into() });
                self.model = chosen.or(self.model.take());
            }
            Some("usage" | "compaction" | "branch_summary" | "custom") => {
                let spent = Entry::parse(line).and_then(|entry| spending(&entry));
                self.spend(spent.map(|spent| spent.usage), time.as_deref());
            }
            _ => {}
        }
    }

    fn message(&mut self, message: &str, entry_time: Option<&str>) {
        #[derive(Deserialize)]
        struct Content {
            content: MessageContent,
        }
        let role = Role::of(message);
        if !matches!(role, Role::User | Role::Assistant | Role::ToolResult) {
            return;
        }
        // Few results say what they spent, and they are long.
        if role == Role::ToolResult && memmem::find(message.as_bytes(), b"\"usage\"").is_none() {
            return;
        }
        let facts = MessageFacts::of(message);
        self.spend(facts.usage, entry_time);
        if role == Role::ToolResult {
            return;
        }
        if role == Role::Assistant {
            self.turns += 1;
            let answered = facts.provider.zip(facts.model);
            self.model = answered.map(|(provider, id)| ModelName { provider, id }).or(self.model.take());
        }
        let time = facts.timestamp.map(|ms| ms as i64).or_else(|| entry_time.and_then(parse_timestamp));
        self.last_ms = self.last_ms.max(time);
        let is_first = role == Role::User && self.first.is_none();
        if !is_first && self.text == ListText::First {
            return;
        }
        let Ok(Content { content }) = agentd_protocol::parse_json(message) else { return };
        let text = match content {
            MessageContent::Text(text) => text,
            MessageContent::Blocks(blocks) => {
                blocks.iter().filter_map(ContentBlock::as_text).collect::<Vec<_>>().join(" ")
            }
            MessageContent::Nothing => String::new(),
        };
        if text.is_empty() {
            return;
        }
        if self.text == ListText::All {
            if !self.all.is_empty() {
                self.all.push(' ');
            }
            self.all.push_str(&text);
        }
        if is_first {
            self.first = Some(typed_words(&text));
        }
    }

    /// Adds what an entry spent. What a fork took over, which is older than its header, is counted to the session that paid for it.
    fn spend(&mut self, usage: Option<Usage>, entry_time: Option<&str>) {
        let Some(cost) = usage.map(|usage| usage.cost.total).filter(|cost| *cost != 0.0) else { return };
        let begun = self.header.as_ref().and_then(|header| parse_timestamp(&header.typed().timestamp));
        if begun.zip(entry_time.and_then(parse_timestamp)).is_none_or(|(begun, at)| at >= begun) {
            self.cost += cost;
        }
    }

    pub(super) fn finish(self, path: &Path, file_ms: i64) -> Option<SessionSummary> {
        let header = self.header?;
        let header = header.typed();
        let created = parse_timestamp(&header.timestamp);
        Some(SessionSummary {
            path: path.to_owned(),
            id: header.id.clone(),
            cwd: header.cwd.clone(),
            name: self.name,
            parent_session_path: header.parent_session.clone(),
            created_ms: created.unwrap_or(file_ms),
            modified_ms: self.last_ms.or(created).unwrap_or(file_ms),
            message_count: self.count,
            turns: self.turns,
            cost: self.cost,
            model: self.model,
            first_message: self.first.unwrap_or_else(|| "(no messages)".into()),
            all_messages_text: self.all,
        })
    }
}
