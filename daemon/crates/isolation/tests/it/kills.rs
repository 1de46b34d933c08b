//! Processes that are killed in the middle.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::PathBuf,
    process::{Command, Stdio},
};

use agentd_isolation::{CaptureMode, Captured, LeftoverFate};

use crate::bench::{Bench, environment, files, helper, write};

fn command(bench: &Bench) -> Command {
    let mut command = Command::new(helper());
    command.env_clear().envs(environment(&bench.home()));
    command
}

/// Another process makes a copy; `work` is done in it; the process is killed.
fn killed_copy(bench: &Bench, work: impl FnOnce(&std::path::Path)) {
    let mut command = command(bench);
    command.arg("copy").arg(bench.path("")).arg(bench.base());
    let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    work(&PathBuf::from(line.trim_end()));
    process.kill().unwrap();
    process.wait().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_without_changes_that_was_left_behind_is_removed() {
    let bench = Bench::new(&[("a", "1\n")]);
    killed_copy(&bench, |_| ());
    assert_eq!(bench.run(&["worktree", "list"]).lines().count(), 2);
    let copy = bench.begin("next").await;
    assert_eq!(copy.leftovers().len(), 1);
    assert_eq!(
        (copy.leftovers()[0].id.as_str(), &copy.leftovers()[0].fate),
        ("killed", &LeftoverFate::Removed)
    );
    copy.remove().await.unwrap();
    bench.check_clean();
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_in_a_copy_that_was_left_behind_are_rescued() {
    let bench = Bench::new(&[("a", "1\n")]);
    for _ in 0..2 {
        killed_copy(&bench, |root| write(&root.join("a"), "by the killed child\n"));
        let copy = bench.begin("next").await;
        let LeftoverFate::Rescued { patches } = &copy.leftovers()[0].fate else {
            panic!("{:?}", copy.leftovers())
        };
        bench.run(&["apply", patches[0].to_str().unwrap()]);
        assert_eq!(bench.read("a"), "by the killed child\n");
        bench.run(&["checkout", "--quiet", "."]);
        copy.remove().await.unwrap();
    }
    assert_eq!(fs::read_dir(bench.base().join("rescued")).unwrap().count(), 2);
    fs::remove_dir_all(bench.base().join("rescued")).unwrap();
    bench.check_clean();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_whose_repository_is_gone_is_kept_and_named() {
    let bench = Bench::new(&[("a", "1\n")]);
    killed_copy(&bench, |root| write(&root.join("a"), "by the killed child\n"));
    fs::rename(bench.path(""), bench.home().join("moved away")).unwrap();
    let other = Bench::new(&[("a", "1\n")]);
    let mut options = other.options("next");
    options.base_dir = bench.base();
    let copy = agentd_isolation::Isolation::begin(options).await.unwrap();
    let leftover = &copy.leftovers()[0];
    assert!(matches!(leftover.fate, LeftoverFate::Kept { .. }), "{leftover:?}");
    assert_eq!(fs::read_to_string(leftover.copy.join("work/my repo/a")).unwrap(), "by the killed child\n");
    copy.remove().await.unwrap();
}

/// A merge of several files in a repository with uncommitted changes.
async fn merge_to_kill(mode: CaptureMode) -> (Bench, Captured) {
    let lines = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
    let bench = Bench::new(&[("a", lines), ("b", lines), ("gone/x", "1\n"), ("c", lines)]);
    bench.write("a", lines.replace("1\n2\n", "user\n2\n"));
    bench.write("c", lines.replace("1\n2\n", "user\n2\n"));
    bench.run(&["add", "c"]);
    let mut copy = bench.begin("one").await;
    for name in ["a", "b", "c"] {
        let text = fs::read_to_string(copy.root().join(name)).unwrap();
        write(&copy.root().join(name), text.replace("\n9\n", "\nchild\n"));
    }
    write(&copy.root().join("made/y"), "child\n");
    fs::remove_dir_all(copy.root().join("gone")).unwrap();
    let captured = bench.capture(&mut copy, mode).await;
    copy.remove().await.unwrap();
    (bench, captured)
}

fn killed_merge(bench: &Bench, captured: &Captured, point: &str) {
    let file = bench.home().join("captured.json");
    fs::write(&file, serde_json::to_vec(captured).unwrap()).unwrap();
    let mut command = command(bench);
    command.env("AGENTD_FAIL_POINTS", point).arg("merge").arg(&file);
    let output = command.output().unwrap();
    assert!(!output.status.success(), "{point}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merge_that_was_killed_is_undone_or_completed() {
    for mode in [CaptureMode::Patch, CaptureMode::Branch] {
        for step in 1..=5 {
            let (bench, captured) = merge_to_kill(mode).await;
            let before = bench.state();
            killed_merge(&bench, &captured, &format!("merge.step@{step}"));
            assert_ne!(files(&bench.path("")), before.files);
            let done = bench.state().files;
            // The next copy finds it.
            let copy = bench.begin("next").await;
            copy.remove().await.unwrap();
            if step == 5 && mode == CaptureMode::Patch {
                assert_eq!(bench.state().files, done);
            } else {
                assert_eq!(bench.state(), before, "{mode:?} {step}");
            }
            assert!(!bench.path(".git/agentd-merge").exists() && !bench.path(".git/index.lock").exists());
            let merged = bench.merge(&captured).await.unwrap();
            assert!(merged.applied, "{mode:?} {step}: {merged:?}");
            assert!(bench.read("a").starts_with("user\n") && bench.read("a").ends_with("child\n"));
            bench.check_clean();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merge_whose_commits_were_there_is_completed() {
    for point in ["merge.head", "merge.done"] {
        let (bench, captured) = merge_to_kill(CaptureMode::Branch).await;
        killed_merge(&bench, &captured, point);
        let copy = bench.begin("next").await;
        copy.remove().await.unwrap();
        assert_eq!(bench.run(&["log", "--format=%s"]), "task one\nfirst\n");
        assert_eq!(bench.status(&bench.path("")), b" M a\0M  c\0", "{point}");
        assert!(bench.read("a").starts_with("user\n") && bench.read("a").ends_with("child\n"));
        // The branch is still there; merging it once more finds nothing to do.
        assert!(bench.merge(&captured).await.unwrap().applied);
        assert_eq!(bench.run(&["log", "--format=%s"]), "task one\nfirst\n");
        bench.check_clean();
    }
    let (bench, captured) = merge_to_kill(CaptureMode::Patch).await;
    killed_merge(&bench, &captured, "merge.done");
    let done = bench.state();
    // The user goes on; nothing of it is touched.
    bench.write("b", "user goes on\n");
    let copy = bench.begin("next").await;
    copy.remove().await.unwrap();
    assert_eq!(bench.read("b"), "user goes on\n");
    assert_eq!(bench.state().head, done.head);
    bench.check_clean();
}
