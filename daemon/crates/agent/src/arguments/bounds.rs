//! Limits of schemas. A schema of a few kilobytes can require more work than there is time and memory for: nested alternatives by reference
//! double with each level, and a regular expression grows with its counts.

use std::collections::{HashMap, HashSet};

use regex::RegexBuilder;
use serde_json::{Map, Value};

use super::{
    coerce::units,
    keywords::{Document, deeper},
};

/// The largest schema, in bytes of JSON.
pub(super) const MAX_BYTES: usize = 256 << 10;

/// The deepest nesting of its values, two levels for each object in an object. The validator first checks the schema itself, and recurses
/// several times for each level, on a stack of 2 MiB.
const MAX_NESTING: usize = 40;

/// The most schemas that one value is checked against, nested by alternatives and references.
const MAX_WEIGHT: u64 = 10_000;

/// The deepest nesting of those schemas.
const MAX_LEVELS: u32 = 32;

/// The largest compiled size of all its regular expressions together, in bytes.
const MAX_PATTERN_BYTES: usize = 4 << 20;

/// The size limits at which regular expressions are compiled, in bytes.
const PATTERN_SIZES: [usize; 4] = [32 << 10, 128 << 10, 512 << 10, 2 << 20];

/// The assumed size of an expression in another dialect, in bytes: most of these are left out.
const ODD_PATTERN_BYTES: usize = 256 << 10;

/// The largest schema that compiles in a moment, in values.
const SMALL: usize = 1_000;

/// Whether a schema compiles in a moment, as those of the built-in tools do.
pub(super) fn is_small(schema: &Value) -> bool {
    let mut patterns = HashSet::new();
    collect_patterns(schema, &mut patterns);
    patterns.is_empty() && units(schema, SMALL) < SMALL
}

/// Checks that a schema is within the limits, and returns the targets of its references.
///
/// # Errors
/// Names the exceeded limit.
pub(super) fn check(schema: &Value) -> Result<Document, String> {
    let bytes = serde_json::to_vec(schema).map_or(usize::MAX, |text| text.len());
    if bytes > MAX_BYTES {
        return Err(format!("it has {bytes} bytes, more than {MAX_BYTES}"));
    }
    if nesting(schema) > MAX_NESTING {
        return Err(format!("it nests deeper than {MAX_NESTING} levels"));
    }
    check_patterns(schema)?;
    let document = Document::of(schema)?;
    Weights { root: schema, document: &document, known: HashMap::new(), open: 0 }.check()?;
    Ok(document)
}

/// The nesting depth of a value.
fn nesting(value: &Value) -> usize {
    match value {
        Value::Object(members) => 1 + members.values().map(nesting).max().unwrap_or_default(),
        Value::Array(items) => 1 + items.iter().map(nesting).max().unwrap_or_default(),
        _ => 1,
    }
}

/// The number of schemas that one value is checked against, for each visited schema, by its address in the document.
struct Weights<'a> {
    root: &'a Value,
    document: &'a Document,
    /// The weight and the levels; `None` while they are being computed.
    known: HashMap<*const Value, Option<(u64, u32)>>,
    /// The number of schemas that are being computed.
    open: u32,
}

impl<'a> Weights<'a> {
    /// Checks every reachable schema.
    fn check(&mut self) -> Result<(), String> {
        let (mut seen, mut next) = (HashSet::new(), vec![self.root]);
        while let Some(schema) = next.pop() {
            if !seen.insert(std::ptr::from_ref(schema)) {
                continue;
            }
            self.weigh(schema)?;
            if let Value::Object(members) = schema {
                self.is_no_document(schema, members)?;
                next.extend(self.document.in_place(self.root, members)?);
                next.extend(deeper(members));
            }
        }
        Ok(())
    }

    /// Refuses a document inside of the document, which would give references another meaning.
    fn is_no_document(&self, schema: &Value, members: &Map<String, Value>) -> Result<(), String> {
        let is_other = |id: &&str| !id.starts_with('#') && !std::ptr::eq(schema, self.root);
        let keyword = self.document.id_keyword;
        match members.get(keyword).and_then(Value::as_str).filter(is_other) {
            None => Ok(()),
            Some(_) => Err(format!("it has another document inside (\"{keyword}\")")),
        }
    }

    fn weigh(&mut self, schema: &'a Value) -> Result<(u64, u32), String> {
        let address = std::ptr::from_ref(schema);
        match self.known.get(&address) {
            Some(Some(known)) => return Ok(*known),
            Some(None) => return Err("a schema in it refers to itself for the same value".to_owned()),
            None => {}
        }
        self.known.insert(address, None);
        let (mut weight, mut levels) = (1_u64, 0);
        if let Value::Object(members) = schema {
            // The recursion is as deep as schemas nest.
            self.open += 1;
            if self.open > MAX_LEVELS + 1 {
                return Err(too_many_levels());
            }
            for inner in self.document.in_place(self.root, members)? {
                let (of_inner, below) = self.weigh(inner)?;
                weight = weight.saturating_add(of_inner);
                levels = levels.max(below + 1);
            }
            self.open -= 1;
        }
        if weight > MAX_WEIGHT {
            return Err(format!(
                "its alternatives and references hold one value against more than {MAX_WEIGHT} schemas"
            ));
        }
        if levels > MAX_LEVELS {
            return Err(too_many_levels());
        }
        self.known.insert(address, Some((weight, levels)));
        Ok((weight, levels))
    }
}

fn too_many_levels() -> String {
    format!("its alternatives and references nest deeper than {MAX_LEVELS} levels")
}

/// Checks that the regular expressions are small enough together.
fn check_patterns(schema: &Value) -> Result<(), String> {
    let mut patterns = HashSet::new();
    collect_patterns(schema, &mut patterns);
    let mut left = MAX_PATTERN_BYTES;
    for pattern in patterns {
        let size = compiled_size(pattern);
        let rest = size.and_then(|size| left.checked_sub(size));
        left = rest.ok_or_else(|| {
            let shown: String = pattern.chars().take(100).collect();
            format!("its regular expressions are too large together; one is \"{shown}\"")
        })?;
    }
    Ok(())
}

/// The smallest sufficient size limit of a regular expression; `None` if all are too small.
fn compiled_size(pattern: &str) -> Option<usize> {
    let pattern = in_ascii(pattern);
    for size in PATTERN_SIZES {
        match RegexBuilder::new(&pattern).size_limit(size).build() {
            Ok(_) => return Some(size),
            Err(regex::Error::CompiledTooBig(_)) => {}
            Err(_) => return Some(ODD_PATTERN_BYTES),
        }
    }
    None
}

/// A regular expression with ECMA's classes for words and digits, which hold only ASCII and are much smaller.
fn in_ascii(pattern: &str) -> String {
    let mut text = String::with_capacity(pattern.len());
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            text.push(letter);
            continue;
        }
        match letters.next() {
            Some('w') => text.push_str("[0-9A-Za-z_]"),
            Some('W') => text.push_str("[^0-9A-Za-z_]"),
            Some('d') => text.push_str("[0-9]"),
            Some('D') => text.push_str("[^0-9]"),
            other => {
                text.push(letter);
                text.extend(other);
            }
        }
    }
    text
}

/// The regular expressions of a schema, each once.
pub(super) fn collect_patterns<'a>(schema: &'a Value, patterns: &mut HashSet<&'a str>) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::String(pattern)) = members.get("pattern") {
                patterns.insert(pattern);
            }
            if let Some(Value::Object(by_name)) = members.get("patternProperties") {
                patterns.extend(by_name.keys().map(String::as_str));
            }
            members.values().for_each(|member| collect_patterns(member, patterns));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_patterns(item, patterns)),
        _ => {}
    }
}
