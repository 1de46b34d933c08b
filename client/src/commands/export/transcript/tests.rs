use std::io::Cursor;

use serde_json::json;

use super::*;

const HEADER: &str = r#"{"type":"session","version":3,"id":"0198-1","timestamp":"2026-11-21T14:00:00.000Z","cwd":"/home/u/project"}"#;

fn transcript(entries: &[Value]) -> String {
    let mut file = format!("{HEADER}\n");
    for (at, entry) in entries.iter().enumerate() {
        let mut entry = entry.clone();
        entry["id"] = json!(format!("e{at}"));
        entry["parentId"] = at.checked_sub(1).map_or(Value::Null, |before| json!(format!("e{before}")));
        file.push_str(&format!("{entry}\n"));
    }
    let mut out = Vec::new();
    write(&mut CurrentBranch::read(Cursor::new(file)).unwrap(), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn message(message: Value) -> Value {
    json!({"type": "message", "timestamp": "t", "message": message})
}

fn user(text: &str) -> Value {
    message(json!({"role": "user", "content": text}))
}

fn answer(content: Value, more: Value) -> Value {
    let mut answer = json!({"role": "assistant", "content": content, "provider": "p", "model": "m", "stopReason": "stop",
        "usage": {"input": 10, "output": 2, "cacheRead": 3, "cost": {"total": 0.25}}});
    answer.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    message(answer)
}

#[test]
fn a_conversation() {
    let entries = [
        json!({"type": "model_change", "provider": "p", "modelId": "m"}),
        message(json!({"role": "system", "content": "You are an agent."})),
        user("Count the *files*.\nAll of them."),
        answer(
            json!([{"type": "thinking", "thinking": "Hm.\n</details>"}, {"type": "text", "text": "I look."},
                {"type": "toolCall", "id": "1", "name": "bash", "arguments": {"command": "ls | wc -l"}}]),
            json!({"stopReason": "toolUse"}),
        ),
        message(
            json!({"role": "toolResult", "toolCallId": "1", "toolName": "bash", "isError": false, "durationMs": 12,
            "content": [{"type": "text", "text": "```\n3\n"}]}),
        ),
        answer(json!([{"type": "text", "text": "Three."}]), json!({})),
    ];
    let expected = "\
# Count the \\*files\\*.

* Session: `0198-1`
* Folder: `/home/u/project`
* Begun: 2026-11-21T14:00:00.000Z

## User

Count the *files*.
All of them.

## Assistant (`p/m`)

<details>
<summary>Thinking</summary>

```text
Hm.
</details>
```

</details>

I look.

**Tool call** `bash`

```sh
ls | wc -l
```

**Result** of `bash` (ok, 12 ms)

````text
```
3
````

## Assistant (`p/m`)

Three.

---

| model | answers | input | output | cache read | cache write | US$ |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |
| `p/m` | 2 | 20 | 4 | 6 | 0 | 0.5000 |
";
    assert_eq!(transcript(&entries), expected);
}

#[test]
fn arguments_of_many_lines_stand_by_themselves() {
    let arguments = json!({"path": "a.md", "content": "# A\n```\n"});
    let call = json!([{"type": "toolCall", "id": "1", "name": "write", "arguments": arguments}]);
    let text = transcript(&[user("x"), answer(call, json!({}))]);
    let expected = "**Tool call** `write`\n\n```json\n{\n  \"path\": \"a.md\"\n}\n```\n\n`content`:\n\n````text\n# A\n```\n````\n";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn everything_else_that_happens_is_told() {
    let entries = [
        user("x"),
        json!({"type": "model_change", "provider": "q", "modelId": "n`"}),
        json!({"type": "thinking_level_change", "thinkingLevel": "high"}),
        message(
            json!({"role": "bashExecution", "command": "make", "output": "no\n", "exitCode": 2, "cancelled": false,
            "truncated": false, "excludeFromContext": true}),
        ),
        json!({"type": "compaction", "summary": "Short.", "firstKeptEntryId": "e0", "tokensBefore": 900,
            "usage": {"input": 5, "cost": {"total": 0.1}}}),
        json!({"type": "branch_summary", "fromId": "e0", "summary": "Left."}),
        json!({"type": "custom_message", "customType": "lint", "content": "3 warnings", "display": true}),
        json!({"type": "custom_message", "customType": "hidden", "content": "secret", "display": false}),
        json!({"type": "from_the_future"}),
        message(
            json!({"role": "user", "content": [{"type": "image", "data": "AAAA", "mimeType": "image/png"}]}),
        ),
        answer(json!([]), json!({"stopReason": "error", "errorMessage": "503 <busy>"})),
        answer(json!([{"type": "text", "text": "Half"}]), json!({"stopReason": "aborted"})),
        answer(json!([{"type": "text", "text": "```\nopen"}]), json!({"stopReason": "length"})),
    ];
    let text = transcript(&entries);
    for part in [
        "\n*Model: `` q/n` ``*\n",
        "\n*Thinking: high*\n",
        "## Shell command (exit code 2, the model was not told)\n\n```sh\nmake\n```\n\n```text\nno\n```\n",
        "## Summary of everything before (900 tokens)\n\nShort.\n",
        "## Summary of a branch that was left\n\nLeft.\n",
        "## lint\n\n3 warnings\n",
        "*(Image, image/png, 3 bytes)*\n",
        "*The answer failed: 503 &lt;busy>*\n",
        "Half\n\n*The answer was stopped.*\n",
        "```\nopen\n```\n\n*The answer was cut off at the model's output limit.*\n",
        "| `summaries` | 0 | 5 | 0 | 0 | 0 | 0.1000 |\n",
        "| `p/m` | 3 | 30 | 6 | 9 | 0 | 0.7500 |\n| all | 3 | 35 | 6 | 9 | 0 | 0.8500 |\n",
        "*Left out: 1 line of kinds that this version does not know.*\n",
    ] {
        assert!(text.contains(part), "{part}\n---\n{text}");
    }
    assert!(!text.contains("secret"), "{text}");
}

#[test]
fn an_empty_session_says_so() {
    let text = transcript(&[json!({"type": "session_info", "name": "Later"})]);
    assert!(text.starts_with("# Later\n") && text.ends_with("*Nothing was said yet.*\n"), "{text}");
}
