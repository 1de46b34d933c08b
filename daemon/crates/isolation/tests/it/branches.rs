//! Changes as commits.

use std::{
    fs,
    path::Path,
    sync::{Arc, Mutex},
};

use agentd_isolation::{CaptureMode, Captured, IsolatedCopy, MessageFuture, MessageWriter, UnitChange};
use agentd_protocol::isolation::IsolationMode;

use crate::bench::{Bench, everything, files, write};

const LINES: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n";

fn commit(bench: &Bench, copy: &IsolatedCopy, message: &str) {
    bench.run_in(copy.root(), &["add", "--all"]);
    let author = ["-c", "user.name=Child", "-c", "user.email=child@example.org"];
    let args =
        [&author[..], &["commit", "--quiet", "--author=Child <child@example.org>", "-m", message]].concat();
    bench.run_in(copy.root(), &args);
}

fn branch_of(captured: &Captured) -> (String, usize) {
    match &captured.units[0].change {
        UnitChange::Branch { name, commits, .. } => (name.clone(), *commits),
        UnitChange::Patch { path } => panic!("a patch at {}: {:?}", path.display(), captured.notices),
    }
}

fn subjects(bench: &Bench) -> String {
    bench.run(&["log", "--reverse", "--format=%an: %s"])
}

fn change(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(from));
    write(path, text.replace(from, to));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_childs_commits_are_kept_and_the_rest_gets_one() {
    let bench = Bench::new(&[("a", LINES)]);
    let mut copy = bench.begin("one").await;
    change(&copy.root().join("a"), "\n3\n", "\nthree\n");
    commit(&bench, &copy, "first of the child");
    write(&copy.root().join("b"), "b\n");
    commit(&bench, &copy, "second of the child");
    write(&copy.root().join("c"), "c\n");
    let expected = files(copy.root());
    let captured = bench.capture(&mut copy, CaptureMode::Branch).await;
    let (branch, commits) = branch_of(&captured);
    assert_eq!((branch.as_str(), commits), ("agentd/task/one", 3));
    copy.remove().await.unwrap();
    assert!(bench.run(&["branch", "--list"]).contains("agentd/task/one"));
    let merged = bench.merge(&captured).await.unwrap();
    assert_eq!(merged.result_text(), "Merged branch: agentd/task/one");
    assert_eq!(
        subjects(&bench),
        "User: first\nChild: first of the child\nChild: second of the child\nUser: task one\n"
    );
    assert_eq!(files(&bench.path("")), expected);
    assert_eq!(bench.status(&bench.path("")), b"");
    assert_eq!(bench.run(&["symbolic-ref", "HEAD"]), "refs/heads/main\n");
    bench.check_clean();
}

/// Writes this message, or says why not; keeps what it was shown.
struct Writer {
    says: Result<String, String>,
    shown: Mutex<Vec<String>>,
}

impl MessageWriter for Writer {
    fn message(&self, changes: String) -> MessageFuture<'_> {
        self.shown.lock().unwrap().push(changes);
        Box::pin(async { self.says.clone() })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_writes_the_message_of_what_the_child_did_not_commit() {
    for (says, subject, notices) in [
        (Ok("Write b\n\nIt was missing."), "User: Write b", vec![]),
        (Err("nobody is in"), "User: plain", vec!["the commit has a plain message, since nobody is in"]),
    ] {
        let bench = Bench::new(&[("a", LINES)]);
        // The user's own changes are no part of what it is shown.
        bench.write("mine", "mine\n");
        let says = says.map(str::to_owned).map_err(str::to_owned);
        let writer = Arc::new(Writer { says, shown: Mutex::default() });
        let mut copy = bench.begin("one").await;
        change(&copy.root().join("a"), "\n3\n", "\nthree\n");
        bench.run_in(copy.root(), &["add", "a"]);
        let author = "--author=Child <child@example.org>";
        bench.run_in(copy.root(), &["commit", "--quiet", author, "-m", "own"]);
        write(&copy.root().join("b"), format!("b\n{}", "long\n".repeat(20_000)));
        let captured = bench.capture_written(&mut copy, Arc::clone(&writer) as _).await;
        copy.remove().await.unwrap();
        assert_eq!(captured.notices, notices);
        bench.merge(&captured).await.unwrap();
        assert_eq!(subjects(&bench), format!("User: first\nChild: own\n{subject}\n"));
        let shown = writer.shown.lock().unwrap().clone();
        assert_eq!(shown.len(), 1, "only for the last commit");
        assert!(shown[0].starts_with("b\n\ndiff --git a/b b/b\n"), "{}", &shown[0][..100]);
        assert!(shown[0].ends_with("\n[the rest of the changes is left out]\n") && shown[0].len() < 50_000);
        assert!(!shown[0].contains("mine"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_users_uncommitted_changes_are_in_no_commit_and_stay_uncommitted() {
    let bench = everything();
    bench.write("lines", LINES);
    bench.run(&["add", "lines"]);
    bench.run(&["commit", "--quiet", "-m", "lines", "--", "lines"]);
    change(&bench.path("lines"), "\n2\n", "\nuser\n");
    let before = bench.state();
    let staged = bench.run(&["diff", "--cached", "--raw"]);
    let mut copy = bench.begin("one").await;
    change(&copy.root().join("lines"), "\n11\n", "\nchild\n");
    write(&copy.root().join("new"), "child\n");
    // All of it, as children do.
    commit(&bench, &copy, "everything");
    change(&copy.root().join("plain"), "1\n", "once more\n");
    let captured = bench.capture(&mut copy, CaptureMode::Branch).await;
    copy.remove().await.unwrap();
    assert_eq!(branch_of(&captured).1, 2);
    assert_eq!(bench.state().files, before.files);
    let merged = bench.merge(&captured).await.unwrap();
    assert!(merged.applied, "{merged:?}");
    assert_eq!(bench.run(&["show", "--name-only", "--format=%an", "HEAD~"]), "Child\n\nlines\nnew\n");
    assert_eq!(bench.run(&["show", "--name-only", "--format=%an", "HEAD"]), "User\n\nplain\n");
    assert!(bench.run(&["show", "HEAD:lines"]).contains("\n2\n3"));
    assert_eq!(bench.read("lines"), LINES.replace("\n2\n", "\nuser\n").replace("\n11\n", "\nchild\n"));
    assert_eq!(bench.run(&["diff", "--cached", "--raw"]), staged);
    // But for what the child changed, all is as it was.
    let after = bench.state();
    let mut expected = before.files;
    for name in ["lines", "new", "plain"] {
        expected.insert(name.into(), after.files[name.as_bytes()].clone());
    }
    assert_eq!(after.files, expected);
    let without_child = |status: &[u8]| -> Vec<String> {
        let text = String::from_utf8_lossy(status).into_owned();
        text.split('\0').map(str::to_owned).collect()
    };
    assert_eq!(without_child(&after.status), without_child(&before.status));
    bench.check_clean();
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_that_cannot_be_told_apart_become_a_patch() {
    let bench = Bench::new(&[("a", LINES)]);
    change(&bench.path("a"), "\n5\n", "\nuser\n");
    bench.write("mine", "user\n");
    for name in ["a", "mine"] {
        let mut copy = bench.begin("one").await;
        change(&copy.root().join(name), "user\n", "child\n");
        write(&copy.root().join("b"), "b\n");
        let captured = bench.capture(&mut copy, CaptureMode::Branch).await;
        copy.remove().await.unwrap();
        assert!(captured.notices[0].contains(&format!("uncommitted changes in {name} ")), "{captured:?}");
        let merged = bench.merge(&captured).await.unwrap();
        assert_eq!((merged.mode, merged.applied), (IsolationMode::Patch, true));
        assert_eq!((bench.read(name).contains("child"), bench.read("b").as_str()), (true, "b\n"));
        fs::remove_file(bench.path("b")).unwrap();
    }
    // The child took the user's change back.
    let mut copy = bench.begin("two").await;
    write(&copy.root().join("a"), LINES);
    let captured = bench.capture(&mut copy, CaptureMode::Branch).await;
    copy.remove().await.unwrap();
    assert!(matches!(captured.units[0].change, UnitChange::Patch { .. }));
    assert!(bench.merge(&captured).await.unwrap().applied);
    assert_eq!(bench.read("a"), LINES);
    bench.check_clean();
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_come_on_top_of_what_the_user_committed_meanwhile() {
    let bench = Bench::new(&[("a", LINES)]);
    let mut copy = bench.begin("one").await;
    change(&copy.root().join("a"), "\n3\n", "\nthree\n");
    commit(&bench, &copy, "by the child");
    change(&bench.path("a"), "\n11\n", "\neleven\n");
    bench.write("mine", "user\n");
    bench.commit_all("by the user");
    change(&bench.path("a"), "\n7\n", "\nseven\n");
    bench.write("staged", "user\n");
    bench.run(&["add", "staged"]);
    let captured = bench.capture(&mut copy, CaptureMode::Branch).await;
    copy.remove().await.unwrap();
    let merged = bench.merge(&captured).await.unwrap();
    assert!(merged.applied, "{merged:?}");
    assert_eq!(subjects(&bench), "User: first\nUser: by the user\nChild: by the child\n");
    let all = LINES.replace("\n3\n", "\nthree\n").replace("\n11\n", "\neleven\n");
    assert_eq!(bench.run(&["show", "HEAD:a"]), all);
    assert_eq!(bench.read("a"), all.replace("\n7\n", "\nseven\n"));
    assert_eq!(bench.status(&bench.path("")), b" M a\0A  staged\0");
    bench.check_clean();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_touches_nothing_and_keeps_the_branch() {
    for uncommitted in [false, true] {
        let bench = Bench::new(&[("a", LINES), ("b", "b\n")]);
        let mut copy = bench.begin("one").await;
        write(&copy.root().join("b"), "child\n");
        commit(&bench, &copy, "first");
        change(&copy.root().join("a"), "\n5\n", "\nchild\n");
        commit(&bench, &copy, "second");
        change(&bench.path("a"), "\n5\n", "\nuser\n");
        if !uncommitted {
            bench.commit_all("by the user");
        }
        bench.write("mine", "user\n");
        let captured = bench.capture(&mut copy, CaptureMode::Branch).await;
        copy.remove().await.unwrap();
        let before = bench.state();
        let merged = bench.merge(&captured).await.unwrap();
        assert_eq!(merged.conflict.as_ref().unwrap().files, ["a"], "{merged:?}");
        assert!(
            merged.result_text().contains("agentd/task/one: `git cherry-pick`"),
            "{}",
            merged.result_text()
        );
        assert_eq!(bench.state(), before);
        assert!(!bench.path(".git/index.lock").exists() && !bench.path(".git/agentd-merge").exists());
        // A second task with the same id gets another branch.
        let mut copy = bench.begin("one").await;
        write(&copy.root().join("c"), "c\n");
        let other = bench.capture(&mut copy, CaptureMode::Branch).await;
        copy.remove().await.unwrap();
        assert_eq!(branch_of(&other).0, "agentd/task/one-2");
        assert!(bench.merge(&other).await.unwrap().applied);
        // By hand, once there is room.
        bench.run(&["checkout", "--quiet", "HEAD", "--", "."]);
        if uncommitted {
            assert!(bench.merge(&captured).await.unwrap().applied);
            assert!(bench.read("a").contains("child"));
            bench.check_clean();
        } else {
            agentd_isolation::discard(&bench.git, &captured).await.unwrap();
            bench.check_clean();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_staged_is_merged_with() {
    let bench = Bench::new(&[("a", LINES)]);
    let mut copy = bench.begin("one").await;
    change(&copy.root().join("a"), "\n11\n", "\nchild\n");
    change(&bench.path("a"), "\n2\n", "\nstaged\n");
    bench.run(&["add", "a"]);
    change(&bench.path("a"), "\n6\n", "\nunstaged\n");
    let captured = bench.capture(&mut copy, CaptureMode::Branch).await;
    copy.remove().await.unwrap();
    assert!(bench.merge(&captured).await.unwrap().applied);
    let committed = LINES.replace("\n11\n", "\nchild\n");
    let staged = committed.replace("\n2\n", "\nstaged\n");
    assert_eq!(bench.run(&["show", "HEAD:a"]), committed);
    assert_eq!(bench.run(&["show", ":a"]), staged);
    assert_eq!(bench.read("a"), staged.replace("\n6\n", "\nunstaged\n"));
    bench.check_clean();
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_that_are_there_already_are_not_made_again() {
    let bench = Bench::new(&[("a", LINES)]);
    let mut copy = bench.begin("one").await;
    change(&copy.root().join("a"), "\n3\n", "\nthree\n");
    let captured = bench.capture(&mut copy, CaptureMode::Branch).await;
    copy.remove().await.unwrap();
    change(&bench.path("a"), "\n3\n", "\nthree\n");
    bench.commit_all("the same by the user");
    let before = bench.state();
    let merged = bench.merge(&captured).await.unwrap();
    assert!(merged.applied && merged.conflict.is_none());
    assert_eq!(bench.state().head, before.head);
    bench.check_clean();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_rewrites_history_gets_one_commit() {
    let bench = Bench::new(&[("a", LINES)]);
    bench.write("b", "b\n");
    bench.commit_all("second");
    let mut copy = bench.begin("one").await;
    bench.run_in(copy.root(), &["reset", "--quiet", "--hard", "HEAD~"]);
    write(&copy.root().join("c"), "c\n");
    commit(&bench, &copy, "other");
    let captured = bench.capture(&mut copy, CaptureMode::Branch).await;
    copy.remove().await.unwrap();
    assert_eq!(branch_of(&captured).1, 1);
    assert!(bench.merge(&captured).await.unwrap().applied);
    assert!(!bench.path("b").exists() && bench.path("c").exists());
    assert_eq!(subjects(&bench), "User: first\nUser: second\nUser: task one\n");
    bench.check_clean();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_detached_head_and_a_linked_worktree_work_as_well() {
    let bench = Bench::new(&[("a", LINES)]);
    let other = bench.home().join("other");
    bench.run(&["worktree", "add", "--quiet", "--detach", other.to_str().unwrap()]);
    write(&other.join("mine"), "user\n");
    let mut options = bench.options("one");
    options.cwd.clone_from(&other);
    for mode in [CaptureMode::Branch, CaptureMode::Patch] {
        let mut copy = agentd_isolation::Isolation::begin(options.clone()).await.unwrap();
        write(&copy.root().join("b"), format!("{mode:?}\n"));
        let captured = bench.capture(&mut copy, mode).await;
        copy.remove().await.unwrap();
        assert!(bench.merge(&captured).await.unwrap().applied);
        assert_eq!(fs::read_to_string(other.join("b")).unwrap(), format!("{mode:?}\n"));
    }
    assert_eq!(bench.run_in(&other, &["log", "--format=%s"]), "task one\nfirst\n");
    assert_eq!(bench.status(&other), b" M b\0?? mine\0");
    assert_eq!(bench.run(&["log", "--format=%s"]), "first\n");
    assert_eq!(bench.run(&["worktree", "list"]).lines().count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_of_the_users_is_not_disturbed() {
    let bench = Bench::new(&[("a", "1\n")]);
    let mut copy = bench.begin("one").await;
    write(&copy.root().join("b"), "b\n");
    let captured = bench.capture(&mut copy, CaptureMode::Branch).await;
    copy.remove().await.unwrap();
    bench.write(".git/MERGE_HEAD", bench.run(&["rev-parse", "HEAD"]));
    let merged = bench.merge(&captured).await.unwrap();
    assert!(merged.conflict.unwrap().reason.contains("a merge of yours is under way"));
    fs::remove_file(bench.path(".git/MERGE_HEAD")).unwrap();
    // Another git at work.
    bench.write(".git/index.lock", "");
    let before = bench.state();
    let merged = bench.merge(&captured).await.unwrap();
    assert!(merged.conflict.unwrap().reason.contains("index.lock"));
    assert_eq!(bench.state(), before);
    fs::remove_file(bench.path(".git/index.lock")).unwrap();
    assert!(bench.merge(&captured).await.unwrap().applied);
    bench.check_clean();
}

#[tokio::test(flavor = "multi_thread")]
async fn no_hook_runs_and_nothing_is_signed() {
    let bench = Bench::new(&[("a", "1\n")]);
    let touched = bench.home().join("touched");
    for hook in [
        "post-checkout",
        "pre-commit",
        "post-commit",
        "reference-transaction",
        "post-index-change",
        "post-merge",
    ] {
        let path = bench.path(".git/hooks").join(hook);
        write(&path, format!("#!/bin/sh\necho {hook} >> '{}'\n", touched.display()));
        crate::bench::set_mode(&path, 0o755);
    }
    bench.run(&["config", "commit.gpgSign", "true"]);
    bench.run(&["config", "gpg.program", "false"]);
    bench.run(&["config", "core.fsmonitor", &format!("touch {}", touched.display())]);
    let _ = fs::remove_file(&touched);
    let mut copy = bench.begin("one").await;
    write(&copy.root().join("b"), "b\n");
    let captured = bench.capture(&mut copy, CaptureMode::Branch).await;
    copy.remove().await.unwrap();
    assert!(bench.merge(&captured).await.unwrap().applied);
    assert!(!touched.exists(), "{}", fs::read_to_string(&touched).unwrap());
}
