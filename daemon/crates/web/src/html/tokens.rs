//! The tokens of an HTML text, by one library, for the tree builder of another: html5gum finds them in less than half of the time that the tokenizer
//! of html5ever takes.

use std::{
    cell::Cell,
    time::{Duration, Instant},
};

use html5ever::{
    Attribute, LocalName, QualName,
    tendril::StrTendril,
    tokenizer::{Doctype, Tag, TagKind, Token, TokenSink, TokenSinkResult, states::RawKind},
};
use html5gum::{
    Emitter, ForwardingEmitter, Span, State, Tokenizer,
    emitters::callback::{Callback, CallbackEmitter, CallbackEvent},
};

/// The longest time for one document: a page of a megabyte takes a hundredth of it.
const MAX_TIME: Duration = Duration::from_secs(3);

/// After so many tokens the time is looked at: a few milliseconds.
const TOKENS_BETWEEN_LOOKS: u32 = 1024;

/// Gives `sink` the tokens of a text, until `is_full` is set or that takes too long: true then.
pub(super) fn tokenize(text: &str, sink: &impl TokenSink, is_full: &Cell<bool>) -> bool {
    let tokens = Tokens {
        sink,
        is_full,
        deadline: Instant::now() + MAX_TIME,
        until_look: TOKENS_BETWEEN_LOOKS,
        tag: None,
        next: None,
    };
    let emitter = SinkEmitter { events: CallbackEmitter::new(tokens) };
    // Nothing comes of the tokenizer but the wish to stop: it reads from memory, which does not fail.
    let is_stopped = Tokenizer::new_with_emitter(text, emitter).next().is_some();
    // What is open ends, wherever the text was left.
    let _ = sink.process_token(Token::EOFToken, LINE);
    sink.end();
    is_stopped
}

/// Lines are not counted.
const LINE: u64 = 1;

/// There is enough: the rest of the text is not read.
struct Enough;

/// Turns events into tokens.
struct Tokens<'a, S> {
    sink: &'a S,
    is_full: &'a Cell<bool>,
    deadline: Instant,
    until_look: u32,
    /// The start tag that is being read.
    tag: Option<Tag>,
    /// How the text behind a tag is to be read, as the sink says.
    next: Option<State>,
}

impl<S: TokenSink> Tokens<'_, S> {
    fn give(&mut self, token: Token) -> Option<Enough> {
        self.next = match self.sink.process_token(token, LINE) {
            TokenSinkResult::Continue | TokenSinkResult::EncodingIndicator(_) => None,
            // Scripts are not run.
            TokenSinkResult::Script(_) => Some(State::Data),
            TokenSinkResult::Plaintext => Some(State::PlainText),
            TokenSinkResult::RawData(RawKind::Rcdata) => Some(State::RcData),
            TokenSinkResult::RawData(RawKind::Rawtext) => Some(State::RawText),
            TokenSinkResult::RawData(RawKind::ScriptData | RawKind::ScriptDataEscaped(_)) => {
                Some(State::ScriptData)
            }
        };
        self.until_look -= 1;
        if self.until_look == 0 {
            self.until_look = TOKENS_BETWEEN_LOOKS;
            self.is_full.set(self.is_full.get() || Instant::now() > self.deadline);
        }
        self.is_full.get().then_some(Enough)
    }

    /// Text, in which NUL characters are tokens of their own.
    fn text(&mut self, text: &[u8]) -> Option<Enough> {
        let mut stop = None;
        for (index, part) in text.split(|byte| *byte == 0).enumerate() {
            if index > 0 {
                stop = stop.or(self.give(Token::NullCharacterToken));
            }
            if !part.is_empty() {
                stop = stop.or(self.give(Token::CharacterTokens(tendril(part))));
            }
        }
        stop
    }
}

impl<S: TokenSink> Callback<Enough, ()> for Tokens<'_, S> {
    fn handle_event(&mut self, event: CallbackEvent<'_>, _: Span<()>) -> Option<Enough> {
        match event {
            CallbackEvent::OpenStartTag { name } => {
                self.tag = Some(tag(TagKind::StartTag, name));
                None
            }
            CallbackEvent::AttributeName { name } => {
                let tag = self.tag.as_mut()?;
                let name = QualName::new(None, html5ever::ns!(), local_name(name));
                // Of several attributes of one name the first counts. Their values come all the same.
                tag.attrs.push(Attribute { name, value: StrTendril::new() });
                None
            }
            CallbackEvent::AttributeValue { value } => {
                self.tag.as_mut()?.attrs.last_mut()?.value = tendril(value);
                None
            }
            CallbackEvent::CloseStartTag { self_closing } => {
                let mut tag = self.tag.take()?;
                tag.self_closing = self_closing;
                tag.had_duplicate_attributes = drop_duplicates(&mut tag.attrs);
                self.give(Token::TagToken(tag))
            }
            CallbackEvent::EndTag { name } => self.give(Token::TagToken(tag(TagKind::EndTag, name))),
            CallbackEvent::String { value } => self.text(value),
            CallbackEvent::Comment { value } => self.give(Token::CommentToken(tendril(value))),
            CallbackEvent::Doctype { name, public_identifier, system_identifier, force_quirks } => {
                self.give(Token::DoctypeToken(Doctype {
                    name: Some(name).filter(|name| !name.is_empty()).map(tendril),
                    public_id: public_identifier.map(tendril),
                    system_id: system_identifier.map(tendril),
                    force_quirks,
                }))
            }
            CallbackEvent::Error(_) => None,
        }
    }
}

/// Removes attributes whose name is there before; true when there are any.
fn drop_duplicates(attributes: &mut Vec<Attribute>) -> bool {
    /// The most attributes that are compared with each other.
    const FEW: usize = 16;
    let before = attributes.len();
    if before > FEW {
        let mut names = std::collections::HashSet::new();
        attributes.retain(|attribute| names.insert(attribute.name.local.clone()));
    } else {
        let mut index = 1;
        while index < attributes.len() {
            let (known, rest) = attributes.split_at(index);
            if known.iter().any(|known| known.name == rest[0].name) {
                attributes.remove(index);
            } else {
                index += 1;
            }
        }
    }
    attributes.len() < before
}

/// The events of the tokenizer, and what the tree says of how to go on.
struct SinkEmitter<'a, S: TokenSink> {
    events: CallbackEmitter<Tokens<'a, S>, Enough>,
}

impl<S: TokenSink> ForwardingEmitter for SinkEmitter<'_, S> {
    type Token = Enough;

    fn inner(&mut self) -> &mut impl Emitter<Token = Enough> {
        &mut self.events
    }

    fn should_emit_errors(&mut self) -> bool {
        false
    }

    fn emit_current_tag(&mut self) -> Option<State> {
        self.events.callback_mut().next = None;
        // It knows of no tree, and so of no other state.
        let _ = self.events.emit_current_tag();
        self.events.callback_mut().next.take()
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&mut self) -> bool {
        self.events.callback_mut().sink.adjusted_current_node_present_but_not_in_html_namespace()
    }
}

fn tag(kind: TagKind, name: &[u8]) -> Tag {
    Tag {
        kind,
        name: local_name(name),
        self_closing: false,
        attrs: Vec::new(),
        had_duplicate_attributes: false,
    }
}

/// What comes of a text is text.
fn tendril(bytes: &[u8]) -> StrTendril {
    StrTendril::from_slice(&String::from_utf8_lossy(bytes))
}

fn local_name(bytes: &[u8]) -> LocalName {
    LocalName::from(&*String::from_utf8_lossy(bytes))
}
