use std::{fs, sync::Arc};

use futures::future::join_all;

use super::*;
use crate::testing::{call, call_with, done, refused};

fn tool() -> Arc<dyn Tool> {
    Arc::new(WriteTool::new(FileQueue::new()).with_home("/nonexistent-home"))
}

#[tokio::test]
async fn files_are_made_with_their_folders_and_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a/b/c.txt");
    for content in ["first\r\n\u{feff}é", "", "second"] {
        let arguments = json!({"path": "@a/b/c.txt", "content": content});
        // Messages name the file as the model did.
        assert_eq!(done(&tool(), dir.path(), arguments).await, "Successfully wrote to @a/b/c.txt");
        assert_eq!(fs::read_to_string(&path).unwrap(), content);
    }
    let result = call(&tool(), dir.path(), json!({"path": "x", "content": "y"})).await.unwrap();
    assert_eq!((result.details, result.structured_content), (None, None));
}

#[tokio::test]
async fn what_cannot_be_written_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    fs::write(root.join("file"), "").unwrap();
    let file = root.join("file");
    let file = file.display();
    for (path, message) in [
        ("file/x".to_owned(), format!("ENOTDIR: not a directory, open '{file}/x'")),
        ("file/x/y".to_owned(), format!("ENOTDIR: not a directory, open '{file}/x/y'")),
        (".".to_owned(), format!("EISDIR: illegal operation on a directory, open '{}'", root.display())),
        ("a\0b".to_owned(), "Invalid path: \"a\\0b\" contains a NUL character".to_owned()),
    ] {
        assert_eq!(refused(&tool(), &root, json!({"path": path, "content": "x"})).await, message);
    }
    let message = refused(&tool(), &root, json!({"path": "x"})).await;
    assert!(message.starts_with("Validation failed for tool \"write\":\n  - content: missing"), "{message}");
}

#[tokio::test]
async fn an_aborted_call_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let cancel = CancellationToken::new();
    cancel.cancel();
    let arguments = json!({"path": "a/x", "content": "y"});
    let error = call_with(&tool(), dir.path(), arguments, cancel).await.unwrap_err();
    assert_eq!(error.0, "Operation aborted");
    assert!(!dir.path().join("a").exists());
}

#[tokio::test]
async fn a_wait_for_the_turn_can_be_aborted() {
    let dir = tempfile::tempdir().unwrap();
    let queue = FileQueue::new();
    let tool: Arc<dyn Tool> = Arc::new(WriteTool::new(queue.clone()));
    let turn = queue.ticket().enter(dir.path().join("x")).await.unwrap();
    let cancel = CancellationToken::new();
    let arguments = json!({"path": "x", "content": "y"});
    let call = tokio::spawn(call_with(&tool, dir.path(), arguments, cancel.clone()));
    cancel.cancel();
    assert_eq!(call.await.unwrap().unwrap_err().0, "Operation aborted");
    drop(turn);
    assert!(!dir.path().join("x").exists());
}

#[tokio::test]
async fn the_last_of_several_writes_wins() {
    let dir = tempfile::tempdir().unwrap();
    let tool = tool();
    let calls =
        (0..10).map(|round| call(&tool, dir.path(), json!({"path": "x", "content": round.to_string()})));
    for result in join_all(calls).await {
        result.unwrap();
    }
    assert_eq!(fs::read_to_string(dir.path().join("x")).unwrap(), "9");
}
