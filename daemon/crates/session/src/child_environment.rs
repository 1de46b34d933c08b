//! Which environment variables the programs get that a session starts.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    path::Path,
    sync::Arc,
};

use agentd_auth::PassedVariables;
use agentd_config::Environment;
use agentd_protocol::settings::ChildEnvironmentSettings;

/// A complete environment of child processes.
pub type ChildEnvironment = Arc<[(OsString, OsString)]>;

/// Variables that are never passed on: those of another session, and those for this daemon alone.
const STALE: [&str; 11] = [
    "PI_SESSION_ID",
    "PI_SESSION_FILE",
    "PI_PROVIDER",
    "PI_MODEL",
    "PI_REASONING_LEVEL",
    // They configure recording and replay of this daemon: an agentd that a command starts has its own.
    "AGENTD_RECORD",
    "AGENTD_REPLAY",
    "AGENTD_REPLAY_MATCH",
    "AGENTD_REPLAY_TIMING",
    // They are for tests and debuggers of this daemon.
    agentd_files::fail_point::VARIABLE,
    "AGENTD_DUMPABLE",
];

/// The inputs of the environment of child processes.
#[derive(Debug)]
pub struct ChildSources<'a> {
    /// The session's environment.
    pub environment: &'a Environment,
    /// The variables that hold keys of models.
    pub keys: &'a BTreeSet<String>,
    /// The user's setting `childEnvironment`.
    pub settings: Option<&'a ChildEnvironmentSettings>,
    /// Its programs come first on the search path.
    pub agent_dir: &'a Path,
    /// Whether agentd imitates pi.
    pub compat: bool,
}

/// The environment of child processes: that of the session without what is withheld, with the agent directory's own programs
/// first on the search path, and with what tells programs that an agent runs them.
#[must_use]
pub fn child_environment(sources: &ChildSources<'_>) -> ChildEnvironment {
    let mut path = sources.agent_dir.join("bin").into_os_string();
    if let Some(rest) = sources.environment.get_os("PATH").filter(|path| !path.is_empty()) {
        path.push(":");
        path.push(rest);
    }
    let passed = sources.environment.iter().filter(|(name, _)| sources.passes(name));
    let mut own: Environment = passed.collect();
    own.set("PATH", path);
    own.set("PI_CODING_AGENT", "true");
    own.set("AI_AGENT", if sources.compat { "pi" } else { "agentd" });
    own.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

impl ChildSources<'_> {
    fn passes(&self, name: &OsStr) -> bool {
        // A name that is no text has no key in it that anyone knows of, but may be meant by a pattern.
        let name = name.to_string_lossy();
        !STALE.contains(&&*name) && PassedVariables { keys: self.keys, settings: self.settings }.has(&name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Children(ChildEnvironment);

    impl Children {
        fn of(variables: &[(&str, &str)], keys: &[&str], withhold: &[&str], pass: &[&str]) -> Self {
            let list = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
            let settings = ChildEnvironmentSettings { withhold: list(withhold), pass: list(pass) };
            Self(child_environment(&ChildSources {
                environment: &variables.iter().copied().collect(),
                keys: &keys.iter().map(|name| (*name).to_owned()).collect(),
                settings: Some(&settings),
                agent_dir: Path::new("/a"),
                compat: false,
            }))
        }

        fn get(&self, name: &str) -> Option<&str> {
            self.0.iter().find(|(key, _)| key == name)?.1.to_str()
        }

        fn names(&self) -> Vec<&str> {
            self.0.iter().filter_map(|(name, _)| name.to_str()).collect()
        }
    }

    #[test]
    fn children_see_where_they_are_and_nothing_stale() {
        let variables = [("PATH", "/usr/bin"), ("PI_SESSION_ID", "old"), ("HOME", "/h"), ("PI_OFFLINE", "1")];
        let children = Children::of(&variables, &[], &[], &["*"]);
        assert_eq!(children.get("PATH"), Some("/a/bin:/usr/bin"));
        assert_eq!(children.get("PI_SESSION_ID"), None);
        assert_eq!(children.get("PI_OFFLINE"), Some("1"));
        assert_eq!(
            (children.get("AI_AGENT"), children.get("PI_CODING_AGENT")),
            (Some("agentd"), Some("true"))
        );
    }

    const OWN: [&str; 3] = ["AI_AGENT", "PATH", "PI_CODING_AGENT"];

    fn check(withhold: &[&str], pass: &[&str], expected: &[&str]) {
        let variables = ["ONE_API_KEY", "TWO_API_KEY", "HF_TOKEN", "HOME", "OTHER"].map(|name| (name, "v"));
        let keys = ["ONE_API_KEY", "TWO_API_KEY", "HF_TOKEN", "HOME"];
        let children = Children::of(&variables, &keys, withhold, pass);
        let mut expected = [&OWN[..], expected].concat();
        expected.sort_unstable();
        assert_eq!(children.names(), expected, "{withhold:?} {pass:?}");
    }

    #[test]
    fn keys_of_models_stay_behind_unless_passed() {
        check(&[], &[], &["HF_TOKEN", "HOME", "OTHER"]);
        check(&[], &["ONE_*"], &["ONE_API_KEY", "HF_TOKEN", "HOME", "OTHER"]);
        check(&["HF_TOKEN", "OTH*"], &[], &["HOME"]);
        check(&["*"], &["HOME", "TWO_API_KEY"], &["HOME", "TWO_API_KEY"]);
        check(&["OTHER"], &["OTHER"], &["HF_TOKEN", "HOME", "OTHER"]);
    }
}
