//! Line ends, attributes and filters.

use std::fs;

use agentd_isolation::CaptureMode;

use crate::bench::{Bench, write};

const MODES: [CaptureMode; 2] = [CaptureMode::Patch, CaptureMode::Branch];

#[tokio::test(flavor = "multi_thread")]
async fn line_ends_stay_what_they_are() {
    for mode in MODES {
        let bench = Bench::empty();
        bench.run(&["config", "core.autocrlf", "true"]);
        bench.write("dos", "1\r\n2\r\n3\r\n4\r\n5\r\n");
        bench.write("unix", "1\n2\n3\n4\n5\n");
        bench.write("changed", "1\r\n2\r\n3\r\n4\r\n5\r\n6\r\n7\r\n8\r\n9\r\n");
        bench.commit_all("first");
        // Committed with CRLF, before the setting.
        bench.run(&["config", "core.autocrlf", "false"]);
        bench.write("crlf inside", "1\r\n2\r\n3\r\n");
        bench.commit_all("second");
        bench.run(&["config", "core.autocrlf", "true"]);
        bench.write("changed", "user\r\n2\r\n3\r\n4\r\n5\r\n6\r\n7\r\n8\r\n9\r\n");
        bench.write("untouched", "mixed\r\nends\n");
        let copy = bench.begin("one").await;
        assert_eq!(bench.status(copy.root()), bench.status(&bench.path("")));
        assert_eq!(fs::read(copy.root().join("dos")).unwrap(), b"1\r\n2\r\n3\r\n4\r\n5\r\n");
        write(&copy.root().join("dos"), "1\r\n2\r\nchild\r\n4\r\n5\r\n");
        write(&copy.root().join("crlf inside"), "1\r\nchild\r\n3\r\n");
        write(&copy.root().join("changed"), "user\r\n2\r\n3\r\n4\r\n5\r\n6\r\n7\r\n8\r\nchild\r\n");
        write(&copy.root().join("new"), "child\r\n");
        let merged = bench.bring_back(copy, mode).await;
        assert!(merged.applied, "{merged:?}");
        assert_eq!(bench.read("dos"), "1\r\n2\r\nchild\r\n4\r\n5\r\n");
        assert_eq!(bench.read("crlf inside"), "1\r\nchild\r\n3\r\n");
        assert_eq!(bench.read("changed"), "user\r\n2\r\n3\r\n4\r\n5\r\n6\r\n7\r\n8\r\nchild\r\n");
        assert_eq!(bench.read("new"), "child\r\n");
        assert_eq!(bench.read("untouched"), "mixed\r\nends\n");
        assert_eq!(bench.read("unix"), "1\n2\n3\n4\n5\n");
        bench.check_clean();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_of_the_user_run_both_ways() {
    for mode in MODES {
        let bench = Bench::empty();
        bench.run(&["config", "filter.shift.clean", "tr a-y b-z"]);
        bench.run(&["config", "filter.shift.smudge", "tr b-z a-y"]);
        bench.write(".gitattributes", "*.secret filter=shift\n*.dat -text -diff\n*.txt text eol=crlf\n");
        bench.write("x.secret", "aaa\nbbb\nccc\nddd\neee\nfff\n");
        bench.write("x.dat", "1\r\n2\n");
        bench.write("x.txt", "1\r\n2\r\n");
        bench.commit_all("first");
        assert!(bench.run(&["show", "HEAD:x.secret"]).starts_with("bbb\n"));
        bench.write("x.secret", "mine\nbbb\nccc\nddd\neee\nfff\n");
        let copy = bench.begin("one").await;
        write(&copy.root().join("x.secret"), "mine\nbbb\nccc\nddd\neee\nxxx\n");
        write(&copy.root().join("new.secret"), "new\n");
        write(&copy.root().join("x.dat"), "1\r\n3\n");
        write(&copy.root().join("x.txt"), "1\r\n3\r\n");
        let merged = bench.bring_back(copy, mode).await;
        assert!(merged.applied, "{merged:?}");
        assert_eq!(bench.read("x.secret"), "mine\nbbb\nccc\nddd\neee\nxxx\n");
        assert_eq!(bench.read("new.secret"), "new\n");
        assert_eq!((bench.read("x.dat").as_str(), bench.read("x.txt").as_str()), ("1\r\n3\n", "1\r\n3\r\n"));
        if mode == CaptureMode::Branch {
            assert_eq!(bench.run(&["show", "HEAD:new.secret"]), "ofx\n");
            assert!(bench.run(&["show", "HEAD:x.secret"]).starts_with("bbb\n"));
        }
        bench.check_clean();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn marks_that_hide_files_from_git_hide_nothing_from_us() {
    let bench = Bench::new(&[("assumed", "1\n"), ("skipped", "1\n"), ("a", "1\n")]);
    bench.run(&["update-index", "--assume-unchanged", "assumed"]);
    bench.run(&["update-index", "--skip-worktree", "skipped"]);
    bench.write("assumed", "user\n");
    let copy = bench.begin("one").await;
    assert_eq!(fs::read_to_string(copy.root().join("assumed")).unwrap(), "user\n");
    write(&copy.root().join("assumed"), "user\nchild\n");
    write(&copy.root().join("a"), "child\n");
    let merged = bench.bring_back(copy, CaptureMode::Patch).await;
    assert!(merged.applied, "{merged:?}");
    assert_eq!((bench.read("assumed").as_str(), bench.read("a").as_str()), ("user\nchild\n", "child\n"));
    bench.check_clean();
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_of_git_that_change_patches_do_no_harm() {
    let bench = Bench::new(&[("a", "1 \n2\t\n3\n"), ("b", "1\n")]);
    let settings = [
        "diff.noprefix=true",
        "diff.external=false",
        "diff.renames=copies",
        "diff.mnemonicPrefix=true",
        "color.ui=always",
        "apply.whitespace=fix",
        "core.quotePath=false",
        "diff.context=0",
        "core.pager=false",
        "diff.suppressBlankEmpty=true",
        "status.showUntrackedFiles=no",
        "core.splitIndex=true",
        "core.untrackedCache=true",
        "index.version=4",
        "i18n.commitEncoding=latin1",
    ];
    for setting in settings {
        let (name, value) = setting.split_once('=').unwrap();
        bench.run(&["config", name, value]);
    }
    bench.run(&["update-index", "--split-index", "--force-write-index"]);
    for mode in MODES {
        bench.write("mine", "user\n");
        let copy = bench.begin("one").await;
        write(&copy.root().join("a"), "1 \n2\t\n3\n4 \n\n");
        write(&copy.root().join("ü"), "1\n");
        write(&copy.root().join("copy of a"), "1 \n2\t\n3\n");
        let merged = bench.bring_back(copy, mode).await;
        assert!(merged.applied, "{merged:?}");
        assert_eq!(bench.read("a"), "1 \n2\t\n3\n4 \n\n");
        bench.run(&["reset", "--quiet", "--hard"]);
        bench.run(&["clean", "-fdq"]);
    }
    bench.check_clean();
}
