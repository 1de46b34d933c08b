//! The process guard of the integration tests, and a process that they kill.
#![allow(clippy::expect_used, clippy::print_stdout, reason = "a helper of tests")]

use std::{ffi::OsString, fs, io::Read as _, path::PathBuf, process::ExitCode};

use agentd_isolation::{Captured, Git, Isolation, IsolationOptions, merge};
use agentd_process::{GuardCommand, Launcher};
use agentd_protocol::isolation::IsolationBackend;

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    let Some(what) = args.first() else { return agentd_process::run_guard() };
    agentd_files::fail_point::arm().expect("fail points");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let environment: Vec<_> = std::env::vars_os().collect();
        let git = Git::new(
            Launcher::new(GuardCommand { program: "/proc/self/exe".into(), args: Vec::new() }).group(),
            &environment,
        );
        if what == "copy" {
            copy(git, PathBuf::from(&args[1]), PathBuf::from(&args[2])).await;
        } else {
            let captured: Captured =
                serde_json::from_slice(&fs::read(&args[1]).expect("a file")).expect("changes");
            let merged = merge(&git, &captured).await.expect("a merge");
            println!("{}", merged.result_text());
        }
    });
    ExitCode::SUCCESS
}

/// Makes a copy, says where it is, and waits to be killed.
async fn copy(git: Git, cwd: PathBuf, base_dir: PathBuf) {
    let options = IsolationOptions {
        git,
        cwd,
        id: "killed".to_owned(),
        backend: IsolationBackend::Auto,
        links: Vec::new(),
        base_dir,
    };
    let copy = Isolation::begin(options).await.expect("a copy");
    println!("{}", copy.root().display());
    let _ = std::io::stdin().read(&mut [0]);
    drop(copy);
}
