//! Changes members of a JSON object in a private file of the user.

use std::{
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serde_json::{Map, Value};

use crate::{
    json_edit::{append, remove, remove_item, replace_item, set},
    json_file::{JsonFileError, parse, read_json},
    private_file::NeighbourLock,
    private_file::{lock_until, replace, replace_private},
};

/// One change of the object.
#[derive(Clone, PartialEq)]
pub enum MemberChange {
    /// Sets the member at a path of keys, outermost first; what is between is made.
    Set(Vec<String>, Value),
    /// Takes a member of the object out.
    Remove(String),
    /// Takes the member at a path of keys out, outermost first.
    RemoveAt(Vec<String>),
    /// Adds an item to the end of the list at a path of keys; a list that is not there is made.
    AddItem(Vec<String>, Value),
    /// Puts a value in the place of an item of the list at a path of keys.
    ReplaceItem(Vec<String>, usize, Value),
    /// Takes an item out of the list at a path of keys.
    RemoveItem(Vec<String>, usize),
}

/// The path of a file, and the locks of its writers.
#[derive(Debug, Clone, Copy)]
pub struct PrivateObject<'a> {
    /// The file.
    pub path: &'a Path,
    /// The lock file of our own; made when it is not there.
    pub lock: &'a Path,
    /// The timeout for another writer.
    pub timeout: Duration,
}

/// Why nothing was changed. The file is as it was.
#[derive(Debug, thiserror::Error)]
pub enum PrivateObjectError {
    /// The file cannot be read; writing could lose what is in it.
    #[error(transparent)]
    Broken(#[from] JsonFileError),
    /// The file is JSON, and no object that the change fits into.
    #[error("{} holds no JSON object", path.display())]
    NotAnObject {
        /// The file.
        path: PathBuf,
    },
    /// Another program had the file for all of the time.
    #[error("another program holds {}; remove that if there is none", path.display())]
    Locked {
        /// The lock.
        path: PathBuf,
    },
    /// The file system refused.
    #[error("{} cannot be written: {source}", path.display())]
    Io {
        /// The file, or its lock.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl PrivateObject<'_> {
    /// Changes the object as `plan` says. `plan` sees it as it is now, and no writer that takes one of the locks comes between
    /// that and the write. Comments, order, number forms, indentation and other members stay. The file's mode becomes 0600 with every
    /// write; a reader sees the file before or after. Returns whether the file was written, and the value that `plan` passes on.
    /// Blocks on the file system.
    ///
    /// # Errors
    /// [`PrivateObjectError`], or the error of `plan`; then the file is unchanged.
    pub fn edit<T, E: From<PrivateObjectError>>(
        &self,
        plan: impl FnOnce(&Map<String, Value>) -> Result<(Vec<MemberChange>, T), E>,
    ) -> Result<(bool, T), E> {
        self.edit_with(|text| replace_private(self.path, text), plan)
    }

    /// [`Self::edit`] of a file that others may share: its mode stays as it is, and a new one is private.
    ///
    /// # Errors
    /// Those of [`Self::edit`].
    pub fn edit_shared<T, E: From<PrivateObjectError>>(
        &self,
        plan: impl FnOnce(&Map<String, Value>) -> Result<(Vec<MemberChange>, T), E>,
    ) -> Result<(bool, T), E> {
        self.edit_with(|text| replace(self.path, text), plan)
    }

    fn edit_with<T, E: From<PrivateObjectError>>(
        &self,
        write: impl FnOnce(&str) -> io::Result<()>,
        plan: impl FnOnce(&Map<String, Value>) -> Result<(Vec<MemberChange>, T), E>,
    ) -> Result<(bool, T), E> {
        let deadline = Instant::now() + self.timeout;
        let ours = lock_until(self.lock, deadline).map_err(locking(self.lock.to_path_buf()))?;
        if let Some(folder) = self.path.parent() {
            crate::private_file::create_dir(folder).map_err(self.io())?;
        }
        let neighbour = NeighbourLock::path_for(self.path);
        let _theirs = NeighbourLock::take(self.path, &ours, deadline).map_err(locking(neighbour))?;

        let document = read_json(self.path).map_err(PrivateObjectError::from)?;
        let mark = if document.as_ref().is_some_and(|document| document.has_mark) { "\u{FEFF}" } else { "" };
        let (before, value) = document.map_or_else(
            || (String::new(), Value::Object(Map::new())),
            |document| (document.text, document.value),
        );
        let not_an_object = || PrivateObjectError::NotAnObject { path: self.path.to_path_buf() };
        let Value::Object(mut expected) = value else { return Err(not_an_object().into()) };
        let (changes, passed_on) = plan(&expected)?;
        let mut after = before.clone();
        for change in changes {
            let changed = change.apply_to_text(&after).ok_or_else(not_an_object)?;
            change.apply(&mut expected);
            // The new text is parsed before it is written: no edit may remove a key that it should not.
            if parse(&changed).ok().as_ref().and_then(Value::as_object) != Some(&expected) {
                return Err(not_an_object().into());
            }
            after = changed;
        }
        let written = after != before;
        if written {
            write(&format!("{mark}{after}")).map_err(self.io())?;
        }
        Ok((written, passed_on))
    }

    fn io(&self) -> impl FnOnce(io::Error) -> PrivateObjectError {
        let path = self.path.to_path_buf();
        move |source| PrivateObjectError::Io { path, source }
    }
}

fn locking(path: PathBuf) -> impl FnOnce(io::Error) -> PrivateObjectError {
    move |source| match source.kind() {
        ErrorKind::TimedOut => PrivateObjectError::Locked { path },
        _ => PrivateObjectError::Io { path, source },
    }
}

impl MemberChange {
    fn apply_to_text(&self, text: &str) -> Option<String> {
        match self {
            Self::Set(path, value) => set(text, &keys(path), value),
            Self::Remove(_) | Self::RemoveAt(_) if text.trim().is_empty() => Some(text.to_owned()),
            Self::Remove(key) => remove(text, &[key]),
            Self::RemoveAt(path) => remove(text, &keys(path)),
            Self::AddItem(path, item) => append(text, &keys(path), std::slice::from_ref(item))
                .or_else(|| set(text, &keys(path), &Value::Array(vec![item.clone()]))),
            Self::ReplaceItem(path, index, item) => replace_item(text, &keys(path), *index, item),
            Self::RemoveItem(path, index) => remove_item(text, &keys(path), *index),
        }
    }

    fn apply(&self, object: &mut Map<String, Value>) {
        match self {
            Self::Set(path, value) => put(object, path, value),
            Self::Remove(key) => drop(object.remove(key)),
            Self::RemoveAt(path) => take_out(object, path),
            Self::AddItem(path, item) => match list_in(object, path) {
                Some(list) => list.push(item.clone()),
                None => put(object, path, &Value::Array(vec![item.clone()])),
            },
            Self::ReplaceItem(path, index, item) => {
                if let Some(old) = list_in(object, path).and_then(|list| list.get_mut(*index)) {
                    *old = item.clone();
                }
            }
            Self::RemoveItem(path, index) => {
                if let Some(list) = list_in(object, path).filter(|list| *index < list.len()) {
                    list.remove(*index);
                }
            }
        }
    }
}

fn keys(path: &[String]) -> Vec<&str> {
    path.iter().map(String::as_str).collect()
}

/// The list at a path of keys.
fn list_in<'a>(object: &'a mut Map<String, Value>, path: &[String]) -> Option<&'a mut Vec<Value>> {
    let (last, above) = path.split_last()?;
    let inner = above.iter().try_fold(object, |object, key| object.get_mut(key)?.as_object_mut())?;
    inner.get_mut(last)?.as_array_mut()
}

fn take_out(object: &mut Map<String, Value>, path: &[String]) {
    match path {
        [] => {}
        [key] => drop(object.remove(key)),
        [key, below @ ..] => {
            if let Some(Value::Object(inner)) = object.get_mut(key) {
                take_out(inner, below);
            }
        }
    }
}

fn put(object: &mut Map<String, Value>, path: &[String], value: &Value) {
    match path {
        [] => {}
        [key] => drop(object.insert(key.clone(), value.clone())),
        [key, below @ ..] => {
            let inner = object.entry(key.clone()).or_insert(Value::Null);
            if !inner.is_object() {
                *inner = Value::Object(Map::new());
            }
            if let Value::Object(inner) = inner {
                put(inner, below, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, Permissions},
        os::unix::fs::PermissionsExt,
        thread,
    };

    use serde_json::json;

    use super::*;

    struct TestFolder(tempfile::TempDir);

    impl TestFolder {
        fn new(text: Option<&str>) -> Self {
            let place = Self(tempfile::tempdir().unwrap());
            if let Some(text) = text {
                fs::create_dir(place.0.path().join("agent")).unwrap();
                fs::write(place.file(), text).unwrap();
            }
            place
        }

        fn file(&self) -> PathBuf {
            self.0.path().join("agent/auth.json")
        }

        fn change(&self, timeout: Duration, changes: Vec<MemberChange>) -> Result<bool, PrivateObjectError> {
            let (path, lock) = (self.file(), self.0.path().join("agent/run/auth.lock"));
            let object = PrivateObject { path: &path, lock: &lock, timeout };
            object.edit(|_| Ok::<_, PrivateObjectError>((changes, ()))).map(|(written, ())| written)
        }
    }

    fn set_key(name: &str) -> MemberChange {
        MemberChange::Set(vec![name.into(), "key".into()], json!("k"))
    }

    #[test]
    fn a_new_file_is_private_and_an_open_one_becomes_so() {
        let place = TestFolder::new(None);
        assert!(!place.change(Duration::ZERO, vec![MemberChange::Remove("a".into())]).unwrap());
        assert!(!place.file().exists());
        assert!(place.change(Duration::ZERO, vec![set_key("a")]).unwrap());
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&place.file()), mode(place.file().parent().unwrap())), (0o600, 0o700));
        fs::set_permissions(place.file(), Permissions::from_mode(0o644)).unwrap();
        assert!(place.change(Duration::ZERO, vec![set_key("b")]).unwrap());
        assert_eq!(mode(&place.file()), 0o600);
        let names = fs::read_dir(place.file().parent().unwrap()).unwrap();
        assert_eq!(names.count(), 2, "the file and the folder of its lock");
    }

    #[test]
    fn everything_else_stays() {
        let place = TestFolder::new(Some(
            "\u{FEFF}{ // mine\n  \"a\": {\"key\": \"x\", \"n\": 1.0},\n  \"b\": 1\n}\n",
        ));
        assert!(place.change(Duration::ZERO, vec![set_key("a"), MemberChange::Remove("b".into())]).unwrap());
        let after = "\u{FEFF}{ // mine\n  \"a\": {\"key\": \"k\", \"n\": 1.0}\n}\n";
        assert_eq!(fs::read_to_string(place.file()).unwrap(), after);
        let deep = MemberChange::RemoveAt(vec!["a".into(), "n".into()]);
        assert!(place.change(Duration::ZERO, vec![deep.clone()]).unwrap());
        assert!(!place.change(Duration::ZERO, vec![deep]).unwrap());
        let after = after.replace(", \"n\": 1.0}", " }");
        assert_eq!(fs::read_to_string(place.file()).unwrap(), after);
        assert!(!place.change(Duration::ZERO, vec![set_key("a"), MemberChange::Remove("b".into())]).unwrap());
    }

    #[test]
    fn a_file_that_cannot_be_used_is_not_touched() {
        for broken in ["{\"a\": hush", "[\"hush\"]", "\"hush\""] {
            let place = TestFolder::new(Some(broken));
            for change in [set_key("a"), MemberChange::Remove("a".into())] {
                let error = place.change(Duration::ZERO, vec![change]).unwrap_err().to_string();
                assert!(error.contains("auth.json") && !error.contains("hush"), "{error}");
            }
            assert_eq!(fs::read_to_string(place.file()).unwrap(), broken);
        }
    }

    #[test]
    fn a_held_lock_is_named() {
        let place = TestFolder::new(Some("{}"));
        let lock = place.0.path().join("agent/auth.json.lock");
        fs::create_dir(&lock).unwrap();
        let error = place.change(Duration::ZERO, vec![set_key("a")]).unwrap_err();
        assert!(matches!(&error, PrivateObjectError::Locked { .. }), "{error}");
        assert!(error.to_string().contains("auth.json.lock"), "{error}");
        fs::remove_dir(&lock).unwrap();

        let ours = lock_until(&place.0.path().join("agent/run/auth.lock"), Instant::now()).unwrap();
        let error = place.change(Duration::ZERO, vec![set_key("a")]).unwrap_err();
        assert!(error.to_string().contains("run/auth.lock"), "{error}");
        drop(ours);
        assert!(place.change(Duration::ZERO, vec![set_key("a")]).unwrap());
    }

    #[test]
    fn changers_at_the_same_time_lose_nothing() {
        let place = TestFolder::new(None);
        thread::scope(|scope| {
            for name in 0..16 {
                let place = &place;
                scope.spawn(move || {
                    place.change(Duration::from_secs(15), vec![set_key(&format!("p{name}"))]).unwrap()
                });
            }
        });
        let value: Value = serde_json::from_str(&fs::read_to_string(place.file()).unwrap()).unwrap();
        assert_eq!(value.as_object().unwrap().len(), 16);
    }
}
