//! Reading JSON files that people edit.

use std::path::{Path, PathBuf};

use agentd_files::exists;
use agentd_protocol::resources::{Diagnostic, DiagnosticKind, DiagnosticLevel};
use agentd_safe_open::{AcceptedOwner, LinkPolicy, OpenError, OpenRules, owner_of};
use serde_json::Value;

use crate::{json_comments, json_edit, text_file::without_mark};

/// The longest configuration file that is read: 16 MiB, many times a catalogue of all models there are.
pub const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

/// A JSON file as it was read.
#[derive(Clone)]
pub struct JsonDocument {
    /// The text, without a byte order mark, with its comments.
    pub text: String,
    /// The value of the text.
    pub value: Value,
    /// True if the file begins with a byte order mark.
    pub has_mark: bool,
}

/// Why a JSON file could not be used. No message quotes a value of the file, since values can be secrets.
#[derive(Debug, thiserror::Error)]
pub enum JsonFileError {
    /// It could not be read at all.
    #[error(transparent)]
    Unreadable(#[from] OpenError),
    /// It is not UTF-8.
    #[error("{} is not UTF-8 text (byte {offset}): save it as UTF-8", path.display())]
    NotUtf8 {
        /// The path.
        path: PathBuf,
        /// The offset of the first bad byte.
        offset: usize,
    },
    /// It is not JSON.
    #[error("{}, line {line}, column {column}: {what}", path.display())]
    Syntax {
        /// The path.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The column in bytes, from 1; 0 at the end of the line before.
        column: usize,
        /// The parser's message.
        what: String,
    },
}

impl JsonFileError {
    /// The error as a diagnostic with file and line: nothing of the file can be used.
    #[must_use]
    pub fn diagnostic(&self, kind: DiagnosticKind) -> Diagnostic {
        let of = |path: &Path, line: Option<u32>, message: String| {
            Diagnostic::warning(kind, message).level(DiagnosticLevel::Error).at(path).line(line)
        };
        match self {
            Self::Unreadable(error) => of(error.path(), None, error.problem().to_string()),
            Self::NotUtf8 { path, offset } => {
                of(path, None, format!("is not UTF-8 text (byte {offset}): save it as UTF-8"))
            }
            Self::Syntax { path, line, column, what } => {
                of(path, u32::try_from(*line).ok(), format!("not JSON at column {column}: {what}"))
            }
        }
    }
}

/// The rules for a file of the user's own: it may be a link, as programs that manage such files make them.
pub(crate) const OF_USER: OpenRules<'_> = OpenRules::new(LinkPolicy::Followed).max_bytes(MAX_FILE_BYTES);

/// Reads a JSON file of the user with an optional byte order mark, comments and trailing commas; `None` when there is none. A
/// file of blanks is an empty object.
///
/// # Errors
/// [`JsonFileError`]; the message names the file and the place in it. A file that is not regular, or is another user's, is not
/// read.
pub fn read_json(path: &Path) -> Result<Option<JsonDocument>, JsonFileError> {
    read(path, &OF_USER)
}

/// [`read_json`] for a file in a configuration folder of a project (`<cwd>/.agentd/settings.json`): links that lead out of the
/// project are not followed, and the file may also belong to the owner of the project. The project is the repository around
/// `<cwd>`, or `<cwd>` itself where there is none.
///
/// # Errors
/// Those of [`read_json`].
pub fn read_project_json(path: &Path) -> Result<Option<JsonDocument>, JsonFileError> {
    let cwd = path.parent().and_then(Path::parent).unwrap_or(path);
    read_json_of(cwd, path)
}

/// [`read_project_json`] for a file anywhere in the project in `cwd`.
pub(crate) fn read_json_of(cwd: &Path, path: &Path) -> Result<Option<JsonDocument>, JsonFileError> {
    let root = cwd.ancestors().find(|folder| exists(&folder.join(".git"))).unwrap_or(cwd);
    let owner = owner_of(root).map_or(AcceptedOwner::Own, AcceptedOwner::OwnOr);
    read(path, &OpenRules::new(LinkPolicy::Beneath(root)).owner(owner).max_bytes(MAX_FILE_BYTES))
}

fn read(path: &Path, rules: &OpenRules<'_>) -> Result<Option<JsonDocument>, JsonFileError> {
    let Some(bytes) = rules.read(path)? else { return Ok(None) };
    document(path, &bytes).map(Some)
}

/// The document in the bytes of the file at `path`.
pub(crate) fn document(path: &Path, bytes: &[u8]) -> Result<JsonDocument, JsonFileError> {
    let body = without_mark(bytes);
    let mark_bytes = bytes.len() - body.len();
    let text = std::str::from_utf8(body).map_err(|error| JsonFileError::NotUtf8 {
        path: path.to_owned(),
        offset: error.valid_up_to() + mark_bytes,
    })?;
    let value = parse(text).map_err(|error| {
        let position = format!(" at line {} column {}", error.line(), error.column());
        let what = error.to_string();
        JsonFileError::Syntax {
            path: path.to_owned(),
            line: error.line(),
            column: error.column(),
            what: what.strip_suffix(&position).unwrap_or(&what).to_owned(),
        }
    })?;
    Ok(JsonDocument { text: text.to_owned(), value, has_mark: mark_bytes > 0 })
}

/// Parses JSON with comments and trailing commas. A text of blanks is an empty object.
///
/// # Errors
/// The parser's. Its message may quote a value.
pub fn parse(text: &str) -> serde_json::Result<Value> {
    let stripped = json_comments::strip(text);
    if json_edit::is_blank(&stripped) {
        Ok(Value::Object(serde_json::Map::new()))
    } else {
        serde_json::from_str(&stripped)
    }
}

/// A message of serde without the value that it quotes: `invalid type: string "…", expected a map` becomes
/// `expected a map, not a string`.
#[must_use]
pub fn without_value(message: &str) -> String {
    for start in ["invalid type: ", "invalid value: "] {
        let Some((before, rest)) = message.split_once(start) else { continue };
        let Some((met, expected)) = rest.rsplit_once(", expected ") else { continue };
        // The names of our types say nothing to people.
        let expected = if expected.starts_with("struct ") { "an object" } else { expected };
        let kind = met.split(['`', '"']).next().unwrap_or_default().trim();
        let article = if kind.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" };
        let met = if matches!(kind, "null" | "") { kind.to_owned() } else { format!("{article} {kind}") };
        return format!("{before}expected {expected}, not {met}");
    }
    message.to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(bytes: &[u8]) -> Result<Value, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.json");
        std::fs::write(&path, bytes).unwrap();
        let read = read_json(&path).map(|document| document.unwrap().value);
        read.map_err(|error| error.to_string().replace(&format!("{}/", folder.path().display()), ""))
    }

    #[test]
    fn tolerates_what_editors_and_people_write() {
        assert_eq!(read(b"\xEF\xBB\xBF{\"a\": 1,} // note"), Ok(json!({"a": 1})));
        assert_eq!(read(b" \n"), Ok(json!({})));
        assert_eq!(read(b"// nothing yet"), Ok(json!({})));
        // A blank that is none in JSON: nothing could be added to such a file.
        assert_eq!(read("\u{a0}".as_bytes()), Err("x.json, line 1, column 1: expected value".into()));
    }

    #[test]
    fn says_what_is_wrong_where() {
        assert_eq!(
            read(b"{\n  /* b */ \"a\": x\n}"),
            Err("x.json, line 2, column 16: expected value".into())
        );
        assert_eq!(read(b"{"), Err("x.json, line 1, column 1: EOF while parsing an object".into()));
        assert_eq!(
            read(b"\xEF\xBB\xBFa\xFF"),
            Err("x.json is not UTF-8 text (byte 4): save it as UTF-8".into())
        );
        let folder = tempfile::tempdir().unwrap();
        assert!(read_json(&folder.path().join("none")).unwrap().is_none());
        assert!(read_json(folder.path()).is_err());
    }

    #[test]
    fn a_file_beyond_the_limit_is_refused_without_reading_it_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("huge.json");
        std::fs::File::create(&path).unwrap().set_len(MAX_FILE_BYTES * 1000).unwrap();
        let error = read_json(&path).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("more than the 16777216 that are read"), "{error}");
    }

    #[test]
    fn links_of_the_user_lead_anywhere_and_those_of_a_project_stay_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("repo/.git")).unwrap();
        std::fs::create_dir_all(at("repo/sub/.agentd")).unwrap();
        std::fs::write(at("secret.json"), r#"{"a": 1}"#).unwrap();
        std::fs::write(at("repo/shared.json"), r#"{"a": 2}"#).unwrap();
        let link = at("repo/sub/.agentd/settings.json");
        let value =
            |read: Result<Option<JsonDocument>, JsonFileError>| read.unwrap().unwrap().value["a"].clone();
        std::os::unix::fs::symlink("../../shared.json", &link).unwrap();
        assert_eq!(value(read_project_json(&link)), 2);
        std::fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink(at("secret.json"), &link).unwrap();
        assert_eq!(value(read_json(&link)), 1);
        let error = read_project_json(&link).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("settings.json is a symbolic link that leads out of its folder"), "{error}");
        // Without a repository the folder itself is the project.
        std::fs::remove_dir(at("repo/.git")).unwrap();
        std::fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink("../../shared.json", &link).unwrap();
        assert!(read_project_json(&link).is_err());
    }

    #[test]
    fn messages_lose_their_values() {
        let check = |message: &str, expected: &str| assert_eq!(without_value(message), expected);
        check("invalid type: string \"sk, expected 1\", expected a map", "expected a map, not a string");
        check("invalid type: integer `5`, expected a string", "expected a string, not an integer");
        check("invalid type: null, expected a string", "expected a string, not null");
        check("invalid type: string \"x\", expected struct X", "expected an object, not a string");
        check("name: invalid type: map, expected a string", "name: expected a string, not a map");
        check("missing field `id`", "missing field `id`");
    }
}
