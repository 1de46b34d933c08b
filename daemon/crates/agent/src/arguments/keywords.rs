//! The places of schemas inside of a schema, and the targets of its references.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// Keywords whose value is a schema for the same value.
const IN_PLACE: [&str; 4] = ["not", "if", "then", "else"];

/// Keywords whose value is a list of schemas for the same value.
const LISTS_IN_PLACE: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// Keywords whose value has a schema for the same value at each name.
const MAPS_IN_PLACE: [&str; 2] = ["dependentSchemas", "dependencies"];

/// Keywords whose value is a schema, or a list of them, for parts of the value.
const DEEPER: [&str; 8] = [
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "items",
    "additionalItems",
    "unevaluatedItems",
    "prefixItems",
    "contains",
];

/// Keywords whose value has a schema for parts of the value at each name.
const MAPS_DEEPER: [&str; 2] = ["properties", "patternProperties"];

/// Keywords that refer to a schema for the same value.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// The document that references point into.
#[derive(Debug)]
pub(super) struct Document {
    /// The keyword for addresses: it has another name in the oldest draft, where later ones have none of that name.
    pub(super) id_keyword: &'static str,
    /// Its own address, if it says one.
    id: Option<String>,
    /// The named places, as JSON pointers.
    anchors: HashMap<String, String>,
}

impl Document {
    /// Looks for the names in `root`.
    ///
    /// # Errors
    /// Fails when two places have the same name, which makes references to it ambiguous.
    pub(super) fn of(root: &Value) -> Result<Self, String> {
        let draft = root.get("$schema").and_then(Value::as_str).unwrap_or_default();
        let id_keyword = if draft.contains("draft-04") { "id" } else { "$id" };
        let id = root.get(id_keyword).and_then(Value::as_str);
        let id = id.map(|id| id.trim_end_matches('#').to_owned());
        let mut document = Self { id_keyword, id, anchors: HashMap::new() };
        document.collect(root, "")?;
        Ok(document)
    }

    fn collect(&mut self, value: &Value, at: &str) -> Result<(), String> {
        let below = |name: &str| format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
        match value {
            Value::Object(members) => {
                let of_id = members.get(self.id_keyword).and_then(|id| id.as_str()?.strip_prefix('#'));
                let names =
                    ["$anchor", "$dynamicAnchor"].iter().filter_map(|name| members.get(*name)?.as_str());
                for name in names.chain(of_id).filter(|name| !name.is_empty()) {
                    let other = self.anchors.insert(name.to_owned(), at.to_owned());
                    if other.is_some_and(|other| other != at) {
                        return Err(format!("two places have the name \"{name}\""));
                    }
                }
                members.iter().try_for_each(|(name, member)| self.collect(member, &below(name)))
            }
            Value::Array(items) => items
                .iter()
                .enumerate()
                .try_for_each(|(place, item)| self.collect(item, &below(&place.to_string()))),
            _ => Ok(()),
        }
    }

    /// The target of a reference.
    fn target<'a>(&self, root: &'a Value, reference: &str) -> Result<&'a Value, String> {
        let unknown = || format!("the reference \"{}\" leads nowhere in it", shown(reference));
        let (address, place) = reference.split_once('#').unwrap_or((reference, ""));
        if !address.is_empty() && self.id.as_deref() != Some(address) {
            return Err(format!("references to other documents ({}) are not followed", shown(reference)));
        }
        let place = decoded(place).ok_or_else(unknown)?;
        let pointer = if place.is_empty() || place.starts_with('/') {
            &place
        } else {
            self.anchors.get(&place).ok_or_else(unknown)?
        };
        root.pointer(pointer).ok_or_else(unknown)
    }

    /// The schemas inside of `schema` for the same value.
    ///
    /// # Errors
    /// Fails for a reference without a target in this document.
    pub(super) fn in_place<'a>(
        &self,
        root: &'a Value,
        schema: &'a Map<String, Value>,
    ) -> Result<Vec<&'a Value>, String> {
        let mut found = Vec::new();
        for name in REFERENCES {
            if let Some(Value::String(reference)) = schema.get(name) {
                found.push(self.target(root, reference)?);
            }
        }
        found.extend(IN_PLACE.iter().filter_map(|name| schema.get(*name)).filter(|value| is_schema(value)));
        found.extend(LISTS_IN_PLACE.iter().filter_map(|name| schema.get(*name)?.as_array()).flatten());
        let maps = MAPS_IN_PLACE.iter().filter_map(|name| schema.get(*name)?.as_object());
        // A dependency may be a list of names instead.
        found.extend(maps.flat_map(Map::values).filter(|value| is_schema(value)));
        Ok(found)
    }
}

/// The schemas inside of `schema` for parts of a value.
pub(super) fn deeper(schema: &Map<String, Value>) -> Vec<&Value> {
    let mut found: Vec<&Value> = Vec::new();
    for value in DEEPER.iter().filter_map(|name| schema.get(*name)) {
        match value {
            Value::Array(list) => found.extend(list),
            value if is_schema(value) => found.push(value),
            _ => {}
        }
    }
    found.extend(MAPS_DEEPER.iter().filter_map(|name| schema.get(*name)?.as_object()).flat_map(Map::values));
    found
}

/// Whether a value has the type of a schema.
fn is_schema(value: &Value) -> bool {
    value.is_object() || value.is_boolean()
}

/// A reference, as an error shows it.
fn shown(reference: &str) -> String {
    reference.chars().take(100).collect()
}

/// A fragment with its percent escapes decoded; `None` if it is not text then.
fn decoded(fragment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment;
    while let Some((before, after)) = rest.split_once('%') {
        bytes.extend_from_slice(before.as_bytes());
        bytes.push(u8::from_str_radix(after.get(..2)?, 16).ok()?);
        rest = after.get(2..)?;
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8(bytes).ok()
}
