//! One registry for all sessions, as long as catalogue and `models.json` are the same.

use std::{
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, Weak},
};

use super::{ModelRegistry, catalogue};
use crate::{AgentDir, json_file::OF_USER};

/// Gives out registries that are in memory already where nothing changed.
#[derive(Debug, Default)]
pub struct SharedModels {
    last: Mutex<Option<Last>>,
    /// In the place of what files say.
    fixed: Option<Arc<ModelRegistry>>,
}

/// The registry that was loaded last.
#[derive(Debug)]
struct Last {
    path: PathBuf,
    /// The content of the file; `None` when it could not be read.
    text: Option<Vec<u8>>,
    /// Gone with its last user.
    registry: Weak<ModelRegistry>,
}

impl SharedModels {
    /// Gives out this registry, and reads no files.
    #[must_use]
    pub fn fixed(registry: ModelRegistry) -> Self {
        Self { fixed: Some(Arc::new(registry)), ..Self::default() }
    }

    /// [`ModelRegistry::of_agent_dir`], or what that gave before if the files are as they were. Reads the files; blocks.
    #[must_use]
    pub fn load(&self, agent_dir: &AgentDir) -> Arc<ModelRegistry> {
        if let Some(fixed) = &self.fixed {
            return Arc::clone(fixed);
        }
        let path = agent_dir.models_file();
        let catalogue = catalogue::load(agent_dir);
        let text = text_of(&path);
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let same = last.as_ref().filter(|last| last.path == path && last.text == text);
        let registry = same.and_then(|last| last.registry.upgrade());
        if let Some(registry) = registry.filter(|registry| registry.is_of(&catalogue)) {
            return registry;
        }
        let registry = Arc::new(ModelRegistry::with_catalogue(catalogue, &path));
        // A file that changed between the two looks is loaded again the next time.
        if text_of(&path) == text {
            *last = Some(Last { path, text, registry: Arc::downgrade(&registry) });
        }
        registry
    }
}

/// A file that is not a regular file of the user counts as none.
fn text_of(path: &Path) -> Option<Vec<u8>> {
    OF_USER.read(path).ok().flatten()
}

/// Identity, length and time of the file. Empty for a file that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ModelsStamp(Option<(u64, u64, u64, i64, i64)>);

impl ModelsStamp {
    /// Looks at the file; blocks.
    #[must_use]
    pub fn of(agent_dir: &AgentDir) -> Self {
        let file = agent_dir.models_file().metadata().ok();
        Self(file.map(|file| (file.dev(), file.ino(), file.len(), file.mtime(), file.mtime_nsec())))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::models::testing::{full_id, model};

    #[test]
    fn of_a_fixed_registry_the_first_model_is_the_default_and_no_file_counts() {
        let models = vec![model("p", "first"), model("openai", "gpt-6.1-sol")];
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("models.json"), "{").unwrap();
        let fixed = SharedModels::fixed(ModelRegistry::only(models));
        let registry = fixed.load(&AgentDir::at(dir.path()));
        assert_eq!(registry.load_error(), None);
        let ids: Vec<String> = registry.select(&|_| true).map(|model| full_id(model)).collect();
        assert_eq!(ids, ["p/first", "openai/gpt-6.1-sol"]);
        assert_eq!(registry.defaults().count(), 0);
    }

    #[test]
    fn a_registry_is_shared_until_its_file_changes() {
        let dir = tempfile::tempdir().unwrap();
        let agent_dir = AgentDir::at(dir.path());
        let path = agent_dir.models_file();
        let models = SharedModels::default();
        let without = models.load(&agent_dir);
        assert!(Arc::ptr_eq(&without, &models.load(&agent_dir)));
        let file = |id: &str| {
            format!(
                r#"{{"providers":{{"{id}":{{"baseUrl":"http://127.0.0.1:1","api":"openai-completions","models":[{{"id":"m"}}]}}}}}}"#
            )
        };
        fs::write(&path, file("one")).unwrap();
        let one = models.load(&agent_dir);
        assert!(one.find("one", "m").is_some() && without.find("one", "m").is_none());
        fs::write(&path, file("two")).unwrap();
        let two = models.load(&agent_dir);
        assert!(two.find("two", "m").is_some() && Arc::ptr_eq(&two, &models.load(&agent_dir)));
    }
}

#[cfg(test)]
mod stamp_tests {
    use std::fs;

    use super::*;

    #[test]
    fn another_file_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let agent_dir = AgentDir::at(dir.path());
        let none = ModelsStamp::of(&agent_dir);
        assert_eq!(none, ModelsStamp::default());
        fs::write(agent_dir.models_file(), "{}").unwrap();
        let one = ModelsStamp::of(&agent_dir);
        assert_eq!((one, one == none), (ModelsStamp::of(&agent_dir), false));
        // Editors replace a file by another one of the same length.
        fs::write(dir.path().join("new"), "[]").unwrap();
        fs::rename(dir.path().join("new"), agent_dir.models_file()).unwrap();
        assert_ne!(ModelsStamp::of(&agent_dir), one);
    }
}
