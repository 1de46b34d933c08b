//! The lines of an intent log.

use agentd_protocol::{
    Json,
    command::StreamingBehavior,
    message::{ImageContent, Message},
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The field of an entry with the key of the command that it came by: the `request_key` of that command's record.
pub const REQUEST_KEY_FIELD: &str = "requestKey";

/// One line of an intent log. Times are Unix time in milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum IntentRecord {
    /// A run began.
    Run(RunRecord),
    /// The model is about to be asked.
    Ask(AskRecord),
    /// The model said more.
    Said(SaidRecord),
    /// Tool calls are about to be made.
    Calls(CallsRecord),
    /// A tool call ended, and its result is not in the session file yet.
    Done(DoneRecord),
    /// A command of the user is about to run.
    Bash(BashRecord),
    /// A command of the user ended.
    BashDone(BashDoneRecord),
    /// The run ended, while commands of the user go on or messages wait.
    Settled,
    /// A message is about to wait in a queue.
    Queued(QueuedRecord),
    /// A message that waited is about to be an entry.
    Delivered(DeliveredRecord),
    /// No message waits any more: they were taken back.
    Unqueued,
}

/// A run began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunRecord {
    /// The time.
    #[serde(default)]
    pub at: i64,
    /// The run's first entry; for a run that goes on after a crash, the entry that it continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// The number of crashes after which the run went on by itself.
    #[serde(default)]
    pub resumes: u32,
}

/// The model is about to be asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AskRecord {
    /// The time.
    #[serde(default)]
    pub at: i64,
    /// The last entry that the model gets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// The wire API.
    #[serde(default)]
    pub api: String,
    /// The provider.
    #[serde(default)]
    pub provider: String,
    /// The model.
    #[serde(default)]
    pub model: String,
    /// The thinking level.
    #[serde(default)]
    pub level: String,
}

/// The text that the model streamed since the last record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaidRecord {
    /// In the order in which it came.
    #[serde(default)]
    pub parts: Vec<Streamed>,
}

/// A piece of a block of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Streamed {
    /// The block's place in the answer.
    pub block: usize,
    /// More text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// More reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<String>,
    /// The block's signature, once it is complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// True if the provider withheld the reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redacted: Option<bool>,
}

/// Tool calls are about to be made, side by side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallsRecord {
    /// The entry of the answer that holds the calls.
    #[serde(default)]
    pub entry: String,
    /// The calls.
    #[serde(default)]
    pub calls: Vec<NamedCall>,
}

/// A tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedCall {
    /// Its id, unique in its answer.
    pub id: String,
    /// The tool.
    #[serde(default)]
    pub name: String,
}

/// A tool call came to its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DoneRecord {
    /// The entry of the answer that holds the call.
    #[serde(default)]
    pub entry: String,
    /// Its id.
    pub call: String,
    /// Its result; absent when that is too large to be kept here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Json<Message>>,
}

/// A command of the user is about to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BashRecord {
    /// Identifies it within this intent log.
    pub number: u64,
    /// The time.
    #[serde(default)]
    pub at: i64,
    /// The command line.
    #[serde(default)]
    pub command: String,
    /// True if the result is kept out of the model's context.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exclude_from_context: bool,
    /// The key by which its client may repeat it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_key: Option<String>,
}

/// A command of the user ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BashDoneRecord {
    /// The number of the command.
    pub number: u64,
    /// The message to add to the session file; absent when it is stored, or too large to be kept here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Json<Message>>,
    /// True if there is nothing to add: the message is in the session file, or the command had none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stored: bool,
}

/// A message waits in a queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueuedRecord {
    /// Identifies it within this intent log; lower numbers came earlier.
    pub number: u64,
    /// The queue.
    pub to: StreamingBehavior,
    /// Its text.
    pub text: String,
    /// Images that go with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ImageContent>,
    /// The key by which its client may repeat it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_key: Option<String>,
}

/// A message that waited is about to be an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveredRecord {
    /// The number of the message.
    pub number: u64,
    /// The entry that precedes the message's own: while no later message has its text, it still waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

impl IntentRecord {
    /// Adds the record as a line.
    ///
    /// # Errors
    /// Fails only for values that JSON cannot represent.
    pub(crate) fn write_line(&self, to: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        serde_json::to_writer(&mut *to, self)?;
        to.push(b'\n');
        Ok(())
    }

    /// Reads a line; `None` when it is no record, or of a kind that this version does not know.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        #[derive(Deserialize)]
        struct Kind<'a> {
            #[serde(rename = "type", borrow)]
            kind: &'a RawValue,
        }
        // Not by serde's tags: those read a line into values first, and `Json` cannot be made from values.
        Some(match serde_json::from_str::<Kind<'_>>(line).ok()?.kind.get() {
            "\"run\"" => Self::Run(serde_json::from_str(line).ok()?),
            "\"ask\"" => Self::Ask(serde_json::from_str(line).ok()?),
            "\"said\"" => Self::Said(serde_json::from_str(line).ok()?),
            "\"calls\"" => Self::Calls(serde_json::from_str(line).ok()?),
            "\"done\"" => Self::Done(serde_json::from_str(line).ok()?),
            "\"bash\"" => Self::Bash(serde_json::from_str(line).ok()?),
            "\"bashDone\"" => Self::BashDone(serde_json::from_str(line).ok()?),
            "\"settled\"" => Self::Settled,
            "\"queued\"" => Self::Queued(serde_json::from_str(line).ok()?),
            "\"delivered\"" => Self::Delivered(serde_json::from_str(line).ok()?),
            "\"unqueued\"" => Self::Unqueued,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let message: Json<Message> =
            serde_json::from_str(r#"{"role":"user","content":"a","timestamp":1.0}"#).unwrap();
        let records = [
            IntentRecord::Run(RunRecord { at: 1, entry: Some("e".into()), resumes: 2 }),
            IntentRecord::Ask(AskRecord {
                at: 2,
                after: None,
                api: "a".into(),
                provider: "p".into(),
                model: "m\n".into(),
                level: "off".into(),
            }),
            IntentRecord::Said(SaidRecord {
                parts: vec![Streamed { block: 1, text: Some("\u{2028}x".into()), ..Streamed::default() }],
            }),
            IntentRecord::Calls(CallsRecord {
                entry: "e".into(),
                calls: vec![NamedCall { id: "c".into(), name: "bash".into() }],
            }),
            IntentRecord::Done(DoneRecord {
                entry: "e".into(),
                call: "c".into(),
                message: Some(message.clone()),
            }),
            IntentRecord::Bash(BashRecord {
                number: 7,
                at: 3,
                command: "ls\nls".into(),
                exclude_from_context: true,
                request_key: None,
            }),
            IntentRecord::BashDone(BashDoneRecord { number: 7, message: Some(message), stored: false }),
            IntentRecord::Settled,
            IntentRecord::Queued(QueuedRecord {
                number: 1,
                to: StreamingBehavior::FollowUp,
                text: "a\nb".into(),
                images: vec![ImageContent { data: "aGk=".into(), mime_type: "image/png".into() }],
                request_key: Some("k".into()),
            }),
            IntentRecord::Delivered(DeliveredRecord { number: 1, after: None }),
            IntentRecord::Unqueued,
        ];
        for record in records {
            let mut line = Vec::new();
            record.write_line(&mut line).unwrap();
            let line = String::from_utf8(line).unwrap();
            assert_eq!(line.matches('\n').count(), 1, "{line}");
            assert_eq!(IntentRecord::parse(line.trim_end()), Some(record), "{line}");
        }
    }

    #[test]
    fn what_is_no_record_is_nothing() {
        for line in
            ["", "{}", "[]", "{\"type\":\"other\"}", "{\"type\":\"done\"}", "{\"type\":\"run\"", "\0\0"]
        {
            assert_eq!(IntentRecord::parse(line), None, "{line}");
        }
    }
}
