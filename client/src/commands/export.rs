//! `agentctl export`: writes a conversation to a file or stdout.

mod branch;
mod markdown;
mod target;
mod transcript;

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Cursor, Read, Seek, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
};

use agentd_connect::{ConnectError, find_agentd};
use agentd_protocol::{
    command::GetEntriesParams,
    daemon::{Role, SessionInfo},
    entry::{SESSION_VERSION, SessionHeader, SessionTag},
};

use self::branch::CurrentBranch;
use super::{daemon_call, last_session};
use crate::{
    cli::{ExportFormat, ExportOptions},
    exit::{Exit, Fault, conclude, print_stderr},
    render::{Screen, short_id},
    rpc::GetEntries,
    session_file::{self, SessionFileError},
};

pub(crate) fn run(options: &ExportOptions) -> Exit {
    conclude(export(options))
}

fn export(options: &ExportOptions) -> Result<Exit, Fault> {
    let format = format(options, Screen::of_stdout().is_terminal)?;
    // A target that cannot be written is reported before the session is searched.
    target::check(options)?;
    let source = SessionSource::find(options.session.as_deref())?;
    match (format, source) {
        (ExportFormat::Jsonl, SessionSource::File(path)) => {
            let mut file = open(&path)?;
            target::write(options, |out| io::copy(&mut file, out).map(drop))
        }
        (ExportFormat::Jsonl, SessionSource::Memory(session, _)) => {
            let id = short_id(&session.id);
            let text = format!(
                "Error: session {id} has no file, since it is only in memory. --format md or html writes a transcript."
            );
            Err(Fault::new(Exit::Failed, text))
        }
        (ExportFormat::Html, SessionSource::File(path)) => {
            open(&path)?;
            page_of_file(options, &path)
        }
        (ExportFormat::Html, SessionSource::Memory(session, lines)) => {
            page_of_memory(options, &session, &lines)
        }
        (ExportFormat::Md, SessionSource::File(path)) => {
            let branch = CurrentBranch::read(open(&path)?).map_err(|error| unreadable(&path, &error))?;
            transcript(options, branch)
        }
        (ExportFormat::Md, SessionSource::Memory(session, lines)) => {
            let branch = CurrentBranch::of_lines(Cursor::new(lines), &session).map_err(|error| {
                Fault::new(Exit::Failed, format!("agentctl: the session cannot be read: {error}"))
            })?;
            transcript(options, branch)
        }
    }
}

fn transcript(
    options: &ExportOptions,
    mut branch: CurrentBranch<impl BufRead + Seek>,
) -> Result<Exit, Fault> {
    target::write(options, |out: &mut dyn Write| transcript::write(&mut branch, out))
}

pub(super) fn open(path: &Path) -> Result<BufReader<File>, Fault> {
    session_file::open(path)
        .map_err(|error| Fault::new(Exit::Failed, format!("Error: cannot read {}: {error}", path.display())))
}

pub(super) fn unreadable(path: &Path, error: &SessionFileError) -> Fault {
    Fault::new(Exit::Failed, format!("Error: cannot read {}: {error}", path.display()))
}

/// The format: given, or by the name of the file, or by stdout.
fn format(options: &ExportOptions, to_terminal: bool) -> Result<ExportFormat, Fault> {
    if let Some(format) = options.format {
        return Ok(format);
    }
    let Some(file) = &options.output else {
        return Ok(if to_terminal { ExportFormat::Md } else { ExportFormat::Jsonl });
    };
    match file.extension().and_then(|end| end.to_str()).map(str::to_ascii_lowercase).as_deref() {
        Some("md" | "markdown") => Ok(ExportFormat::Md),
        Some("html" | "htm") => Ok(ExportFormat::Html),
        Some("jsonl") => Ok(ExportFormat::Jsonl),
        _ => Err(Fault::usage(format!(
            "Error: the name {} ends with none of .html, .md and .jsonl: say --format html, md or jsonl.",
            file.display()
        ))),
    }
}

/// The place of a conversation.
pub(super) enum SessionSource {
    File(PathBuf),
    /// A session without a file, with the entries from the root to the leaf as lines.
    Memory(Box<SessionInfo>, String),
}

impl SessionSource {
    /// Finds the conversation: by path when the text looks like one, else by id; without one the last of this folder.
    ///
    /// # Errors
    /// When no session has the id, or several do.
    pub(super) fn find(given: Option<&str>) -> Result<Self, Fault> {
        if let Some(path) = given.filter(|given| given.contains('/') || given.ends_with(".jsonl")) {
            return Ok(Self::File(PathBuf::from(path)));
        }
        let session = last_session::given_or_last(given)?;
        match &session.path {
            // A session without messages has a path, but no file yet.
            Some(path) if Path::new(path).exists() || !session.live => Ok(Self::File(PathBuf::from(path))),
            _ => Self::of_memory(session),
        }
    }

    fn of_memory(session: SessionInfo) -> Result<Self, Fault> {
        let entries = daemon_call::block_on(async {
            let connection = daemon_call::require(Role::Observe).await?;
            let entries =
                connection.client.call_in::<GetEntries>(&session.id, &GetEntriesParams::default()).await;
            entries.map_err(Fault::from)
        })?;
        let lines = entries.entries.iter().map(|entry| format!("{}\n", entry.text())).collect();
        Ok(Self::Memory(Box::new(session), lines))
    }
}

/// Writes the page of a session file.
///
/// # Errors
/// When `agentd` is missing or cannot read the file, and when the page cannot be written.
fn page_of_file(options: &ExportOptions, path: &Path) -> Result<Exit, Fault> {
    // A relative path could begin with a dash and be read as a flag.
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    write_page(options, &path.display().to_string(), "")
}

/// Writes the page of a session without a file, from its entries as lines.
///
/// # Errors
/// As [`page_of_file`].
fn page_of_memory(options: &ExportOptions, session: &SessionInfo, lines: &str) -> Result<Exit, Fault> {
    let header = SessionHeader {
        kind: SessionTag::Session,
        version: Some(SESSION_VERSION),
        id: session.id.clone(),
        timestamp: session.created.clone(),
        cwd: session.cwd.clone(),
        parent_session: None,
    };
    let header = serde_json::to_string(&header).map_err(|error| {
        Fault::new(Exit::Failed, format!("agentctl: the session cannot be read: {error}"))
    })?;
    write_page(options, "-", &format!("{header}\n{lines}"))
}

/// Has `agentd` make the page of `source`, with `input` on its stdin, and writes the page as it comes.
fn write_page(options: &ExportOptions, source: &str, input: &str) -> Result<Exit, Fault> {
    let program = find_agentd()?;
    let mut command = Command::new(&program);
    command.args(["--export", source, "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // The failure of the program, as opposed to one of the target.
    let mut failed = None;
    let written = target::write(options, |out| {
        let outcome = run_page_maker(&mut command, input, out)?;
        match outcome {
            PageOutcome::Made { remarks } => {
                if !remarks.is_empty() {
                    print_stderr(remarks.trim_end());
                }
                Ok(())
            }
            PageOutcome::Failed { why } => {
                failed = Some(why);
                Err(io::Error::other("no page was made"))
            }
        }
    });
    match failed {
        Some(why) => Err(why),
        None => written,
    }
}

enum PageOutcome {
    Made { remarks: String },
    Failed { why: Fault },
}

/// Runs the program to its end. An error is one of `out`.
fn run_page_maker(command: &mut Command, input: &str, out: &mut dyn Write) -> io::Result<PageOutcome> {
    let program = PathBuf::from(command.get_program());
    let not_run =
        |source: io::Error| PageOutcome::Failed { why: ConnectError::Spawn { program, source }.into() };
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return Ok(not_run(error)),
    };
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (copied, remarks) = thread::scope(|scope| {
        // Fails only when the program is gone, which then says why.
        scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(input.as_bytes())));
        let remarks = scope.spawn(move || {
            let mut text = Vec::new();
            let read = stderr.map(|mut stderr| stderr.read_to_end(&mut text));
            read.transpose().map(|_| String::from_utf8_lossy(&text).into_owned())
        });
        // Dropping our end of stdout stops the program when the page cannot be written.
        let copied = stdout.map_or(Ok(0), |mut stdout| io::copy(&mut stdout, out));
        (copied, remarks.join())
    });
    let ended = child.wait();
    copied?;
    let remarks = remarks.unwrap_or_else(|_| Ok(String::new())).unwrap_or_default();
    match ended {
        Ok(status) if status.success() => Ok(PageOutcome::Made { remarks }),
        Ok(status) => {
            let why = remarks.trim_end();
            let text = if why.is_empty() {
                format!("agentctl: agentd --export ended with {status}")
            } else {
                why.to_owned()
            };
            Ok(PageOutcome::Failed { why: Fault::new(Exit::Failed, text) })
        }
        Err(error) => Ok(not_run(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(output: Option<&str>, format: Option<ExportFormat>) -> ExportOptions {
        ExportOptions { session: None, output: output.map(PathBuf::from), format, force: false }
    }

    #[test]
    fn the_format_is_given_or_guessed() {
        use ExportFormat::{Html, Jsonl, Md};
        for (file, given, to_terminal, expected) in [
            (None, None, true, Md),
            (None, None, false, Jsonl),
            (None, Some(Jsonl), true, Jsonl),
            (Some("a.MD"), None, false, Md),
            (Some("a.markdown"), None, false, Md),
            (Some("a.html"), None, true, Html),
            (Some("a.HTM"), None, false, Html),
            (Some("a.jsonl"), None, true, Jsonl),
            (Some("a.jsonl"), Some(Md), true, Md),
        ] {
            assert_eq!(format(&options(file, given), to_terminal).unwrap(), expected, "{file:?}");
        }
        let fault = format(&options(Some("a.txt"), None), true).unwrap_err();
        assert!(fault.exit == Exit::Usage && fault.message.contains("a.txt"), "{fault}");
    }
}
