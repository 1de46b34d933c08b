//! Storing keys and taking them back: `auth.json` is changed a member at a time, under its locks.

use std::{path::Path, time::Duration};

use agentd_config::{AgentDir, MemberChange, PrivateObject, PrivateObjectError, read_json};
use serde_json::{Map, Value, json};

use crate::{
    AuthStore, KeyProblem, Secret, StoreError, StoredEntry,
    store::{MAX_KEY_BYTES, stored},
};

/// The timeout for another program that holds the file.
const EDIT_TIMEOUT: Duration = Duration::from_secs(15);

/// The timeout for another program that renews a login.
const RENEWAL_TIMEOUT: Duration = Duration::from_secs(45);

/// A key to store.
#[derive(Debug, Clone)]
pub struct NewKey {
    /// The key itself; it is stored so that nothing in it is taken for a variable or a command.
    pub key: Secret,
    /// Variables that belong to the key, such as an account. Stored variables that are not named here stay.
    pub env: Vec<(String, Secret)>,
    /// Replaces an entry of another kind too.
    pub force: bool,
}

impl NewKey {
    /// Returns whether the text could be a key.
    ///
    /// # Errors
    /// [`KeyProblem`].
    pub fn check(&self) -> Result<(), KeyProblem> {
        let key = self.key.expose();
        if key.is_empty() {
            return Err(KeyProblem::Empty);
        }
        if key.len() > MAX_KEY_BYTES {
            return Err(KeyProblem::TooLong);
        }
        if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(KeyProblem::NoKey);
        }
        self.env.iter().try_for_each(|(name, value)| check_variable(name, value.expose()))
    }
}

fn check_variable(name: &str, value: &str) -> Result<(), KeyProblem> {
    let is_of_a_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let begins_well = name.bytes().next().is_some_and(|first| !first.is_ascii_digit());
    if !begins_well || !name.bytes().all(is_of_a_name) {
        return Err(KeyProblem::Name(name.to_owned()));
    }
    if value.is_empty() || value.contains(char::is_control) {
        return Err(KeyProblem::Value(name.to_owned()));
    }
    Ok(())
}

impl AuthStore {
    /// Stores a key in the place of the one that is there. Everything else in the file stays as it is, byte for byte; a
    /// broken file is left alone. Says whether there was an entry. Blocks, for up to 15 s if another program has the
    /// file.
    ///
    /// # Errors
    /// [`StoreError`]; then the file is unchanged.
    pub fn set_key(&self, provider: &str, new: &NewKey) -> Result<bool, StoreError> {
        if provider.is_empty() || provider.contains(|c: char| c.is_control() || c.is_whitespace()) {
            return Err(StoreError::Key(KeyProblem::Provider(provider.to_owned())));
        }
        new.check().map_err(StoreError::Key)?;
        self.edit(|entries| match entries.get(provider).map(kind) {
            None => Ok((vec![whole(provider, new)], false)),
            Some(Kind::ApiKey) => Ok((parts(provider, new), true)),
            Some(_) if new.force => Ok((vec![whole(provider, new)], true)),
            Some(kind) => Err(StoreError::Occupied {
                provider: provider.to_owned(),
                path: self.path().to_owned(),
                what: match kind {
                    Kind::Login => "a login (\"oauth\")",
                    Kind::ApiKey | Kind::Unknown => "an entry of a kind that is not known",
                },
            }),
        })
    }

    /// Takes a provider's entry out, of whatever kind it is; false when there is none. As [`AuthStore::set_key`]
    /// otherwise.
    ///
    /// # Errors
    /// [`StoreError`]; then the file is unchanged.
    pub fn remove(&self, provider: &str) -> Result<bool, StoreError> {
        // Without a file there is nothing to lock, and no folder to make for the lock.
        if !self.path().exists() {
            return Ok(false);
        }
        self.edit(|entries| {
            let there = entries.contains_key(provider);
            Ok((if there { vec![MemberChange::Remove(provider.to_owned())] } else { Vec::new() }, there))
        })
    }

    /// Stores a login in the place of an earlier one; `force` replaces a key, too. Says whether there was an entry. As
    /// [`AuthStore::set_key`] otherwise.
    ///
    /// # Errors
    /// [`StoreError`]; then the file is unchanged.
    pub(crate) fn set_login(
        &self,
        provider: &str,
        entry: Map<String, Value>,
        force: bool,
    ) -> Result<bool, StoreError> {
        self.edit(|entries| {
            let there = entries.get(provider).map(kind);
            self.is_free(provider, there.as_ref(), force)?;
            let change = MemberChange::Set(vec![provider.to_owned()], Value::Object(entry));
            Ok((vec![change], there.is_some()))
        })
    }

    /// Returns whether a login may be stored here.
    ///
    /// # Errors
    /// [`StoreError::Occupied`], or when the file cannot be read.
    pub(crate) fn check_free(&self, provider: &str, force: bool) -> Result<(), StoreError> {
        let kind = self.read()?.get(provider).map(|stored| match stored {
            StoredEntry::ApiKey { .. } => Kind::ApiKey,
            StoredEntry::OAuth(_) => Kind::Login,
            StoredEntry::Unusable(_) => Kind::Unknown,
        });
        self.is_free(provider, kind.as_ref(), force)
    }

    fn is_free(&self, provider: &str, there: Option<&Kind>, force: bool) -> Result<(), StoreError> {
        let what = match there {
            None | Some(Kind::Login) => return Ok(()),
            Some(_) if force => return Ok(()),
            Some(Kind::ApiKey) => "a key",
            Some(Kind::Unknown) => "an entry of a kind that is not known",
        };
        Err(StoreError::Occupied { provider: provider.to_owned(), path: self.path().to_owned(), what })
    }

    /// Renews a login. `renew` sees the entry once no other process works on it, and returns the members to set, if any, with a
    /// value to pass on; it may take up to 30 s. Blocks for up to 45 s while another process renews. The rest of the entry
    /// stays, byte for byte.
    ///
    /// # Errors
    /// [`StoreError`]; then the file is unchanged.
    pub(crate) fn renew_login<T>(
        &self,
        provider: &str,
        renew: impl FnOnce(Option<StoredEntry>) -> (Vec<(&'static str, Value)>, T),
    ) -> Result<T, StoreError> {
        self.edit_within(RENEWAL_TIMEOUT, |entries| {
            let (members, passed_on) = renew(entries.get(provider).cloned().map(stored));
            let set = |(name, value): (&str, Value)| {
                MemberChange::Set(vec![provider.to_owned(), name.to_owned()], value)
            };
            Ok((members.into_iter().map(set).collect(), passed_on))
        })
    }

    /// The whole entry of a login, unless there is none. Blocks on the file system.
    ///
    /// # Errors
    /// [`StoreError`]; the message names the file.
    pub(crate) fn login_entry(&self, provider: &str) -> Result<Option<Map<String, Value>>, StoreError> {
        let document = read_json(self.path())?;
        Ok(document.and_then(|document| whole_login(document.value.get(provider)?)))
    }

    /// The same as [`Self::renew_login`] for an entry that is replaced as a whole.
    ///
    /// # Errors
    /// [`StoreError`]; then the file is unchanged.
    pub(crate) fn renew_entry<T>(
        &self,
        provider: &str,
        renew: impl FnOnce(Option<Map<String, Value>>) -> (Option<Map<String, Value>>, T),
    ) -> Result<T, StoreError> {
        self.edit_within(RENEWAL_TIMEOUT, |entries| {
            let (renewed, passed_on) = renew(entries.get(provider).and_then(whole_login));
            let set = |renewed| MemberChange::Set(vec![provider.to_owned()], Value::Object(renewed));
            Ok((renewed.map(set).into_iter().collect(), passed_on))
        })
    }

    fn edit<T>(
        &self,
        plan: impl FnOnce(&Map<String, Value>) -> Result<(Vec<MemberChange>, T), StoreError>,
    ) -> Result<T, StoreError> {
        self.edit_within(EDIT_TIMEOUT, plan)
    }

    fn edit_within<T>(
        &self,
        timeout: Duration,
        plan: impl FnOnce(&Map<String, Value>) -> Result<(Vec<MemberChange>, T), StoreError>,
    ) -> Result<T, StoreError> {
        let folder = AgentDir::at(self.path().parent().unwrap_or_else(|| Path::new(".")));
        let lock = folder.run_dir().join("auth.lock");
        let object = PrivateObject { path: self.path(), lock: &lock, timeout };
        object.edit(plan).map(|(_, passed_on)| passed_on)
    }
}

/// An entry, if it is that of a login.
fn whole_login(entry: &Value) -> Option<Map<String, Value>> {
    entry.as_object().filter(|entry| entry.get("type").is_some_and(|kind| kind == "oauth")).cloned()
}

impl From<PrivateObjectError> for StoreError {
    fn from(error: PrivateObjectError) -> Self {
        match error {
            PrivateObjectError::Broken(error) => Self::File(error),
            PrivateObjectError::NotAnObject { path } => Self::NotAnObject { path },
            error @ (PrivateObjectError::Locked { .. } | PrivateObjectError::Io { .. }) => {
                Self::NotChanged(error)
            }
        }
    }
}

enum Kind {
    ApiKey,
    Login,
    Unknown,
}

fn kind(entry: &Value) -> Kind {
    match entry.get("type").and_then(Value::as_str) {
        Some("api_key") => Kind::ApiKey,
        Some("oauth") => Kind::Login,
        _ => Kind::Unknown,
    }
}

fn whole(provider: &str, new: &NewKey) -> MemberChange {
    let mut entry = json!({"type": "api_key", "key": literal(&new.key)});
    if !new.env.is_empty() {
        let env = new.env.iter().map(|(name, value)| (name.clone(), value.expose().into()));
        entry["env"] = Value::Object(env.collect());
    }
    MemberChange::Set(vec![provider.to_owned()], entry)
}

/// Only what is new of an entry that holds a key already.
fn parts(provider: &str, new: &NewKey) -> Vec<MemberChange> {
    let path = |rest: &[&str]| [provider].iter().chain(rest).map(|key| (*key).to_owned()).collect();
    let key = MemberChange::Set(path(&["key"]), literal(&new.key).into());
    let env =
        new.env.iter().map(|(name, value)| MemberChange::Set(path(&["env", name]), value.expose().into()));
    [key].into_iter().chain(env).collect()
}

/// The key as a value of the file: what would mean a variable or a command there is escaped.
fn literal(key: &Secret) -> String {
    let text = key.expose().replace('$', "$$");
    match text.strip_prefix('!') {
        Some(rest) => format!("$!{rest}"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use agentd_protocol::models_file::ConfigValue;
    use proptest::prelude::*;

    use super::*;
    use crate::value;

    fn new(key: &str, env: &[(&str, &str)], force: bool) -> NewKey {
        let env = env.iter().map(|(name, value)| ((*name).to_owned(), Secret::new(*value))).collect();
        NewKey { key: Secret::new(key), env, force }
    }

    fn place(text: &str) -> (tempfile::TempDir, AuthStore) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("auth.json");
        if !text.is_empty() {
            fs::write(&path, text).unwrap();
        }
        (folder, AuthStore::at(path))
    }

    fn text(store: &AuthStore) -> String {
        fs::read_to_string(store.path()).unwrap()
    }

    #[test]
    fn a_key_comes_and_goes() {
        let (_folder, store) = place("");
        assert!(!store.remove("openai").unwrap());
        assert!(!store.path().exists());
        assert!(!store.set_key("openai", &new("hush", &[], false)).unwrap());
        let expected = "{\n  \"openai\": {\n    \"type\": \"api_key\",\n    \"key\": \"hush\"\n  }\n}\n";
        assert_eq!(text(&store), expected);
        assert!(store.set_key("openai", &new("other", &[], false)).unwrap());
        assert_eq!(text(&store), expected.replace("hush", "other"));
        assert!(store.remove("openai").unwrap());
        assert!(!store.remove("openai").unwrap());
        assert_eq!(text(&store), "{\n}\n");
    }

    #[test]
    fn a_new_key_keeps_what_else_its_entry_says() {
        let before = "{ // mine\n  \"p\": {\"type\": \"api_key\", \"key\": \"old\", \"env\": {\"A\": \"1\"}, \"n\": 1.0},\n  \"q\": 5\n}";
        let (_folder, store) = place(before);
        assert!(store.set_key("p", &new("k", &[("B", "2")], false)).unwrap());
        let expected =
            before.replace("\"old\"", "\"k\"").replace("{\"A\": \"1\"}", "{\"A\": \"1\", \"B\": \"2\"}");
        assert_eq!(text(&store), expected);
    }

    #[test]
    fn entries_of_other_kinds_are_replaced_on_request_only() {
        let before = r#"{"p": {"type": "oauth", "refresh": "hush"}}"#;
        let (_folder, store) = place(before);
        let error = store.set_key("p", &new("hush", &[], false)).unwrap_err().to_string();
        assert!(error.contains("holds a login (\"oauth\") for p") && !error.contains("hush"), "{error}");
        assert_eq!(text(&store), before);
        assert!(store.set_key("p", &new("k", &[("A", "1")], true)).unwrap());
        let stored = StoredEntry::ApiKey {
            key: Some(ConfigValue::new("k")),
            env: vec![("A".into(), ConfigValue::new("1"))],
        };
        assert_eq!(store.read().unwrap().get("p"), Some(&stored));
    }

    #[test]
    fn what_can_be_no_key_is_refused_and_not_quoted() {
        let (_folder, store) = place("");
        let long = "x".repeat(MAX_KEY_BYTES + 1);
        for (key, env, says) in [
            ("", &[][..], "empty"),
            ("hush hush", &[], "a blank"),
            ("hush\nhush", &[], "a line break"),
            ("hüsh", &[], "beyond ASCII"),
            (long.as_str(), &[], "longer than"),
            ("k", &[("1A", "hush")], "\"1A\" cannot be"),
            ("k", &[("A B", "hush")], "\"A B\" cannot be"),
            ("k", &[("A", "")], "the value of A"),
            ("k", &[("A", "hush\n")], "the value of A"),
        ] {
            let error = store.set_key("p", &new(key, env, false)).unwrap_err().to_string();
            assert!(error.contains(says) && !error.contains("hush"), "{error}");
        }
        assert!(store.set_key("p q", &new("k", &[], false)).is_err());
        assert!(!store.path().exists());
    }

    #[test]
    fn a_broken_file_is_left_alone() {
        let (_folder, store) = place("{\"p\": hush");
        for error in [store.set_key("q", &new("k", &[], true)).unwrap_err(), store.remove("p").unwrap_err()] {
            let error = error.to_string();
            assert!(error.contains("auth.json, line 1") && !error.contains("hush"), "{error}");
        }
        assert_eq!(text(&store), "{\"p\": hush");
    }

    proptest! {
        // Each case writes a file to the disk.
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn a_stored_key_is_never_a_variable_nor_a_command(key in "[$!{}A-Z\"\\\\a]{1,12}") {
            let (_folder, store) = place("");
            store.set_key("p", &new(&key, &[], false)).unwrap();
            let stored = store.read().unwrap();
            let Some(StoredEntry::ApiKey { key: Some(value), .. }) = stored.get("p") else { panic!("{stored:?}") };
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let resolved =
                runtime.block_on(value::resolve(value, &Default::default(), &Default::default()));
            prop_assert_eq!(resolved.unwrap(), Secret::new(key));
        }
    }
}
