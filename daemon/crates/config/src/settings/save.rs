//! Saving settings: only what changed, under a lock that other processes respect.

use std::{fs, io, path::PathBuf};

use serde_json::Value;

use crate::{
    AgentDir,
    json_edit::{append, set},
    json_file::{JsonFileError, parse, read_json},
    private_file::{lock, replace},
};

/// One key to set.
#[derive(Debug, Clone, Copy)]
pub struct SettingChange<'a> {
    /// The key, outermost object first: `["compaction", "enabled"]`.
    pub path: &'a [&'a str],
    /// Its new value.
    pub value: &'a Value,
}

/// Why nothing was saved. The file is as it was.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// Saving would lose what is in a file that cannot be read.
    #[error("the setting was not saved, since the settings file is broken: {0}. Repair or remove it.")]
    Broken(#[source] JsonFileError),
    /// The file holds JSON, but no object to put the key into.
    #[error("the setting was not saved, since {} holds no JSON object. Repair or remove it.", path.display())]
    NotAnObject {
        /// The settings file.
        path: PathBuf,
    },
    /// The file system refused.
    #[error("the setting was not saved to {}: {source}", path.display())]
    Io {
        /// The settings file, or its lock file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// Sets keys in the user's settings file and leaves all else in it as it is, comments included. Two savers at the same
/// time, in any processes, both succeed and lose nothing of each other. A reader sees the file before or after.
///
/// # Errors
/// [`SaveError`]; then the file is unchanged.
pub fn save(agent_dir: &AgentDir, changes: &[SettingChange<'_>]) -> Result<(), SaveError> {
    change(agent_dir, |before| {
        let mut after = before.to_owned();
        for change in changes {
            after = set(&after, change.path, change.value).filter(|text| holds(text, change))?;
        }
        Some(after)
    })
}

/// Adds an item to the end of a list, which is made where it is not there; all else stays as it is. An item that is there already is not
/// added.
pub(super) fn add_item(agent_dir: &AgentDir, path: &[&str], item: &Value) -> Result<(), SaveError> {
    change(agent_dir, |before| {
        // A missing file is an empty text.
        let parsed = parse(before).unwrap_or_default();
        let found = path.iter().try_fold(&parsed, |value, key| value.get(key));
        let mut items = found.and_then(Value::as_array).cloned().unwrap_or_default();
        if items.contains(item) {
            return Some(before.to_owned());
        }
        items.push(item.clone());
        let value = Value::Array(items);
        let change = SettingChange { path, value: &value };
        let beside = append(before, path, std::slice::from_ref(item)).filter(|text| holds(text, &change));
        beside.or_else(|| set(before, path, &value).filter(|text| holds(text, &change)))
    })
}

/// Adds a text to a list in the user's settings file, or takes it out of there; all else in the file stays as it is. As [`save`] for several
/// savers at a time.
///
/// # Errors
/// [`SaveError`]; then the file is unchanged.
pub fn save_listed(
    agent_dir: &AgentDir,
    path: &[&str],
    item: &str,
    is_listed: bool,
) -> Result<(), SaveError> {
    if is_listed {
        return add_item(agent_dir, path, &Value::from(item));
    }
    change(agent_dir, |before| {
        let parsed = parse(before).unwrap_or_default();
        let found = path.iter().try_fold(&parsed, |value, key| value.get(key));
        let Some(items) = found.and_then(Value::as_array).filter(|items| items.contains(&item.into())) else {
            return Some(before.to_owned());
        };
        let value: Value = items.iter().filter(|known| known.as_str() != Some(item)).cloned().collect();
        set(before, path, &value).filter(|text| holds(text, &SettingChange { path, value: &value }))
    })
}

/// Changes the text of the file under the lock. `None` of the change: it holds no object.
fn change(agent_dir: &AgentDir, change: impl FnOnce(&str) -> Option<String>) -> Result<(), SaveError> {
    let path = agent_dir.settings_file();
    let lock_path = agent_dir.run_dir().join("settings.lock");
    let _lock = lock(&lock_path).map_err(|source| SaveError::Io { path: lock_path, source })?;
    let before = read_json(&path).map_err(SaveError::Broken)?;
    let mark = if before.as_ref().is_some_and(|document| document.has_mark) { "\u{FEFF}" } else { "" };
    let before = before.map(|document| document.text).unwrap_or_default();
    let after = change(&before).ok_or_else(|| SaveError::NotAnObject { path: path.clone() })?;
    if after == before {
        return Ok(());
    }
    if fs::metadata(&path).is_ok_and(|about| about.permissions().readonly()) {
        // The user wants it to stay as it is: another file in its place would not.
        return Err(SaveError::Io {
            path,
            source: io::Error::new(io::ErrorKind::PermissionDenied, "the file is read-only"),
        });
    }
    replace(&path, &format!("{mark}{after}")).map_err(|source| SaveError::Io { path, source })
}

/// Returns whether the text, parsed again, has the value that was set.
fn holds(text: &str, change: &SettingChange<'_>) -> bool {
    let Ok(value) = parse(text) else { return false };
    change.path.iter().try_fold(&value, |value, key| value.get(key)) == Some(change.value)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;

    fn place() -> (tempfile::TempDir, AgentDir) {
        let folder = tempfile::tempdir().unwrap();
        let agent_dir = AgentDir::at(folder.path().join("agent"));
        (folder, agent_dir)
    }

    fn save_one(agent_dir: &AgentDir, path: &[&str], value: Value) -> Result<(), SaveError> {
        save(agent_dir, &[SettingChange { path, value: &value }])
    }

    fn put(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn everything_else_in_the_file_stays() {
        let (_folder, agent_dir) = place();
        let file = agent_dir.settings_file();
        save_one(&agent_dir, &["steeringMode"], json!("all")).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "{\n  \"steeringMode\": \"all\"\n}\n");
        put(
            &file,
            "\u{FEFF}{\n  // mine\n  \"z\": 1.0,\n  \"compaction\": {\"enabled\": true, \"other\": 2},\n}\n",
        );
        let changes = [
            SettingChange { path: &["compaction", "enabled"], value: &json!(false) },
            SettingChange { path: &["a"], value: &json!(1) },
        ];
        save(&agent_dir, &changes).unwrap();
        assert_eq!(
            fs::read_to_string(&file).unwrap(),
            "\u{FEFF}{\n  // mine\n  \"z\": 1.0,\n  \"compaction\": {\"enabled\": false, \"other\": 2},\n  \"a\": 1,\n}\n"
        );
    }

    #[test]
    fn a_broken_file_is_never_overwritten() {
        let (_folder, agent_dir) = place();
        let file = agent_dir.settings_file();
        for broken in ["{\"a\": ", "[]", "\"x\"", "{} {}"] {
            put(&file, broken);
            let error = save_one(&agent_dir, &["a"], json!(1)).unwrap_err().to_string();
            assert!(error.contains("settings.json") && error.contains("Repair or remove it"), "{error}");
            assert_eq!(fs::read_to_string(&file).unwrap(), broken);
        }
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        assert!(matches!(save_one(&agent_dir, &["a"], json!(1)), Err(SaveError::Broken(_))));
    }

    #[test]
    fn a_file_in_the_place_of_the_directory_is_reported() {
        let (folder, agent_dir) = place();
        fs::write(folder.path().join("agent"), "").unwrap();
        assert!(matches!(save_one(&agent_dir, &["a"], json!(1)), Err(SaveError::Io { .. })));
    }

    /// Runs in a process of its own for the test below; does nothing when run with the others.
    #[test]
    fn child_that_saves() {
        let Ok(task) = std::env::var("AGENTD_TEST_SAVER") else { return };
        let (agent_dir, name) = task.split_once('|').unwrap();
        for number in 0..25 {
            save_one(&AgentDir::at(agent_dir), &["keys", &format!("{name}{number}")], json!(number)).unwrap();
        }
    }

    #[test]
    fn savers_in_threads_and_processes_lose_nothing() {
        let (_folder, agent_dir) = place();
        put(&agent_dir.settings_file(), "{\"kept\": true}");
        let process = |name: &str| {
            std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "settings::save::tests::child_that_saves"])
                .env("AGENTD_TEST_SAVER", format!("{}|{name}", agent_dir.path().display()))
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap()
        };
        let children = [process("a"), process("b")];
        std::thread::scope(|scope| {
            for name in ["c", "d"] {
                let agent_dir = &agent_dir;
                scope.spawn(move || {
                    for number in 0..25 {
                        save_one(agent_dir, &["keys", &format!("{name}{number}")], json!(number)).unwrap();
                    }
                });
            }
        });
        for mut child in children {
            assert!(child.wait().unwrap().success());
        }
        let saved = read_json(&agent_dir.settings_file()).unwrap().unwrap().value;
        assert_eq!(saved["keys"].as_object().unwrap().len(), 100);
        assert_eq!(saved["kept"], true);
    }

    #[test]
    fn items_of_a_list_come_and_go_and_all_else_stays() {
        let (_folder, agent_dir) = place();
        let key = ["discovery", "disabledItems"];
        fs::create_dir_all(agent_dir.path()).unwrap();
        fs::write(agent_dir.settings_file(), "{\n  // mine\n  \"theme\": \"dark\"\n}\n").unwrap();
        let read = || read_json(&agent_dir.settings_file()).unwrap().unwrap();
        let items = || read().value["discovery"]["disabledItems"].clone();
        save_listed(&agent_dir, &key, "rule:a", true).unwrap();
        save_listed(&agent_dir, &key, "rule:b", true).unwrap();
        save_listed(&agent_dir, &key, "rule:a", true).unwrap();
        assert_eq!(items(), json!(["rule:a", "rule:b"]));
        save_listed(&agent_dir, &key, "rule:a", false).unwrap();
        let before = read().text;
        save_listed(&agent_dir, &key, "rule:none", false).unwrap();
        assert_eq!((items(), read().text.as_str()), (json!(["rule:b"]), before.as_str()));
        assert!(before.contains("// mine") && before.contains("\"theme\": \"dark\""), "{before}");
    }
}
