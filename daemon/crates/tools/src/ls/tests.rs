use std::{fs, os::unix::fs::symlink, sync::Arc};

use agentd_agent::Tool;
use serde_json::json;

use tokio_util::sync::CancellationToken;

use super::*;
use crate::testing::{call, call_with, done, refused, text};

fn tool() -> Arc<dyn Tool> {
    Arc::new(LsTool::new())
}

#[tokio::test]
async fn entries_are_sorted_without_regard_to_case() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["b", "A", "a.txt", ".hidden", "_x", "B2"] {
        fs::write(folder.path().join(name), "").unwrap();
    }
    fs::create_dir(folder.path().join("Dir")).unwrap();
    symlink("Dir", folder.path().join("to-dir")).unwrap();
    symlink("nowhere", folder.path().join("dead")).unwrap();
    let listed = done(&tool(), folder.path(), json!({})).await;
    assert_eq!(listed, "_x\n.hidden\nA\na.txt\nb\nB2\nDir/\nto-dir/");
    let result = call(&tool(), folder.path(), json!({"limit": 2, "path": "."})).await.unwrap();
    assert_eq!(text(&result), "_x\n.hidden\n\n[2 entries limit reached. Use limit=4 for more]");
    assert_eq!(result.details, Some(json!({"entryLimitReached": 2})));
    assert_eq!(done(&tool(), folder.path(), json!({"path": "Dir"})).await, "(empty directory)");
}

#[tokio::test]
async fn names_that_differ_in_case_alone_have_one_order() {
    let folder = tempfile::tempdir().unwrap();
    let mut names: Vec<String> =
        (0..256).map(|bits| (0..8).map(|at| if bits >> at & 1 == 1 { 'a' } else { 'A' }).collect()).collect();
    for name in &names {
        fs::write(folder.path().join(name), "").unwrap();
    }
    names.sort_unstable();
    assert_eq!(done(&tool(), folder.path(), json!({})).await, names.join("\n"));
}

#[tokio::test]
async fn mistakes_are_named() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let refuse = async |name: &str| refused(&tool(), folder.path(), json!({"path": name})).await;
    assert_eq!(refuse("none").await, format!("Path not found: {}", path("none")));
    assert_eq!(refuse("file").await, format!("Not a directory: {}", path("file")));
    let cancel = CancellationToken::new();
    cancel.cancel();
    fs::create_dir(folder.path().join("full")).unwrap();
    fs::write(folder.path().join("full/x"), "").unwrap();
    let aborted = call_with(&tool(), folder.path(), json!({"path": "full"}), cancel).await.unwrap_err();
    assert_eq!(aborted.0, "Operation aborted");
}
