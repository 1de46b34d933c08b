//! Ids and titles of sessions from their files, for a shell that waits. Names of files have the ids; little of each file is read.

use std::{
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    time::SystemTime,
};

use agentd_protocol::{
    entry::{EntryBody, SessionHeader},
    message::Message,
    parse_json,
    prompt_text::typed_words,
};
use agentd_safe_open::{LinkPolicy, OpenRules};
use jiff::Timestamp;

use crate::render::one_line;

/// How much of the begin and of the end of a file is searched for a title, in bytes.
const SEARCHED: u64 = 64 << 10;

/// A session, as far as a completion shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoredSession {
    pub(super) id: String,
    /// The time of the file's last change: ISO 8601 in UTC.
    pub(super) modified: String,
    /// The folder's name, and the session's name or what was typed first.
    pub(super) title: String,
}

/// The sessions whose ids begin as `typed`, the last written first, at most `most`. Unreadable files have no part in it.
pub(super) fn stored_sessions(agent_dir: &Path, typed: &str, most: usize) -> Vec<StoredSession> {
    let mut found: Vec<(SystemTime, String, PathBuf)> = Vec::new();
    for folder in entries(&agent_dir.join("sessions")) {
        for path in entries(&folder) {
            let Some(id) = id_of(&path).filter(|id| id.starts_with(typed)) else { continue };
            let Ok(metadata) = fs::metadata(&path) else { continue };
            if metadata.is_file() {
                found.push((metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH), id, path));
            }
        }
    }
    found.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| b.1.cmp(&a.1)));
    found.truncate(most);
    let described = |(modified, id, path): (SystemTime, String, PathBuf)| {
        let title = title_of(&path).unwrap_or_default();
        let modified = Timestamp::try_from(modified).unwrap_or(Timestamp::UNIX_EPOCH).to_string();
        StoredSession { id, modified, title }
    };
    found.into_iter().map(described).collect()
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// The id in the name of a session file, `TIME_ID.jsonl`.
fn id_of(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?.strip_suffix(".jsonl")?;
    let (_, id) = name.split_once('_')?;
    Some(id.to_owned()).filter(|id| !id.is_empty())
}

fn title_of(path: &Path) -> io::Result<String> {
    let rules = OpenRules::new(LinkPolicy::Followed);
    let mut file = rules.open(path).map_err(|error| io::Error::from(error.into_problem()))?;
    let begin = part(&mut file, 0)?;
    let length = file.metadata()?.len();
    let end =
        if length > SEARCHED { part(&mut file, length.saturating_sub(SEARCHED))? } else { String::new() };
    let (mut folder, mut first, mut name) = (String::new(), None, None);
    for line in begin.lines().chain(end.lines()) {
        // A line that is cut off is no JSON.
        if folder.is_empty()
            && let Ok(header) = parse_json::<SessionHeader>(line)
        {
            folder = header.cwd.rsplit('/').next().unwrap_or_default().to_owned();
        } else if line.contains("\"session_info\"") || (first.is_none() && line.contains("\"user\"")) {
            match parse_json::<EntryBody>(line) {
                Ok(EntryBody::SessionInfo { name: given }) => name = Some(given),
                Ok(EntryBody::Message { message: Message::User(user) }) => {
                    first = first.or_else(|| Some(typed_words(&user.content.text())));
                }
                _ => {}
            }
        }
    }
    let title = name.filter(|name| !name.trim().is_empty()).or(first).unwrap_or_default();
    Ok(one_line(&format!("{folder}: {}", title.trim())))
}

fn part(file: &mut File, from: u64) -> io::Result<String> {
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(SEARCHED).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(dir: &Path, name: &str, lines: &[&str], second: u64) {
        let folder = dir.join("sessions/--p--");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(name), lines.join("\n")).unwrap();
        let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000 + second);
        File::options().append(true).open(folder.join(name)).unwrap().set_modified(time).unwrap();
    }

    const HEADER: &str = r#"{"type":"session","version":3,"id":"x","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/home/me/shop"}"#;
    const ASKED: &str = r#"{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":"<stdin>\n+a\n</stdin>\n\nReview\u001b it.","timestamp":1}}"#;
    const NAMED: &str = r#"{"type":"session_info","id":"b","parentId":"a","timestamp":"2026-01-01T00:00:00.000Z","name":"Named"}"#;

    #[test]
    fn ids_come_from_names_and_titles_from_what_is_in_the_files() {
        let dir = tempfile::tempdir().unwrap();
        let long = format!("{{\"type\":\"custom\",\"id\":\"c\",\"data\":\"{}\"}}", "x".repeat(200_000));
        write(dir.path(), "t_ab-1.jsonl", &[HEADER, ASKED], 1);
        write(dir.path(), "t_ab-2.jsonl", &[HEADER, ASKED, &long, NAMED], 2);
        write(dir.path(), "t_ab-3.jsonl", &["no session"], 3);
        write(dir.path(), "t_cd-4.jsonl", &[HEADER], 4);
        for other in ["no-id.jsonl", "t_.jsonl", "t_ab-5.ledger"] {
            write(dir.path(), other, &[HEADER], 5);
        }
        let found = |typed: &str, most: usize| -> Vec<(String, String)> {
            let found = stored_sessions(dir.path(), typed, most).into_iter();
            found.map(|session| (session.id, session.title)).collect()
        };
        let of = |id: &str, title: &str| (id.to_owned(), title.to_owned());
        assert_eq!(
            found("ab", 9),
            [of("ab-3", ": "), of("ab-2", "shop: Named"), of("ab-1", "shop: Review  it.")]
        );
        assert_eq!(found("", 1), [of("cd-4", "shop: ")]);
        assert_eq!(found("zz", 9), []);
        assert_eq!(stored_sessions(&dir.path().join("none"), "", 9), []);
        assert_eq!(stored_sessions(dir.path(), "cd", 9)[0].modified, "1970-01-12T13:46:44Z");
    }
}
