//! Whatever a session says, the page is of our elements and attributes alone, and says it.

use std::{collections::BTreeSet, sync::LazyLock};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{in_a_row, seen};
use crate::testing::vocabulary;

/// A session with a string in every place that takes one.
fn session(text: &str) -> Vec<String> {
    let said = |message: Value| json!({"type": "message", "message": message});
    let call = |id: &str, name: &str, arguments: Value| {
        json!({"type": "toolCall", "id": id, "name": name, "arguments": arguments,
        "namespace": text, "argumentsError": text})
    };
    let result = |id: &str, tool: &str, details: Value| {
        said(json!({"role": "toolResult", "toolCallId": id, "toolName": tool,
        "content": [{"type": "text", "text": text}, {"type": "image", "data": text, "mimeType": text}], "details": details, "isError": true}))
    };
    let mut lines = in_a_row(&[
        json!({"type": "session_info", "name": text}),
        said(json!({"role": "system", "content": text, "sections": {text: text, "x": [text], "y": null},
            "toolsAdded": [{"name": text, "description": text, "parameters": {text: text}}], "toolsRemoved": [{"name": text}]})),
        json!({"type": "model_change", "provider": text, "modelId": text}),
        json!({"type": "thinking_level_change", "thinkingLevel": text}),
        said(
            json!({"role": "user", "content": [{"type": "text", "text": text}, {"type": "image", "data": "iVBORw0KGgo=", "mimeType": text}]}),
        ),
        said(
            json!({"role": "assistant", "provider": text, "model": text, "responseModel": text, "stopReason": "error", "errorMessage": text,
            "thinkingLevel": text, "usage": {"input": 1}, "content": [
                {"type": "thinking", "thinking": text}, {"type": "text", "text": text},
                {"type": "text", "text": format!("[a]({text}) ![b]({text} \"{text}\") `{text}`\n\n```{text}\n{text}\n```\n\n|a|\n|-|\n|{text}|\n\n<{text}>\n\n# {text}")},
                call("1", text, json!({text: text, "path": text})), call("2", "edit", json!({"path": text, "oldText": text, "newText": text})),
                call("3", "bash", json!({"command": text})), call("4", "write", json!({"path": text, "content": text})), call("5", text, json!({}))]}),
        ),
        result("1", text, json!({text: text})),
        result("2", "edit", json!({"diff": text})),
        result("3", "bash", json!({"fullOutputPath": text})),
        result("lone", text, json!(text)),
        said(
            json!({"role": "bashExecution", "command": text, "output": text, "truncated": true, "fullOutputPath": text, "exitCode": 1}),
        ),
        json!({"type": "custom_message", "customType": text, "content": text, "display": true}),
        json!({"type": "custom_message", "customType": text, "content": text, "display": false}),
        json!({"type": "compaction", "summary": text, "firstKeptEntryId": text, "tokensBefore": 1, "details": {"readFiles": [text]}}),
        json!({"type": "branch_summary", "summary": text, "fromId": text}),
        json!({"type": "context_edit", "targetId": text}),
        json!({"type": "label", "targetId": "i4", "label": text}),
        json!({"type": text, "text": text}),
        said(json!({"role": text, "content": text})),
        json!({"type": "model_change", "provider": "p", "modelId": "m", "timestamp": text}),
    ]);
    let header = json!({"type": "session", "version": 3, "id": format!("i{text}"), "timestamp": text, "cwd": text, "parentSession": text});
    lines[0] = header.to_string();
    // A second root and a fork, so that there are links with the text in them.
    for parent in [json!(null), json!("i3")] {
        let id = format!("b{}{text}", lines.len());
        lines.push(json!({"type": "message", "id": id, "parentId": parent, "message": {"role": "user", "content": text}}).to_string());
    }
    lines
}

/// What pages of ordinary sessions are made of.
static OURS: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
    let mut words = vocabulary(&seen(&session("plain")).1);
    // Markdown that a plain word does not make.
    let markdown = "# a\n## b\n### c\n#### d\n1. e\n- f *g* **h** ~~i~~  \n[j](https://k) [l](m)\n> n\n\n---\n\n|o|\n|-|\n|p|\n\n<q>\n";
    words.extend(vocabulary(&seen(&session(markdown)).1));
    words
});

fn check(text: &str) {
    let (page, seen) = seen(&session(text));
    let words = vocabulary(&seen);
    let strange: Vec<&String> = words.difference(&OURS).collect();
    assert!(strange.is_empty(), "{strange:?} in the page of {text:?}");
    for (name, attributes) in &seen.elements {
        for (attribute, value) in attributes {
            let harmless = match attribute.as_str() {
                "href" => ["#", "http://", "https://", "mailto:"]
                    .iter()
                    .any(|good| value.to_ascii_lowercase().starts_with(good)),
                "src" => value.starts_with("data:image/png;base64,"),
                "http-equiv" => value == "Content-Security-Policy",
                _ => !attribute.starts_with("on") && attribute != "style",
            };
            assert!(harmless, "<{name} {attribute}={value:?}> in the page of {text:?}");
        }
    }
    assert_eq!(page.matches("<script>").count(), 1);
    assert!(!page.contains('\0') && !page.contains('\u{202e}') && !page.contains('\u{1b}'));
}

#[test]
fn known_tricks_do_nothing() {
    for text in [
        "</script><script>alert(1)</script>",
        "<!--",
        "-->",
        "<![CDATA[",
        "]]>",
        "<!--<script>",
        "</style>",
        "</title>",
        "</pre>",
        "</details>",
        "\"><img src=x onerror=alert(1)>",
        "' onmouseover='alert(1)",
        "javascript:alert(1)",
        "[x](javascript:alert(1))",
        "<svg/onload=alert(1)>",
        "<iframe srcdoc='<script>'>",
        "data:text/html,<script>alert(1)</script>",
        "&lt;script&gt;",
        "&#60;script&#62;",
        "\0",
        "\u{1b}[31m",
        "\u{1b}]8;;javascript:alert(1)\u{7}x\u{1b}]8;;\u{7}",
        "\u{2028}\u{2029}",
        "\u{202e}gnp.exe",
        "\u{feff}<b>",
        "{{constructor}}",
        "${alert(1)}",
        "<a href=\"java\nscript:alert(1)\">",
        "<http://a\"onclick=b>",
        "[a]: javascript:x\n\n[a]",
        "<base href=//evil>",
        "<meta http-equiv=refresh content=0>",
        "<form action=//evil>",
        "\\",
        "`",
        "````",
        "|",
        "\r\n",
        "\u{fffe}",
        "\u{10ffff}",
        "<javascript:alert(1)>",
    ] {
        check(text);
    }
}

#[test]
fn halves_of_characters_are_no_fault() {
    let lines = [super::header(), r#"{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"x\ud83d y\ude00"}}"#.to_owned()];
    let (page, _) = seen(&lines);
    assert!(page.contains("x\u{fffd} y\u{fffd}"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_text_stays_text(text in ".{0,40}") {
        check(&text);
    }

    #[test]
    fn markup_stays_text(text in "([<>\"'&/=!\\-\\]\\[()`*_#|\n\r\t \0\x1b\u{202e}\u{2028}:;]|script|a|img|on|src|http://|javascript:){0,24}") {
        check(&text);
    }
}

/// What was said is on the page: searching finds it.
#[test]
fn text_is_shown_exactly() {
    for text in ["a < b && c > \"d\"", "</script>", "  two  spaces\n\n\nand lines", "漢字 😀 \u{200d}"] {
        let (_, seen) =
            seen(&in_a_row(&[json!({"type": "message", "message": {"role": "user", "content": text}})]));
        let shown = html_text(&seen.text);
        assert!(shown.contains(text), "{text:?} is not in {shown:?}");
    }
}

/// The tokenizer has resolved the references; line breaks are the page's own.
fn html_text(text: &str) -> String {
    text.replace("\r\n", "\n")
}
