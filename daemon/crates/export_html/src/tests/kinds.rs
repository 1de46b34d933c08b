//! Each kind of entry, and what is shown of it.

use serde_json::{Value, json};

use super::{assistant, entry, header, in_a_row, main_of, message, seen, user};
use crate::testing::page_of;

/// Checks that the page of one entry has all these parts, in that order.
fn check(fields: Value, parts: &[&str]) {
    check_lines(&in_a_row(&[fields]), parts);
}

fn check_lines(lines: &[String], parts: &[&str]) {
    let (page, _) = seen(lines);
    let mut rest = main_of(&page);
    for part in parts {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => panic!("{part} is not in\n{rest}"),
        }
    }
}

fn said(message: Value) -> Value {
    json!({"type": "message", "message": message})
}

#[test]
fn the_head_says_what_the_session_is() {
    let lines = [
        header(),
        user("a", None, "\n  First <prompt>\nmore"),
        assistant("b", Some("a"), json!([{"type": "text", "text": "Answer"}])),
    ];
    check_lines(
        &lines,
        &[
            "<h1 dir=\"auto\">First &lt;prompt&gt;</h1>",
            "s1",
            "/home/u/app",
            "2026-11-21 03:28:11 UTC",
            "1 prompt · 1 answer · 0 tool calls",
            "1,234 tokens · $0.0123",
        ],
    );
    let named =
        [lines.to_vec(), vec![entry("c", Some("b"), json!({"type": "session_info", "name": "A & B"}))]]
            .concat();
    assert!(page_of(&named).contains("<title>A &amp; B</title>"));
    check_lines(&[header()], &["<h1 dir=\"auto\">Session s1</h1>", "Nothing was said yet."]);
}

#[test]
fn prompts_are_shown_as_they_are() {
    check(
        said(json!({"role": "user", "content": [{"type": "text", "text": "a *b*\n  c"}]})),
        &[
            "<article class=\"user\" id=\"e0\">",
            "<h2>User</h2>",
            "2026-11-21 03:28:12",
            "<pre class=\"plain\">\na *b*\n  c</pre>",
        ],
    );
}

#[test]
fn answers_say_who_spoke_and_what_it_took() {
    let content = json!([
        {"type": "thinking", "thinking": "Hm.\nSo."},
        {"type": "thinking", "thinking": "", "thinkingSignature": "x"},
        {"type": "thinking", "thinking": "", "redacted": true},
        {"type": "text", "text": "Some **text**"},
    ]);
    check_lines(
        &[header(), assistant("a", None, content)],
        &[
            "<h2>Assistant</h2> <code class=\"by\">p/m</code>",
            "<details class=\"thinking\"><summary><span class=\"name\">Thinking</span> <span class=\"gist\">Hm.</span></summary>",
            "Hm.\nSo.",
            "withheld",
            "<strong>text</strong>",
            "<p class=\"figures\">1,200 in · 34 out · $0.0123 · 1.5 s</p>",
        ],
    );
    let (page, _) = seen(&[header(), assistant("a", None, json!([{"type": "thinking", "thinking": ""}]))]);
    assert!(!page.contains("class=\"thinking\""));
}

#[test]
fn an_answer_that_did_not_end_says_so() {
    let ended = |reason: &str| {
        said(json!({"role": "assistant", "content": [], "stopReason": reason, "errorMessage": "no <key>"}))
    };
    check(ended("error"), &["<p class=\"error\">The answer failed: no &lt;key&gt;</p>"]);
    check(ended("aborted"), &["<p class=\"error\">The answer was stopped.</p>"]);
    check(ended("length"), &["<p class=\"error\">The answer was cut off"]);
}

fn called(name: &str, arguments: Value, result: Value) -> Vec<String> {
    let call = json!([{"type": "toolCall", "id": "c1", "name": name, "arguments": arguments}]);
    let mut lines = vec![header(), assistant("a", None, call)];
    if !result.is_null() {
        let mut result = result;
        result["role"] = json!("toolResult");
        result["toolCallId"] = json!("c1");
        result["toolName"] = json!(name);
        // What is no message does not part a call from its result.
        lines.push(entry("l", Some("a"), json!({"type": "custom", "customType": "x"})));
        lines.push(message("b", Some("l"), result));
    }
    lines
}

fn output(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}], "isError": false})
}

#[test]
fn a_command_stands_with_its_output() {
    let mut result = output("\x1b[32mok\x1b[0m\n<b>");
    result["durationMs"] = json!(12_345);
    let lines = called("bash", json!({"command": "cargo test\nls", "timeout": 5}), result);
    check_lines(
        &lines,
        &[
            "<details class=\"tool\" id=\"e2\"><summary><span class=\"name\">bash</span> <code class=\"gist\">cargo test</code> \
           <span class=\"figures\">12.3 s</span></summary>",
            "&quot;timeout&quot;: 5",
            "<pre class=\"command\">\ncargo test\nls</pre>",
            "<pre class=\"output\">\nok\n&lt;b&gt;</pre>",
        ],
    );
    assert_eq!(page_of(&lines).matches("<details class=\"tool").count(), 1);
}

#[test]
fn failed_and_missing_results_are_marked() {
    let failed = json!({"content": [{"type": "text", "text": "boom"}], "isError": true});
    check_lines(
        &called("read", json!({"path": "a.rs", "offset": 10, "limit": 5}), failed),
        &[
            "<details class=\"tool failed\"",
            "<code class=\"gist\">a.rs:10-14</code>",
            "<span class=\"badge bad\">failed</span>",
            "boom",
        ],
    );
    check_lines(
        &called("read", json!({}), json!(null)),
        &["class=\"tool open\"", "no result", "There is no result."],
    );
    check_lines(&called("read", json!({"path": "a"}), json!({"content": []})), &["The result is empty."]);
}

#[test]
fn an_edit_is_a_diff() {
    let mut result = output("Done.");
    result["details"] = json!({"diff": " 1 a\n-2 b\n+2 <c>", "patch": "not shown"});
    let arguments = json!({"path": "src/a.rs", "edits": [{"oldText": "b", "newText": "<c>"}]});
    check_lines(
        &called("edit", arguments, result),
        &[
            "<code class=\"gist\">src/a.rs</code> <span class=\"figures\">+1 \u{2212}1</span>",
            "<p class=\"path\">src/a.rs</p>",
            "<pre class=\"diff\">",
            "<span class=\"went\">-2 b\n</span>",
            "<span class=\"came\">+2 &lt;c&gt;</span>",
            "Done.",
        ],
    );
}

#[test]
fn a_written_file_is_shown() {
    check_lines(
        &called("write", json!({"path": "a", "content": "one line"}), output("ok")),
        &["<p class=\"path\">a</p>", "<p class=\"argument\">content</p><pre class=\"code\">\none line</pre>"],
    );
}

#[test]
fn other_tools_show_arguments_and_details() {
    let mut result = output("x");
    result["details"] = json!({"n": [1]});
    result["usage"] = json!({"input": 5});
    check_lines(
        &called("mcp_search", json!({"deep": {"a": 1}, "text": "a\nb"}), result),
        &[
            "<code class=\"gist\">{&quot;deep&quot;:{&quot;a&quot;:1}",
            "&quot;deep&quot;: {",
            "<p class=\"argument\">text</p><pre class=\"code\">\na\nb</pre>",
            "<summary>Details</summary>",
            "&quot;n&quot;",
            "5 in",
        ],
    );
}

#[test]
fn a_result_without_its_call_stands_alone() {
    let result = json!({"role": "toolResult", "toolCallId": "gone", "toolName": "bash", "content": [{"type": "text", "text": "late"}]});
    check(
        said(result),
        &[
            "<details class=\"tool\" id=\"e0\">",
            "<span class=\"name\">bash</span> <code class=\"gist\">late</code>",
            "late",
        ],
    );
}

#[test]
fn images_are_inside_or_named() {
    let image = |data: &str, kind: &str| {
        said(json!({"role": "user", "content": [{"type": "image", "data": data, "mimeType": kind}]}))
    };
    check(
        image("iVBORw0KGgo=", "image/png"),
        &["<img src=\"data:image/png;base64,iVBORw0KGgo=\" alt=\"Image, 8 bytes\">"],
    );
    check(image("PHN2Zz4=", "image/svg+xml"), &["An image that is not shown: image/svg+xml"]);
}

#[test]
fn the_system_prompt_is_folded() {
    let system = json!({"role": "system", "content": "Be <kind>.", "sections": {"env": "Linux", "old": null},
        "toolsAdded": [{"name": "read", "description": "Reads.", "parameters": {"type": "object"}}], "toolsRemoved": [{"name": "gone"}]});
    let lines = in_a_row(&[said(system.clone()), said(system)]);
    check_lines(
        &lines,
        &[
            "<details class=\"system\" id=\"e0\"><summary><span class=\"name\">System prompt and tools</span>",
            "2 sections · 1 tool · 1 removed tool",
            "Be &lt;kind&gt;.",
            "Section <code>env</code>",
            "Linux",
            "The section old was removed.",
            "Tool <code>read</code>",
            "Reads.",
            "&quot;type&quot;: &quot;object&quot;",
            "The tool gone was removed.",
            "System prompt changed",
        ],
    );
}

#[test]
fn changes_summaries_and_edits() {
    check(
        json!({"type": "model_change", "provider": "p", "modelId": "m"}),
        &["<p class=\"note\" id=\"e0\">Model: <code>p/m</code></p>"],
    );
    check(
        json!({"type": "thinking_level_change", "thinkingLevel": "high"}),
        &["Thinking: <code>high</code>"],
    );
    check(
        json!({"type": "compaction", "summary": "# All", "firstKeptEntryId": "x", "tokensBefore": 12345,
            "details": {"readFiles": ["a", "b"], "modifiedFiles": []}, "usage": {"output": 7}}),
        &[
            "<details class=\"summary\" id=\"e0\">",
            "12,345 tokens before",
            "<h3>All</h3>",
            "Files read: a, b",
            "7 out",
            "<td>summaries</td>",
        ],
    );
    check(
        json!({"type": "branch_summary", "fromId": "x", "summary": "Left."}),
        &["Summary of a branch that was left", "<p>Left.</p>"],
    );
    let edited = in_a_row(&[
        said(json!({"role": "user", "content": "x"})),
        json!({"type": "context_edit", "targetId": "i0", "replacement": null}),
        json!({"type": "context_edit", "targetId": "none", "replacement": {"content": "y"}}),
    ]);
    check_lines(
        &edited,
        &["<a href=\"#e0\">An earlier message</a> is left out", "An earlier message has other content"],
    );
}

#[test]
fn messages_of_extensions() {
    let custom = |display: bool| json!({"type": "custom_message", "customType": "my-ext", "content": "Note", "display": display});
    check(custom(true), &["<article class=\"custom\" id=\"e0\">", "<h2>my-ext</h2>", "Note"]);
    check(custom(false), &["<details class=\"more\" id=\"e0\">", "<code>my-ext</code>", "Note"]);
}

#[test]
fn commands_of_the_user() {
    check(
        said(
            json!({"role": "bashExecution", "command": "make <all>", "output": "\x1b[31mno\x1b[0m", "exitCode": 2, "cancelled": true,
            "truncated": true, "fullOutputPath": "/tmp/o", "excludeFromContext": true}),
        ),
        &[
            "<article class=\"shell\"",
            "<details class=\"tool failed\">",
            "$ make &lt;all&gt;",
            "exit code 2",
            "stopped",
            "not told to the model",
            "All of it was in /tmp/o.",
            "<pre class=\"output\">\nno</pre>",
        ],
    );
}

#[test]
fn labels_stand_with_their_entries() {
    let lines = [
        header(),
        user("a", None, "x"),
        entry("b", Some("a"), json!({"type": "label", "targetId": "a", "label": "good <one>"})),
    ];
    check_lines(&lines, &["<h2>User</h2> <span class=\"label\">good &lt;one&gt;</span>"]);
}

#[test]
fn what_is_not_known_is_shown_as_it_is() {
    check(json!({"type": "from_the_future", "x": "<y>"}), &["does not know", "&lt;y&gt;"]);
    check(said(json!({"role": "oracle", "content": 5})), &["does not know", "oracle"]);
}

#[test]
fn damage_is_said() {
    let lines = [header(), "{torn".into(), user("a", None, "x")];
    check_lines(
        &lines,
        &[
            "<p class=\"error\">Not everything is here: odd lines in the session file: 1 no JSON (skipped).</p>",
        ],
    );
}

#[test]
fn sums_are_of_all_branches_and_of_what_is_not_shown() {
    let usage = json!({"input": 7, "cost": {"total": 1}});
    let lines = [
        header(),
        assistant("a", None, json!([])),
        assistant("b", Some("a"), json!([])),
        assistant("c", Some("a"), json!([])),
        entry(
            "d",
            Some("c"),
            json!({"type": "usage", "kind": "cache_warm", "provider": "p", "model": "m", "usage": usage}),
        ),
    ];
    check_lines(
        &lines,
        &[
            "<section class=\"totals\" id=\"totals\">",
            "<td>p/m</td><td>3</td><td>3,607</td><td>102</td><td>0</td><td>0</td><td>$1.04</td></tr>\n</table>",
        ],
    );
}

#[test]
fn branches_are_reachable_and_the_current_one_comes_first() {
    let lines = [
        header(),
        user("a", None, "one"),
        user("b", Some("a"), "left"),
        assistant("c", Some("b"), json!([{"type": "text", "text": "left answer"}])),
        user("d", Some("a"), "right"),
    ];
    check_lines(
        &lines,
        &[
            "<section class=\"piece shown\" id=\"p0\" data-next=\"1\">",
            "id=\"e0\"",
            "<nav class=\"branches\"",
            "2 branches",
            "<a href=\"#p2\">left</a>",
            "<a href=\"#p1\" aria-current=\"true\">right</a>",
            "<section class=\"piece shown\" id=\"p1\" data-parent=\"0\">",
            "id=\"e3\"",
            "<h2 class=\"others\">Other branches</h2>",
            "<section class=\"piece\" id=\"p2\" data-parent=\"0\">",
            "<a href=\"#p0\">an earlier part</a>",
            "id=\"e1\"",
            "id=\"e2\"",
        ],
    );
}

#[test]
fn every_link_leads_somewhere() {
    let lines = [
        header(),
        user("a", None, "x"),
        entry("b", Some("a"), json!({"type": "context_edit", "targetId": "a", "replacement": null})),
        user("c", Some("a"), "y"),
        user("d", None, "root"),
    ];
    let (_, seen) = seen(&lines);
    let of = |wanted: &str| -> Vec<String> {
        let attributes = seen.elements.iter().flat_map(|(_, attributes)| attributes);
        attributes.filter(|(name, _)| name == wanted).map(|(_, value)| value.clone()).collect()
    };
    let ids = of("id");
    let links = of("href");
    assert!(links.len() > 5);
    for link in links {
        assert!(ids.contains(&link[1..].to_owned()), "{link}");
    }
    let unique: std::collections::BTreeSet<&String> = ids.iter().collect();
    assert_eq!(unique.len(), ids.len());
}
