//! JSON with a line for each member. Numbers and strings stay as they are written. Pure.

use serde::de::IgnoredAny;

/// A document in which everything stands on a line of its own; `None` for what is no JSON. The result ends where it would be longer than
/// `most` bytes.
pub(crate) fn pretty(text: &str, most: usize) -> Option<String> {
    let text = text.trim();
    // It limits the depth, too.
    serde_json::from_str::<IgnoredAny>(text).ok()?;
    let mut out = String::with_capacity((text.len() + text.len() / 4).min(most));
    let (mut depth, mut in_string, mut is_escaped) = (0_usize, false, false);
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        if out.len() > most {
            out.truncate(out.floor_char_boundary(most));
            return Some(out);
        }
        if in_string {
            out.push(character);
            in_string = is_escaped || character != '"';
            is_escaped = !is_escaped && character == '\\';
            continue;
        }
        match character {
            '"' => {
                in_string = true;
                out.push('"');
            }
            '{' | '[' => {
                out.push(character);
                while characters.next_if(|next| next.is_ascii_whitespace()).is_some() {}
                if let Some(end) = characters.next_if(|next| matches!(next, '}' | ']')) {
                    out.push(end);
                } else {
                    depth += 1;
                    new_line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push(character);
            }
            ',' => {
                out.push(',');
                new_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            blank if blank.is_ascii_whitespace() => {}
            other => out.push(other),
        }
    }
    Some(out)
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    (0..depth).for_each(|_| out.push_str("  "));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stay_as_they_are_written() {
        let text = r#" {"b":1.10,"a":[1e400,{}, [ ],"x\"{,\\"],"big":12345678901234567890123} "#;
        let shown = pretty(text, 1000).unwrap();
        assert_eq!(
            shown,
            "{\n  \"b\": 1.10,\n  \"a\": [\n    1e400,\n    {},\n    [],\n    \"x\\\"{,\\\\\"\n  ],\n  \"big\": 12345678901234567890123\n}"
        );
        assert_eq!(pretty("{", 9), None);
        assert_eq!(pretty(&"[".repeat(100_000), 9), None);
        assert!(pretty("[1,2,3,4,5,6,7]", 9).unwrap().len() <= 9);
    }
}
