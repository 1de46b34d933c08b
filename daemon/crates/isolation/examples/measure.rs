//! Measures how long copies of a repository take, and what they cost on disk.
//!
//! `cargo run --release -p agentd-isolation --example measure -- FOLDER [FILES]`: makes a repository of 50,000 files below FOLDER,
//! which is on the file system to measure, and removes it again.
#![allow(clippy::expect_used, clippy::print_stdout, reason = "a measurement for developers")]

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::Instant,
};

use agentd_isolation::{CaptureMode, CaptureOptions, Git, Isolation, IsolationOptions, merge};
use agentd_process::{GuardCommand, Launcher};
use agentd_protocol::isolation::IsolationBackend;

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    let Some(folder) = args.first().filter(|first| *first != "guard") else {
        return agentd_process::run_guard();
    };
    let count = args.get(1).and_then(|text| text.to_str()?.parse().ok()).unwrap_or(50_000);
    let place = PathBuf::from(folder).join("agentd-measure-isolation");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(measure(&place, count));
    fs::remove_dir_all(&place).expect("the folder can be removed");
    ExitCode::SUCCESS
}

async fn measure(place: &Path, count: usize) {
    let repository = place.join("repository");
    make(&repository, count);
    let environment: Vec<_> = std::env::vars_os().collect();
    let git = Git::new(Launcher::new(GuardCommand::this_program()).group(), &environment);
    for backend in [IsolationBackend::Worktree, IsolationBackend::Auto] {
        for mode in [CaptureMode::Patch, CaptureMode::Branch] {
            let options = IsolationOptions {
                git: git.clone(),
                cwd: repository.clone(),
                id: "measured".to_owned(),
                backend,
                links: Vec::new(),
                base_dir: place.join("copies"),
            };
            let start = Instant::now();
            let mut copy = Isolation::begin(options).await.expect("a copy");
            let begun = start.elapsed();
            let kind = copy.backend();
            for number in 0..10 {
                fs::write(copy.root().join(format!("d{number}/f{number}")), "changed by the child\n")
                    .expect("a file");
            }
            let (start, patch_path) = (Instant::now(), place.join("measured.patch"));
            let options = CaptureOptions { mode, patch_path, message: "measured".to_owned(), writer: None };
            let captured = copy.capture(&options).await.expect("changes");
            let capture = start.elapsed();
            let start = Instant::now();
            let merged = merge(&git, &captured).await.expect("a merge");
            assert!(merged.applied, "{merged:?}");
            let merging = start.elapsed();
            let start = Instant::now();
            copy.remove().await.expect("the copy can be removed");
            println!(
                "{kind} ({:?}, {mode:?}): begin {begun:.2?}, capture of 10 files {capture:.2?}, merge {merging:.2?}, remove {:.2?}",
                backend,
                start.elapsed()
            );
            run(&repository, &["reset", "--quiet", "--hard", "first"]);
        }
    }
}

/// Files of 2 to 6 KiB in folders of 100, all committed, ten of them changed, and a hundred untracked.
fn make(repository: &Path, count: usize) {
    for number in 0..count {
        let folder = repository.join(format!("d{}", number / 100));
        if number % 100 == 0 {
            fs::create_dir_all(&folder).expect("a folder");
        }
        let line = format!("line of file {number}\n");
        fs::write(folder.join(format!("f{number}")), line.repeat(100 + number % 200)).expect("a file");
    }
    run(repository, &["init", "--quiet"]);
    run(repository, &["add", "--all"]);
    run(
        repository,
        &["-c", "user.name=m", "-c", "user.email=m@example.org", "commit", "--quiet", "-m", "first"],
    );
    run(repository, &["tag", "first"]);
    for number in 0..100 {
        fs::write(repository.join(format!("untracked{number}")), "untracked\n").expect("a file");
    }
}

fn run(folder: &Path, args: &[&str]) {
    let status = Command::new("git").current_dir(folder).args(args).status().expect("git");
    assert!(status.success(), "git {args:?}");
}
