//! The terminal for others: the user's editor, and the shell while the program is suspended.

use std::{env, io::Write as _, os::unix::ffi::OsStrExt as _};

use rustix::process::{Signal, getpid, kill_process};

/// Writes a text in `$VISUAL`, else `$EDITOR`, else `vi`.
///
/// # Errors
/// Why there is no text: a sentence for the user.
pub(crate) async fn edit(text: &str) -> Result<String, String> {
    let chosen = ["VISUAL", "EDITOR"].into_iter().filter_map(env::var_os).find(|editor| !editor.is_empty());
    let editor = chosen.unwrap_or_else(|| "vi".into());
    let shown = String::from_utf8_lossy(editor.as_bytes()).into_owned();
    let failed = |error: std::io::Error| format!("The text cannot be given to {shown}: {error}");
    let folder = tempfile_folder().map_err(failed)?;
    let file = folder.join("message.md");
    let result = edit_file(&editor, &file, text).await;
    // What is left in the user's own folder for temporary files is removed by the system.
    let _ = std::fs::remove_dir_all(&folder);
    result.map_err(|error| format!("{shown}: {error}"))
}

async fn edit_file(editor: &std::ffi::OsStr, file: &std::path::Path, text: &str) -> std::io::Result<String> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut open = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
    open.write_all(text.as_bytes())?;
    drop(open);
    // The variable may hold arguments, as everywhere: the shell splits them.
    let mut command = tokio::process::Command::new("/bin/sh");
    let mut script = editor.to_owned();
    script.push(" \"$1\"");
    command.arg("-c").arg(script).arg("sh").arg(file);
    let status = command.status().await?;
    if !status.success() {
        return Err(std::io::Error::other(format!("it ended with {status}; the text is as it was")));
    }
    let bytes = std::fs::read(file)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A new folder that nobody else can look into.
fn tempfile_folder() -> std::io::Result<std::path::PathBuf> {
    use std::os::unix::fs::DirBuilderExt as _;
    let folder = env::temp_dir().join(format!("agentctl-{}", uuid::Uuid::new_v4()));
    std::fs::DirBuilder::new().mode(0o700).create(&folder)?;
    Ok(folder)
}

/// Stops the program, as Ctrl-Z does elsewhere; comes back when the shell lets it go on.
///
/// # Errors
/// When the signal cannot be sent.
pub(crate) fn suspend() -> std::io::Result<()> {
    // The whole group stops, as at a key of the terminal.
    kill_process(getpid(), Signal::TSTP)?;
    Ok(())
}
