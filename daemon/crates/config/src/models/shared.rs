//! One registry for all sessions, as long as `models.json` says the same.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, Weak},
};

use super::ModelRegistry;

/// Gives out registries that are in memory already where nothing changed.
#[derive(Debug, Default)]
pub struct SharedModels(Mutex<Option<Last>>);

/// What was loaded last.
#[derive(Debug)]
struct Last {
    path: PathBuf,
    /// What the file said; `None`: it could not be read.
    text: Option<Vec<u8>>,
    /// Gone when nobody uses it any more.
    registry: Weak<ModelRegistry>,
}

impl SharedModels {
    /// [`ModelRegistry::load`], or what that gave before if the file is as it was. Reads the file; blocks.
    #[must_use]
    pub fn load(&self, path: &Path) -> Arc<ModelRegistry> {
        let text = fs::read(path).ok();
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let same = last.as_ref().filter(|last| last.path == path && last.text == text);
        if let Some(registry) = same.and_then(|last| last.registry.upgrade()) {
            return registry;
        }
        let registry = Arc::new(ModelRegistry::load(path));
        // A file that changed between the two looks is loaded again the next time.
        if fs::read(path).ok() == text {
            *last = Some(Last { path: path.to_owned(), text, registry: Arc::downgrade(&registry) });
        }
        registry
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registry_is_shared_until_its_file_changes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("models.json");
        let models = SharedModels::default();
        let without = models.load(&path);
        assert!(Arc::ptr_eq(&without, &models.load(&path)));
        let file = |id: &str| {
            format!(
                r#"{{"providers":{{"{id}":{{"baseUrl":"http://127.0.0.1:1","api":"openai-completions","models":[{{"id":"m"}}]}}}}}}"#
            )
        };
        fs::write(&path, file("one")).unwrap();
        let one = models.load(&path);
        assert!(one.find("one", "m").is_some() && without.find("one", "m").is_none());
        fs::write(&path, file("two")).unwrap();
        let two = models.load(&path);
        assert!(two.find("two", "m").is_some() && Arc::ptr_eq(&two, &models.load(&path)));
    }
}
