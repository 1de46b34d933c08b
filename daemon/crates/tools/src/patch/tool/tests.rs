use std::{fs, sync::Mutex};

use agentd_protocol::message::ContentBlock;
use serde_json::{Value, json};

use super::*;
use crate::{
    file_changes::ApprovalFuture,
    file_queue::FileQueue,
    operations::LocalHost,
    testing::{call, done, refused},
};

/// Refuses files whose names hold a text, and notes what was asked.
#[derive(Default)]
struct Refusing(&'static str, Mutex<Vec<String>>);

impl ChangeApproval for Refusing {
    fn approve<'a>(&'a self, change: ProposedChange<'a>, _: &'a CancellationToken) -> ApprovalFuture<'a> {
        Box::pin(async move {
            let path = change.path.file_name().unwrap().to_string_lossy().into_owned();
            let is_refused = !self.0.is_empty() && path.contains(self.0);
            self.1.lock().unwrap().push(format!("{path}={}", change.content));
            if is_refused { Err("Refused.".to_owned()) } else { Ok(()) }
        })
    }
}

fn tool(approval: Arc<dyn ChangeApproval>) -> Arc<dyn Tool> {
    let place =
        ChangePlace { queue: FileQueue::new(), host: Arc::new(LocalHost), undo: None, journals: None };
    Arc::new(PatchTool::new(PatchOptions { home: "/home/me".into(), place, approval }))
}

/// A folder with these files.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    dir
}

/// What is in a folder: names and contents, in order.
fn contents(dir: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut left = vec![dir.to_owned()];
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                left.push(path);
            } else {
                let name = path.strip_prefix(dir).unwrap().display().to_string();
                found.push((name, fs::read_to_string(path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

fn owned(files: &[(&str, &str)]) -> Vec<(String, String)> {
    files.iter().map(|(name, content)| ((*name).to_owned(), (*content).to_owned())).collect()
}

fn arguments(diff: &str) -> Value {
    json!({ "diff": diff })
}

#[tokio::test]
async fn files_are_changed_made_removed_and_renamed_in_one_call() {
    let dir = folder(&[
        ("a.txt", "one\r\ntwo\r\n"),
        ("gone.txt", "g\n"),
        ("old/name.txt", "x\ny\n"),
        ("same.txt", "s"),
    ]);
    let asked = Arc::new(Refusing::default());
    let diff = "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,3 @@\n one\n-two\n+2\n+3\n\
                --- /dev/null\n+++ b/new/n.txt\n@@ -0,0 +1,2 @@\n+n\n+m\n\\ No newline at end of file\n\
                --- a/gone.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-g\n\
                diff --git a/old/name.txt b/name.txt\nrename from old/name.txt\nrename to name.txt\n--- a/old/name.txt\n+++ b/name.txt\n@@ -1,2 +1,2 @@\n-x\n+X\n y\n\
                diff --git a/same.txt b/moved.txt\nsimilarity index 100%\nrename from same.txt\nrename to moved.txt\n";
    let tool = tool(Arc::<Refusing>::clone(&asked));
    let result = call(&tool, dir.path(), arguments(diff)).await.unwrap();
    assert_eq!(
        contents(dir.path()),
        owned(&[
            ("a.txt", "one\r\n2\r\n3\r\n"),
            ("moved.txt", "s"),
            ("name.txt", "X\ny\n"),
            ("new/n.txt", "n\nm")
        ])
    );
    let [ContentBlock::Text { text, .. }] = &result.content[..] else { panic!("{result:?}") };
    assert_eq!(
        text,
        "Successfully applied 4 hunk(s) to 5 files:\napplied 1 hunk(s) to a.txt\ncreated new/n.txt\nremoved gone.txt\nrenamed \
         old/name.txt to name.txt and applied 1 hunk(s)\nrenamed same.txt to moved.txt"
    );
    assert_eq!(
        *asked.1.lock().unwrap(),
        [
            "a.txt=one\r\n2\r\n3\r\n",
            "n.txt=n\nm",
            "gone.txt=",
            "name.txt=",
            "name.txt=X\ny\n",
            "same.txt=",
            "moved.txt="
        ]
    );
    let details = result.details.unwrap();
    assert!(details["diff"].as_str().unwrap().contains("a.txt\n 1 one\n-2 two\n+2 2\n+3 3"), "{details}");
    assert_eq!(
        details["files"][1]["patch"],
        "--- new/n.txt\n+++ new/n.txt\n@@ -0,0 +1,2 @@\n+n\n+m\n\\ No newline at end of file\n"
    );
}

#[tokio::test]
async fn the_result_for_one_file_is_that_of_edit() {
    let dir = folder(&[("f.txt", "\u{feff}one\r\ntwo\r\nthree\r\n")]);
    let diff = "```diff\n--- f.txt\n+++ f.txt\n@@ -1,3 +1,3 @@\n \u{feff}one\n-two\n+2\n three\n```";
    let result = call(&tool(Arc::new(())), dir.path(), arguments(diff)).await.unwrap();
    assert_eq!(contents(dir.path()), owned(&[("f.txt", "\u{feff}one\r\n2\r\nthree\r\n")]));
    let mut details = result.details.unwrap();
    let files = details["files"].take();
    assert_eq!(
        details,
        json!({
            "patch": "--- f.txt\n+++ f.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n",
            "firstChangedLine": 2,
            "diff": " 1 one\n-2 two\n+2 2\n 3 three",
            "files": null,
        })
    );
    assert_eq!((&files[0]["hunks"], &files[0]["patch"]), (&json!(1), &details["patch"]));
}

#[tokio::test]
async fn a_diff_that_does_not_fit_changes_nothing() {
    let first = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-a\n+b\n";
    let files = [("a.txt", "a\n"), ("b.txt", "b\n"), ("sub/c.txt", "c\n")];
    for (diff, says) in [
        (
            "--- a/b.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-x\n+y\n",
            "Hunk 1 of b.txt (@@ -1 +1 @@) has no place: line 1 is \"b\", where the diff has \"x\"",
        ),
        (
            "--- a/missing\n+++ b/missing\n@@ -1 +1 @@\n-x\n+y\n",
            "Could not edit file: missing. Error code: ENOENT",
        ),
        ("--- a/sub\n+++ b/sub\n@@ -1 +1 @@\n-x\n+y\n", "Could not edit file: sub. Error code: EISDIR"),
        ("--- /dev/null\n+++ b/b.txt\n@@ -0,0 +1 @@\n+y\n", "b.txt is there already"),
        ("--- a/b.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n", "Hunk 1 of b.txt"),
        (
            "diff --git a/b.txt b/b.txt\ndeleted file mode 100644\n",
            "b.txt has lines that are not in the diff",
        ),
        ("--- a/b.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-b\n+b\n", "No changes made to b.txt"),
        (
            "diff --git a/b.txt b/sub/c.txt\nrename from b.txt\nrename to sub/c.txt\n",
            "sub/c.txt is there already",
        ),
        ("diff --git a/sub b/d\nrename from sub\nrename to d\n", "sub is not a regular file"),
        ("--- a/./a.txt\n+++ b/./a.txt\n@@ -1 +1 @@\n-a\n+c\n", "is in the diff more than once"),
        ("--- a/b.txt\n+++ b/b.txt\nnothing\n", "The diff changes no line of b.txt"),
    ] {
        let dir = folder(&files);
        let error = refused(&tool(Arc::new(())), dir.path(), arguments(&format!("{first}{diff}"))).await;
        assert!(error.contains(says) && error.ends_with("Nothing was changed."), "{diff:?}: {error}");
        assert_eq!(contents(dir.path()), owned(&files), "{diff:?}");
    }
}

#[tokio::test]
async fn one_refused_file_keeps_all_as_they_are() {
    let files = [("a.txt", "a\n"), ("b.txt", "b\n")];
    let dir = folder(&files);
    let diff = "--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-a\n+x\n--- b.txt\n+++ b.txt\n@@ -1 +1 @@\n-b\n+y\n";
    let error =
        refused(&tool(Arc::new(Refusing("b.txt", Mutex::default()))), dir.path(), arguments(diff)).await;
    assert_eq!(error, "Refused. Nothing was changed.");
    assert_eq!(contents(dir.path()), owned(&files));
    assert!(
        done(&tool(Arc::new(())), dir.path(), arguments(diff)).await.starts_with("Successfully applied 2")
    );
}

#[tokio::test]
async fn links_are_followed_for_changes_alone_and_nothing_is_quoted_from_outside() {
    let outside = folder(&[("secret", "password\n")]);
    let dir = folder(&[]);
    std::os::unix::fs::symlink(outside.path().join("secret"), dir.path().join("link")).unwrap();
    let tool = tool(Arc::new(()));
    let misfit = "--- link\n+++ link\n@@ -1 +1 @@\n-x\n+y\n";
    let error = refused(&tool, dir.path(), arguments(misfit)).await;
    assert!(error.contains("line 1 is not \"x\"") && !error.contains("password"), "{error}");
    let removal = "--- link\n+++ /dev/null\n@@ -1 +0,0 @@\n-password\n";
    let error = refused(&tool, dir.path(), arguments(removal)).await;
    assert!(error.contains("link is a symbolic link"), "{error}");
    done(&tool, dir.path(), arguments("--- link\n+++ link\n@@ -1 +1 @@\n-password\n+changed\n")).await;
    assert_eq!(fs::read_to_string(outside.path().join("secret")).unwrap(), "changed\n");
    assert!(dir.path().join("link").is_symlink());
}
