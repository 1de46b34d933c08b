//! What a schema may ask for at most. A schema of a few kilobytes can ask for more work than there is time and memory for:
//! alternatives of alternatives by reference double with each level, and a regular expression grows with its counts.

use std::collections::{HashMap, HashSet};

use regex::RegexBuilder;
use serde_json::{Map, Value};

use super::{
    coerce::units,
    keywords::{Document, deeper},
};

/// How large a schema may be, in bytes of JSON.
pub(super) const MAX_BYTES: usize = 256 << 10;

/// How deep its values may nest, two levels for each object in an object. The validator checks the schema itself first, and calls itself several times for each
/// level, on a stack of 2 MiB.
const MAX_NESTING: usize = 40;

/// How many schemas one value may be held against, one in the other by alternatives and references.
const MAX_WEIGHT: u64 = 10_000;

/// How deep those may nest.
const MAX_LEVELS: u32 = 32;

/// How large its regular expressions may be together once they are compiled, in bytes.
const MAX_PATTERN_BYTES: usize = 4 << 20;

/// The sizes that regular expressions are tried at.
const PATTERN_SIZES: [usize; 4] = [32 << 10, 128 << 10, 512 << 10, 2 << 20];

/// What one counts that is of another dialect: most of these are left out.
const ODD_PATTERN_BYTES: usize = 256 << 10;

/// What a schema has at most that is compiled in a moment, in values.
const SMALL: usize = 1_000;

/// Whether a schema is compiled in a moment, as those of the tools of this program are.
pub(super) fn is_small(schema: &Value) -> bool {
    let mut patterns = HashSet::new();
    collect_patterns(schema, &mut patterns);
    patterns.is_empty() && units(schema, SMALL) < SMALL
}

/// Whether a schema stays within its bounds; what its references name.
///
/// # Errors
/// Says in what it does not.
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

/// How deep a value nests.
fn nesting(value: &Value) -> usize {
    match value {
        Value::Object(members) => 1 + members.values().map(nesting).max().unwrap_or_default(),
        Value::Array(items) => 1 + items.iter().map(nesting).max().unwrap_or_default(),
        _ => 1,
    }
}

/// How many schemas hold against one value, for each schema that was looked at, by its address in the document.
struct Weights<'a> {
    root: &'a Value,
    document: &'a Document,
    /// The weight and the levels; `None` while they are being found.
    known: HashMap<*const Value, Option<(u64, u32)>>,
    /// How many are being found.
    open: u32,
}

impl<'a> Weights<'a> {
    /// Looks at every schema that can be reached.
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

    /// A document inside of the document would give references another meaning.
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
            // This calls itself as often as schemas nest.
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

/// Whether the regular expressions are small enough together.
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

/// Which of the known sizes is enough for a regular expression; `None` where none is.
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

/// A regular expression with the classes for words and digits as ECMA has them: of ASCII alone, and so much smaller.
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
