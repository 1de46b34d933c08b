//! JSON taken apart without reading it into values: the members of an object, as pieces of the text.
//!
//! Session files are read by this, line by line, and nearly all of their bytes are in strings. So strings are searched for what ends them in
//! wide steps (`blocks.rs`), and nothing is looked at twice: who wants the members of a member walks both levels at once, with a
//! [`JsonCursor`].

mod blocks;

use std::cell::Cell;

use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::value::RawValue;

/// A piece of text that is one JSON value, without space around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonText<'a>(&'a str);

impl<'a> JsonText<'a> {
    /// The text.
    #[must_use]
    pub fn as_str(self) -> &'a str {
        self.0
    }

    /// A copy that is known to be JSON.
    #[must_use]
    #[expect(
        unsafe_code,
        reason = "looking at each message of a session file once more takes as long as reading it"
    )]
    pub fn to_raw(self) -> Box<RawValue> {
        // SAFETY: what makes a `JsonText` has found that it is one JSON value without space around it.
        unsafe { RawValue::from_string_unchecked(self.0.to_owned()) }
    }
}

/// Calls `member` with the name and the value of each member of the object that `text` is; false when it is no object, or no JSON: then
/// some members may have been told of.
///
/// Names are as in the text, quotes and escapes included. Both are sub-slices of `text`.
pub fn each_member<'a>(text: &'a str, mut member: impl FnMut(&'a str, JsonText<'a>)) -> bool {
    let told = Cell::new(0_usize);
    let mut cursor = JsonCursor::new(text);
    let scanned = cursor.members(|name, cursor| {
        let value = cursor.value()?;
        told.set(told.get() + 1);
        member(name, value);
        Ok(())
    });
    match scanned.and_then(|_| cursor.end()) {
        Ok(()) => true,
        Err(ScanFault::NoJson) => false,
        // Such depths are no session's. What was told of is not told of again.
        Err(ScanFault::TooDeep) => {
            let mut known = told.get();
            each_member_at_any_depth(text, |name, value| match known.checked_sub(1) {
                Some(left) => known = left,
                None => member(name, value),
            })
        }
    }
}

/// Calls `element` with each element of the array that `text` is, up to one that is nested deeper than 64 levels; false then, and when it is
/// no array.
pub fn each_element<'a>(text: JsonText<'a>, mut element: impl FnMut(JsonText<'a>)) -> bool {
    let mut cursor = JsonCursor::new(text.0);
    let scanned = cursor.elements(|cursor| {
        element(cursor.value()?);
        Ok(())
    });
    scanned.is_ok()
}

/// [`each_member`] by serde, at a fraction of the speed.
fn each_member_at_any_depth<'a>(text: &'a str, member: impl FnMut(&'a str, JsonText<'a>)) -> bool {
    struct Members<F>(F);

    impl<'de, F: FnMut(&'de str, JsonText<'de>)> Visitor<'de> for Members<F> {
        type Value = ();

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
            while let Some((name, value)) = map.next_entry::<&'de RawValue, &'de RawValue>()? {
                (self.0)(name.get(), JsonText(value.get()));
            }
            Ok(())
        }
    }

    let mut json = serde_json::Deserializer::from_str(text);
    json.deserialize_map(Members(member)).and_then(|()| json.end()).is_ok()
}

/// Why a text was not scanned to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScanFault {
    /// It is no JSON, or no value of the kind that was asked for.
    NoJson,
    /// A value is nested deeper than 64 levels. It may be JSON.
    TooDeep,
}

/// What a value is in: a bit for each level, set for an object.
#[derive(Default)]
struct Nesting {
    levels: u32,
    objects: u64,
}

impl Nesting {
    fn enter(&mut self, is_object: bool) -> Result<(), ScanFault> {
        if self.levels == u64::BITS {
            return Err(ScanFault::TooDeep);
        }
        self.levels += 1;
        self.objects = self.objects << 1 | u64::from(is_object);
        Ok(())
    }

    fn leave(&mut self) {
        self.levels -= 1;
        self.objects >>= 1;
    }

    fn is_in_object(&self) -> bool {
        self.objects & 1 == 1
    }
}

/// Walks through a JSON text, value by value. Each method goes behind the value that it stands before. A copy looks ahead.
#[derive(Clone)]
pub struct JsonCursor<'a> {
    text: &'a str,
    /// The next byte.
    at: usize,
    /// Whether there may be escapes in the string that was passed over last.
    may_have_escapes: bool,
}

impl<'a> JsonCursor<'a> {
    /// A cursor before the first value of a text, with space before it or not.
    #[must_use]
    pub fn new(text: &'a str) -> Self {
        let mut cursor = Self { text, at: 0, may_have_escapes: false };
        cursor.skip_space();
        cursor
    }

    /// The first byte of the value that it stands before: `{`, `[`, `"`, a digit, …; `None` at the end.
    #[must_use]
    pub fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// False means that the string that was passed over last has no escapes: in [`Self::members`], the name of the member.
    #[must_use]
    pub fn may_have_escapes(&self) -> bool {
        self.may_have_escapes
    }

    /// Passes over a value.
    ///
    /// # Errors
    /// [`ScanFault`].
    pub fn value(&mut self) -> Result<JsonText<'a>, ScanFault> {
        let from = self.at;
        self.skip_value()?;
        self.since(from).map(JsonText)
    }

    /// Walks through an object: `member` gets each name, as it is in the text, and has to pass over the value behind it, with this cursor.
    /// Gives the object.
    ///
    /// # Errors
    /// [`ScanFault`], and those of `member`.
    pub fn members(
        &mut self,
        mut member: impl FnMut(&'a str, &mut Self) -> Result<(), ScanFault>,
    ) -> Result<JsonText<'a>, ScanFault> {
        let begin = self.at;
        self.take(b'{')?;
        self.skip_space();
        if self.peek() == Some(b'}') {
            self.at += 1;
        } else {
            loop {
                let from = self.at;
                self.skip_string()?;
                let name = self.since(from)?;
                self.skip_colon()?;
                member(name, self)?;
                self.skip_space();
                match self.peek() {
                    Some(b',') => self.at += 1,
                    Some(b'}') => break self.at += 1,
                    _ => return Err(ScanFault::NoJson),
                }
                self.skip_space();
            }
        }
        self.since(begin).map(JsonText)
    }

    /// Walks through an array: `element` has to pass over each element, with this cursor. Gives the array.
    ///
    /// # Errors
    /// [`ScanFault`], and those of `element`.
    pub fn elements(
        &mut self,
        mut element: impl FnMut(&mut Self) -> Result<(), ScanFault>,
    ) -> Result<JsonText<'a>, ScanFault> {
        let begin = self.at;
        self.take(b'[')?;
        self.skip_space();
        if self.peek() == Some(b']') {
            self.at += 1;
        } else {
            loop {
                element(self)?;
                self.skip_space();
                match self.peek() {
                    Some(b',') => self.at += 1,
                    Some(b']') => break self.at += 1,
                    _ => return Err(ScanFault::NoJson),
                }
                self.skip_space();
            }
        }
        self.since(begin).map(JsonText)
    }

    /// Checks that nothing but space is left.
    ///
    /// # Errors
    /// [`ScanFault::NoJson`].
    pub fn end(&mut self) -> Result<(), ScanFault> {
        self.skip_space();
        if self.at == self.text.len() { Ok(()) } else { Err(ScanFault::NoJson) }
    }

    fn since(&self, from: usize) -> Result<&'a str, ScanFault> {
        self.text.get(from..self.at).ok_or(ScanFault::NoJson)
    }

    fn rest(&self) -> &'a [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    fn take(&mut self, byte: u8) -> Result<(), ScanFault> {
        if self.peek() == Some(byte) {
            self.at += 1;
            Ok(())
        } else {
            Err(ScanFault::NoJson)
        }
    }

    #[inline]
    fn skip_space(&mut self) {
        // Programs write none.
        while let Some(0..=b' ') = self.peek()
            && matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t'))
        {
            self.at += 1;
        }
    }

    fn skip_colon(&mut self) -> Result<(), ScanFault> {
        self.skip_space();
        self.take(b':')?;
        self.skip_space();
        Ok(())
    }

    /// Goes to the end of the value that begins here.
    #[inline]
    fn skip_value(&mut self) -> Result<(), ScanFault> {
        match self.peek() {
            Some(b'"') => self.skip_string(),
            Some(b'{' | b'[') => self.skip_nested(),
            _ => self.skip_plain(),
        }
    }

    /// [`Self::skip_value`] of an object or an array.
    fn skip_nested(&mut self) -> Result<(), ScanFault> {
        let mut nesting = Nesting::default();
        loop {
            match self.peek() {
                Some(b'"') => self.skip_string()?,
                Some(open @ (b'{' | b'[')) => {
                    self.at += 1;
                    self.skip_space();
                    let is_object = open == b'{';
                    if self.peek() == Some(if is_object { b'}' } else { b']' }) {
                        self.at += 1;
                    } else {
                        nesting.enter(is_object)?;
                        if is_object {
                            self.skip_string()?;
                            self.skip_colon()?;
                        }
                        continue;
                    }
                }
                _ => self.skip_plain()?,
            }
            // The value has ended, and those that it is the last of end, too.
            loop {
                if nesting.levels == 0 {
                    return Ok(());
                }
                self.skip_space();
                match self.peek() {
                    Some(b',') => break,
                    Some(b'}') if nesting.is_in_object() => nesting.leave(),
                    Some(b']') if !nesting.is_in_object() => nesting.leave(),
                    _ => return Err(ScanFault::NoJson),
                }
                self.at += 1;
            }
            self.at += 1;
            self.skip_space();
            if nesting.is_in_object() {
                self.skip_string()?;
                self.skip_colon()?;
            }
        }
    }

    /// Goes to the end of the number, `true`, `false` or `null` that begins here.
    fn skip_plain(&mut self) -> Result<(), ScanFault> {
        match self.peek() {
            Some(b'-' | b'0'..=b'9') => self.skip_number(),
            Some(b't') => self.skip_word("true"),
            Some(b'f') => self.skip_word("false"),
            Some(b'n') => self.skip_word("null"),
            _ => Err(ScanFault::NoJson),
        }
    }

    /// Goes behind the string that begins here.
    #[inline]
    fn skip_string(&mut self) -> Result<(), ScanFault> {
        self.take(b'"')?;
        let blocks::StringEnd { len, may_have_escapes } =
            blocks::string_end(self.rest()).ok_or(ScanFault::NoJson)?;
        self.at += len;
        self.may_have_escapes = may_have_escapes;
        Ok(())
    }

    fn skip_number(&mut self) -> Result<(), ScanFault> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
            if self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                return Err(ScanFault::NoJson);
            }
        } else {
            self.skip_digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.skip_digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.skip_digits()?;
        }
        Ok(())
    }

    /// Goes behind at least one digit.
    fn skip_digits(&mut self) -> Result<(), ScanFault> {
        let count = self.rest().iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        if count > 0 { Ok(()) } else { Err(ScanFault::NoJson) }
    }

    fn skip_word(&mut self, word: &str) -> Result<(), ScanFault> {
        if self.rest().starts_with(word.as_bytes()) {
            self.at += word.len();
            Ok(())
        } else {
            Err(ScanFault::NoJson)
        }
    }
}

#[cfg(test)]
mod tests;
