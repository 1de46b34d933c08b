//! How much work it is to hold a value against a schema, found without doing it: the validator has no end of its own.

use serde_json::{Map, Value};

use super::keywords::Document;

/// How many steps a check may take. Arguments of ten thousand items take some ten thousand, and a fraction of a second.
pub(super) const MAX_STEPS: u64 = 250_000;

/// How deep schemas and values may nest together: the validator calls itself as often, on a stack of 2 MiB.
const MAX_NESTING: u64 = 160;

/// Counts steps.
#[derive(Debug)]
pub(super) struct Work {
    document: Document,
}

/// More steps than may be done.
struct TooMuch;

struct Counting<'a> {
    root: &'a Value,
    document: &'a Document,
    left: u64,
}

impl Work {
    /// For schemas whose references are those of `document`.
    pub(super) fn new(document: Document) -> Self {
        Self { document }
    }

    /// The steps of a check: at least as many as the validator looks at schemas. `None` when they are more than [`MAX_STEPS`];
    /// no more than those are counted.
    pub(super) fn steps(&self, schema: &Value, value: &Value) -> Option<u64> {
        let mut counting = Counting { root: schema, document: &self.document, left: MAX_STEPS };
        counting.hold(schema, value, 0).ok().map(|()| MAX_STEPS - counting.left)
    }
}

impl<'a> Counting<'a> {
    fn hold(&mut self, schema: &'a Value, value: &Value, nesting: u64) -> Result<(), TooMuch> {
        // What does not fit is told with its path, whose length counts.
        self.take(1 + nesting / 8)?;
        let Value::Object(keywords) = schema else { return Ok(()) };
        if nesting >= MAX_NESTING {
            return Err(TooMuch);
        }
        self.take(own(keywords, value))?;
        // References were looked at before the schema was compiled.
        for inner in self.document.in_place(self.root, keywords).map_err(|_| TooMuch)? {
            self.hold(inner, value, nesting + 1)?;
        }
        match value {
            Value::Object(members) => self.hold_members(keywords, members, nesting + 1),
            Value::Array(items) => self.hold_items(keywords, items, nesting + 1),
            _ => Ok(()),
        }
    }

    fn hold_members(
        &mut self,
        keywords: &'a Map<String, Value>,
        members: &Map<String, Value>,
        nesting: u64,
    ) -> Result<(), TooMuch> {
        let named = keywords.get("properties").and_then(Value::as_object);
        let by_pattern = keywords.get("patternProperties").and_then(Value::as_object);
        let others = ["additionalProperties", "unevaluatedProperties"].map(|name| keywords.get(name));
        for (name, member) in members {
            self.take(1)?;
            match named.and_then(|named| named.get(name)) {
                Some(schema) => self.hold(schema, member, nesting)?,
                None => {
                    for schema in others.iter().flatten() {
                        self.hold(schema, member, nesting)?;
                    }
                }
            }
            // Whether a pattern fits its name is not looked at.
            for schema in by_pattern.into_iter().flat_map(Map::values) {
                self.take(1 + name.len() as u64 / 64)?;
                self.hold(schema, member, nesting)?;
            }
            if let Some(schema) = keywords.get("propertyNames") {
                self.hold(schema, &Value::String(name.clone()), nesting)?;
            }
        }
        Ok(())
    }

    fn hold_items(
        &mut self,
        keywords: &'a Map<String, Value>,
        items: &[Value],
        nesting: u64,
    ) -> Result<(), TooMuch> {
        for name in ["prefixItems", "items", "additionalItems", "unevaluatedItems", "contains"] {
            match keywords.get(name) {
                Some(Value::Array(schemas)) => {
                    for (schema, item) in schemas.iter().zip(items) {
                        self.hold(schema, item, nesting)?;
                    }
                }
                Some(schema) => {
                    for item in items {
                        self.hold(schema, item, nesting)?;
                    }
                }
                None => {}
            }
        }
        Ok(())
    }

    fn take(&mut self, steps: u64) -> Result<(), TooMuch> {
        self.left = self.left.checked_sub(steps).ok_or(TooMuch)?;
        Ok(())
    }
}

/// The steps of the keywords that look at one value alone.
fn own(keywords: &Map<String, Value>, value: &Value) -> u64 {
    let length = |name: &str| match keywords.get(name) {
        Some(Value::Array(list)) => list.len() as u64,
        Some(Value::Object(members)) => members.len() as u64,
        _ => 0,
    };
    let of_lists = length("enum") + length("required") + length("dependentRequired");
    let of_value = match value {
        Value::String(text) if ["pattern", "format"].iter().any(|name| keywords.contains_key(*name)) => {
            text.len() / 64
        }
        Value::String(text) if ["minLength", "maxLength"].iter().any(|name| keywords.contains_key(*name)) => {
            text.len() / 1024
        }
        Value::Array(items) if keywords.contains_key("uniqueItems") => items.len(),
        _ => 0,
    };
    of_lists + of_value as u64
}
