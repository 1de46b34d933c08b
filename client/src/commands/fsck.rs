//! `agentctl fsck`: has agentd check session files, and prints the result.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use agentd_protocol::{
    daemon::SessionInfo,
    fsck::{FsckFile, FsckKind, FsckRepair, FsckRequest, FsckState},
};

use super::{ask_agentd, find_session, last_session};
use crate::{
    cli::FsckOptions,
    exit::{Exit, Fault, conclude},
    render::{counted, one_line},
};

/// Checks files, and repairs them with `--repair`.
pub(crate) fn run(options: &FsckOptions) -> Exit {
    conclude(fsck(options))
}

fn fsck(options: &FsckOptions) -> Result<Exit, Fault> {
    let paths = if options.sessions.is_empty() && !options.all {
        vec![file_of(last_session::given_or_last(None)?)?]
    } else {
        options.sessions.iter().map(|given| path_of(given)).collect::<Result<Vec<_>, _>>()?
    };
    let request = FsckRequest { paths, all: options.all, repair: options.repair };
    let mut report = FsckReport::new(options);
    let mut stdout = io::stdout().lock();
    match ask_agentd::lines("--fsck", &request, Exit::NoDaemon, |found| report.take(found, &mut stdout))? {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(Exit::OutputClosed),
        Err(error) => {
            return Err(Fault::new(
                Exit::Failed,
                format!("agentctl: what was found cannot be printed: {error}"),
            ));
        }
    }
    match report.finish(&mut stdout) {
        Ok(exit) => Ok(exit),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::OutputClosed),
        Err(error) => {
            Err(Fault::new(Exit::Failed, format!("agentctl: what was found cannot be printed: {error}")))
        }
    }
}

/// The absolute path of the session file.
fn path_of(given: &str) -> Result<String, Fault> {
    if given.contains('/') || given.ends_with(".jsonl") || given.ends_with(".ledger") {
        let path = PathBuf::from(given);
        let path = std::path::absolute(&path).unwrap_or(path);
        return Ok(path.display().to_string());
    }
    file_of(find_session::on_any(given)?)
}

fn file_of(session: SessionInfo) -> Result<String, Fault> {
    let SessionInfo { id, path, .. } = session;
    path.ok_or_else(|| {
        Fault::new(Exit::Failed, format!("Error: session {id} has no file, since it is only in memory."))
    })
}

/// Prints and counts the results.
struct FsckReport {
    json: bool,
    /// Whether clean files are printed.
    names_clean: bool,
    files: usize,
    odd: usize,
    repaired: usize,
}

impl FsckReport {
    fn new(options: &FsckOptions) -> Self {
        Self { json: options.json, names_clean: !options.all, files: 0, odd: 0, repaired: 0 }
    }

    /// Prints a result.
    ///
    /// # Errors
    /// Of `out`.
    fn take(&mut self, file: FsckFile, out: &mut dyn Write) -> io::Result<()> {
        self.files += 1;
        self.odd += usize::from(file.state != FsckState::Clean);
        self.repaired += usize::from(file.repair.as_ref().is_some_and(|repair| repair.path.is_some()));
        if self.json {
            return writeln!(out, "{}", serde_json::to_string(&file)?);
        }
        if file.state == FsckState::Clean && !self.names_clean {
            return Ok(());
        }
        for line in lines(&file) {
            writeln!(out, "{line}")?;
        }
        Ok(())
    }

    /// Prints the counts; gives the exit code.
    ///
    /// # Errors
    /// Of `out`.
    fn finish(self, out: &mut dyn Write) -> io::Result<Exit> {
        let Self { json, names_clean, files, odd, repaired } = self;
        if !json && (!names_clean || files > 1) {
            let copies = if repaired > 0 {
                format!(
                    ", {} written",
                    if repaired == 1 {
                        "1 repaired copy".to_owned()
                    } else {
                        format!("{repaired} repaired copies")
                    }
                )
            } else {
                String::new()
            };
            let odd = if odd == 0 { "nothing is odd".to_owned() } else { format!("{odd} odd") };
            writeln!(out, "{}: {odd}{copies}.", counted(files, "file"))?;
        }
        out.flush()?;
        Ok(if odd == 0 { Exit::Answered } else { Exit::Failed })
    }
}

/// A line about the file, and one for each problem. Control characters are removed.
fn lines(file: &FsckFile) -> Vec<String> {
    let mut lines = vec![format!("{}: {}", file.path, state(file))];
    for it in &file.oddities {
        lines.push(format!("  line {}, byte {}, {} bytes: {}", it.line, it.byte, it.bytes, it.message));
    }
    if file.more > 0 {
        lines.push(format!("  and {} more", file.more));
    }
    if file.open && file.state != FsckState::Clean {
        lines.push("  the session is open: its last line may be on its way".to_owned());
    }
    if let Some(repair) = &file.repair {
        lines.push(format!("  {}", repaired(repair)));
    }
    lines.iter().map(|line| one_line_indented(line)).collect()
}

fn one_line_indented(line: &str) -> String {
    let text = line.trim_start();
    format!("{}{}", &line[..line.len() - text.len()], one_line(text))
}

fn state(file: &FsckFile) -> String {
    let entries = entries(file.entries);
    let old = file.old_version.map_or(String::new(), |version| {
        format!(", of format version {version}, which opening it brings up to date")
    });
    let found = file.oddities.len() as u64 + file.more;
    match (file.state, &file.error) {
        (FsckState::Clean, _) if file.kind == FsckKind::Session => format!("ok, {entries}{old}"),
        (FsckState::Clean, _) => "ok".to_owned(),
        (FsckState::Unreadable, error) => error.clone().unwrap_or_else(|| "cannot be read".to_owned()),
        (FsckState::Odd, Some(error)) => error.clone(),
        (FsckState::Odd, None) => {
            let places = if found == 1 { "1 oddity".to_owned() } else { format!("{found} oddities") };
            match file.kind {
                FsckKind::Session => format!("{places}, {entries} can be read{old}"),
                _ => places,
            }
        }
    }
}

fn entries(count: u64) -> String {
    if count == 1 { "1 entry".to_owned() } else { format!("{count} entries") }
}

fn repaired(repair: &FsckRepair) -> String {
    let remark = repair.error.as_deref();
    let Some(path) = &repair.path else {
        return format!("not repaired: {}", remark.unwrap_or("no reason given"));
    };
    let counts =
        [(repair.dropped, "left out"), (repair.relinked, "linked anew"), (repair.renamed, "with another id")];
    let counts: String = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!(", {count} {what}"))
        .collect();
    let remark = remark.map_or(String::new(), |remark| format!("; {remark}"));
    format!(
        "repaired copy: {path} (session {}, {}{counts}){remark}",
        repair.id.as_deref().unwrap_or_default(),
        entries(repair.entries)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(options: (bool, bool), files: &[&str]) -> (String, Exit) {
        let options = FsckOptions { sessions: Vec::new(), all: options.0, repair: false, json: options.1 };
        let (mut report, mut out) = (FsckReport::new(&options), Vec::new());
        for file in files {
            report.take(serde_json::from_str(file).unwrap(), &mut out).unwrap();
        }
        let exit = report.finish(&mut out).unwrap();
        (String::from_utf8(out).unwrap(), exit)
    }

    const CLEAN: &str = r#"{"path":"/a.jsonl","kind":"session","state":"clean","entries":2}"#;
    const ODD: &str = r#"{"path":"/b\u001b.jsonl","kind":"session","state":"odd","entries":1,"oddities":[{"kind":"broken","line":2,"byte":70,"bytes":9,"message":"the line is no JSON and was skipped"}],"more":4,"repair":{"path":"/b.repaired.jsonl","id":"x","entries":1,"dropped":5}}"#;
    const LEFT: &str = r#"{"path":"/c","kind":"artifacts","state":"odd","error":"its session is not there"}"#;

    #[test]
    fn what_is_odd_is_named_and_counted() {
        let (text, exit) = report((false, false), &[CLEAN, ODD, LEFT]);
        assert!(!text.contains('\u{1b}'));
        assert_eq!(
            text.replace(&one_line("/b\u{1b}.jsonl"), "/b.jsonl"),
            "/a.jsonl: ok, 2 entries\n\
             /b.jsonl: 5 oddities, 1 entry can be read\n  line 2, byte 70, 9 bytes: the line is no JSON and was skipped\n  \
             and 4 more\n  repaired copy: /b.repaired.jsonl (session x, 1 entry, 5 left out)\n\
             /c: its session is not there\n\
             3 files: 2 odd, 1 repaired copy written.\n"
        );
        assert_eq!(exit, Exit::Failed);
        let (text, exit) = report((true, false), &[CLEAN]);
        assert_eq!((text.as_str(), exit), ("1 file: nothing is odd.\n", Exit::Answered));
        let (text, _) = report((false, true), &[CLEAN]);
        let again: FsckFile = serde_json::from_str(&text).unwrap();
        assert_eq!(again, serde_json::from_str(CLEAN).unwrap());
    }
}
