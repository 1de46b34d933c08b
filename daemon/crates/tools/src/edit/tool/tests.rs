use std::{fs, sync::Arc};

use futures::future::join_all;
use proptest::prelude::*;

use super::*;
use crate::testing::{call, call_with, done, refused, text};

fn tool() -> Arc<dyn Tool> {
    Arc::new(EditTool::new(FileQueue::new()))
}

/// A folder with the file `f.txt`.
fn folder(content: impl AsRef<[u8]>) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("f.txt"), content).unwrap();
    dir
}

fn edits(edits: &[(&str, &str)]) -> Value {
    let edits: Vec<Value> = edits.iter().map(|(old, new)| json!({"oldText": old, "newText": new})).collect();
    json!({"path": "f.txt", "edits": edits})
}

async fn check(content: &str, changes: &[(&str, &str)], expected: &str) {
    let dir = folder(content);
    let text = done(&tool(), dir.path(), edits(changes)).await;
    assert_eq!(text, format!("Successfully replaced {} block(s) in f.txt.", changes.len()));
    assert_eq!(fs::read_to_string(dir.path().join("f.txt")).unwrap(), expected, "{content:?} {changes:?}");
}

async fn check_refused(content: impl AsRef<[u8]>, changes: &[(&str, &str)], message: &str) {
    let dir = folder(&content);
    assert_eq!(refused(&tool(), dir.path(), edits(changes)).await, message);
    assert_eq!(fs::read(dir.path().join("f.txt")).unwrap(), content.as_ref(), "the file is as it was");
}

#[tokio::test]
async fn pieces_are_replaced() {
    check("one\ntwo\n", &[("two", "2")], "one\n2\n").await;
    check("one\ntwo\n", &[("two\n", ""), ("one", "two\nx")], "two\nx\n").await;
    // All edits see the original.
    check("a b", &[("a", "b"), ("b", "a")], "b a").await;
    check("\u{feff}a\r\nb\r\n", &[("\u{feff}a\nb", "x\ny\nz")], "\u{feff}x\r\ny\r\nz\r\n").await;
    check("\u{feff}a", &[("a", "b")], "\u{feff}b").await;
    check("a\r\nb\r\n", &[("a\r\nb", "a\r\nc")], "a\r\nc\r\n").await;
    check("a\nb\n", &[("a\r\nb", "x\r\ny")], "x\ny\n").await;
    check(
        "keep \u{201c}this\u{201d}  \r\nsay \u{2018}hi\u{2019}\r\n",
        &[("say 'hi'", "say 'ho'")],
        "keep \u{201c}this\u{201d}  \r\nsay 'ho'\r\n",
    )
    .await;
}

#[tokio::test]
async fn the_result_shows_the_change() {
    let dir = folder("one\r\ntwo\r\nthree\r\n");
    let result = call(&tool(), dir.path(), edits(&[("two", "2")])).await.unwrap();
    assert_eq!(text(&result), "Successfully replaced 1 block(s) in f.txt.");
    assert_eq!(result.structured_content, None);
    assert_eq!(
        result.details,
        Some(json!({
            "diff": " 1 one\n-2 two\n+2 2\n 3 three",
            "patch": "--- f.txt\n+++ f.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n",
            "firstChangedLine": 2,
        }))
    );
}

#[tokio::test]
async fn edits_come_in_many_forms() {
    for arguments in [
        json!({"path": "f.txt", "edits": {"oldText": "a", "newText": "b"}}),
        json!({"path": "f.txt", "edits": "[{\"oldText\": \"a\", \"newText\": \"b\"}]"}),
        json!({"path": "f.txt", "edits": ["{\"oldText\": \"a\", \"newText\": \"b\"}"]}),
        json!({"path": "f.txt", "oldText": "a", "newText": "b"}),
    ] {
        let dir = folder("a");
        done(&tool(), dir.path(), arguments).await;
        assert_eq!(fs::read_to_string(dir.path().join("f.txt")).unwrap(), "b");
    }
}

#[tokio::test]
async fn edits_that_cannot_be_made_leave_the_file_alone() {
    type Row<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str);
    let rows: &[Row<'_>] = &[
        ("a", &[], "Edit tool input is invalid. edits must contain at least one replacement."),
        ("a", &[("", "x")], "oldText must not be empty in f.txt."),
        ("a", &[("a", "x"), ("", "x")], "edits[1].oldText must not be empty in f.txt."),
        (
            "a",
            &[("b", "x")],
            "Could not find the exact text in f.txt. The old text must match exactly including all whitespace and \
             newlines.",
        ),
        (
            "a",
            &[("a", "x"), ("b", "x")],
            "Could not find edits[1] in f.txt. The oldText must match exactly including all whitespace and newlines.",
        ),
        (
            "a a a",
            &[("a", "x")],
            "Found 3 occurrences of the text in f.txt. The text must be unique. Please provide more context to make \
             it unique.",
        ),
        (
            "b a a",
            &[("b", "x"), ("a", "x")],
            "Found 2 occurrences of edits[1] in f.txt. Each oldText must be unique. Please provide more context to \
             make it unique.",
        ),
        (
            "abc",
            &[("bc", "x"), ("ab", "x")],
            "edits[1] and edits[0] overlap in f.txt. Merge them into one edit or target disjoint regions.",
        ),
        (
            "abc",
            &[("b", "b")],
            "No changes made to f.txt. The replacement produced identical content. This might indicate an issue with \
             special characters or the text not existing as expected.",
        ),
        (
            "abc",
            &[("b", "b"), ("c", "c")],
            "No changes made to f.txt. The replacements produced identical content.",
        ),
    ];
    for (content, changes, message) in rows {
        check_refused(content, changes, message).await;
    }
}

#[tokio::test]
async fn files_that_cannot_be_edited_are_told() {
    check_refused(
        b"a\xff",
        &[("a", "b")],
        "Could not edit file: f.txt. It is not UTF-8 text (at byte 1), and an edit would damage it; use bash to change \
         it.",
    )
    .await;
    let dir = folder("a");
    let refused = async |path: &str| {
        let arguments = json!({"path": path, "edits": [{"oldText": "a", "newText": "b"}]});
        refused(&tool(), dir.path(), arguments).await
    };
    assert_eq!(refused("missing").await, "Could not edit file: missing. Error code: ENOENT.");
    assert_eq!(refused("f.txt/x").await, "Could not edit file: f.txt/x. Error code: ENOTDIR.");
    assert_eq!(refused(".").await, "Could not edit file: .. Error code: EISDIR.");
    std::os::unix::fs::symlink("loop", dir.path().join("loop")).unwrap();
    assert_eq!(refused("loop").await, "Could not edit file: loop. Error code: ELOOP.");
    assert_eq!(refused("/dev/null").await, "Could not edit file: /dev/null. It is not a regular file.");
    fs::File::create(dir.path().join("huge")).unwrap().set_len(65 << 20).unwrap();
    assert_eq!(
        refused("huge").await,
        "Could not edit file: huge. It is larger than 64.0MB; use bash to change it."
    );
}

#[tokio::test]
async fn an_aborted_call_changes_nothing() {
    let dir = folder("a");
    let cancel = CancellationToken::new();
    cancel.cancel();
    let error = call_with(&tool(), dir.path(), edits(&[("a", "b")]), cancel).await.unwrap_err();
    assert_eq!(error.0, "Operation aborted");
    assert_eq!(fs::read_to_string(dir.path().join("f.txt")).unwrap(), "a");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn edits_of_one_file_at_once_all_stay() {
    let content: String = (0..50).map(|number| format!("<{number}>\n")).collect();
    let dir = folder(content);
    std::os::unix::fs::symlink("f.txt", dir.path().join("link")).unwrap();
    let tool = tool();
    let calls = (0..50).map(|number| {
        let path = if number % 2 == 0 { "f.txt" } else { "link" };
        let edit = json!({"oldText": format!("<{number}>"), "newText": format!("done {number}")});
        tokio::spawn(call(&tool, dir.path(), json!({"path": path, "edits": [edit]})))
    });
    for result in join_all(calls).await {
        result.unwrap().unwrap();
    }
    let expected: String = (0..50).map(|number| format!("done {number}\n")).collect();
    assert_eq!(fs::read_to_string(dir.path().join("f.txt")).unwrap(), expected);
    assert!(dir.path().join("link").is_symlink());
}

#[tokio::test]
async fn a_large_file_takes_no_long() {
    let line = "some words that come again and again \u{e9}\n";
    let content = format!("{}needle\n{}", line.repeat(50_000), line.repeat(50_000));
    let dir = folder(&content);
    let started = std::time::Instant::now();
    done(&tool(), dir.path(), edits(&[("needle", "thread\nand more")])).await;
    // Anything quadratic takes minutes here.
    assert!(started.elapsed().as_secs() < 30, "{:?}", started.elapsed());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// A chosen line is replaced, and every other byte of the file stays.
    #[test]
    fn other_bytes_stay(
        lines in prop::collection::vec(("[ab\u{e9}\u{2019} \t]{0,5}", prop::sample::select(vec!["\n", "\r\n"])), 1..10),
        chosen in any::<prop::sample::Index>(),
        mark: bool,
        new in "[xyz\u{201c}]{0,6}",
    ) {
        let chosen = chosen.index(lines.len());
        let text = |middle: &str| -> String {
            let mut text = if mark { "\u{feff}".to_owned() } else { String::new() };
            for (index, (line, ending)) in lines.iter().enumerate() {
                text += if index == chosen { middle } else { line };
                text += ending;
            }
            text
        };
        let dir = folder(text("<unique>"));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(done(&tool(), dir.path(), edits(&[("<unique>", &new)])));
        prop_assert_eq!(fs::read_to_string(dir.path().join("f.txt")).unwrap(), text(&new));
    }
}
