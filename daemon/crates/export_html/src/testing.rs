//! Helpers for tests: a page read by a real parser, and sessions to show.

use std::{cell::RefCell, collections::BTreeSet};

use agentd_store::{LoadReport, Store, StoreOptions};
use html5ever::{
    tendril::StrTendril,
    tokenizer::{
        BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
        states::RawKind,
    },
};

/// An element of a page: its name and its attributes.
pub(crate) type Element = (String, Vec<(String, String)>);

/// What an HTML parser finds in a page.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) elements: Vec<Element>,
    pub(crate) text: String,
    /// Violations of HTML.
    pub(crate) faults: Vec<String>,
    open: Vec<String>,
}

#[derive(Default)]
struct Reader(RefCell<Seen>);

impl TokenSink for Reader {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut seen = self.0.borrow_mut();
        match token {
            Token::TagToken(Tag { kind: TagKind::StartTag, name, attrs, .. }) => {
                let attributes = attrs.iter();
                let attributes =
                    attributes.map(|one| (one.name.local.to_string(), one.value.to_string())).collect();
                seen.elements.push((name.to_string(), attributes));
                if !["meta", "br", "hr", "img", "input"].contains(&&*name) {
                    seen.open.push(name.to_string());
                }
                return match &*name {
                    "script" => TokenSinkResult::RawData(RawKind::ScriptData),
                    "style" => TokenSinkResult::RawData(RawKind::Rawtext),
                    "title" => TokenSinkResult::RawData(RawKind::Rcdata),
                    _ => TokenSinkResult::Continue,
                };
            }
            Token::TagToken(Tag { name, .. }) => {
                if seen.open.pop().as_deref() != Some(&*name) {
                    seen.faults.push(format!("</{name}> closes something else"));
                }
            }
            Token::CharacterTokens(text) => seen.text.push_str(&text),
            Token::NullCharacterToken => seen.faults.push("NUL".into()),
            Token::CommentToken(text) => seen.faults.push(format!("a comment: {text}")),
            // Invalid characters stay as they are; they have no effect.
            Token::ParseError(text) if text.contains("Bad character") => {}
            Token::ParseError(text) => seen.faults.push(text.into_owned()),
            Token::DoctypeToken(_) | Token::EOFToken => {}
        }
        TokenSinkResult::Continue
    }
}

/// Reads a page, or a part of one.
pub(crate) fn read(html: &str) -> Seen {
    let input = BufferQueue::default();
    input.push_back(StrTendril::from(html));
    let options = TokenizerOpts { exact_errors: true, ..TokenizerOpts::default() };
    let tokenizer = Tokenizer::new(Reader::default(), options);
    let _ = tokenizer.feed(&input);
    tokenizer.end();
    let mut seen = tokenizer.sink.0.into_inner();
    let open = std::mem::take(&mut seen.open);
    seen.faults.extend(open.iter().map(|name| format!("<{name}> is not closed")));
    seen
}

/// Fails unless every element is closed, in order.
pub(crate) fn check_balanced(html: &str) {
    let seen = read(html);
    assert!(seen.faults.is_empty(), "{:?}\n{html}", seen.faults);
}

/// A session from the lines of its file.
pub(crate) fn session(lines: &[String]) -> (agentd_store::SessionTree, LoadReport) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("session.jsonl");
    std::fs::write(&path, lines.join("\n")).unwrap();
    Store::new(StoreOptions::default()).read(&path).unwrap()
}

/// The page of a session.
pub(crate) fn page_of(lines: &[String]) -> String {
    let (tree, report) = session(lines);
    let mut out = Vec::new();
    crate::write(&tree, &report, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// The names of the elements and attributes of a page.
pub(crate) fn vocabulary(seen: &Seen) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    for (name, attributes) in &seen.elements {
        words.insert(name.clone());
        words.extend(attributes.iter().map(|(attribute, _)| format!("{name}.{attribute}")));
    }
    words
}
