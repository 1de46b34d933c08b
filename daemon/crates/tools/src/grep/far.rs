//! Searches files of another host, one after the other, as they arrive in batches.

use std::{
    io,
    path::{Path, PathBuf},
};

use agentd_agent::ToolError;

use super::file::{Engine, Found, Search};
use crate::{
    errno,
    operations::{FileKind, FileSystem, Unreachable},
    search::{FarWalk, WalkRules},
};

/// Searches every file that `rules` let through for at most `limit` matching lines. Blocks; stops when there are
/// enough, or when the search is stopped.
pub(super) fn search_far_tree(
    files: &dyn FileSystem,
    rules: WalkRules<'_>,
    search: &Search<'_>,
    limit: usize,
) -> Result<Found, ToolError> {
    let root = rules.root.to_owned();
    let failed = |error: &io::Error| ToolError(errno::describe(error, "scandir", &root));
    let mut engine = Engine::new(search.context, false);
    let mut found = Found::default();
    let mut walk = FarWalk::new(files, rules).map_err(|error| failed(&error))?;
    loop {
        let mut batch = Vec::new();
        for entry in walk.by_ref() {
            match entry {
                Ok(entry) if entry.kind == FileKind::File => batch.push(entry.path),
                Ok(_) => {}
                Err(error) if Unreachable::of(&error).is_some() => return Err(failed(&error)),
                Err(_) => found.unreadable += 1,
            }
            if batch.len() == files.batch().max(1) || search.stop.is_set() {
                break;
            }
        }
        if batch.is_empty() || search.stop.is_set() {
            return Ok(found);
        }
        let shown = |path: &Path| path.strip_prefix(&root).unwrap_or(path).to_string_lossy().into_owned();
        let names: Vec<String> = batch.iter().map(|path| shown(path)).collect();
        search_batch(files, (&batch, &names), search, &mut engine, (limit, &mut found))?;
        if found.has_more {
            return Ok(found);
        }
    }
}

/// Searches one named file.
pub(super) fn search_far_file(
    files: &dyn FileSystem,
    (path, shown): (&Path, &str),
    search: &Search<'_>,
    limit: usize,
) -> Result<Found, ToolError> {
    let mut engine = Engine::new(search.context, true);
    let mut found = Found::default();
    let (batch, names) = ([path.to_owned()], [shown.to_owned()]);
    search_batch(files, (&batch, &names), search, &mut engine, (limit, &mut found))?;
    Ok(found)
}

fn search_batch(
    files: &dyn FileSystem,
    (batch, names): (&[PathBuf], &[String]),
    search: &Search<'_>,
    engine: &mut Engine,
    (limit, found): (usize, &mut Found),
) -> Result<(), ToolError> {
    let read = files.read_each(batch, &mut |number, file| {
        match file {
            Ok(file) => {
                let most = limit.saturating_sub(found.matches);
                search.content(engine, (file, None, &names[number]), most, found);
            }
            Err(_) => found.unreadable += 1,
        }
        !found.has_more && !search.stop.is_set()
    });
    match read {
        Err(error) if !search.stop.is_set() => Err(ToolError(errno::sentence(&error))),
        _ => Ok(()),
    }
}
