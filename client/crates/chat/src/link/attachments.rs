//! Files that a message names by `@path`, sent along with it.

use std::path::{Path, PathBuf};

use agentd_protocol::command::PromptParams;

use crate::app::CallFailure;

/// The message with the files that it names. A word behind an `@` that is no file stays a word. Blocks.
///
/// # Errors
/// When a file cannot be sent along.
pub(super) fn attach(params: &PromptParams, folder: &Path) -> Result<PromptParams, CallFailure> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let named: Vec<String> = mentions(&params.message)
        .into_iter()
        .filter(|path| full(path, folder, home.as_deref()).is_file())
        .collect();
    if named.is_empty() {
        return Ok(params.clone());
    }
    let paths: Vec<&str> = named.iter().map(String::as_str).collect();
    let attachments = agentd_input::read_files(&paths, folder, home.as_deref())
        .map_err(|error| CallFailure { error: error.to_string(), hint: None, code: None, is_lost: false })?;
    let mut whole = params.clone();
    whole.message = format!("{}{}", attachments.text, params.message);
    whole.typed = Some(params.message.clone());
    whole.images.extend(attachments.images);
    Ok(whole)
}

/// The paths behind an `@` at the beginning of a word; with quotes around those that have blanks.
fn mentions(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut before = ' ';
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        if c == '@' && before.is_whitespace() {
            let (path, left) = match after.strip_prefix('"') {
                Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
                None => after.split_at(after.find(char::is_whitespace).unwrap_or(after.len())),
            };
            let path = path.trim_end_matches([',', ';', ':', '!', '?', ')']).to_owned();
            if !path.is_empty() && !found.contains(&path) {
                found.push(path);
            }
            rest = left;
            before = 'x';
            continue;
        }
        before = c;
        rest = after;
    }
    found
}

fn full(path: &str, folder: &Path, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => folder.join(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stand_behind_an_at() {
        assert_eq!(mentions("see @src/a.rs, @\"b c.txt\" and me@host (@no) @"), ["src/a.rs", "b c.txt"]);
        assert_eq!(mentions("@a @a\n@b?"), ["a", "b"]);
    }

    #[test]
    fn files_are_sent_along_and_words_stay() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.txt"), "one").unwrap();
        let params =
            PromptParams { message: "Look at @a.txt and @decorator".into(), ..PromptParams::default() };
        let whole = attach(&params, folder.path()).unwrap();
        assert!(whole.message.starts_with("<file name=") && whole.message.ends_with(&params.message));
        std::fs::write(folder.path().join("b"), "\0").unwrap();
        let params = PromptParams { message: "@b".into(), ..PromptParams::default() };
        assert!(attach(&params, folder.path()).unwrap_err().error.contains("neither text nor"));
    }
}
