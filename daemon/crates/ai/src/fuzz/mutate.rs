//! Faults in the bodies of answers, as networks, proxies and imitations cause them.

use proptest::{prelude::*, sample::Index};
use serde_json::{Value, json};

/// One fault in a body.
#[derive(Debug, Clone)]
pub(super) enum Fault {
    /// A byte becomes another one.
    Byte(Index, u8),
    /// The body ends early.
    Cut(Index),
    /// A line is lost.
    Lost(Index),
    /// A line comes twice.
    Twice(Index),
    /// Two lines change places.
    Swapped(Index, Index),
    /// A line of another body comes in between.
    Foreign(Index, Index, Index),
    /// A value inside of an event's JSON is replaced.
    Value(Index, Index, Odd),
    /// A member of an object has another name.
    Renamed(Index, Index),
}

/// A replacement for a JSON value, as text.
#[derive(Debug, Clone)]
pub(super) struct Odd(&'static str);

const ODD: [&str; 24] = [
    "null",
    "true",
    "-1",
    "0",
    "1.5",
    "1e999",
    "18446744073709551615",
    "18446744073709551616",
    "9223372036854775807",
    "-9223372036854775808",
    "4294967296",
    "1e308",
    "\"\"",
    "\"[DONE]\"",
    "\"\\ud800\"",
    "\"\\u0000\\u2028\"",
    "\"12\"",
    "\"{\\\"a\\\":1}\"",
    "[]",
    "[null]",
    "[[\"a\"],{\"text\":\"b\",\"type\":\"text\"}]",
    "{}",
    "{\"text\":\"t\",\"type\":\"text\",\"id\":7}",
    "@deep",
];

/// The depth of `@deep`: more than serde_json reads.
const DEPTH: usize = 300;

/// Stands for the odd value while the rest is written.
const PLACE: &str = "\u{1}odd\u{1}";

pub(super) fn fault() -> impl Strategy<Value = Fault> {
    let index = any::<Index>;
    prop_oneof![
        2 => (index(), any::<u8>()).prop_map(|(at, byte)| Fault::Byte(at, byte)),
        1 => index().prop_map(Fault::Cut),
        2 => index().prop_map(Fault::Lost),
        2 => index().prop_map(Fault::Twice),
        2 => (index(), index()).prop_map(|(one, other)| Fault::Swapped(one, other)),
        3 => (index(), index(), index()).prop_map(|(at, body, line)| Fault::Foreign(at, body, line)),
        6 => (index(), index(), prop::sample::select(&ODD[..]))
            .prop_map(|(line, node, odd)| Fault::Value(line, node, Odd(odd))),
        1 => (index(), index()).prop_map(|(line, node)| Fault::Renamed(line, node)),
    ]
}

/// The body with a fault. `others` are bodies of all kinds.
pub(super) fn apply(fault: &Fault, body: &[u8], others: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut body = body.to_vec();
    if body.is_empty() {
        return body;
    }
    match fault {
        Fault::Byte(at, byte) => {
            let at = at.index(body.len());
            body[at] = *byte;
            return body;
        }
        Fault::Cut(at) => {
            body.truncate(at.index(body.len()));
            return body;
        }
        _ => {}
    }
    let mut lines: Vec<Vec<u8>> = body.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let count = lines.len();
    match fault {
        Fault::Byte(..) | Fault::Cut(_) => {}
        Fault::Lost(at) => drop(lines.remove(at.index(count))),
        Fault::Twice(at) => lines.insert(at.index(count), lines[at.index(count)].clone()),
        Fault::Swapped(one, other) => lines.swap(one.index(count), other.index(count)),
        Fault::Foreign(at, body, line) => {
            let (_, other) = &others[body.index(others.len())];
            let all: Vec<&[u8]> = other.split_inclusive(|byte| *byte == b'\n').collect();
            if !all.is_empty() {
                let mut event = all[line.index(all.len())].to_vec();
                event.extend_from_slice(b"\n");
                lines.insert(at.index(count), event);
            }
        }
        Fault::Value(line, node, Odd(odd)) => in_json(&mut lines, *line, |value| {
            let mut nodes = nodes(value);
            let path = nodes.swap_remove(node.index(nodes.len()));
            if let Some(value) = value.pointer_mut(&path) {
                *value = json!(PLACE);
            }
            let deep = format!("{}{}", "[".repeat(DEPTH), "]".repeat(DEPTH));
            Some(if *odd == "@deep" { deep } else { (*odd).to_owned() })
        }),
        Fault::Renamed(line, node) => in_json(&mut lines, *line, |value| {
            let mut nodes = nodes(value);
            let path = nodes.swap_remove(node.index(nodes.len()));
            let (parent, name) = path.rsplit_once('/')?;
            let map = value.pointer_mut(parent)?.as_object_mut()?;
            let value = map.remove(name)?;
            map.insert("type_".to_owned(), value);
            None
        }),
    }
    lines.concat()
}

/// Changes the JSON of one of the lines that have some; `change` may leave [`PLACE`] for the text that it returns.
fn in_json(lines: &mut [Vec<u8>], which: Index, change: impl FnOnce(&mut Value) -> Option<String>) {
    let mut found: Vec<(&mut Vec<u8>, usize, Value)> = lines
        .iter_mut()
        .filter_map(|line| {
            let start = line.iter().position(|byte| *byte == b'{')?;
            let value = serde_json::from_slice(&line[start..]).ok()?;
            Some((line, start, value))
        })
        .collect();
    if found.is_empty() {
        return;
    }
    let which = which.index(found.len());
    let (line, start, value) = &mut found[which];
    let odd = change(value);
    let mut text = value.to_string();
    if let Some(odd) = odd {
        text = text.replace(&json!(PLACE).to_string(), &odd);
    }
    line.truncate(*start);
    line.extend_from_slice(text.as_bytes());
    line.push(b'\n');
}

/// The JSON pointers of all values in `value`, itself included.
fn nodes(value: &Value) -> Vec<String> {
    fn walk(value: &Value, path: &str, out: &mut Vec<String>) {
        out.push(path.to_owned());
        match value {
            Value::Object(map) => {
                for (name, value) in map {
                    let name = name.replace('~', "~0").replace('/', "~1");
                    walk(value, &format!("{path}/{name}"), out);
                }
            }
            Value::Array(list) => {
                for (index, value) in list.iter().enumerate() {
                    walk(value, &format!("{path}/{index}"), out);
                }
            }
            _ => {}
        }
    }
    let mut out = Vec::new();
    walk(value, "", &mut out);
    out
}
