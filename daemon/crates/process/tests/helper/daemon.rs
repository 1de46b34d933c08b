//! A daemon with a command in it, to be killed.

use std::{
    env,
    io::{self, Write as _},
    process::ExitCode,
};

use agentd_process::{CommandSpec, CommandStreams, GuardCommand, Launcher};
use tokio::io::AsyncReadExt as _;

/// Runs the command of the second argument, copies what it writes, and stays until it is killed. With a third argument it
/// notes in that folder that it lives.
pub(crate) fn run() -> ExitCode {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return ExitCode::FAILURE;
    };
    match runtime.block_on(copy()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

async fn copy() -> Result<(), Box<dyn std::error::Error>> {
    let guard = GuardCommand { program: env::current_exe()?, args: vec!["guard".into()] };
    let launcher = match env::args_os().nth(3) {
        Some(owners) => Launcher::with_owners(guard, owners.into()),
        None => Launcher::new(guard),
    };
    let command = CommandSpec {
        program: "/bin/sh".into(),
        args: vec!["-c".into(), env::args_os().nth(2).unwrap_or_default()],
        cwd: "/".into(),
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        streams: CommandStreams::Output,
        sandbox: None,
    };
    let group = launcher.group();
    let mut process = group.spawn(command).await?;
    let mut buffer = [0; 4096];
    loop {
        let count = process.output.read(&mut buffer).await?;
        if count == 0 {
            std::future::pending::<()>().await;
        }
        io::stdout().write_all(&buffer[..count])?;
        io::stdout().flush()?;
    }
}
