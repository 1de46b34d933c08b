//! The process of a host: how it is started, what it writes, how it ends.
//!
//! It has a process group of its own under the process guard: it ends with its connection, with everything that it started and did not
//! detach, and with the daemon however that ends.

use std::{ffi::OsString, path::PathBuf, sync::Arc, time::Duration};

use agentd_process::{
    CommandSpec, CommandStreams, Launcher, OutputPipe, Process, ProcessGroup, ProcessLimits, Utf8Stream,
};
use agentd_program_log::OutputTail;
use agentd_protocol::lines::{Line, LineSplitter};
use tokio::{io::AsyncReadExt as _, time::timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{connection::HostConnection, host_output::HostOutput};

/// The longest record of a host: 64 MiB.
pub(crate) const MAX_LINE_BYTES: usize = 64 << 20;

/// Time to end by itself after the end of its input.
const INPUT_CLOSED_WAIT: Duration = Duration::from_millis(500);

/// Time to end after SIGTERM.
const TERMINATE_WAIT: Duration = Duration::from_secs(2);

/// Time to read what a host has written before its end.
const LAST_OUTPUT_WAIT: Duration = Duration::from_millis(500);

/// Processes of a host and its extensions.
const MAX_PROCESSES: u64 = 4096;

/// The program of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostProgram {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// The working directory.
    pub cwd: PathBuf,
    /// The complete environment.
    pub env: Vec<(OsString, OsString)>,
    /// Whether records travel on the descriptors 3 and 4, so that what code of extensions prints cannot stand between them. A host that does
    /// not know them has its records on standard input and output.
    pub own_descriptors: bool,
}

impl HostProgram {
    /// Whether a process of this program can take the extensions of another. One with descriptors of its own follows its session into
    /// another folder.
    pub(crate) fn can_run(&self, other: &Self) -> bool {
        (&self.command, &self.env, self.own_descriptors)
            == (&other.command, &other.env, other.own_descriptors)
            && (self.own_descriptors || self.cwd == other.cwd)
    }
}

/// Gives the descriptors of the standard streams other numbers, and puts the program in the place of the shell. A constant: nothing is ever
/// put into it.
const MOVE_DESCRIPTORS: &str = r#"exec "$@" 3<&0 4>&1 </dev/null >&2"#;

/// A host that runs.
pub(crate) struct RunningHost {
    pub(crate) pid: Option<i32>,
    /// Ends it.
    pub(crate) over: CancellationToken,
    /// Fires once it and all its processes are gone.
    pub(crate) gone: CancellationToken,
}

/// Starts a host. Its tasks belong to `tasks` and end with it.
///
/// # Errors
/// Why it could not be started.
pub(crate) async fn start(
    program: &HostProgram,
    launcher: &Launcher,
    tasks: &TaskTracker,
    output: Arc<dyn HostOutput>,
) -> Result<(HostConnection, RunningHost), String> {
    let group = launcher.group();
    group.set_limits(ProcessLimits { processes: Some(MAX_PROCESSES), ..ProcessLimits::default() });
    let mut process = group.spawn(command(program)?).await.map_err(|error| error.to_string())?;
    let pid = process.pid();
    let (Some(input), Some(records), Some(errors)) =
        (process.take_input(), process.take_output(), process.errors.take())
    else {
        return Err("its standard streams are not there".to_owned());
    };
    let (connection, lines) = HostConnection::new();
    let (over, gone) = (CancellationToken::new(), CancellationToken::new());
    // Fire at the end of the records, and of what is printed.
    let (read, said) = (CancellationToken::new(), CancellationToken::new());
    let tail = OutputTail::default();
    tasks.spawn({
        let (connection, over) = (connection.clone(), over.clone());
        async move { connection.write(lines, input, &over).await }
    });
    tasks.spawn(read_printed(errors, (tail.clone(), Arc::clone(&output)), over.clone(), said.clone()));
    tasks.spawn({
        let (output, over, read, own) =
            (Arc::clone(&output), over.clone(), read.clone(), program.own_descriptors);
        async move {
            let fault = read_records(records, output.as_ref(), own, &over).await;
            read.cancel();
            if let Some(fault) = fault {
                tracing::warn!(fault, "an extension host broke the protocol and is ended");
                over.cancel();
            }
        }
    });
    tasks.spawn({
        let (connection, over, gone) = (connection.clone(), over.clone(), gone.clone());
        async move {
            let reason = watch(process, &group, &over, (&read, &said), &tail).await;
            connection.close(&reason);
            over.cancel();
            output.ended(&reason);
            group.terminate(TERMINATE_WAIT).await;
            gone.cancel();
        }
    });
    Ok((connection, RunningHost { pid, over, gone }))
}

fn command(program: &HostProgram) -> Result<CommandSpec, String> {
    let (mut command, mut env) = (program.command.clone(), program.env.clone());
    if program.own_descriptors {
        env.push(("AGENTD_HOST_FD".into(), "3,4".into()));
        let before = ["/bin/sh", "-c", MOVE_DESCRIPTORS, "agentd-host"].map(OsString::from);
        command.splice(0..0, before);
    }
    if command.is_empty() {
        return Err("its command is empty".to_owned());
    }
    let program_name = command.remove(0);
    Ok(CommandSpec {
        program: program_name,
        args: command,
        cwd: program.cwd.clone(),
        env,
        streams: CommandStreams::Separate,
        sandbox: None,
    })
}

/// Waits for the end of the host or of the connection; why it ended.
async fn watch(
    process: Process,
    group: &ProcessGroup,
    over: &CancellationToken,
    (read, said): (&CancellationToken, &CancellationToken),
    tail: &OutputTail,
) -> String {
    let status = tokio::select! {
        status = process.wait() => status,
        () = over.cancelled() => {
            // Its input was closed with the writer.
            match timeout(INPUT_CLOSED_WAIT, process.wait()).await {
                Ok(_) => {}
                Err(_) => group.end_all(TERMINATE_WAIT).await,
            }
            return "it was ended".to_owned();
        }
    };
    // Its last words are still in the pipes; what it left running may hold the pipes open.
    let last_words = async {
        read.cancelled().await;
        said.cancelled().await;
    };
    let _ = timeout(LAST_OUTPUT_WAIT, last_words).await;
    let what = match status.signal {
        Some(signal) => format!("signal {signal}"),
        None => format!("code {}", status.code),
    };
    match tail.text() {
        said if said.is_empty() => what,
        said => format!("{what}; it printed: {said}"),
    }
}

/// Reads records until the output ends. Returns how the host broke the protocol, if it did.
async fn read_records(
    mut records: OutputPipe,
    output: &dyn HostOutput,
    own_descriptors: bool,
    over: &CancellationToken,
) -> Option<String> {
    let (mut splitter, mut lines, mut buffer) =
        (LineSplitter::new(MAX_LINE_BYTES), Vec::new(), vec![0; 64 << 10]);
    loop {
        let count = match over.run_until_cancelled(records.read(&mut buffer)).await {
            None | Some(Ok(0) | Err(_)) => return None,
            Some(Ok(count)) => count,
        };
        splitter.push(&buffer[..count], &mut lines);
        for line in lines.drain(..) {
            match line {
                Line::Text(line) if line.trim_start().starts_with('{') => output.record(line),
                Line::Text(line) if line.trim().is_empty() => {}
                // Code of an extension prints to the same stream.
                Line::Text(line) if !own_descriptors => output.printed(&format!("{line}\n")),
                Line::Text(_) => return Some("a line that is no record".to_owned()),
                Line::TooLong | Line::Refused(_) => {
                    return Some(format!("a record of more than {} MiB", MAX_LINE_BYTES >> 20));
                }
            }
        }
    }
}

async fn read_printed(
    mut errors: OutputPipe,
    (tail, output): (OutputTail, Arc<dyn HostOutput>),
    over: CancellationToken,
    said: CancellationToken,
) {
    let _said = said.drop_guard();
    let reading = async {
        let (mut text, mut buffer) = (Utf8Stream::default(), vec![0; 4096]);
        while let Ok(count @ 1..) = errors.read(&mut buffer).await {
            let text = text.push(&buffer[..count]);
            tail.push(&text);
            output.printed(&text);
        }
    };
    over.run_until_cancelled(reading).await;
}
