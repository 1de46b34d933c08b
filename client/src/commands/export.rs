//! `agentctl export`: a conversation out of a session file.

mod branch;
mod markdown;
mod page;
mod prose;
mod target;
mod transcript;

use std::{
    fs::File,
    io::{BufReader, Cursor, Seek, Write},
    path::{Path, PathBuf},
};

use agentd_protocol::{
    command::GetEntriesParams,
    daemon::{Role, SessionInfo},
};

use self::branch::Branch;
use super::{daemon, live, one_call, which};
use crate::{
    cli::{ExportFormat, ExportOptions},
    exit::{Exit, Fault},
    render::{Screen, short_id},
    rpc::GetEntries,
    session_file::{self, ReadError},
};

/// Writes the conversation.
pub(crate) fn run(options: &ExportOptions) -> Exit {
    one_call::conclude(export(options))
}

fn export(options: &ExportOptions) -> Result<Exit, Fault> {
    let format = format(options, Screen::of_stdout().is_terminal)?;
    // What cannot be written is said before anything is looked for.
    target::check(options)?;
    let source = Source::find(&options.session)?;
    match (format, source) {
        (ExportFormat::Jsonl, Source::File(path)) => {
            let mut file = open(&path)?;
            target::write(options, |out| std::io::copy(&mut file, out).map(drop))
        }
        (ExportFormat::Jsonl, Source::Memory(session, _)) => {
            let id = short_id(&session.id);
            let text = format!(
                "Error: session {id} has no file, since it is only in memory. --format md or html writes a transcript."
            );
            Err(Fault::new(Exit::Failed, text))
        }
        (ExportFormat::Html, Source::File(path)) => {
            open(&path)?;
            page::of_file(options, &path)
        }
        (ExportFormat::Html, Source::Memory(session, lines)) => page::of_memory(options, &session, &lines),
        (ExportFormat::Md, Source::File(path)) => {
            let branch = Branch::read(open(&path)?).map_err(|error| unreadable(&path, &error))?;
            transcript(options, branch)
        }
        (ExportFormat::Md, Source::Memory(session, lines)) => {
            let branch = Branch::of_lines(Cursor::new(lines), &session).map_err(|error| {
                Fault::new(Exit::Failed, format!("agentctl: the session cannot be read: {error}"))
            })?;
            transcript(options, branch)
        }
    }
}

fn transcript(
    options: &ExportOptions,
    mut branch: Branch<impl std::io::BufRead + Seek>,
) -> Result<Exit, Fault> {
    target::write(options, |out: &mut dyn Write| transcript::write(&mut branch, out))
}

pub(super) fn open(path: &Path) -> Result<BufReader<File>, Fault> {
    session_file::open(path)
        .map_err(|error| Fault::new(Exit::Failed, format!("Error: cannot read {}: {error}", path.display())))
}

pub(super) fn unreadable(path: &Path, error: &ReadError) -> Fault {
    Fault::new(Exit::Failed, format!("Error: cannot read {}: {error}", path.display()))
}

/// The format that is meant.
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

/// Where a conversation is.
pub(super) enum Source {
    File(PathBuf),
    /// A session without a file, and its entries on the way to the leaf, as lines.
    Memory(Box<SessionInfo>, String),
}

impl Source {
    /// Finds what the words mean: a path when it looks like one, else an id.
    ///
    /// # Errors
    /// When no session has the id, or several do.
    pub(super) fn find(given: &str) -> Result<Self, Fault> {
        if given.contains('/') || given.ends_with(".jsonl") {
            return Ok(Self::File(PathBuf::from(given)));
        }
        let session = which::session_of_anyone(given)?;
        match &session.path {
            // A session that has said nothing yet has promised a file, but it is not there.
            Some(path) if Path::new(path).exists() || !session.live => Ok(Self::File(PathBuf::from(path))),
            _ => Self::of_memory(session),
        }
    }

    fn of_memory(session: SessionInfo) -> Result<Self, Fault> {
        let entries = daemon::block_on(async {
            let connection = live::require(Role::Observe).await?;
            let entries =
                connection.client.call_in::<GetEntries>(&session.id, &GetEntriesParams::default()).await;
            entries.map_err(|error| one_call::fault(&error))
        })?;
        let lines = entries.entries.iter().map(|entry| format!("{}\n", entry.text())).collect();
        Ok(Self::Memory(Box::new(session), lines))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(output: Option<&str>, format: Option<ExportFormat>) -> ExportOptions {
        ExportOptions { session: "x".into(), output: output.map(PathBuf::from), format, force: false }
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
