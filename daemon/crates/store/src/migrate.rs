//! Bringing old session files to the current version, a function a step.

use agentd_protocol::entry::SESSION_VERSION;

use crate::{
    Header,
    ids::new_entry_id,
    object::{Object, quoted},
};

/// Brings the header and the records of a file of `version` to the current one; `None` when the header is no object.
///
/// Works on the text of the lines: what the steps do not name stays byte for byte.
pub(crate) fn migrate(
    header: &Header,
    version: u32,
    mut lines: Vec<String>,
) -> Option<(Header, Vec<String>)> {
    if version < 2 {
        lines = link(lines);
    }
    if version < 3 {
        lines.iter_mut().for_each(rename_hook_messages);
    }
    let mut fields = Object::parse(header.line())?;
    fields.set_at("version", SESSION_VERSION.to_string(), 1);
    Some((Header::parse(&fields.text())?, lines))
}

/// Version 1 to 2: lines followed each other; now each entry has an id and names the one that it follows, and a
/// compaction names the first entry that it kept instead of its number.
fn link(lines: Vec<String>) -> Vec<String> {
    let mut taken = std::collections::HashSet::new();
    let ids: Vec<String> = lines
        .iter()
        .map(|_| {
            let id = new_entry_id(|id| taken.contains(id));
            taken.insert(id.clone());
            id
        })
        .collect();
    let mut parent = "null".to_owned();
    let mut linked = Vec::with_capacity(lines.len());
    for (line, id) in lines.iter().zip(&ids) {
        let Some(mut fields) = Object::parse(line) else { continue };
        // A second header is no entry, and nothing follows it.
        if fields.string("type").as_deref() == Some("session") {
            continue;
        }
        fields.set_at("id", quoted(id), 1);
        fields.set_at("parentId", parent, 2);
        if fields.string("type").as_deref() == Some("compaction")
            && let Some(number) = fields.get("firstKeptEntryIndex").and_then(|text| text.parse::<f64>().ok())
        {
            fields.remove("firstKeptEntryIndex");
            // The header is record 0.
            if let Some(kept) = ids.get((number as usize).wrapping_sub(1)) {
                fields.set("firstKeptEntryId", quoted(kept));
            }
        }
        linked.push(fields.text());
        parent = quoted(id);
    }
    linked
}

/// Version 2 to 3: messages of extensions changed their role's name.
fn rename_hook_messages(line: &mut String) {
    let renamed = || {
        let mut fields = Object::parse(line)?;
        let mut message = Object::parse(fields.get("message")?)?;
        (message.string("role")? == "hookMessage").then_some(())?;
        message.set("role", "\"custom\"");
        let message = message.text();
        fields.set("message", message);
        Some(fields.text())
    };
    // Cheap to rule out for nearly all lines.
    if line.contains("hookMessage")
        && let Some(text) = renamed()
    {
        *line = text;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(header: &str, lines: &[&str]) -> (String, Vec<String>) {
        let header = Header::parse(header).unwrap();
        let (header, lines) =
            migrate(&header, header.version(), lines.iter().map(|line| (*line).to_owned()).collect())
                .unwrap();
        (header.line().to_owned(), lines)
    }

    fn field(line: &str, name: &str) -> serde_json::Value {
        agentd_protocol::parse_json::<serde_json::Value>(line).unwrap()[name].clone()
    }

    #[test]
    fn lines_of_version_1_are_linked() {
        let (header, lines) = run(
            r#"{"type":"session","id":"s","timestamp":"t","cwd":"/w","provider":"p"}"#,
            &[
                r#"{"type":"message","timestamp":"t","message":{"role":"user","content":"\ud800","n":1.0}}"#,
                r#"{"type":"message","timestamp":"t","message":{"role":"assistant","content":[]}}"#,
                r#"{"type":"compaction","timestamp":"t","summary":"s","firstKeptEntryIndex":2,"tokensBefore":5}"#,
                r#"{"type":"compaction","timestamp":"t","summary":"s","firstKeptEntryIndex":0,"tokensBefore":5}"#,
            ],
        );
        assert_eq!(
            header,
            r#"{"type":"session","version":3,"id":"s","timestamp":"t","cwd":"/w","provider":"p"}"#
        );
        let id = |at: usize| field(&lines[at], "id");
        assert_eq!(
            lines[0],
            format!(
                r#"{{"type":"message","id":{},"parentId":null,"timestamp":"t","message":{{"role":"user","content":"\ud800","n":1.0}}}}"#,
                id(0)
            )
        );
        for (at, line) in lines.iter().enumerate().skip(1) {
            assert_eq!(field(line, "parentId"), id(at - 1));
        }
        assert_eq!(
            lines[2],
            format!(
                r#"{{"type":"compaction","id":{},"parentId":{},"timestamp":"t","summary":"s","tokensBefore":5,"firstKeptEntryId":{}}}"#,
                id(2),
                id(1),
                id(1)
            )
        );
        // The header is nothing to keep.
        assert!(!lines[3].contains("firstKept"));
    }

    #[test]
    fn roles_of_version_2_are_renamed() {
        let untouched =
            r#"{"type":"message","id":"b","parentId":"a","message":{"role":"user","content":"hookMessage"}}"#;
        let (header, lines) = run(
            r#"{"type":"session","version":2,"id":"s"}"#,
            &[
                r#"{"type":"message","id":"a","parentId":null,"message":{"role":"hookMessage","content":"x","n":1.0}}"#,
                untouched,
            ],
        );
        assert_eq!(header, r#"{"type":"session","version":3,"id":"s"}"#);
        assert_eq!(
            lines,
            [
                r#"{"type":"message","id":"a","parentId":null,"message":{"role":"custom","content":"x","n":1.0}}"#,
                untouched
            ]
        );
    }
}
