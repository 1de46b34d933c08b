//! What a copy has, and what it leaves behind.

use std::fs;

use agentd_isolation::{Backend, CaptureMode, Isolation, IsolationOptions};
use agentd_protocol::isolation::IsolationBackend;

use crate::bench::{Bench, everything, files, write};

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_is_what_the_user_has_and_goes_without_a_trace() {
    let bench = everything();
    let before = bench.state();
    let mut copy = bench.begin("one").await;
    let status = |folder| String::from_utf8_lossy(&bench.status(folder)).into_owned();
    assert_eq!(status(copy.root()), status(&bench.path("")));
    assert_eq!(
        bench.run_in(copy.root(), &["diff", "--cached", "--raw"]),
        bench.run(&["diff", "--cached", "--raw"])
    );
    let (theirs, mut ours) = (files(copy.root()), before.files.clone());
    if copy.backend() == Backend::Worktree {
        assert!(copy.backend_reason().unwrap().contains("share"), "{:?}", copy.backend_reason());
        for ignored in ["ignored", "build/x.o"] {
            assert!(ours.remove(ignored.as_bytes()).is_some());
        }
    } else {
        assert_eq!(copy.backend_reason(), None);
    }
    assert_eq!(theirs, ours);
    assert_eq!(copy.notices(), &[] as &[String]);
    for mode in [CaptureMode::Patch, CaptureMode::Branch] {
        assert!(bench.capture(&mut copy, mode).await.is_empty());
    }
    let captured = bench.capture(&mut copy, CaptureMode::Patch).await;
    let merged = bench.merge(&captured).await.unwrap();
    assert_eq!((merged.result_text().as_str(), merged.applied), ("No changes to apply.", true));
    copy.remove().await.unwrap();
    assert_eq!(bench.state(), before);
    bench.check_clean();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_copy_is_removed() {
    let bench = Bench::new(&[("a", "1\n")]);
    let copy = bench.begin("one").await;
    let folder = copy.root().parent().unwrap().parent().unwrap().to_owned();
    write(&copy.root().join("b"), "2");
    drop(copy);
    while folder.exists() {
        tokio::task::yield_now().await;
    }
    bench.check_clean();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_child_works_in_the_copy_of_the_sessions_folder() {
    let bench = Bench::new(&[("sub/deep/a", "1\n")]);
    fs::create_dir(bench.path("empty")).unwrap();
    for below in ["sub/deep", "empty", ""] {
        let options = IsolationOptions { cwd: bench.path(below), ..bench.options("one") };
        let copy = Isolation::begin(options).await.unwrap();
        assert_eq!(copy.cwd(), copy.root().join(below));
        assert!(copy.cwd().is_dir() && copy.root().ends_with("my repo"));
        copy.remove().await.unwrap();
    }
    bench.check_clean();
}

#[tokio::test(flavor = "multi_thread")]
async fn folders_can_be_links_to_the_originals() {
    let bench = Bench::new(&[("a", "1\n"), (".gitignore", "node_modules/\n"), ("tracked/a", "1\n")]);
    bench.write("node_modules/x", "x\n");
    bench.write("sub/target/y", "y\n");
    let links = ["node_modules", "sub/target", "tracked", "missing", "../copies", ".git", ""];
    let before = bench.state();
    for mode in [CaptureMode::Patch, CaptureMode::Branch] {
        let links = links.map(str::to_owned).to_vec();
        let mut copy = Isolation::begin(IsolationOptions { links, ..bench.options("one") }).await.unwrap();
        assert_eq!(fs::read_link(copy.root().join("node_modules")).unwrap(), bench.path("node_modules"));
        assert!(copy.root().join("tracked").symlink_metadata().unwrap().is_dir());
        // An untracked folder is a link only if none of its files is one that git would add.
        assert!(copy.root().join("sub/target").symlink_metadata().unwrap().is_dir());
        assert!(bench.capture(&mut copy, mode).await.is_empty());
        // A child that commits everything commits no link.
        write(&copy.root().join("a"), "2\n");
        bench.run_in(copy.root(), &["add", "--all"]);
        bench.run_in(copy.root(), &["commit", "--quiet", "-m", "all"]);
        let captured = bench.capture(&mut copy, mode).await;
        copy.remove().await.unwrap();
        assert_eq!(captured.units[0].files, 1);
        let merged = bench.merge(&captured).await.unwrap();
        assert!(merged.applied, "{merged:?}");
        assert_eq!(bench.read("a"), "2\n");
        if mode == CaptureMode::Branch {
            assert_eq!(bench.run(&["show", "--name-only", "--format="]), "a\n");
        }
        bench.run(&["reset", "--quiet", "--hard", before.head.trim()]);
        assert_eq!(bench.state().files, before.files);
    }
    bench.check_clean();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worktree_can_be_asked_for() {
    let bench = Bench::new(&[("a", "1\n")]);
    let options = IsolationOptions { backend: IsolationBackend::Worktree, ..bench.options("one") };
    let copy = Isolation::begin(options).await.unwrap();
    assert_eq!((copy.backend(), copy.backend_reason()), (Backend::Worktree, None));
    assert_eq!(copy.backend().to_string(), "worktree");
    copy.remove().await.unwrap();
    bench.check_clean();
}

#[tokio::test(flavor = "multi_thread")]
async fn several_copies_are_made_side_by_side() {
    let bench = everything();
    let before = bench.state();
    let (one, two, three) = tokio::join!(bench.begin("a"), bench.begin("a"), bench.begin("b"));
    assert!(one.root() != two.root() && two.root() != three.root());
    assert_eq!(files(one.root()), files(three.root()));
    for copy in [one, two, three] {
        assert!(copy.leftovers().is_empty());
        copy.remove().await.unwrap();
    }
    assert_eq!(bench.state(), before);
    bench.check_clean();
}
