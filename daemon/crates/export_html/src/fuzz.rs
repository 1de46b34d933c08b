//! The laws of every session's page: for fuzz targets (`fuzz/` in the repository), and for the tests that repeat known
//! inputs. Only with the feature `fuzzing`; no part of the interface.
//!
//! Each function takes any bytes and panics where a law is broken.

use std::{collections::HashSet, path::Path, sync::OnceLock};

use agentd_store::{LoadReport, SessionTree, Store, StoreOptions};
use serde_json::{Value, json};

use crate::assets;

/// The laws, by the names of their fuzz targets.
pub const LAWS: &[(&str, fn(&[u8]))] = &[("pages", pages)];

/// The elements of a page after its head.
static ELEMENTS: Words = words(
    "a article b blockquote body br button code dd del details div dl dt em footer h1 h2 h3 h4 h5 h6 header hr html img input kbd li \
    main nav ol output p pre s section small span strong summary sup table tbody td tfoot th thead time tr ul",
);

/// Their attributes.
static ATTRIBUTES: Words = words(
    "alt aria-current aria-label aria-live aria-pressed autocomplete class data-next data-parent datetime dir disabled hidden href id \
    placeholder rel role spellcheck src start target title type",
);

/// Elements without an end.
static VOID: Words = words("br hr img input");

/// A set of words with fast lookup: a page has thousands of them.
struct Words(&'static str, OnceLock<HashSet<&'static str>>);

const fn words(text: &'static str) -> Words {
    Words(text, OnceLock::new())
}

impl Words {
    fn has(&self, word: &str) -> bool {
        self.1.get_or_init(|| self.0.split(' ').collect()).contains(word)
    }
}

/// Whatever a session file or a text in it holds, the page has only its own elements and attributes, closed in order,
/// and links only to the web, to mail, and to itself. An input that begins with `{` is a session file, any other a
/// text.
pub fn pages(input: &[u8]) {
    let lines: Vec<u8> =
        if input.first() == Some(&b'{') { input.to_vec() } else { session(&String::from_utf8_lossy(input)) };
    let store = Store::new(StoreOptions::default());
    let Ok((tree, report)) = store.read_from(Path::new("session.jsonl"), &mut &lines[..]) else { return };
    check(&page(&tree, &report));
}

fn page(tree: &SessionTree, report: &LoadReport) -> String {
    let mut out = Vec::with_capacity(1 << 16);
    let written = crate::write(tree, report, &mut out);
    assert!(written.is_ok(), "memory takes everything");
    match String::from_utf8(out) {
        Ok(page) => page,
        Err(error) => panic!("a page is text: {error}"),
    }
}

/// A session with the text in the places where it matters how it is shown.
fn session(text: &str) -> Vec<u8> {
    let call = |name: &str, arguments: Value| json!({"type": "toolCall", "id": name, "name": name, "arguments": arguments});
    let result = |name: &str, details: Value| {
        json!({"type": "message", "message": {"role": "toolResult", "toolCallId": name, "toolName": name,
        "content": [{"type": "text", "text": text}, {"type": "image", "data": text, "mimeType": text}], "details": details, "isError": false}})
    };
    let entries = [
        json!({"type": "session_info", "name": text}),
        json!({"type": "message", "message": {"role": "user", "content": text}}),
        json!({"type": "message", "message": {"role": "assistant", "provider": text, "model": text, "stopReason": "error",
        "errorMessage": text, "content": [{"type": "text", "text": text}, {"type": "thinking", "thinking": text},
        call("bash", json!({"command": text})), call("edit", json!({"path": text, "oldText": text, "newText": "b"})), call(text, json!({text: text}))]}}),
        result("bash", json!({"fullOutputPath": text})),
        result("edit", json!({"diff": text})),
        json!({"type": "custom_message", "customType": text, "content": text, "display": true}),
        json!({"type": "compaction", "summary": text, "firstKeptEntryId": text, "tokensBefore": 1}),
        json!({"type": "label", "targetId": "i1", "label": text}),
    ];
    let mut lines =
        json!({"type": "session", "version": 3, "id": text, "timestamp": text, "cwd": text}).to_string();
    for (at, mut entry) in entries.into_iter().enumerate() {
        entry["id"] = json!(format!("i{at}"));
        entry["parentId"] = json!(at.checked_sub(1).map(|before| format!("i{before}")));
        entry["timestamp"] = json!(text);
        lines.push('\n');
        lines.push_str(&entry.to_string());
    }
    lines.into_bytes()
}

/// The law of pages.
fn check(page: &str) {
    let Some((head, body)) = page.split_once("</script>\n</head>\n") else { panic!("a page has a head") };
    // The look of a page and its script are what they are, whatever was said.
    let script = head.strip_suffix(assets::SCRIPT).and_then(|head| head.strip_suffix("</style>\n<script>"));
    let Some(head) = script.and_then(|head| head.strip_suffix(assets::STYLE)) else { panic!("{head}") };
    for part in [head, body] {
        let steers = |(at, byte): (usize, &u8)| match byte {
            0 | 0x1b | b'\r' => true,
            0xe2 => matches!(part[at..].chars().next(), Some('\u{202e}' | '\u{2066}')),
            _ => false,
        };
        assert!(!part.as_bytes().iter().enumerate().any(steers), "steering characters");
    }
    let title = head.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>\n"));
    assert!(title.is_some_and(|(title, rest)| !title.contains('<') && rest == "<style>"), "{head}");
    assert!(!head.contains("<script"));
    let mut open: Vec<&str> = vec!["html"];
    let mut rest = body;
    while let Some(at) = rest.find('<') {
        assert!(!rest[..at].contains('>'), "a lone >: {}", &rest[..at]);
        rest = &rest[at + 1..];
        if let Some(closing) = rest.strip_prefix('/') {
            let Some((name, after)) = closing.split_once('>') else {
                panic!("a tag that does not end: {closing}")
            };
            assert_eq!(open.pop(), Some(name));
            rest = after;
            continue;
        }
        rest = element(rest, &mut open);
    }
    assert!(!rest.contains('>'));
    assert!(open.is_empty(), "{open:?} is not closed");
}

/// One opening tag after its `<`: what follows it.
fn element<'a>(text: &'a str, open: &mut Vec<&'a str>) -> &'a str {
    let end = text.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(text.len());
    let (name, mut rest) = text.split_at(end);
    assert!(ELEMENTS.has(name), "<{name}");
    if !VOID.has(name) {
        open.push(name);
    }
    loop {
        if let Some(after) = rest.strip_prefix('>') {
            return after;
        }
        let Some(attribute) = rest.strip_prefix(' ') else { panic!("<{name} goes on with {rest:.40}") };
        let end = attribute.find(['=', '>', ' ']).unwrap_or(attribute.len());
        let (key, after) = attribute.split_at(end);
        assert!(ATTRIBUTES.has(key), "<{name} {key}");
        let Some(value) = after.strip_prefix("=\"") else {
            rest = after;
            continue;
        };
        let Some((value, after)) = value.split_once('"') else { panic!("<{name} {key} is not closed") };
        assert!(!value.contains(['<', '>', '\'']), "<{name} {key}={value:?}");
        let starts =
            |starts: &[&str]| starts.iter().any(|start| value.to_ascii_lowercase().starts_with(start));
        match key {
            "href" => assert!(starts(&["#", "http://", "https://", "mailto:"]), "{value:?}"),
            "src" => assert!(starts(&["data:image/"]), "{value:?}"),
            _ => {}
        }
        rest = after;
    }
}

#[cfg(test)]
#[path = "../../../../tests/fuzz/src/found.rs"]
mod found;

#[test]
fn inputs_that_were_found() {
    found::check(LAWS);
}
