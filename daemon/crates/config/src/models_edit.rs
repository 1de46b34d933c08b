//! Adds to `models.json`; the rest of the file stays byte for byte.

use std::{io, path::PathBuf};

use serde_json::{Map, Value, json};

use crate::{
    AgentDir,
    json_edit::{append, set},
    json_file::{JsonFileError, parse, read_json},
    models::ModelRegistry,
    private_file::{lock, replace},
};

/// Something to add.
#[derive(Clone, PartialEq)]
pub enum ModelsChange {
    /// A provider that is not there yet.
    AddProvider {
        /// Its id.
        id: String,
        /// The entry of the id.
        entry: Value,
    },
    /// Models at the end of a provider's list.
    AddModels {
        /// The provider's id.
        provider: String,
        /// The models.
        models: Vec<Value>,
    },
    /// A member of a provider that is not there yet.
    AddMember {
        /// The provider's id.
        provider: String,
        /// The member's name.
        name: String,
        /// Its value.
        value: Value,
    },
}

/// Why nothing was added. The file is as it was.
#[derive(Debug, thiserror::Error)]
pub enum ModelsEditError {
    /// WriteMode could lose what is in a file that cannot be read.
    #[error("models.json was not changed, since it is broken: {0}")]
    Broken(#[from] JsonFileError),
    /// The file is JSON, and not what it should be.
    #[error("models.json was not changed, since it cannot be used as it is: {0}")]
    Unusable(String),
    /// The file has a form that this edit cannot add to.
    #[error("models.json was not changed: there is no place for provider \"{provider}\" in {}", path.display())]
    NoPlace {
        /// The provider.
        provider: String,
        /// The file.
        path: PathBuf,
    },
    /// The file system refused.
    #[error("models.json was not changed, since {} cannot be written: {source}", path.display())]
    Io {
        /// The file, or its lock file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// Whether the change is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteMode {
    /// Yes.
    Yes,
    /// No: nothing is touched, not even the lock.
    DryRun,
}

/// Adds the changes of `plan` to the user's `models.json`. `plan` sees the content of the file, and no other edit comes between
/// that and the write. Comments, order, number forms, unknown members and the file's mode stay; a new file is private. A reader
/// sees the file before or after. Returns whether the file was written, and the value that `plan` passes on.
///
/// Blocks on the file system.
///
/// # Errors
/// [`ModelsEditError`], or the error of `plan`; then the file is unchanged.
pub fn edit_models<T, E: From<ModelsEditError>>(
    agent_dir: &AgentDir,
    writing: WriteMode,
    plan: impl FnOnce(&Value) -> Result<(Vec<ModelsChange>, T), E>,
) -> Result<(bool, T), E> {
    let path = agent_dir.models_file();
    let io = |path: PathBuf| move |source| ModelsEditError::Io { path, source };
    let lock_path = agent_dir.run_dir().join("models.lock");
    let _lock = match writing {
        WriteMode::Yes => Some(lock(&lock_path).map_err(io(lock_path))?),
        WriteMode::DryRun => None,
    };
    let document = read_json(&path).map_err(ModelsEditError::from)?;
    if let Some(error) = ModelRegistry::load(&path).load_error() {
        return Err(ModelsEditError::Unusable(error.to_owned()).into());
    }
    let mark = if document.as_ref().is_some_and(|document| document.has_mark) { "\u{FEFF}" } else { "" };
    let (before, value) =
        document.map_or_else(|| (String::new(), json!({})), |document| (document.text, document.value));
    let (changes, passed_on) = plan(&value)?;
    let mut after = before.clone();
    let mut expected = value;
    for change in &changes {
        after = change
            .apply(&after)
            .filter(|text| change.expect(&mut expected) && parse(text).is_ok_and(|value| value == expected))
            .ok_or_else(|| ModelsEditError::NoPlace {
                provider: change.provider().to_owned(),
                path: path.clone(),
            })?;
    }
    let written = after != before && writing == WriteMode::Yes;
    if written {
        replace(&path, &format!("{mark}{after}")).map_err(io(path))?;
    }
    Ok((written, passed_on))
}

impl ModelsChange {
    fn provider(&self) -> &str {
        match self {
            Self::AddProvider { id, .. } => id,
            Self::AddModels { provider, .. } | Self::AddMember { provider, .. } => provider,
        }
    }

    fn apply(&self, text: &str) -> Option<String> {
        match self {
            Self::AddProvider { id, entry } => set(text, &["providers", id], entry),
            Self::AddMember { provider, name, value } => set(text, &["providers", provider, name], value),
            Self::AddModels { provider, models } => {
                let path = ["providers", provider, "models"];
                append(text, &path, models).or_else(|| set(text, &path, &Value::Array(models.clone())))
            }
        }
    }

    /// Makes the same change to the parsed value; false when it would remove something.
    fn expect(&self, value: &mut Value) -> bool {
        let Some(root) = value.as_object_mut() else { return false };
        let Some(providers) = root.entry("providers").or_insert_with(|| json!({})).as_object_mut() else {
            return false;
        };
        match self {
            Self::AddProvider { id, entry } => providers.insert(id.clone(), entry.clone()).is_none(),
            Self::AddMember { provider, name, value } => entry_of(providers, provider)
                .is_some_and(|entry| entry.insert(name.clone(), value.clone()).is_none()),
            Self::AddModels { provider, models } => {
                let Some(entry) = entry_of(providers, provider) else { return false };
                let list = entry.entry("models").or_insert_with(|| json!([])).as_array_mut();
                list.map(|list| list.extend(models.iter().cloned())).is_some()
            }
        }
    }
}

fn entry_of<'a>(providers: &'a mut Map<String, Value>, id: &str) -> Option<&'a mut Map<String, Value>> {
    providers.get_mut(id)?.as_object_mut()
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    fn place(text: Option<&str>) -> (tempfile::TempDir, AgentDir) {
        let folder = tempfile::tempdir().unwrap();
        let agent_dir = AgentDir::at(folder.path().join("agent"));
        if let Some(text) = text {
            fs::create_dir(agent_dir.path()).unwrap();
            fs::write(agent_dir.models_file(), text).unwrap();
        }
        (folder, agent_dir)
    }

    fn add(
        agent_dir: &AgentDir,
        writing: WriteMode,
        changes: Vec<ModelsChange>,
    ) -> Result<bool, ModelsEditError> {
        edit_models(agent_dir, writing, |_| Ok((changes, ()))).map(|(written, ())| written)
    }

    fn provider(id: &str) -> ModelsChange {
        let entry = json!({"baseUrl": "http://127.0.0.1:1/v1", "api": "openai-completions", "apiKey": "none",
            "models": [{"id": "m"}]});
        ModelsChange::AddProvider { id: id.into(), entry }
    }

    fn models(provider: &str) -> ModelsChange {
        ModelsChange::AddModels { provider: provider.into(), models: vec![json!({"id": "new"})] }
    }

    fn key(provider: &str) -> ModelsChange {
        ModelsChange::AddMember { provider: provider.into(), name: "apiKey".into(), value: json!("none") }
    }

    #[test]
    fn a_new_file_is_private_and_can_be_loaded() {
        let (_folder, agent_dir) = place(None);
        assert!(!add(&agent_dir, WriteMode::DryRun, vec![provider("local")]).unwrap());
        assert!(!agent_dir.path().exists());
        assert!(add(&agent_dir, WriteMode::Yes, vec![provider("local"), models("local")]).unwrap());
        let registry = ModelRegistry::load(&agent_dir.models_file());
        assert_eq!(registry.load_error(), None);
        assert!(registry.find("local", "m").is_some() && registry.find("local", "new").is_some());
        assert_eq!(fs::metadata(agent_dir.models_file()).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn everything_else_stays() {
        let before = "\u{FEFF}// mine\n{\n  \"providers\": {\n    \"a\": { \"baseUrl\": \"http://h/v1\", /* ! */ \"api\": \"x\", \"cost\": 1.0,\n      \"models\": [{\"id\": \"o\"}] },\n  },\n  \"other\": 1.50\n}\n";
        let (_folder, agent_dir) = place(Some(before));
        let path = agent_dir.models_file();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(add(&agent_dir, WriteMode::Yes, vec![models("a"), key("a")]).unwrap());
        let after = fs::read_to_string(&path).unwrap();
        let expected = before
            .replace("{\"id\": \"o\"}]", "{\"id\": \"o\"}, {\"id\": \"new\"}],\n      \"apiKey\": \"none\"");
        assert_eq!(after, expected);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(!add(&agent_dir, WriteMode::Yes, vec![]).unwrap());
        assert!(add(&agent_dir, WriteMode::Yes, vec![provider("b")]).unwrap());
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("\u{FEFF}// mine\n") && text.ends_with("  \"other\": 1.50\n}\n"), "{text}");
    }

    #[test]
    fn a_file_that_cannot_be_used_is_not_touched() {
        for (broken, says) in [
            ("{\"providers\": ", "models.json was not changed, since it is broken: "),
            ("[]", "cannot be used as it is: Invalid models.json schema"),
            ("{\"providers\": {\"a\": {\"apiKey\": \"hush\"}}}", "must specify"),
            ("{\"providers\": []}", "expected"),
        ] {
            let (_folder, agent_dir) = place(Some(broken));
            for writing in [WriteMode::Yes, WriteMode::DryRun] {
                let error = add(&agent_dir, writing, vec![provider("b")]).unwrap_err().to_string();
                assert!(error.contains(says) && !error.contains("hush"), "{error}");
            }
            assert_eq!(fs::read_to_string(agent_dir.models_file()).unwrap(), broken);
        }
    }

    #[test]
    fn nothing_is_ever_taken_away() {
        let text =
            r#"{"providers":{"a":{"baseUrl":"http://h/v1","apiKey":"k","models":[{"id":"o","api":"x"}]}}}"#;
        let (_folder, agent_dir) = place(Some(text));
        for change in [provider("a"), models("none"), key("a"), key("none")] {
            let error = add(&agent_dir, WriteMode::Yes, vec![change]).unwrap_err();
            assert!(matches!(error, ModelsEditError::NoPlace { .. }), "{error}");
        }
        assert_eq!(fs::read_to_string(agent_dir.models_file()).unwrap(), text);
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_reported() {
        let (folder, agent_dir) = place(None);
        fs::write(folder.path().join("agent"), "").unwrap();
        let error = add(&agent_dir, WriteMode::Yes, vec![provider("a")]).unwrap_err();
        assert!(matches!(error, ModelsEditError::Io { .. }), "{error}");
    }
}
