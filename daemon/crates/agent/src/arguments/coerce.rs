//! Coerces arguments of the wrong JSON type where the meaning is beyond doubt. Pure.

use agentd_protocol::number;
use serde_json::{Number, Value};

/// Coerces `value` in place towards `schema`. A value that cannot be coerced stays unchanged.
pub(super) fn coerce(schema: &Value, value: &mut Value) {
    visit(&mut SchemaScope::new(schema), schema, value);
}

fn visit(scope: &mut SchemaScope<'_>, schema: &Value, value: &mut Value) {
    scope.enter(|scope| {
        if let Some(target) = scope.referred(schema) {
            visit(scope, target, value);
        }
        if let Some(Value::Array(parts)) = schema.get("allOf") {
            for part in parts {
                visit(scope, part, value);
            }
        }
        for name in ["anyOf", "oneOf"] {
            if let Some(Value::Array(branches)) = schema.get(name) {
                choose(scope, branches, value);
            }
        }
        convert(&types(schema), value);
        match value {
            Value::Object(_) => visit_members(scope, schema, value),
            Value::Array(items) => {
                if let Some(wanted) = schema.get("items").filter(|wanted| wanted.is_object()) {
                    for item in items {
                        visit(scope, wanted, item);
                    }
                }
            }
            _ => {}
        }
    });
}

/// Coerces towards the first alternative that the value then fits. A value that already fits one stays unchanged.
fn choose(scope: &mut SchemaScope<'_>, branches: &[Value], value: &mut Value) {
    if branches.iter().any(|branch| scope.fits(branch, value)) {
        return;
    }
    for branch in branches {
        // Each alternative needs a copy, so copies of large values are limited.
        if !scope.pay_for(value) {
            return;
        }
        let mut mended = value.clone();
        visit(scope, branch, &mut mended);
        if scope.fits(branch, &mended) {
            *value = mended;
            return;
        }
    }
}

fn visit_members(scope: &mut SchemaScope<'_>, schema: &Value, value: &mut Value) {
    let Value::Object(members) = value else { return };
    members.retain(|name, member| {
        // Models send a blank for an argument that they leave out: `null` with strict sampling, or an empty text for a number or a flag.
        let is_blank = member.is_null() || member.as_str().is_some_and(|text| text.trim().is_empty());
        if !is_blank || required(schema).any(|wanted| wanted == name) {
            return true;
        }
        let named = schema.get("properties").and_then(|properties| properties.get(name));
        let leaves_out = |wanted: &Value| {
            let types = types(wanted);
            member.is_null()
                || !types.is_empty()
                    && types.iter().all(|name| matches!(*name, "number" | "integer" | "boolean"))
        };
        named.is_none_or(|wanted| scope.fits(wanted, member) || !leaves_out(wanted))
    });
    for (name, member) in members {
        if let Some(wanted) = member_schema(schema, name) {
            visit(scope, wanted, member);
        }
    }
}

/// Converts `value` to the first of `wanted` that it can stand for, unless it is of one of these types already.
fn convert(wanted: &[&str], value: &mut Value) {
    if wanted.iter().any(|name| is_of_type(value, name)) {
        return;
    }
    if let Some(converted) = wanted.iter().find_map(|name| converted(value, name)) {
        *value = converted;
    }
}

fn converted(value: &Value, wanted: &str) -> Option<Value> {
    match (wanted, value) {
        ("string", Value::Bool(flag)) => Some(Value::String(flag.to_string())),
        ("string", Value::Number(_)) => {
            let mut value = value.clone();
            number::normalize(&mut value);
            Some(Value::String(value.to_string()))
        }
        ("boolean", Value::String(text)) => match text.trim() {
            "true" => Some(Value::Bool(true)),
            "false" => Some(Value::Bool(false)),
            _ => None,
        },
        ("boolean", Value::Number(number)) => match number.as_u64() {
            Some(0) => Some(Value::Bool(false)),
            Some(1) => Some(Value::Bool(true)),
            _ => None,
        },
        ("number" | "integer", Value::String(text)) => {
            let number: Number = serde_json::from_str(text.trim()).ok()?;
            let mut value = Value::Number(number);
            number::normalize(&mut value);
            is_of_type(&value, wanted).then_some(value)
        }
        ("number" | "integer", Value::Bool(flag)) => Some(Value::from(u8::from(*flag))),
        ("array" | "object", Value::String(text)) => {
            let value: Value = serde_json::from_str(text.trim()).ok()?;
            is_of_type(&value, wanted).then_some(value)
        }
        _ => None,
    }
}

/// The schemas that one coercion visits before it gives up: a limit for schemas that refer to themselves or whose alternatives multiply.
/// Real arguments need a few hundred.
const MAX_STEPS: u32 = 20_000;

/// The depth of alternatives and references beyond which a value counts as not fitting.
const MAX_DEPTH: u32 = 64;

/// The document that local references point into, and the remaining work.
struct SchemaScope<'a> {
    root: &'a Value,
    steps: u32,
    depth: u32,
}

impl<'a> SchemaScope<'a> {
    fn new(root: &'a Value) -> Self {
        Self { root, steps: MAX_STEPS, depth: 0 }
    }

    /// Calls `visit` one level deeper, unless the work is used up.
    fn enter<T>(&mut self, visit: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.steps == 0 || self.depth == MAX_DEPTH {
            return None;
        }
        self.steps -= 1;
        self.depth += 1;
        let result = visit(self);
        self.depth -= 1;
        Some(result)
    }

    /// Charges a copy of `value`; false if the work is used up.
    fn pay_for(&mut self, value: &Value) -> bool {
        self.steps = spend(value, self.steps).unwrap_or_default();
        self.steps > 0
    }

    /// The schema that a local `$ref` of `schema` names.
    fn referred(&self, schema: &Value) -> Option<&'a Value> {
        let pointer = schema.get("$ref")?.as_str()?.strip_prefix('#')?;
        self.root.pointer(pointer)
    }

    /// Whether `value` fits `schema`, judged by types, constants, alternatives and members only.
    fn fits(&mut self, schema: &Value, value: &Value) -> bool {
        self.enter(|scope| scope.fits_here(schema, value)).unwrap_or(false)
    }

    fn fits_here(&mut self, schema: &Value, value: &Value) -> bool {
        let Some(keywords) = schema.as_object() else { return schema != &Value::Bool(false) };
        if let Some(target) = self.referred(schema)
            && !self.fits(target, value)
        {
            return false;
        }
        let types = types(schema);
        if !types.is_empty() && !types.iter().any(|name| is_of_type(value, name)) {
            return false;
        }
        if keywords.get("const").is_some_and(|constant| constant != value) {
            return false;
        }
        if let Some(Value::Array(options)) = keywords.get("enum") {
            self.steps = self.steps.saturating_sub(u32::try_from(options.len()).unwrap_or(u32::MAX) / 16);
            if !options.contains(value) {
                return false;
            }
        }
        for name in ["anyOf", "oneOf"] {
            if let Some(Value::Array(branches)) = keywords.get(name)
                && !branches.iter().any(|branch| self.fits(branch, value))
            {
                return false;
            }
        }
        if let Some(Value::Array(parts)) = keywords.get("allOf")
            && !parts.iter().all(|part| self.fits(part, value))
        {
            return false;
        }
        match value {
            Value::Object(members) => {
                required(schema).all(|name| members.contains_key(name))
                    && members.iter().all(|(name, member)| {
                        member_schema(schema, name).is_none_or(|wanted| self.fits(wanted, member))
                    })
            }
            Value::Array(items) => match keywords.get("items") {
                Some(wanted) if !wanted.is_array() => items.iter().all(|item| self.fits(wanted, item)),
                _ => true,
            },
            _ => true,
        }
    }
}

/// The rest of `steps` after a copy of `value`, which costs one for each 64 values or 4 KiB of text.
fn spend(value: &Value, steps: u32) -> Option<u32> {
    let units = units(value, (steps as usize).saturating_mul(64));
    steps.checked_sub(u32::try_from(units / 64).ok()?)
}

/// The values in `value`, and its text in pieces of 64 bytes; stops counting soon after `most`.
pub(super) fn units(value: &Value, most: usize) -> usize {
    fn sum<'a>(parts: impl Iterator<Item = &'a Value>, most: usize) -> usize {
        let mut sum = 1;
        for part in parts {
            sum += units(part, most);
            if sum > most {
                break;
            }
        }
        sum
    }
    match value {
        Value::String(text) => 1 + text.len() / 64,
        Value::Array(items) => sum(items.iter(), most),
        Value::Object(members) => sum(members.values(), most),
        _ => 1,
    }
}

/// The types that `schema` names; none when it leaves the type open.
fn types(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// Whether `value` is of the JSON Schema type `name`.
fn is_of_type(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "number" => value.is_number(),
        "integer" => {
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
        }
        _ => false,
    }
}

/// The names that objects of `schema` must have.
fn required(schema: &Value) -> impl Iterator<Item = &str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// The schema of the member `name` of objects of `schema`.
fn member_schema<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    let named = schema.get("properties").and_then(|properties| properties.get(name));
    named.or_else(|| schema.get("additionalProperties").filter(|others| others.is_object()))
}
