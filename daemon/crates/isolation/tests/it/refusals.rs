//! What is refused, and how that is said.

use std::fs::{self, File};

use agentd_isolation::{Isolation, IsolationOptions};
use agentd_protocol::isolation::IsolationBackend;

use crate::bench::Bench;

async fn refusal(options: IsolationOptions) -> String {
    Isolation::begin(options).await.unwrap_err().to_string()
}

impl Bench {
    pub(crate) fn check_clean_after_refusal(&self) {
        assert_eq!(self.run(&["worktree", "list"]).lines().count(), 1);
        let left = fs::read_dir(self.base())
            .map_or(0, |entries| entries.flatten().filter(|it| it.file_name() != "lock").count());
        assert_eq!(left, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_without_a_repository() {
    let bench = Bench::empty();
    let options = IsolationOptions { cwd: bench.home(), ..bench.options("one") };
    let said = refusal(options).await;
    assert!(said.starts_with("Isolated task execution requires a git repository. "), "{said}");
    assert!(said.contains("git init") && said.contains(&bench.home().display().to_string()), "{said}");
    let said = refusal(bench.options("one")).await;
    assert!(said.contains("has no commit yet") && said.contains("git commit --allow-empty"), "{said}");
    let said = refusal(bench.options("../x")).await;
    assert!(said.contains("`../x` is no id"), "{said}");
    bench.run(&["init", "--quiet", "--bare", "bare"]);
    let options = IsolationOptions { cwd: bench.path("bare"), ..bench.options("one") };
    assert!(refusal(options).await.contains("requires a git repository"));
    bench.check_clean_after_refusal();
}

#[tokio::test(flavor = "multi_thread")]
async fn more_than_a_gibibyte_that_would_have_to_be_copied() {
    let bench = Bench::new(&[("a", "1\n")]);
    let big = File::create(bench.path("big data")).unwrap();
    big.set_len((1 << 30) + 1).unwrap();
    let said = refusal(bench.options("one")).await;
    assert!(said.contains("the untracked files of") && said.contains("1073741825 bytes"), "{said}");
    bench.write(".gitignore", "big data\n");
    let copy = bench.begin("one").await;
    copy.remove().await.unwrap();
    bench.check_clean_after_refusal();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_that_does_not_work_here() {
    let bench = Bench::new(&[("a", "1\n")]);
    let base_dir = "/dev/shm/agentd-isolation-test".into();
    let options = IsolationOptions { backend: IsolationBackend::Reflink, base_dir, ..bench.options("one") };
    let said = refusal(options.clone()).await;
    assert!(said.contains("isolation.backend") && said.contains("set it to \"auto\""), "{said}");
    fs::remove_dir_all(&options.base_dir).unwrap();
    assert_eq!(bench.run(&["worktree", "list"]).lines().count(), 1);
}
