//! `agentctl diff`, `undo` and `redo`: shows what the agent changed, and undoes it.

use std::path::PathBuf;

use agentd_protocol::{
    checkpoints::{
        ChangeKind, CheckpointDiff, DiffCheckpointParams, DiffSince, FileDiff, PathReason,
        RestoreCheckpointParams, RestoreStep, RestoredCheckpoint,
    },
    daemon::{AttachSessionParams, Role, SessionInfo},
    plain_path::without_dots,
};

use super::{daemon_call, last_session};
use crate::{
    cli::{DiffOptions, RedoOptions, UndoOptions},
    exit::{Exit, Fault, conclude, print_stderr},
    output,
    private_daemon::StartOptions,
    render::{Screen, counted, one_line, paint_diff},
    rpc::{AttachSession, Call, Client, DiffCheckpoint, RestoreCheckpoint},
};

/// The width of the bars of `--stat`.
const BAR: u64 = 40;

pub(crate) fn diff(options: &DiffOptions) -> Exit {
    conclude(show(options))
}

fn show(options: &DiffOptions) -> Result<Exit, Fault> {
    let since = if options.session_start { DiffSince::Session } else { DiffSince::Prompt };
    let params = DiffCheckpointParams {
        checkpoint_id: options.checkpoint.clone(),
        since: options.checkpoint.is_none().then_some(since),
        files: absolute(&options.files)?,
    };
    let session = last_session::given_or_last(options.session.as_deref())?;
    let found = ask::<DiffCheckpoint>(&session, Role::Observe, &params)?;
    if options.json {
        return output::print_json(&found);
    }
    let screen = Screen::of_stdout();
    let text = if options.stat { stat(&found.files, screen) } else { unified(&found, screen) };
    say_skipped(&found.skipped);
    if text.is_empty() && !found.skipped.is_empty() {
        return Ok(Exit::Answered);
    }
    if text.is_empty() {
        print_stderr("The agent has changed nothing that is not undone.");
        return Ok(Exit::Answered);
    }
    output::print(&text)
}

pub(crate) fn undo(options: &UndoOptions) -> Exit {
    let restore = || {
        let params = RestoreCheckpointParams {
            checkpoint_id: options.checkpoint.clone(),
            step: options.checkpoint.is_none().then_some(RestoreStep::Undo),
            files: absolute(&options.files)?,
            preview: options.preview,
        };
        restore(options.session.as_deref(), &params, options.json)
    };
    conclude(restore())
}

pub(crate) fn redo(options: &RedoOptions) -> Exit {
    let params = RestoreCheckpointParams {
        step: Some(RestoreStep::Redo),
        preview: options.preview,
        ..RestoreCheckpointParams::default()
    };
    conclude(restore(options.session.as_deref(), &params, options.json))
}

fn restore(given: Option<&str>, params: &RestoreCheckpointParams, json: bool) -> Result<Exit, Fault> {
    let done = ask::<RestoreCheckpoint>(&last_session::given_or_last(given)?, Role::Control, params)?;
    let printed =
        if json { output::print_json(&done)? } else { output::print(&report(&done, params.preview))? };
    if !json {
        for left in &done.conflicts {
            print_stderr(&format!("left as it is: {}: {}", one_line(&left.path), one_line(&left.why)));
        }
        say_skipped(&done.skipped);
    }
    let is_whole = done.conflicts.is_empty() && done.skipped.is_empty();
    Ok(if printed == Exit::Answered && !is_whole { Exit::Failed } else { printed })
}

/// What the agent changed and cannot be shown or given back.
fn say_skipped(skipped: &[PathReason]) {
    for PathReason { path, why } in skipped {
        print_stderr(&format!("not kept: {}: {}", one_line(path), one_line(why)));
    }
}

/// What was done, a line for each path.
fn report(done: &RestoredCheckpoint, preview: bool) -> String {
    let line = |path: &agentd_protocol::checkpoints::RestoredPath| {
        let what = match path.change {
            ChangeKind::Created => "brought back",
            ChangeKind::Modified => "restored",
            ChangeKind::Deleted => "removed",
        };
        format!("{what:<12}  {}\n", one_line(&path.path))
    };
    let mut text: String = done.restored.iter().map(line).collect();
    let count = counted(done.restored.len(), "path");
    text.push_str(&if preview {
        format!("{count} would be restored.\n")
    } else {
        format!("{count} restored.\n")
    });
    text
}

/// Files as they are named from here, which need not be the session's folder.
fn absolute(files: &[String]) -> Result<Option<Vec<String>>, Fault> {
    if files.is_empty() {
        return Ok(None);
    }
    let here = here()?;
    Ok(Some(files.iter().map(|file| without_dots(&here.join(file)).display().to_string()).collect()))
}

fn here() -> Result<PathBuf, Fault> {
    std::env::current_dir().map_err(|error| {
        Fault::new(Exit::Failed, format!("agentctl: the working directory cannot be used: {error}"))
    })
}

/// Asks the daemon, which opens the session if necessary; without a daemon, an agentd of our own.
fn ask<C: Call>(session: &SessionInfo, role: Role, params: &C::Params) -> Result<C::Data, Fault> {
    let of_daemon = daemon_call::block_on(async {
        let Some(connection) = daemon_call::connect(role).await? else { return Ok(None) };
        let attach = AttachSessionParams { session_id: session.id.clone(), since: None };
        let asked = async {
            connection.client.call::<AttachSession>(&attach).await?;
            connection.client.call::<C>(params).await
        };
        asked.await.map(Some).map_err(Fault::from)
    })?;
    match (of_daemon, &session.path) {
        (Some(answer), _) => Ok(answer),
        (None, Some(path)) => {
            let start = StartOptions { args: vec!["--session".into(), path.clone()], cwd: None };
            daemon_call::with_private(start, async |client: &Client| client.call::<C>(params).await)
        }
        (None, None) => {
            let text = format!("Error: session {} has no file and is in no daemon's memory.", session.id);
            Err(Fault::new(Exit::Failed, text))
        }
    }
}

/// The diffs one after the other: as they are for a program, in colours and made harmless for a terminal.
fn unified(found: &CheckpointDiff, screen: Screen) -> String {
    let all = found.files.iter().flat_map(|file| file.diff.split_inclusive('\n'));
    if !screen.is_terminal {
        return all.collect();
    }
    all.map(|line| paint_diff(line.trim_end_matches('\n'), screen.colour) + "\n").collect()
}

/// A line for each file, and the sum.
fn stat(files: &[FileDiff], screen: Screen) -> String {
    if files.is_empty() {
        return String::new();
    }
    let widest = files.iter().map(|file| file.path.chars().count()).max().unwrap_or(0);
    let most = files.iter().map(|file| file.added + file.removed).max().unwrap_or(0).max(BAR);
    let bar =
        |count: u64, mark: &str| mark.repeat(usize::try_from((count * BAR).div_ceil(most)).unwrap_or(0));
    let line = |file: &FileDiff| {
        let marks = screen.paint("32", &bar(file.added, "+")) + &screen.paint("31", &bar(file.removed, "-"));
        let text = format!(" {:<widest$} | {:>5} {marks}", one_line(&file.path), file.added + file.removed);
        format!("{}\n", text.trim_end())
    };
    let mut text: String = files.iter().map(line).collect();
    let (added, removed) = files.iter().fold((0, 0), |sum, file| (sum.0 + file.added, sum.1 + file.removed));
    text.push_str(&format!(
        " {} changed, {added} lines added, {removed} removed\n",
        counted(files.len(), "file")
    ));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, added: u64, removed: u64, diff: &str) -> FileDiff {
        FileDiff { path: path.into(), change: ChangeKind::Modified, added, removed, diff: diff.into() }
    }

    #[test]
    fn diffs_are_plain_for_programs_and_harmless_on_terminals() {
        let diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\u{1b}[2J\n+b\n";
        let found = CheckpointDiff { files: vec![file("x", 1, 1, diff)], skipped: Vec::new() };
        assert_eq!(unified(&found, Screen::default()), diff);
        let screen = Screen { width: None, colour: true, is_terminal: true };
        let shown = unified(&found, screen);
        assert!(shown.contains("\u{1b}[32m+b") && !shown.contains("\u{1b}[2J"), "{shown:?}");
    }

    #[test]
    fn a_line_for_each_file() {
        let files = [file("src/a.rs", 3, 1, ""), file("b", 100, 0, "")];
        assert_eq!(
            stat(&files, Screen::default()),
            format!(
                " src/a.rs |     4 ++-\n b        |   100 {}\n 2 files changed, 103 lines added, 1 removed\n",
                "+".repeat(40)
            )
        );
    }
}
