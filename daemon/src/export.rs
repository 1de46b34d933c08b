//! `agentd --export <in> [out]`: writes a session file as an HTML page, without opening the session.

use std::{
    io::{self, BufWriter, Write},
    path::Path,
};

use agentd_config::{Environment, resolve_path};
use agentd_export_html::{ExportError, default_file_name, write, write_file};
use agentd_store::{Store, StoreError, StoreOptions};

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum ExportFailure {
    /// The session cannot be read.
    #[error(transparent)]
    Session(#[from] StoreError),
    /// The page cannot be written.
    #[error("{0}\n{hint}", hint = .0.hint())]
    Page(#[from] ExportError),
    /// Stdout failed.
    #[error("cannot write the page to stdout: {0}")]
    Stdout(#[source] io::Error),
}

/// Writes the page of the session file `input` (`-`: stdin) to `output` (`-`: stdout). Relative paths begin at `cwd`. Returns the text
/// to print: where the page is, or nothing when it went to stdout.
///
/// Warns on stderr of lines of the session file that were left out; the page names them, too.
///
/// # Errors
/// [`ExportFailure`].
pub fn run(
    input: &str,
    output: Option<&str>,
    environment: &Environment,
    cwd: &Path,
) -> Result<String, ExportFailure> {
    let store = Store::new(StoreOptions::default());
    let file = resolve_path(input, cwd, environment);
    let (tree, report) = match input {
        "-" => store.read_from(Path::new("stdin"), &mut io::stdin().lock())?,
        _ => store.read(&file)?,
    };
    if let Some(warning) = report.warning() {
        crate::logging::complain(&format!("Warning: {warning}"));
    }
    if output == Some("-") {
        let mut out = BufWriter::with_capacity(64 << 10, io::stdout().lock());
        write(&tree, &report, &mut out).and_then(|()| out.flush()).map_err(ExportFailure::Stdout)?;
        return Ok(String::new());
    }
    let named = match input {
        "-" => default_file_name(Path::new(tree.header().id())),
        _ => default_file_name(&file),
    };
    let output = output.unwrap_or(&named);
    write_file(&tree, &report, &resolve_path(output, cwd, environment))?;
    Ok(format!("Exported to: {output}\n"))
}
