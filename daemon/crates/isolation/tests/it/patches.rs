//! Changes as a patch.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
};

use agentd_isolation::{CaptureMode, discard};

use crate::bench::{Bench, everything, files, odd_names, set_mode, write};

/// Changes of all kinds, which leave alone what the user has not committed.
fn work(root: &Path) {
    for name in odd_names() {
        write(&root.join(&name), b"by the child\n");
        write(&root.join("new odd").join(&name), b"by the child\n");
        fs::remove_file(root.join("deep/er").join(&name)).unwrap();
    }
    write(&root.join("binary"), [0_u8, 9, 9, 255, 0]);
    write(&root.join("new binary"), [0_u8; 5000]);
    write(&root.join("empty"), "");
    fs::rename(root.join("plain"), root.join("moved")).unwrap();
    set_mode(&root.join("moved"), 0o755);
    fs::remove_file(root.join("link")).unwrap();
    symlink("moved", root.join("link")).unwrap();
    fs::remove_file(root.join("broken link")).unwrap();
    write(&root.join("broken link"), "a file now\n");
    write(&root.join("ignored by git.o"), "not captured\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn all_kinds_of_changes_come_back_and_the_users_stay() {
    let bench = everything();
    let before = bench.state();
    let staged = bench.run(&["diff", "--cached", "--raw"]);
    let copy = bench.begin("one").await;
    work(copy.root());
    let mut expected = files(copy.root());
    expected.remove(&b"ignored by git.o"[..]);
    for ignored in ["ignored", "build/x.o"] {
        expected.insert(ignored.into(), before.files[ignored.as_bytes()].clone());
    }
    let merged = bench.bring_back(copy, CaptureMode::Patch).await;
    assert_eq!(merged.result_text(), "Applied patches: yes");
    let after = bench.state();
    assert_eq!(after.files, expected);
    assert_eq!((after.head, after.refs), (before.head, before.refs));
    assert_eq!(bench.run(&["diff", "--cached", "--raw"]), staged);
    assert!(!bench.path("deep").exists());
    bench.check_clean();
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_in_files_that_the_user_changes_too_meet_where_lines_differ() {
    let lines = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n";
    let bench = Bench::new(&[("a", lines), ("b", lines)]);
    bench.write("a", lines.replace("1\n2\n", "user\n2\n"));
    set_mode(&bench.path("a"), 0o600);
    bench.run(&["add", "a"]);
    let copy = bench.begin("one").await;
    write(
        &copy.root().join("a"),
        fs::read_to_string(copy.root().join("a")).unwrap().replace("\n12\n", "\nchild\n"),
    );
    write(&copy.root().join("b"), lines.replace("\n12\n", "\nchild\n"));
    // The user goes on meanwhile.
    bench.write("b", lines.replace("1\n2\n", "user\n2\n"));
    let merged = bench.bring_back(copy, CaptureMode::Patch).await;
    assert!(merged.applied, "{merged:?}");
    let expected = "user\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\nchild\n";
    assert_eq!((bench.read("a").as_str(), bench.read("b").as_str()), (expected, expected));
    assert_eq!(fs::metadata(bench.path("a")).unwrap().permissions().mode() & 0o777, 0o600);
    bench.check_clean();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_touches_nothing_and_names_the_files() {
    let bench = Bench::new(&[("a", "1\n"), ("b", "1\n"), ("gone", "1\n")]);
    let mut copy = bench.begin("one").await;
    for name in ["a", "b", "new", "gone"] {
        write(&copy.root().join(name), "child\n");
    }
    bench.write("a", "user\n");
    bench.write("new", "user\n");
    fs::remove_file(bench.path("gone")).unwrap();
    let before = bench.state();
    let captured = bench.capture(&mut copy, CaptureMode::Patch).await;
    copy.remove().await.unwrap();
    let merged = bench.merge(&captured).await.unwrap();
    let conflict = merged.conflict.clone().unwrap();
    assert_eq!((merged.applied, conflict.files), (false, vec!["a".to_owned(), "gone".into(), "new".into()]));
    let text = merged.result_text();
    assert!(text.contains("conflicts in a, gone, new") && text.contains("one.patch"), "{text}");
    assert_eq!(bench.state(), before);
    // Once the user has made room, the same patch fits.
    bench.run(&["checkout", "--quiet", "."]);
    fs::remove_file(bench.path("new")).unwrap();
    assert!(bench.merge(&captured).await.unwrap().applied);
    assert_eq!(bench.read("new"), "child\n");
    // And then it is there already.
    let again = bench.merge(&captured).await.unwrap();
    assert!(again.applied && again.conflict.is_none());
    discard(&bench.git, &captured).await.unwrap();
    assert!(!bench.patch_path("one").exists());
    discard(&bench.git, &captured).await.unwrap();
    bench.check_clean();
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_git_ignores_are_not_written_over() {
    let bench = Bench::new(&[("a", "1\n")]);
    let copy = bench.begin("one").await;
    write(&copy.root().join("secret"), "child\n");
    bench.write(".gitignore", "secret\n");
    bench.write("secret", "the only copy\n");
    let before = bench.state();
    let merged = bench.bring_back(copy, CaptureMode::Patch).await;
    assert_eq!(merged.conflict.unwrap().files, ["secret"]);
    assert_eq!(bench.state(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_written_through_a_link_of_the_users() {
    let bench = Bench::new(&[("dir/a", "1\n")]);
    let copy = bench.begin("one").await;
    write(&copy.root().join("dir/a"), "child\n");
    write(&copy.root().join("dir/b"), "child\n");
    let elsewhere = bench.home().join("elsewhere");
    write(&elsewhere.join("a"), "1\n");
    fs::remove_dir_all(bench.path("dir")).unwrap();
    symlink(&elsewhere, bench.path("dir")).unwrap();
    let merged = bench.bring_back(copy, CaptureMode::Patch).await;
    assert_eq!(merged.conflict.unwrap().files, ["dir"]);
    assert_eq!(fs::read_to_string(elsewhere.join("a")).unwrap(), "1\n");
    assert!(!elsewhere.join("b").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn folders_and_files_change_places() {
    let bench = Bench::new(&[("file", "1\n"), ("dir/a", "1\n"), ("dir/b", "1\n")]);
    let copy = bench.begin("one").await;
    fs::remove_file(copy.root().join("file")).unwrap();
    write(&copy.root().join("file/inside"), "child\n");
    fs::remove_dir_all(copy.root().join("dir")).unwrap();
    write(&copy.root().join("dir"), "child\n");
    let expected = files(copy.root());
    let merged = bench.bring_back(copy, CaptureMode::Patch).await;
    assert!(merged.applied, "{merged:?}");
    assert_eq!(files(&bench.path("")), expected);
    bench.check_clean();
    // A folder with something of the user's stays.
    bench.run(&["reset", "--quiet", "--hard"]);
    bench.run(&["clean", "-fdq"]);
    let copy = bench.begin("two").await;
    fs::remove_dir_all(copy.root().join("dir")).unwrap();
    write(&copy.root().join("dir"), "child\n");
    bench.write("dir/mine", "user\n");
    let before = bench.state();
    let merged = bench.bring_back(copy, CaptureMode::Patch).await;
    assert!(merged.conflict.is_some(), "{merged:?}");
    assert_eq!(bench.state(), before);
    bench.check_clean();
}

#[tokio::test(flavor = "multi_thread")]
async fn merges_side_by_side_all_arrive() {
    let names: Vec<_> = (0..6).map(|number| format!("f{number}")).collect();
    let lines: String = (0..200).map(|number| format!("{number}\n")).collect();
    let bench = Bench::new(&[("shared", lines.as_str())]);
    let mut all = Vec::new();
    for (number, name) in names.iter().enumerate() {
        let mut copy = bench.begin(name).await;
        write(&copy.root().join(name), "child\n");
        let line = format!("\n{}\n", 20 + number * 30);
        write(&copy.root().join("shared"), lines.replace(&line, &format!("\n{name}\n")));
        let mode = if number % 2 == 0 { CaptureMode::Patch } else { CaptureMode::Branch };
        let captured = bench.capture(&mut copy, mode).await;
        copy.remove().await.unwrap();
        all.push(captured);
    }
    let merges = all.iter().map(|captured| {
        let (git, captured) = (bench.git.clone(), captured.clone());
        tokio::spawn(async move { agentd_isolation::merge(&git, &captured).await })
    });
    let merges: Vec<_> = merges.collect();
    for merge in merges {
        let merged = merge.await.unwrap().unwrap();
        assert!(merged.applied, "{merged:?}");
    }
    let shared = bench.read("shared");
    for name in &names {
        assert_eq!(bench.read(name), "child\n");
        assert!(shared.contains(name));
    }
    assert_eq!(bench.run(&["rev-list", "--count", "HEAD"]), "4\n");
    bench.check_clean();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_that_the_child_made_is_kept() {
    let bench = Bench::new(&[("a", "1\n")]);
    let mut copy = bench.begin("one").await;
    write(&copy.root().join("made/file"), "child\n");
    bench.run_in(&copy.root().join("made"), &["init", "--quiet"]);
    write(&copy.root().join("b"), "child\n");
    let captured = bench.capture(&mut copy, CaptureMode::Patch).await;
    copy.remove().await.unwrap();
    let kept: &PathBuf = &captured.kept[0];
    assert_eq!(fs::read_to_string(kept.join("file")).unwrap(), "child\n");
    let merged = bench.merge(&captured).await.unwrap();
    assert!(merged.applied && merged.result_text().contains("made the repository made"), "{merged:?}");
    assert_eq!(bench.read("b"), "child\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_child_does_to_its_own_git_folder_changes_nothing() {
    let bench = Bench::new(&[("a", "1\n")]);
    let copy = bench.begin("one").await;
    fs::remove_file(copy.root().join(".git")).unwrap();
    bench.run_in(copy.root(), &["init", "--quiet"]);
    let touched = bench.home().join("touched");
    let hook = format!("touch {}", touched.display());
    bench.run_in(copy.root(), &["config", "core.fsmonitor", &hook]);
    bench.run_in(copy.root(), &["config", "filter.x.clean", &hook]);
    write(&copy.root().join(".gitattributes"), "* filter=x\n");
    write(&copy.root().join("a"), "child\n");
    assert!(bench.bring_back(copy, CaptureMode::Branch).await.applied);
    assert_eq!(bench.read("a"), "child\n");
    assert!(!touched.exists());
    bench.check_clean();
}
