use std::{ffi::OsStr, fs, os::unix::ffi::OsStrExt, os::unix::fs::symlink, path::Path, sync::Arc};

use agentd_agent::Tool;
use serde_json::{Value, json};

use tokio_util::sync::CancellationToken;

use super::*;
use crate::testing::{call, call_with, done, refused, text};

struct Tree {
    folder: tempfile::TempDir,
    tool: Arc<dyn Tool>,
}

impl Tree {
    fn new(files: &[&str]) -> Self {
        let tree = Self { folder: tempfile::tempdir().unwrap(), tool: Arc::new(FindTool::new()) };
        for name in files {
            tree.write(name, "");
        }
        tree
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn write(&self, name: &str, content: &str) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    async fn check(&self, arguments: Value, expected: &[&str]) {
        assert_eq!(
            done(&self.tool, self.path(), arguments.clone()).await,
            expected.join("\n"),
            "{arguments}"
        );
    }
}

#[tokio::test]
async fn names_and_paths_are_found_in_order() {
    let tree = Tree::new(&["src/b.rs", "src/a/x.rs", "src/a/.h.rs", "b.rs", "README.md", "target/c.rs"]);
    tree.write(".gitignore", "target\n");
    tree.write(".fdignore", "README.md\n");
    tree.check(json!({"pattern": "*.rs"}), &["b.rs", "src/a/.h.rs", "src/a/x.rs", "src/b.rs"]).await;
    tree.check(json!({"pattern": "src/*"}), &["src/a/", "src/b.rs"]).await;
    tree.check(json!({"pattern": "a", "path": "src"}), &["a/"]).await;
    tree.check(json!({"pattern": "readme*"}), &["No files found matching pattern"]).await;
    tree.check(json!({"pattern": "B.rs"}), &["No files found matching pattern"]).await;
    tree.check(json!({"pattern": "c.rs"}), &["No files found matching pattern"]).await;
    tree.check(json!({"pattern": "c.rs", "path": "target"}), &["c.rs"]).await;
}

#[tokio::test]
async fn the_limit_cuts_and_says_so() {
    let tree = Tree::new(&["a", "b", "c"]);
    tree.check(json!({"pattern": "*", "limit": 3}), &["a", "b", "c"]).await;
    let result = call(&tree.tool, tree.path(), json!({"pattern": "*", "limit": 2.5})).await.unwrap();
    assert_eq!(text(&result), "a\nb\n\n[2 results limit reached. Use limit=4 for more, or refine pattern]");
    assert_eq!(result.details, Some(json!({"resultLimitReached": 2})));
}

#[tokio::test]
async fn odd_names_and_links_do_no_harm() {
    let tree = Tree::new(&["a\nb"]);
    symlink(".", tree.path().join("loop")).unwrap();
    symlink("nowhere", tree.path().join("dead")).unwrap();
    fs::write(tree.path().join(OsStr::from_bytes(b"z\xff")), "").unwrap();
    tree.check(json!({"pattern": "*"}), &["a\nb", "dead", "loop", "z\u{fffd}"]).await;
}

#[tokio::test]
async fn mistakes_are_named() {
    let tree = Tree::new(&["file"]);
    let refuse = async |arguments: Value| refused(&tree.tool, tree.path(), arguments).await;
    let path = |name: &str| tree.path().join(name).display().to_string();
    assert_eq!(
        refuse(json!({"pattern": "x", "path": "none"})).await,
        format!("Path not found: {}", path("none"))
    );
    assert_eq!(
        refuse(json!({"pattern": "x", "path": "file"})).await,
        format!("Not a directory: {}", path("file"))
    );
    assert!(refuse(json!({"pattern": "[a"})).await.starts_with("Invalid glob \"[a\": "));
    let cancel = CancellationToken::new();
    cancel.cancel();
    let aborted = call_with(&tree.tool, tree.path(), json!({"pattern": "x"}), cancel).await.unwrap_err();
    assert_eq!(aborted.0, "Operation aborted");
}
