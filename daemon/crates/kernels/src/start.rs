//! Starts a kernel: its process, its runner, its first word.

use std::{ffi::OsString, path::PathBuf, sync::Arc, time::Duration};

use agentd_process::{CommandSpec, CommandStreams, InputPipe, OutputPipe, Process, ProcessGroup, Utf8Stream};
use agentd_protocol::{
    command::{Work, WorkKind},
    text_bounds,
};
use agentd_sandbox::SandboxPolicy;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    sync::mpsc,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use crate::{
    kernel::{Kernel, KernelEnd, KernelHandle, Records},
    language::Language,
    pool::KernelPool,
    records::{Answer, boot_line},
};

/// The time that an interpreter has to say that it takes cells.
const START_WAIT: Duration = Duration::from_secs(30);

/// Lines that wait for an interpreter.
const LINES: usize = 4;

/// Bytes of what an interpreter that failed to start has printed.
const SHOWN: usize = 2000;

/// Gives the descriptors of the standard streams other numbers, and puts the program in the place of the shell. A constant: nothing is ever put
/// into it.
const MOVE_DESCRIPTORS: &str = r#"exec "$@" 3<&0 4>&1 </dev/null >&2"#;

/// How a kernel is started.
#[derive(Debug, Clone)]
pub(crate) struct KernelTerms {
    pub(crate) language: Language,
    pub(crate) interpreter: PathBuf,
    pub(crate) cwd: PathBuf,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) sandbox: Option<Arc<SandboxPolicy>>,
    /// 0 is no limit.
    pub(crate) memory_bytes: u64,
    /// `None`: never.
    pub(crate) idle: Option<Duration>,
    pub(crate) most: usize,
}

/// Starts a kernel in a place of the pool.
///
/// Cancel safety: if dropped, whatever was started is killed.
///
/// # Errors
/// A sentence for the model.
pub(crate) async fn start(
    group: &ProcessGroup,
    pool: &KernelPool,
    terms: &KernelTerms,
) -> Result<KernelHandle, String> {
    let place = pool.place(terms.most)?;
    let work = Work { kind: WorkKind::Tool, id: None, name: Some(format!("eval {}", terms.language.name())) };
    let group = group.working_for(work).with_memory_limit(terms.memory_bytes);
    let mut process = group.spawn(command(terms)).await.map_err(|error| failed(terms, &error.to_string()))?;
    let (Some(input), Some(records), Some(mut printed)) =
        (process.take_input(), process.take_output(), process.errors.take())
    else {
        return Err("The kernel's streams are not there.".to_owned());
    };
    let (lines, to_write) = mpsc::channel(LINES);
    let end = KernelEnd::default();
    pool.spawn(write_lines(input, to_write, end.closing.clone()));
    let mut records = Records::new(records);
    // The writer has just begun, and takes it.
    let _ = lines.send(boot_line(&terms.language, terms.memory_bytes)).await;
    match timeout(START_WAIT, first_word(&process, &mut records, &mut printed)).await {
        Ok(Ok(())) => {}
        Ok(Err(why)) => return Err(failed(terms, &why)),
        Err(_) => {
            return Err(failed(terms, &format!("it was not ready within {} seconds", START_WAIT.as_secs())));
        }
    }
    let (cells, to_run) = mpsc::channel(1);
    let kernel = Kernel {
        process,
        records,
        printed,
        lines: lines.clone(),
        place,
        end: end.clone(),
        idle: terms.idle,
        memory_bytes: terms.memory_bytes,
    };
    pool.spawn(kernel.run(to_run));
    Ok(KernelHandle { cells, lines, end })
}

fn command(terms: &KernelTerms) -> CommandSpec {
    let mut args: Vec<OsString> =
        vec!["-c".into(), MOVE_DESCRIPTORS.into(), "agentd-kernel".into(), terms.interpreter.clone().into()];
    args.extend(terms.language.arguments(terms.memory_bytes).into_iter().map(OsString::from));
    CommandSpec {
        program: "/bin/sh".into(),
        args,
        cwd: terms.cwd.clone(),
        env: terms.env.clone(),
        streams: CommandStreams::Separate,
        sandbox: terms.sandbox.clone(),
    }
}

/// Writes until the kernel is closed, which closes its input.
async fn write_lines(mut input: InputPipe, mut lines: mpsc::Receiver<Vec<u8>>, closing: CancellationToken) {
    let writing = async {
        while let Some(line) = lines.recv().await {
            if input.write_all(&line).await.is_err() {
                // The interpreter has ended, which its own task sees.
                return;
            }
        }
    };
    closing.run_until_cancelled(writing).await;
}

/// Waits until the interpreter takes cells.
async fn first_word(
    process: &Process,
    records: &mut Records,
    printed: &mut OutputPipe,
) -> Result<(), String> {
    let (mut said, mut decoder, mut buffer) = (String::new(), Utf8Stream::new(), vec![0; 4096]);
    let (mut printed_open, mut records_open) = (true, true);
    let ended = loop {
        tokio::select! {
            biased;
            answers = records.next(), if records_open => match answers? {
                None => records_open = false,
                Some(answers) => for answer in answers {
                    match answer {
                        Answer::Ready => return Ok(()),
                        Answer::Unsupported(version) => return Err(format!("it is version {version}, and 3.10 is the oldest that can be used")),
                        _ => {}
                    }
                },
            },
            count = printed.read(&mut buffer), if printed_open => match count {
                Ok(count @ 1..) => {
                    said.push_str(&decoder.push(&buffer[..count]));
                    if said.len() > 2 * SHOWN {
                        said = text_bounds::tail(&said, SHOWN).to_owned();
                    }
                }
                Ok(0) | Err(_) => printed_open = false,
            },
            status = process.wait() => break status,
        }
    };
    while let Ok(count @ 1..) = printed.try_read(&mut buffer) {
        said.push_str(&decoder.push(&buffer[..count]));
    }
    let how = match ended.signal {
        Some(signal) => format!("signal {signal} ended it"),
        None => format!("it exited with code {}", ended.code),
    };
    match text_bounds::tail(said.trim(), SHOWN) {
        "" => Err(how),
        said => Err(format!("{how}, and printed:\n{said}")),
    }
}

fn failed(terms: &KernelTerms, why: &str) -> String {
    let setting = match &terms.language {
        Language::Python | Language::Jupyter(_) => "eval.python",
        Language::JavaScript => "eval.javascript",
    };
    format!(
        "The {} kernel could not be started by {} (setting {setting}): {why}",
        terms.language.title(),
        terms.interpreter.display()
    )
}
