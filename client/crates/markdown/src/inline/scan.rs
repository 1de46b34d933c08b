//! The parts of a text, in one pass.

use super::{
    emphasis,
    entities::entity,
    node::{Content, Marks, Node},
};
use crate::{
    links::{bare_address, bracketed_address, inline_target},
    text::columns,
};

/// The longest tag, in bytes: what is longer is text.
const MAX_TAG: usize = 1024;

/// The parts of a text. Links are resolved, emphasis only within them.
pub(super) fn scan(text: &str, goes_on: bool) -> Vec<Node<'_>> {
    let mut scanner = Scanner {
        text,
        at: 0,
        plain: 0,
        nodes: Vec::new(),
        brackets: Vec::new(),
        goes_on,
        no_comment_end: false,
    };
    scanner.run();
    scanner.nodes
}

/// An opening bracket that may become a link.
struct OpenBracket {
    node: usize,
    is_image: bool,
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    /// Where the text begins that is no node yet.
    plain: usize,
    nodes: Vec<Node<'a>>,
    brackets: Vec<OpenBracket>,
    goes_on: bool,
    no_comment_end: bool,
}

impl<'a> Scanner<'a> {
    fn run(&mut self) {
        let bytes = self.text.as_bytes();
        while self.at < bytes.len() {
            match bytes[self.at] {
                b'\\' => self.escape(),
                b'\n' => self.line_end(),
                b'`' => self.code(),
                b'*' | b'_' | b'~' => self.marks(),
                b'!' if bytes.get(self.at + 1) == Some(&b'[') => self.bracket(2),
                b'[' => self.bracket(1),
                b']' => self.close_bracket(),
                b'<' => self.angle(),
                b'&' => self.entity(),
                b'h' | b'w' if self.may_begin_address() => self.address(),
                _ => self.at += 1,
            }
        }
        self.end_plain();
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn end_plain(&mut self) {
        if self.plain < self.at {
            self.nodes.push(Node::new(Content::Text(&self.text[self.plain..self.at])));
        }
    }

    /// Adds a node that takes `length` bytes from here.
    fn add(&mut self, content: Content<'a>, length: usize) {
        self.end_plain();
        self.nodes.push(Node::new(content));
        self.at += length;
        self.plain = self.at;
    }

    /// Leaves `length` bytes to the text.
    fn skip(&mut self, length: usize) {
        self.at += length;
    }

    fn escape(&mut self) {
        match self.text.as_bytes().get(self.at + 1) {
            Some(b'\n') => self.add(Content::HardBreak, 2),
            Some(c) if c.is_ascii_punctuation() => self.add(Content::Char(char::from(*c)), 2),
            _ => self.skip(1),
        }
    }

    fn line_end(&mut self) {
        let before = &self.text[self.plain..self.at];
        let kept = before.trim_end_matches(' ').len();
        let is_hard = before.len() - kept >= 2;
        let begin = self.plain;
        let end = self.at;
        self.at = begin + kept;
        self.end_plain();
        self.at = end;
        self.plain = end;
        self.add(if is_hard { Content::HardBreak } else { Content::SoftBreak }, 1);
    }

    fn code(&mut self) {
        let rest = self.rest();
        let ticks = run(rest, b'`');
        let inner = &rest[ticks..];
        let mut from = 0;
        while let Some(found) = inner[from..].find('`') {
            let begin = from + found;
            let length = run(&inner[begin..], b'`');
            if length == ticks {
                self.add(Content::Code(code_text(&inner[..begin])), ticks + begin + ticks);
                return;
            }
            from = begin + length;
        }
        if self.goes_on && !inner.is_empty() {
            self.add(Content::Code(code_text(inner)), rest.len());
            return;
        }
        self.skip(ticks);
    }

    fn marks(&mut self) {
        let rest = self.rest();
        let mark = rest.as_bytes()[0];
        let length = run(rest, mark);
        if mark == b'~' && length > 2 {
            self.skip(length);
            return;
        }
        let before = Side::of(self.text[..self.at].chars().next_back());
        let after = Side::of(rest[length..].chars().next());
        let left = !after.is_space && (!after.is_punctuation || before.lets_in());
        let right = !before.is_space && (!before.is_punctuation || after.lets_in());
        let (opens, closes) = match mark {
            b'_' => (left && (!right || before.is_punctuation), right && (!left || after.is_punctuation)),
            b'~' if length == 1 => (false, false),
            _ => (left, right),
        };
        let text = &rest[..length];
        self.add(Content::Marks(Marks { mark, text, opens, closes }), length);
    }

    fn bracket(&mut self, length: usize) {
        let text = &self.rest()[..length];
        self.add(Content::Bracket { text, target: None }, length);
        self.brackets.push(OpenBracket { node: self.nodes.len() - 1, is_image: length == 2 });
    }

    fn close_bracket(&mut self) {
        let Some(open) = self.brackets.pop() else { return self.skip(1) };
        let Some((target, length)) = inline_target(&self.rest()[1..]) else {
            // The beginning of a target: the address of the link comes with the next piece.
            let is_partial =
                self.goes_on && self.rest()[1..].starts_with('(') && !self.rest().contains([')', ' ', '\n']);
            if is_partial {
                self.link(&open, String::new(), self.rest().len());
            } else {
                self.skip(1);
            }
            return;
        };
        self.link(&open, target, 1 + length);
    }

    fn link(&mut self, open: &OpenBracket, target: String, length: usize) {
        self.add(Content::LinkEnd, length);
        emphasis::pair(&mut self.nodes, open.node + 1, false);
        if let Content::Bracket { target: place, .. } = &mut self.nodes[open.node].content {
            *place = Some(target);
        }
        if open.is_image {
            // The text of an image is part of a link around it.
            return;
        }
        // Links have no links in them.
        self.brackets.retain(|bracket| bracket.is_image && bracket.node > open.node);
    }

    fn angle(&mut self) {
        let rest = self.rest();
        if rest.starts_with("<!--") && !self.no_comment_end {
            match rest[4..].find("-->") {
                Some(end) => {
                    // Comments are left out.
                    self.end_plain();
                    self.at += end + 7;
                    self.plain = self.at;
                    return;
                }
                None => self.no_comment_end = true,
            }
        }
        let Some(end) = rest[1..].find(['>', '<']).map(|at| at + 1).filter(|end| *end < MAX_TAG) else {
            return self.skip(1);
        };
        if !rest[end..].starts_with('>') {
            return self.skip(1);
        }
        let inner = &rest[1..end];
        if let Some(target) = bracketed_address(inner) {
            self.add(Content::Address { text: inner, target }, end + 1);
        } else if inner.trim_end_matches(['/', ' ']).eq_ignore_ascii_case("br") {
            self.add(Content::HardBreak, end + 1);
        } else if is_tag(inner) {
            self.add(Content::Tag(&rest[..=end]), end + 1);
        } else {
            self.skip(1);
        }
    }

    fn entity(&mut self) {
        match entity(self.rest()) {
            Some((c, length)) => self.add(Content::Char(c), length),
            None => self.skip(1),
        }
    }

    fn may_begin_address(&self) -> bool {
        let rest = self.rest();
        (rest.starts_with("http") || rest.starts_with("www."))
            && !self.text[..self.at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '/')
    }

    fn address(&mut self) {
        let rest = self.rest();
        match bare_address(rest) {
            Some(length) => {
                let text = &rest[..length];
                let scheme = if text.starts_with("www.") { "http://" } else { "" };
                self.add(Content::Address { text, target: format!("{scheme}{text}") }, length);
            }
            None => self.skip(1),
        }
    }
}

/// The length of the run of a byte that a text begins with.
fn run(text: &str, byte: u8) -> usize {
    text.bytes().take_while(|b| *b == byte).count()
}

/// The content of code: one blank at each end belongs to the marks, ends of lines are blanks.
fn code_text(inner: &str) -> String {
    let text = inner.replace('\n', " ");
    match text.strip_prefix(' ').and_then(|text| text.strip_suffix(' ')) {
        Some(stripped) if !stripped.trim().is_empty() => stripped.to_owned(),
        _ => text,
    }
}

fn is_tag(inner: &str) -> bool {
    let name = inner.strip_prefix('/').unwrap_or(inner);
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '!' || c == '?') && !name.starts_with("http")
}

/// What is beside a run of marks.
struct Side {
    is_space: bool,
    is_punctuation: bool,
    is_wide: bool,
}

impl Side {
    fn of(c: Option<char>) -> Self {
        let Some(c) = c else { return Self { is_space: true, is_punctuation: false, is_wide: false } };
        Self {
            is_space: c.is_whitespace(),
            is_punctuation: !c.is_alphanumeric() && !c.is_whitespace(),
            is_wide: !c.is_ascii() && columns(c.encode_utf8(&mut [0; 4])) > 1,
        }
    }

    /// Whether marks next to punctuation count as at the edge of a word. Chinese and Japanese have no blanks there.
    fn lets_in(&self) -> bool {
        self.is_space || self.is_punctuation || self.is_wide
    }
}
