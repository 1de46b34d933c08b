use std::{fs, os::unix::fs::symlink, path::Path, sync::Arc};

use agentd_agent::Tool;
use agentd_protocol::tool::ToolResult;
use serde_json::{Value, json};

use tokio_util::sync::CancellationToken;

use super::*;
use crate::testing::{call, call_with, done, refused, text};

struct Tree {
    folder: tempfile::TempDir,
    tool: Arc<dyn Tool>,
}

impl Tree {
    fn new(files: &[(&str, &str)]) -> Self {
        let tree = Self { folder: tempfile::tempdir().unwrap(), tool: Arc::new(GrepTool::new()) };
        files.iter().for_each(|(name, content)| tree.write(name, content.as_bytes()));
        tree
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn write(&self, name: &str, content: &[u8]) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    async fn check(&self, arguments: Value, expected: &str) {
        assert_eq!(done(&self.tool, self.path(), arguments.clone()).await, expected, "{arguments}");
    }

    async fn result(&self, arguments: Value) -> ToolResult {
        call(&self.tool, self.path(), arguments).await.unwrap()
    }
}

#[tokio::test]
async fn lines_are_given_in_the_order_of_names() {
    let tree = Tree::new(&[
        ("b.rs", "fn one() {}\nfn two() {}\r\n"),
        ("a/z.rs", "// fn"),
        ("a/.hidden", "fn hidden\n"),
        ("a.rs", "nothing\n"),
        (".gitignore", "out\n"),
        (".git/config", "fn config\n"),
        ("out/c.rs", "fn ignored\n"),
    ]);
    let all = ".git/config:1: fn config\na/.hidden:1: fn hidden\na/z.rs:1: // fn\nb.rs:1: fn one() {}\nb.rs:2: fn two() {}";
    tree.check(json!({"pattern": "fn"}), all).await;
    tree.check(
        json!({"pattern": "^FN \\w+\\(", "ignoreCase": true}),
        "b.rs:1: fn one() {}\nb.rs:2: fn two() {}",
    )
    .await;
    tree.check(json!({"pattern": "one()", "literal": true}), "b.rs:1: fn one() {}").await;
    tree.check(json!({"pattern": "fn", "path": "a"}), ".hidden:1: fn hidden\nz.rs:1: // fn").await;
    tree.check(json!({"pattern": "fn", "path": "out/c.rs"}), "c.rs:1: fn ignored").await;
    tree.check(json!({"pattern": "fn", "glob": "./a/*.rs"}), "a/z.rs:1: // fn").await;
    tree.check(json!({"pattern": "fn", "glob": "!{a,.git}/**"}), "b.rs:1: fn one() {}\nb.rs:2: fn two() {}")
        .await;
    tree.check(json!({"pattern": "nowhere"}), "No matches found").await;
}

#[tokio::test]
async fn what_looks_like_a_flag_is_a_pattern() {
    let tree = Tree::new(&[("a", "--pre=x\n")]);
    tree.check(json!({"pattern": "--pre=x"}), "a:1: --pre=x").await;
}

#[tokio::test]
async fn context_stands_around_matches() {
    let text = "1\n2\nx3\n4\n5\n6\n7\nx8\nx9\n10\n";
    let tree = Tree::new(&[("a", text)]);
    let all = "a-2- 2\na:3: x3\na-4- 4\na-7- 7\na:8: x8\na:9: x9\na-10- 10";
    tree.check(json!({"pattern": "x", "context": 1}), all).await;
    tree.check(json!({"pattern": "x", "context": -3}), "a:3: x3\na:8: x8\na:9: x9").await;
}

#[tokio::test]
async fn the_limit_cuts_and_says_so() {
    let tree = Tree::new(&[("a", "x1\nx2\nx3\n"), ("b", "x4\n5\nx6\n")]);
    let notice = |limit: u32| {
        format!("\n\n[{limit} matches limit reached. Use limit={} for more, or refine pattern]", limit * 2)
    };
    let check = async |arguments: Value, expected: &str, reached: Option<u32>| {
        let result = tree.result(arguments.clone()).await;
        let end = reached.map(&notice).unwrap_or_default();
        assert_eq!(text(&result), format!("{expected}{end}"), "{arguments}");
        assert_eq!(result.details, reached.map(|limit| json!({"matchLimitReached": limit})));
    };
    check(json!({"pattern": "x", "limit": 5}), "a:1: x1\na:2: x2\na:3: x3\nb:1: x4\nb:3: x6", None).await;
    check(json!({"pattern": "x", "limit": 4}), "a:1: x1\na:2: x2\na:3: x3\nb:1: x4", Some(4)).await;
    check(json!({"pattern": "x", "limit": 3.9}), "a:1: x1\na:2: x2\na:3: x3", Some(3)).await;
    check(json!({"pattern": "x", "limit": -1}), "a:1: x1", Some(1)).await;
    check(json!({"pattern": "x4|5", "limit": 2}), "b:1: x4\nb:2: 5", None).await;
    // What follows the last match is shown, other matches among it as what they are then: context.
    check(json!({"pattern": "x", "limit": 1, "context": 1}), "a:1: x1\na-2- x2", Some(1)).await;
    check(json!({"pattern": "x", "limit": 3, "context": 1}), "a:1: x1\na:2: x2\na:3: x3", Some(3)).await;
    check(
        json!({"pattern": "x", "limit": 4, "context": 2}),
        "a:1: x1\na:2: x2\na:3: x3\nb:1: x4\nb-2- 5\nb-3- x6",
        Some(4),
    )
    .await;
    check(json!({"pattern": "x", "limit": 2, "path": "a"}), "a:1: x1\na:2: x2", Some(2)).await;
}

/// Many more files than a thread takes at once, so that the threads have to wait for each other.
#[tokio::test]
async fn the_answer_does_not_depend_on_who_is_faster() {
    let tree = Tree::new(&[]);
    let mut expected = Vec::new();
    for number in 0..3000 {
        let name = format!("d{:02}/f{number:04}", number % 7);
        // Every now and then a file that takes longer.
        let filler = "-\n".repeat(if number % 500 == 0 { 200_000 } else { 1 });
        tree.write(&name, format!("{filler}hit {number}\n").as_bytes());
        expected.push(format!("{name}:{}: hit {number}", filler.len() / 2 + 1));
    }
    expected.sort();
    for limit in [1, 33, 1000, 2999, 3000] {
        let result = tree.result(json!({"pattern": "hit", "limit": limit})).await;
        let shown: Vec<&str> = text(&result).lines().take_while(|line| !line.is_empty()).collect();
        let fitting = shown.len();
        assert!(fitting == limit || result.details.as_ref().is_some_and(|it| it["truncation"].is_object()));
        assert_eq!(shown, expected[..fitting], "{limit}");
    }
}

#[tokio::test]
async fn long_lines_and_long_lists_are_cut() {
    let tree =
        Tree::new(&[("a", &format!("x{}\n", "é".repeat(499))), ("b", &format!("x{}\n", "é".repeat(500)))]);
    let result = tree.result(json!({"pattern": "x"})).await;
    let line = format!("x{}", "é".repeat(499));
    let notice = "Some lines truncated to 500 chars. Use read tool to see full lines";
    assert_eq!(text(&result), format!("a:1: {line}\nb:1: {line}... [truncated]\n\n[{notice}]"));
    assert_eq!(result.details, Some(json!({"linesTruncated": true})));
    tree.write("c", format!("{}\n", "x".repeat(400)).repeat(200).as_bytes());
    let result = tree.result(json!({"pattern": "x", "limit": 150, "path": "c"})).await;
    let end = "[150 matches limit reached. Use limit=300 for more, or refine pattern. 50.0KB limit reached]";
    assert!(text(&result).ends_with(end), "{}", text(&result));
    let truncation = &result.details.unwrap()["truncation"];
    assert_eq!((&truncation["truncatedBy"], &truncation["totalLines"]), (&json!("bytes"), &json!(150)));
}

#[tokio::test]
async fn odd_files_do_no_harm() {
    let tree = Tree::new(&[("a", "x\n")]);
    tree.write("binary", b"x\0x\nx\n");
    let late = ["x early\n".as_bytes(), &b"-\n".repeat(100_000), b"x again\n\0\nx late\n"].concat();
    tree.write("late", &late);
    tree.write("latin", b"caf\xe9 x\n");
    tree.write("utf16", b"\xff\xfex\0\n\0");
    symlink(".", tree.path().join("loop")).unwrap();
    symlink("/etc/passwd", tree.path().join("link")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, tree.path().join("fifo"), rustix::fs::Mode::RWXU).unwrap();
    tree.check(
        json!({"pattern": "x"}),
        "a:1: x\nlate:1: x early\nlate:100002: x again\nlatin:1: caf\u{fffd} x\nutf16:1: x",
    )
    .await;
    tree.check(
        json!({"pattern": "x", "path": "loop"}),
        "a:1: x\nlate:1: x early\nlate:100002: x again\nlatin:1: caf\u{fffd} x\nutf16:1: x",
    )
    .await;
    let fifo = refused(&tree.tool, tree.path(), json!({"pattern": "x", "path": "fifo"})).await;
    assert!(fifo.ends_with("fifo: it is neither a file nor a folder"), "{fifo}");
}

#[tokio::test]
async fn a_named_file_is_searched_byte_for_byte() {
    let tree = Tree::new(&[("bin", "hit\0\u{1}\n\0\nhit after\n")]);
    tree.check(json!({"pattern": "hit", "path": "bin"}), "bin:1: hit\0\u{1}\nbin:3: hit after").await;
    tree.check(json!({"pattern": "hit"}), "No matches found").await;
}

#[tokio::test]
async fn mistakes_are_named() {
    let tree = Tree::new(&[]);
    let refuse = async |arguments: Value| refused(&tree.tool, tree.path(), arguments).await;
    let missing = tree.path().join("none").display().to_string();
    assert_eq!(refuse(json!({"pattern": "x", "path": "none"})).await, format!("Path not found: {missing}"));
    let regex = refuse(json!({"pattern": "(x"})).await;
    assert!(regex.starts_with("regex parse error:\n    (") && regex.contains("unclosed group"), "{regex}");
    let glob = refuse(json!({"pattern": "x", "glob": "[a"})).await;
    assert!(glob.contains("unclosed character class"), "{glob}");
    let cancel = CancellationToken::new();
    cancel.cancel();
    let aborted = call_with(&tree.tool, tree.path(), json!({"pattern": "x"}), cancel).await.unwrap_err();
    assert_eq!(aborted.0, "Operation aborted");
}
