//! An answer whose line is made while it is written, since all of it at once would fill memory.

use std::{fmt, sync::Arc};

use agentd_protocol::{Json, message::Message};
use agentd_store::{Entry, SessionTree, TreeJson};
use bytes::Bytes;

/// An answer with much of a session in it. Cheap to clone.
///
/// What it has is that of the moment when it was given. Texts that are in the session's file alone are read from there when their turn comes.
#[derive(Clone)]
pub struct LongReply(Arc<Parts>);

struct Parts {
    before: Bytes,
    content: LongContent,
    after: Bytes,
}

/// The data of a [`LongReply`].
pub(crate) enum LongContent {
    /// The answer to `get_messages`.
    Messages(Vec<Json<Message>>),
    /// The answer to `get_entries`.
    Entries { entries: Vec<Entry>, leaf_id: Option<String> },
    /// The answer to `get_tree`.
    Tree(Box<SessionTree>),
}

/// Writes a [`LongReply`], piece by piece.
pub struct LongReplyWriter {
    reply: LongReply,
    place: Place,
}

/// How far the answer was written.
enum Place {
    Start,
    /// So many messages or entries were.
    Items(usize),
    Tree(TreeJson),
}

impl LongReply {
    /// The line of `response`, which has no data, with the content as its data.
    pub(crate) fn new(response: &[u8], content: LongContent) -> Result<Self, serde_json::Error> {
        let (name, leaf_id) = match &content {
            LongContent::Messages(_) => ("messages", None),
            LongContent::Entries { leaf_id, .. } => ("entries", Some(leaf_id.as_deref())),
            LongContent::Tree(tree) => ("tree", Some(tree.leaf_id())),
        };
        let response = response.strip_suffix(b"}").unwrap_or(response);
        let before = [response, b",\"data\":{\"", name.as_bytes(), b"\":["].concat();
        let leaf_id = match leaf_id {
            Some(leaf_id) => format!(",\"leafId\":{}", serde_json::to_string(&leaf_id)?),
            None => String::new(),
        };
        let after = format!("]{leaf_id}}}}}");
        Ok(Self(Arc::new(Parts { before: before.into(), content, after: after.into() })))
    }

    /// Writes it from its beginning.
    #[must_use]
    pub fn writer(&self) -> LongReplyWriter {
        LongReplyWriter { reply: self.clone(), place: Place::Start }
    }

    /// The whole line, without LF. Blocks as a read of a file does.
    #[must_use]
    pub fn line(&self) -> Bytes {
        let mut line = Vec::with_capacity(self.0.len());
        self.writer().write_piece(usize::MAX, &mut line);
        line.into()
    }

    /// The bytes that it keeps in memory, beside what is there anyway.
    pub(super) fn kept_bytes(&self) -> usize {
        let Parts { before, content, after } = &*self.0;
        let content = match content {
            LongContent::Messages(messages) => size_of_val(messages.as_slice()),
            LongContent::Entries { entries, .. } => size_of_val(entries.as_slice()),
            LongContent::Tree(tree) => size_of_val(tree.entries()),
        };
        before.len() + content + after.len()
    }
}

impl Parts {
    /// The length of the line, about.
    fn len(&self) -> usize {
        let content = match &self.content {
            LongContent::Messages(messages) => messages.iter().map(|message| message.text_len() + 1).sum(),
            LongContent::Entries { entries, .. } => entries.iter().map(|entry| entry.line_len() + 1).sum(),
            LongContent::Tree(tree) => TreeJson::len(tree),
        };
        self.before.len() + content + self.after.len()
    }
}

impl LongReplyWriter {
    /// Appends what comes next until `out` has at least `enough` bytes, or the line is complete; without LF. Returns whether it is complete,
    /// after which there is no more to be written. Blocks as a read of a file does.
    pub fn write_piece(&mut self, enough: usize, out: &mut Vec<u8>) -> bool {
        let Parts { before, content, after } = &*self.reply.0;
        if let Place::Start = self.place {
            out.extend_from_slice(before);
            self.place = match content {
                LongContent::Messages(_) | LongContent::Entries { .. } => Place::Items(0),
                LongContent::Tree(tree) => Place::Tree(TreeJson::new(tree)),
            };
        }
        let is_complete = match (content, &mut self.place) {
            (LongContent::Tree(tree), Place::Tree(json)) => json.write_piece(tree, enough, out),
            (LongContent::Messages(messages), Place::Items(written)) => {
                write_items(messages, written, enough, out, Json::write_text)
            }
            (LongContent::Entries { entries, .. }, Place::Items(written)) => {
                write_items(entries, written, enough, out, Entry::write_line)
            }
            _ => true,
        };
        if is_complete {
            out.extend_from_slice(after);
        }
        is_complete
    }
}

/// Appends items with commas between them until `out` has enough. Returns whether all of them are written.
fn write_items<T>(
    items: &[T],
    written: &mut usize,
    enough: usize,
    out: &mut Vec<u8>,
    write: impl Fn(&T, &mut Vec<u8>),
) -> bool {
    for item in &items[*written..] {
        if out.len() >= enough {
            return false;
        }
        if *written > 0 {
            out.push(b',');
        }
        write(item, out);
        *written += 1;
    }
    true
}

impl fmt::Debug for LongReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LongReply").field("kept_bytes", &self.kept_bytes()).finish_non_exhaustive()
    }
}

impl PartialEq for LongReply {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for LongReply {}

#[cfg(test)]
mod tests {
    use agentd_protocol::command::Entries;
    use agentd_store::{NewEntry, NewSession, Store, StoreOptions};

    use super::*;

    fn check(content: LongContent, data: &str) {
        let reply = LongReply::new(b"{\"id\":1}", content).unwrap();
        assert_eq!(reply.line(), format!("{{\"id\":1,\"data\":{data}}}"));
        for enough in [1, 8, 1000] {
            let (mut writer, mut pieces, mut is_complete) = (reply.writer(), Vec::new(), false);
            while !is_complete {
                let mut piece = Vec::new();
                is_complete = writer.write_piece(enough, &mut piece);
                assert!(is_complete || piece.len() >= enough);
                pieces.push(piece);
            }
            assert_eq!(pieces.concat(), reply.line(), "{enough}");
        }
    }

    #[test]
    fn pieces_are_the_whole_line() {
        for messages in [&[][..], &["{\"a\":1}"], &["{\"a\":1}", "{\"bb\":\"é\"}", "{}"]] {
            let parsed = messages.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
            check(LongContent::Messages(parsed), &format!("{{\"messages\":[{}]}}", messages.join(",")));
        }
    }

    #[test]
    fn entries_and_trees_are_as_they_would_be_at_once() {
        let store = Store::new(StoreOptions::default());
        let mut tree = store.in_memory(NewSession::new("/w", 0)).unwrap().tree;
        check(LongContent::Entries { entries: Vec::new(), leaf_id: None }, r#"{"entries":[],"leafId":null}"#);
        check(LongContent::Tree(Box::new(tree.clone())), r#"{"tree":[],"leafId":null}"#);
        for text in ["a", "b", "c"] {
            let user = serde_json::json!({"role": "user", "content": text, "timestamp": 1});
            let message: Message = serde_json::from_value(user).unwrap();
            let entry = tree.prepare(NewEntry::message(Json::new(message).unwrap()), 0);
            tree.push(entry);
        }
        let entries = Entries {
            entries: tree.entries().iter().map(|entry| entry.json().unwrap()).collect(),
            leaf_id: tree.leaf_id().map(str::to_owned),
        };
        let whole = serde_json::to_string(&entries).unwrap();
        check(LongContent::Entries { entries: tree.entries().to_vec(), leaf_id: entries.leaf_id }, &whole);
        let whole = format!("{{\"tree\":{},\"leafId\":\"{}\"}}", tree.to_json(), tree.leaf_id().unwrap());
        check(LongContent::Tree(Box::new(tree)), &whole);
    }
}
