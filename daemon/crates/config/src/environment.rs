//! A snapshot of environment variables.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fmt,
    sync::Arc,
};

/// Environment variables as they were at one moment; cheap to clone. `Debug` shows how many there are and none of them,
/// since keys are passed this way.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Environment(Arc<BTreeMap<OsString, OsString>>);

impl Environment {
    /// Takes the variables of this process. For `main`, once: a session carries its own environment.
    #[must_use]
    pub fn from_process() -> Self {
        std::env::vars_os().collect()
    }

    /// The value of a variable; `None` when it is not set or is not UTF-8.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.get_os(name)?.to_str()
    }

    /// [`Environment::get`], where a variable that is set to nothing counts as not set.
    #[must_use]
    pub fn non_empty(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|value| !value.is_empty())
    }

    /// The value of a variable in the form of the platform.
    #[must_use]
    pub fn get_os(&self, name: &str) -> Option<&OsStr> {
        self.0.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// Sets a variable.
    pub fn set(&mut self, name: impl Into<OsString>, value: impl Into<OsString>) {
        Arc::make_mut(&mut self.0).insert(name.into(), value.into());
    }

    /// Removes a variable.
    pub fn remove(&mut self, name: &str) {
        Arc::make_mut(&mut self.0).remove(OsStr::new(name));
    }

    /// All variables, sorted by name, as a child process takes them.
    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.0.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }
}

impl<K: Into<OsString>, V: Into<OsString>> FromIterator<(K, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(variables: I) -> Self {
        Self(Arc::new(variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect()))
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Environment({} variables)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_read_changed_and_not_shown() {
        let mut environment: Environment = [("A", "hush"), ("EMPTY", "")].into_iter().collect();
        let before = environment.clone();
        assert_eq!((environment.get("A"), environment.get("B")), (Some("hush"), None));
        assert_eq!((environment.get("EMPTY"), environment.non_empty("EMPTY")), (Some(""), None));
        environment.set("B", "2");
        environment.remove("A");
        let names: Vec<_> = environment.iter().map(|(name, _)| name.to_owned()).collect();
        assert_eq!(names, ["B", "EMPTY"]);
        assert_eq!(before.get("A"), Some("hush"));
        assert_eq!(format!("{before:?}"), "Environment(2 variables)");
    }
}
