//! Pages of the context's messages: which messages a page has, and the cursor that leads to the next. Pure.
//!
//! A cursor names the context that it is of: the session, the leaf, and the number of messages. When one of them is another by then,
//! the cursor is stale; no page mixes two contexts.

use agentd_protocol::{
    Json,
    error::{ErrorCode, Failure},
    message::Message,
    message_pages::{
        DEFAULT_PAGE_LIMIT, GetMessagesPageParams, MAX_PAGE_BYTES, MAX_PAGE_LIMIT, MessagesPage,
    },
};

/// The form of cursors; another one begins otherwise.
const VERSION: &str = "1";

/// The context that pages are of.
pub(crate) struct PagedContext<'a> {
    pub(crate) session: &'a str,
    /// The leaf's entry; `None` before the first.
    pub(crate) leaf: Option<&'a str>,
    pub(crate) messages: &'a [Json<Message>],
}

impl PagedContext<'_> {
    /// The page that `params` ask for.
    ///
    /// # Errors
    /// `invalid_field` for a limit out of range and a cursor that is none; `stale_cursor` for one of another context.
    pub(crate) fn page(&self, params: &GetMessagesPageParams) -> Result<MessagesPage, Failure> {
        let limit = params.limit.unwrap_or(DEFAULT_PAGE_LIMIT);
        if !(1..=MAX_PAGE_LIMIT).contains(&limit) {
            let text = format!("Invalid field \"limit\": expected 1 to {MAX_PAGE_LIMIT}, got {limit}");
            return Err(Failure::new(ErrorCode::InvalidField, text));
        }
        let from = match &params.cursor {
            Some(cursor) => self.offset(cursor)?,
            None => 0,
        };
        let rest = self.messages.get(from..).unwrap_or_default();
        let (mut bytes, mut count) = (0, 0);
        for message in rest.iter().take(usize::try_from(limit).unwrap_or(usize::MAX)) {
            // With the comma.
            bytes += message.text_len() + 1;
            if count > 0 && bytes > MAX_PAGE_BYTES {
                break;
            }
            count += 1;
        }
        let next = from + count;
        Ok(MessagesPage {
            messages: rest[..count].to_vec(),
            total_messages: self.messages.len() as u64,
            next_cursor: (next < self.messages.len()).then(|| self.cursor(next)),
        })
    }

    fn cursor(&self, offset: usize) -> String {
        // The session's id comes last: it may have any character.
        format!(
            "{VERSION}:{offset}:{}:{}:{}",
            self.messages.len(),
            self.leaf.unwrap_or_default(),
            self.session
        )
    }

    fn offset(&self, cursor: &str) -> Result<usize, Failure> {
        let mut parts = cursor.splitn(3, ':');
        let (version, offset) = (parts.next(), parts.next().and_then(|part| part.parse().ok()));
        let (Some(VERSION), Some(offset)) = (version, offset) else {
            let text = "Invalid field \"cursor\": expected the nextCursor of a page";
            return Err(Failure::new(ErrorCode::InvalidField, text));
        };
        if offset > self.messages.len() || self.cursor(offset) != cursor {
            return Err(Failure::new(ErrorCode::StaleCursor, "RPC message cursor is stale")
                .hint("The session has gone on since: begin with the first page again."));
        }
        Ok(offset)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn messages(lengths: &[usize]) -> Vec<Json<Message>> {
        let message = |(at, length): (usize, &usize)| {
            let text = "x".repeat(*length);
            serde_json::from_str(&format!(r#"{{"role":"user","content":"{text}","timestamp":{at}}}"#))
                .unwrap()
        };
        lengths.iter().enumerate().map(message).collect()
    }

    fn context<'a>(messages: &'a [Json<Message>], leaf: &'a str) -> PagedContext<'a> {
        PagedContext { session: "a:b", leaf: Some(leaf), messages }
    }

    fn ask(cursor: Option<String>, limit: u64) -> GetMessagesPageParams {
        GetMessagesPageParams { cursor, limit: Some(limit) }
    }

    proptest! {
        #[test]
        fn the_pages_together_are_the_context(
            lengths in prop::collection::vec(prop_oneof![0_usize..100, 300_000_usize..900_000], 0..12),
            limit in 1_u64..=4,
        ) {
            let all = messages(&lengths);
            let context = context(&all, "l");
            let (mut seen, mut cursor) = (Vec::new(), None);
            loop {
                let page = context.page(&ask(cursor, limit)).unwrap();
                let bytes: usize = page.messages.iter().map(|message| message.text().len() + 1).sum();
                prop_assert!(page.messages.len() as u64 <= limit);
                prop_assert!(bytes <= MAX_PAGE_BYTES || page.messages.len() == 1);
                prop_assert_eq!(page.total_messages, all.len() as u64);
                seen.extend(page.messages);
                cursor = page.next_cursor;
                if cursor.is_none() {
                    break;
                }
            }
            prop_assert_eq!(seen, all);
        }
    }

    #[test]
    fn a_cursor_of_another_context_is_stale() {
        let all = messages(&[1, 2, 3]);
        let cursor = context(&all, "l").page(&ask(None, 1)).unwrap().next_cursor;
        let code = |context: PagedContext<'_>, cursor: Option<String>| {
            context.page(&ask(cursor, 1)).unwrap_err().code
        };
        assert_eq!(code(context(&all, "m"), cursor.clone()), ErrorCode::StaleCursor);
        assert_eq!(code(context(&all[..2], "l"), cursor.clone()), ErrorCode::StaleCursor);
        let other = PagedContext { session: "c", ..context(&all, "l") };
        assert_eq!(code(other, cursor), ErrorCode::StaleCursor);
        for not_one in ["", "2:1:3:l:a:b", "1:x:3:l:a:b", "nonsense"] {
            assert_eq!(code(context(&all, "l"), Some(not_one.into())), ErrorCode::InvalidField, "{not_one}");
        }
        assert_eq!(code(context(&all, "l"), Some("1:4:3:l:a:b".into())), ErrorCode::StaleCursor);
    }

    #[test]
    fn a_limit_is_in_range() {
        for limit in [0, 257] {
            let failure = context(&[], "l").page(&ask(None, limit)).unwrap_err();
            assert!(failure.error.contains("expected 1 to 256"), "{failure}");
        }
    }
}
