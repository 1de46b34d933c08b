//! Simulates the token counts of a provider's prompt cache.

use std::{
    collections::VecDeque,
    hash::{DefaultHasher, Hash, Hasher},
};

use agentd_protocol::message::{Message, Usage};

use super::pace::tokens;
use crate::{CacheRetention, Request, estimate};

/// The conversations that are kept; the least recently used one is dropped first.
const MOST: usize = 64;

/// The last prompt of each session and model.
#[derive(Default)]
pub(super) struct PromptCache {
    /// The most recently used one is at the end.
    prompts: VecDeque<(Key, Vec<Part>)>,
}

/// Session and model.
type Key = (String, String);

/// The hash and the size of a message of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    hash: u64,
    tokens: u64,
}

impl PromptCache {
    /// Counts the input of a request: the beginning that it shares with the session's last request is read from the cache, the rest is
    /// written to it. Without a session or with caching off, all of it is plain input.
    pub(super) fn count(&mut self, request: &Request, messages: &[&Message]) -> Usage {
        let parts: Vec<Part> = messages.iter().map(|message| part(message)).collect();
        let sum = |parts: &[Part]| parts.iter().map(|part| part.tokens).fold(0, u64::saturating_add);
        if request.session_id.is_empty() || request.cache_retention == CacheRetention::None {
            return total(Usage { input: sum(&parts), ..Usage::default() });
        }
        let key = (request.session_id.clone(), request.model.id.clone());
        let place = self.prompts.iter().position(|(other, _)| *other == key);
        let before =
            place.and_then(|place| self.prompts.remove(place)).map_or(Vec::new(), |(_, parts)| parts);
        let common = parts.iter().zip(&before).take_while(|(now, before)| now == before).count();
        let usage = Usage {
            cache_read: sum(&parts[..common]),
            cache_write: sum(&parts[common..]),
            ..Usage::default()
        };
        self.prompts.push_back((key, parts));
        if self.prompts.len() > MOST {
            self.prompts.pop_front();
        }
        total(usage)
    }
}

/// Adds the tokens of an answer.
pub(super) fn with_output(usage: &Usage, chars: usize) -> Usage {
    total(Usage { output: tokens(chars), ..usage.clone() })
}

fn total(usage: Usage) -> Usage {
    let parts = [usage.input, usage.output, usage.cache_read, usage.cache_write];
    Usage { total_tokens: parts.into_iter().fold(0, u64::saturating_add), ..usage }
}

fn part(message: &Message) -> Part {
    let mut hasher = DefaultHasher::new();
    // Messages have string keys only, so serialising cannot fail.
    serde_json::to_string(message).unwrap_or_default().hash(&mut hasher);
    Part { hash: hasher.finish(), tokens: tokens(estimate::chars(message)) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use agentd_protocol::model::Model;
    use serde_json::json;

    use super::*;

    /// Input, read from the cache, written to it.
    fn count(cache: &mut PromptCache, session: &str, retention: CacheRetention, texts: &[&str]) -> [u64; 3] {
        let message = |text: &&str| serde_json::from_value(json!({"role": "user", "content": text})).unwrap();
        let messages: Vec<Message> = texts.iter().map(message).collect();
        let request = Request {
            session_id: session.into(),
            cache_retention: retention,
            ..Request::new(Arc::new(Model::placeholder()), Vec::new())
        };
        let usage = cache.count(&request, &messages.iter().collect::<Vec<_>>());
        assert_eq!(usage.total_tokens, usage.input + usage.cache_read + usage.cache_write);
        [usage.input, usage.cache_read, usage.cache_write]
    }

    #[test]
    fn what_begins_alike_is_read_and_the_rest_is_written() {
        use CacheRetention::{None, Short};
        let mut cache = PromptCache::default();
        let mut of = |session: &str, texts: &[&str]| count(&mut cache, session, Short, texts);
        assert_eq!(of("s", &["12345678", "1"]), [0, 0, 3]);
        assert_eq!(of("s", &["12345678", "1", "1234"]), [0, 3, 1]);
        assert_eq!(of("s", &["12345678", "2", "1234"]), [0, 2, 2], "what differs ends the common part");
        assert_eq!(of("other", &["12345678"]), [0, 0, 2], "a session has a cache of its own");
        assert_eq!(of("", &["12345678"]), [2, 0, 0]);
        assert_eq!(count(&mut cache, "s", None, &["12345678"]), [2, 0, 0]);
    }

    #[test]
    fn the_oldest_conversation_is_forgotten() {
        let mut cache = PromptCache::default();
        let mut read =
            |session: usize| count(&mut cache, &session.to_string(), CacheRetention::Short, &["1234"])[1];
        (0..MOST).for_each(|session| assert_eq!(read(session), 0));
        assert_eq!(read(0), 1);
        assert_eq!(read(MOST), 0);
        assert_eq!(read(0), 1, "used not long ago");
        assert_eq!(read(1), 0, "used longest ago");
        assert_eq!(cache.prompts.len(), MOST);
    }
}
