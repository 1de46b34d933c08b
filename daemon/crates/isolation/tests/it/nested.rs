//! Repositories inside repositories.

use std::fs;

use agentd_isolation::{CaptureMode, Isolation, IsolationError};

use crate::bench::{Bench, files, write};

fn nested() -> Bench {
    let bench = Bench::new(&[("a", "1\n")]);
    for below in ["inner", "deep/inner two"] {
        let folder = bench.path(below);
        write(&folder.join("b"), "1\n");
        bench.run_in(&folder, &["init", "--quiet", "--initial-branch=main"]);
        bench.run_in(&folder, &["add", "--all"]);
        bench.run_in(&folder, &["commit", "--quiet", "-m", "inner"]);
        write(&folder.join("untracked"), "user\n");
    }
    let innermost = bench.path("inner/innermost");
    write(&innermost.join("c"), "1\n");
    bench.run_in(&innermost, &["init", "--quiet", "--initial-branch=main"]);
    bench.run_in(&innermost, &["add", "--all"]);
    bench.run_in(&innermost, &["commit", "--quiet", "-m", "innermost"]);
    bench
}

#[tokio::test(flavor = "multi_thread")]
async fn nested_repositories_are_copied_captured_and_merged() {
    for mode in [CaptureMode::Patch, CaptureMode::Branch] {
        let bench = nested();
        let before = bench.state();
        let mut copy = bench.begin("one").await;
        assert_eq!(files(copy.root()), before.files);
        assert_eq!(bench.status(copy.root()), before.status);
        assert_eq!(bench.status(&copy.root().join("inner")), bench.status(&bench.path("inner")));
        for file in ["a", "inner/b", "inner/innermost/c", "deep/inner two/new"] {
            write(&copy.root().join(file), "child\n");
        }
        bench.run_in(&copy.root().join("inner"), &["commit", "--quiet", "-m", "of the child", "--", "b"]);
        // Recorded as a gitlink by a child that adds everything.
        bench.run_in(copy.root(), &["add", "--all"]);
        bench.run_in(copy.root(), &["commit", "--quiet", "-m", "all"]);
        let expected = files(copy.root());
        let captured = bench.capture(&mut copy, mode).await;
        copy.remove().await.unwrap();
        let merged = bench.merge(&captured).await.unwrap();
        assert!(merged.applied && merged.nested.iter().all(|nested| nested.applied), "{merged:?}");
        let mut paths: Vec<_> = merged.nested.iter().map(|nested| nested.path.as_str()).collect();
        paths.sort_unstable();
        assert_eq!(paths, ["deep/inner two", "inner", "inner/innermost"]);
        assert_eq!(files(&bench.path("")), expected);
        if mode == CaptureMode::Branch {
            assert_eq!(bench.run(&["show", "--name-only", "--format=%s"]), "all\n\na\n");
            assert_eq!(bench.run_in(&bench.path("inner"), &["log", "-1", "--format=%s"]), "of the child\n");
            assert_eq!(
                bench.run_in(&bench.path("inner/innermost"), &["log", "-1", "--format=%s"]),
                "task one\n"
            );
        }
        for below in ["inner", "inner/innermost", "deep/inner two"] {
            assert_eq!(bench.run_in(&bench.path(below), &["worktree", "list"]).lines().count(), 1);
        }
        bench.check_clean();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_merged_into_nested_repositories_after_a_conflict() {
    let bench = nested();
    let mut copy = bench.begin("one").await;
    for file in ["a", "inner/b", "deep/inner two/b"] {
        write(&copy.root().join(file), "child\n");
    }
    bench.write("inner/b", "user\n");
    let captured = bench.capture(&mut copy, CaptureMode::Patch).await;
    copy.remove().await.unwrap();
    let merged = bench.merge(&captured).await.unwrap();
    assert!(!merged.applied && merged.conflict.is_none(), "{merged:?}");
    assert_eq!(bench.read("a"), "child\n");
    assert_eq!(bench.read("inner/b"), "user\n");
    let failed = merged.nested.iter().find(|nested| nested.path == "inner").unwrap();
    assert_eq!(failed.conflict.as_ref().unwrap().files, ["b"]);
    assert!(fs::metadata(failed.patch_path.as_ref().unwrap()).unwrap().len() > 0);
    assert!(
        merged.result_text().contains("in the repository inner: conflicts in b"),
        "{}",
        merged.result_text()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn submodules_are_nested_repositories() {
    let bench = Bench::new(&[("a", "1\n")]);
    let library = bench.home().join("library");
    write(&library.join("lib"), "1\n");
    bench.run_in(&library, &["init", "--quiet", "--initial-branch=main"]);
    bench.run_in(&library, &["add", "--all"]);
    bench.run_in(&library, &["commit", "--quiet", "-m", "library"]);
    for name in ["sub", "not here"] {
        let url = library.to_str().unwrap();
        bench.run(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", url, name]);
    }
    bench.commit_all("submodules");
    bench.run(&["submodule", "--quiet", "deinit", "not here"]);
    bench.write("sub/mine", "user\n");
    let before = bench.state();
    for mode in [CaptureMode::Patch, CaptureMode::Branch] {
        let copy = bench.begin("one").await;
        assert_eq!(files(copy.root()), before.files);
        assert_eq!(bench.status(copy.root()), bench.status(&bench.path("")));
        write(&copy.root().join("sub/lib"), format!("{mode:?}\n"));
        write(&copy.root().join("a"), format!("{mode:?}\n"));
        let merged = bench.bring_back(copy, mode).await;
        assert!(merged.applied, "{merged:?}");
        assert_eq!(bench.read("sub/lib"), format!("{mode:?}\n"));
        assert_eq!(bench.read("a"), format!("{mode:?}\n"));
        bench.run(&["checkout", "--quiet", "a"]);
        bench.run_in(&bench.path("sub"), &["checkout", "--quiet", "lib"]);
    }
    assert_eq!(bench.run(&["diff", "--cached", "--name-only"]), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn nested_repositories_without_a_commit_or_without_sense_are_refused_by_name() {
    let bench = Bench::new(&[("a", "1\n")]);
    bench.write("inner/b", "1\n");
    bench.run_in(&bench.path("inner"), &["init", "--quiet"]);
    let error = Isolation::begin(bench.options("one")).await.unwrap_err();
    assert!(matches!(&error, IsolationError::NoCommit { root } if root.ends_with("inner")), "{error}");
    bench.check_clean_after_refusal();
}
