//! Numbers written the way JavaScript writes them.
//!
//! Session files and the wire are shared with JavaScript programs. `JSON.stringify` prints a whole number without a
//! fraction (`0`, not `0.0`) and small numbers without an exponent down to 1e-6. Programs that compare or re-print
//! lines byte for byte notice the difference, so what agentd writes itself follows those forms.

use serde::{Serialize, Serializer, ser::Error as _};
use serde_json::{Map, Number, Value, value::RawValue};

/// Serialises an `f64` in JavaScript's form; for use as `#[serde(with = "…")]`, with its counterpart below.
///
/// # Errors
/// A number that JSON cannot hold (infinite or not a number) is written as `null`, as JavaScript does; this function
/// itself fails only when the serialiser does.
pub fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if !value.is_finite() {
        return serializer.serialize_none();
    }
    match integral(*value) {
        Some(whole) => serializer.serialize_i64(whole),
        None if prints_alike(*value) => serializer.serialize_f64(*value),
        None => RawValue::from_string(js_text(*value)).map_err(S::Error::custom)?.serialize(serializer),
    }
}

/// Reads any JSON number as `f64`; `null` reads as 0.
///
/// # Errors
/// Fails when the value is neither a number nor `null`.
pub fn deserialize<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(<Option<f64> as serde::Deserialize>::deserialize(deserializer)?.unwrap_or(0.0))
}

/// Rewrites, in place, every number inside `value` that JavaScript would print as a whole number (`3.0` becomes `3`).
pub fn normalize(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(whole) = number.as_f64().filter(|_| number.is_f64()).and_then(integral) {
                *number = Number::from(whole);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(normalize),
        Value::Object(map) => normalize_map(map),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// [`normalize`] for each member of an object.
pub fn normalize_map(map: &mut Map<String, Value>) {
    map.values_mut().for_each(normalize);
}

/// Reads a count or a millisecond time stamp from any JSON number; anything else reads as 0.
///
/// Files of other programs hold such fields as floats or leave them out, and one odd number must not hide a message.
///
/// # Errors
/// Only what the deserialiser itself reports, such as broken JSON.
pub fn lenient_i64<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    let value = <Value as serde::Deserialize>::deserialize(deserializer)?;
    // A float outside of i64 saturates: still a number, and never a panic.
    Ok(value.as_i64().or_else(|| value.as_f64().map(|float| float as i64)).unwrap_or(0))
}

/// The largest integer that JavaScript has, 2^53 - 1: no count is read as more, so that sums of them stay numbers.
pub const MAX_COUNT: u64 = 9_007_199_254_740_991;

/// [`lenient_i64`] for counts, which are never negative and at most [`MAX_COUNT`].
///
/// # Errors
/// Only what the deserialiser itself reports.
pub fn lenient_u64<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    lenient_i64(deserializer).map(|value| u64::try_from(value).unwrap_or(0).min(MAX_COUNT))
}

/// The integer that `value` is, if JavaScript would print it as one of at most 15 digits.
fn integral(value: f64) -> Option<i64> {
    (value.fract() == 0.0 && value.abs() < 1e15).then_some(value as i64)
}

/// Whether serde_json's shortest form of a fraction is JavaScript's as well.
fn prints_alike(value: f64) -> bool {
    let size = value.abs();
    (1e-4..1e15).contains(&size)
}

/// JavaScript's `Number.prototype.toString` for a finite number, built on Rust's shortest digits.
fn js_text(value: f64) -> String {
    let size = value.abs();
    if (1e-6..1e21).contains(&size) || value == 0.0 {
        return format!("{value}");
    }
    let text = format!("{value:e}");
    // Rust prints 1e21 where JavaScript prints 1e+21.
    match text.split_once('e') {
        Some((digits, exponent)) if !exponent.starts_with('-') => format!("{digits}e+{exponent}"),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct One(#[serde(with = "super")] f64);

    fn check(input: f64, expected: &str) {
        assert_eq!(serde_json::to_string(&One(input)).unwrap(), expected, "{input:?}");
    }

    #[test]
    fn prints_numbers_as_javascript_does() {
        check(0.0, "0");
        check(-0.0, "0");
        check(3.0, "3");
        check(0.45, "0.45");
        check(-1.5, "-1.5");
        check(0.000_006, "0.000006");
        check(0.000_001_23, "0.00000123");
        check(1e-7, "1e-7");
        check(1.5e-9, "1.5e-9");
        check(1e15, "1000000000000000");
        check(1e20, "100000000000000000000");
        check(1e21, "1e+21");
        check(f64::NAN, "null");
        check(f64::INFINITY, "null");
    }

    #[test]
    fn normalizes_whole_floats_at_any_depth() {
        let mut value: Value = serde_json::from_str(r#"{"a":[1.0,2.5,{"b":-3.0}],"c":7}"#).unwrap();
        normalize(&mut value);
        assert_eq!(value.to_string(), r#"{"a":[1,2.5,{"b":-3}],"c":7}"#);
    }
}
