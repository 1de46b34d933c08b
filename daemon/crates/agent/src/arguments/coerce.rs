//! Mends values of the wrong JSON type where what was meant is beyond doubt.

use agentd_protocol::number;
use serde_json::{Number, Value};

use super::fit::{Scope, is_of_type, member_schema, required, types};

/// Mends `value` in place towards `schema`. What cannot be mended stays as it is.
pub(super) fn coerce(schema: &Value, value: &mut Value) {
    visit(&mut Scope::new(schema), schema, value);
}

fn visit(scope: &mut Scope<'_>, schema: &Value, value: &mut Value) {
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

/// Mends towards the first alternative that the value then fits; leaves a value alone that fits one already.
fn choose(scope: &mut Scope<'_>, branches: &[Value], value: &mut Value) {
    if branches.iter().any(|branch| scope.fits(branch, value)) {
        return;
    }
    for branch in branches {
        // A copy for each: of a large value there cannot be many.
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

fn visit_members(scope: &mut Scope<'_>, schema: &Value, value: &mut Value) {
    let Value::Object(members) = value else { return };
    members.retain(|name, member| {
        // What models send for an argument that they want to leave out: `null` where sampling is strict, or no text for a
        // number or a flag.
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
