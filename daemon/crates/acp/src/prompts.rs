//! Pure. The prompt of a client as a prompt of the session.

use std::path::Path;

use agentd_protocol::command::{Image, PromptParams, StreamingBehavior};

use crate::requests::{EmbeddedResource, PromptBlock};

/// The command for a prompt. Text, links and embedded files become one text, in their order; images stand beside it. A command of the
/// user (`/name`) has to begin the text, so that a text block that begins with a slash comes first.
pub(crate) fn command(blocks: Vec<PromptBlock>, cwd: &Path) -> PromptParams {
    let mut parts: Vec<(bool, String)> = Vec::new();
    let mut images = Vec::new();
    for block in blocks {
        match block {
            PromptBlock::Text { text } => match parts.last_mut() {
                // Editors cut a text where a mention stands in it.
                Some((false, last)) => last.push_str(&text),
                _ => parts.push((false, text)),
            },
            PromptBlock::Image { data, mime_type } => {
                images.push(Image { kind: "image".into(), data, mime_type });
            }
            PromptBlock::Audio { mime_type } => {
                parts.push((true, format!("[Audio ({mime_type}) left out: agentd takes no audio]")));
            }
            PromptBlock::ResourceLink { uri } => {
                parts.push((true, format!("[Context] {}", shown(&uri, cwd))))
            }
            PromptBlock::Resource { resource } => parts.push((true, embedded(&resource, cwd))),
        }
    }
    if let Some(place) = parts.iter().position(|(is_context, text)| !is_context && text.starts_with('/')) {
        let text = parts.remove(place);
        parts.insert(0, text);
    }
    let typed = parts.iter().any(|(is_context, _)| *is_context).then(|| {
        let texts = parts.iter().filter(|(is_context, _)| !is_context).map(|(_, text)| text.as_str());
        texts.collect::<Vec<_>>().join("\n")
    });
    let mut message = String::new();
    let mut before_is_context = false;
    for (is_context, text) in parts {
        let needs_line = !message.is_empty() && !message.ends_with('\n');
        if needs_line && (is_context || before_is_context) {
            message.push('\n');
        }
        message.push_str(&text);
        before_is_context = is_context;
    }
    PromptParams {
        message,
        typed,
        images,
        // Counts where another client of the session has a run.
        streaming_behavior: Some(StreamingBehavior::FollowUp),
        ..PromptParams::default()
    }
}

/// A URI for the model: files below the session's folder by their relative paths, other files by absolute ones.
fn shown(uri: &str, cwd: &Path) -> String {
    let Some(path) = uri.strip_prefix("file://") else { return uri.to_owned() };
    let (path, fragment) = match path.split_once('#') {
        Some((path, fragment)) => (path, format!("#{fragment}")),
        None => (path, String::new()),
    };
    // An authority stands before the path, such as localhost.
    let path = path.find('/').map_or(path, |start| &path[start..]);
    let path = percent_decoded(path);
    let shown = Path::new(&path).strip_prefix(cwd).map_or(path.clone(), |below| below.display().to_string());
    format!("{shown}{fragment}")
}

/// The text with `%20` and its like decoded; as it is where that is not UTF-8.
fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|code| std::str::from_utf8(code).ok());
        let code = code.filter(|code| code.bytes().all(|byte| byte.is_ascii_hexdigit()));
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) if first == b'%' => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

/// An embedded file: its text, or what is known of its bytes.
fn embedded(resource: &EmbeddedResource, cwd: &Path) -> String {
    let uri = shown(&resource.uri, cwd);
    let kind = resource.mime_type.as_deref().map(|kind| format!(" ({kind})")).unwrap_or_default();
    match (&resource.text, &resource.blob) {
        (Some(text), _) => {
            let end = if text.ends_with('\n') { "" } else { "\n" };
            format!("[Embedded Context] {uri}{kind}\n{text}{end}")
        }
        (None, Some(blob)) => {
            let bytes =
                blob.trim_end_matches('=').len() / 4 * 3 + (blob.trim_end_matches('=').len() % 4 * 3 / 4);
            format!("[Embedded Context] {uri}{kind}, {bytes} bytes that are no text")
        }
        (None, None) => format!("[Context] {uri}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(blocks: Value) -> PromptParams {
        command(serde_json::from_value(blocks).unwrap(), Path::new("/p"))
    }

    #[test]
    fn texts_are_joined_and_context_stands_on_lines_of_its_own() {
        for (blocks, expected) in [
            (json!([{"type":"text","text":"a"}]), "a"),
            (json!([{"type":"text","text":"a "},{"type":"text","text":"b"}]), "a b"),
            (
                json!([{"type":"text","text":"see"},{"type":"resource_link","uri":"file:///p/src/a%20b.rs","name":"x"},{"type":"text","text":"please"}]),
                "see\n[Context] src/a b.rs\nplease",
            ),
            (json!([{"type":"resource_link","uri":"https://a/b","name":"x"}]), "[Context] https://a/b"),
            (json!([{"type":"resource_link","uri":"file:///q/a#L3","name":"x"}]), "[Context] /q/a#L3"),
            (
                json!([{"type":"resource","resource":{"uri":"file:///p/a","mimeType":"text/x","text":"one"}},{"type":"text","text":"b"}]),
                "[Embedded Context] a (text/x)\none\nb",
            ),
            (
                json!([{"type":"resource","resource":{"uri":"file:///p/a","mimeType":null,"blob":"AAAAAA=="}}]),
                "[Embedded Context] a, 4 bytes that are no text",
            ),
            (
                json!([{"type":"audio","mimeType":"audio/wav","data":""}]),
                "[Audio (audio/wav) left out: agentd takes no audio]",
            ),
            (
                json!([{"type":"resource_link","uri":"file:///p/a","name":"x"},{"type":"text","text":"/review now"}]),
                "/review now\n[Context] a",
            ),
        ] {
            assert_eq!(read(blocks).message, expected);
        }
    }

    #[test]
    fn images_stand_beside_the_text() {
        let read = read(json!([
            {"type":"text","text":"what is it?"},
            {"type":"image","data":"AAAA","mimeType":"image/png","uri":null}
        ]));
        assert_eq!(read.message, "what is it?");
        let image = Image { kind: "image".into(), data: "AAAA".into(), mime_type: "image/png".into() };
        assert_eq!(read.images, [image]);
    }

    proptest::proptest! {
        #[test]
        fn any_uri_is_shown(uri in "(file://|%[0-9a-f]?|é|/|#|[a-z]){0,20}") {
            shown(&uri, Path::new("/p"));
        }
    }
}
