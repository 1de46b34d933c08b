//! The findings of `diagnose`, and the actions of `setup_local` on model servers of this machine.

use serde::{Deserialize, Serialize};

/// The answer to `diagnose`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Diagnosis {
    /// The checks, always in the same order.
    pub checks: Vec<Check>,
    /// A sentence about all of them.
    pub summary: String,
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Check {
    /// The check's name, for programs, such as `settings`. Checks of several things of one kind (keys, servers) share
    /// an id.
    pub id: String,
    /// The same for people.
    pub title: String,
    /// Its outcome.
    pub status: CheckStatus,
    /// The finding. Never a key, nor a part of one.
    pub detail: String,
    /// The remedy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

/// The outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum CheckStatus {
    /// Nothing is to be done.
    Ok,
    /// It works, but not as someone may expect.
    Warning,
    /// Something that agentd needs does not work.
    Problem,
}

/// The fields of `setup_local`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SetupLocalParams {
    /// The server, such as `http://127.0.0.1:8080/v1`. Without it, the ports of this machine are asked that model servers
    /// listen on by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The provider's id in `models.json`; default the one that the server has there already, else `local`, `local-2`
    /// and so on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Only this model of the server; default all that can chat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Only tells what would be written; default false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<bool>,
    /// Also writes a server of this machine that another user runs, who reads what is sent to it; default false: it is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_user: Option<bool>,
}

/// The answer to `setup_local`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LocalSetup {
    /// The path of `models.json`.
    pub file: String,
    /// Whether the file was written: false for a dry run, and when it said all of this already.
    pub written: bool,
    /// The servers that were found, one provider each.
    pub providers: Vec<LocalProvider>,
}

/// A model server, and what `models.json` says of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LocalProvider {
    /// The provider's id in `models.json`.
    pub provider: String,
    /// The address for requests.
    pub base_url: String,
    /// The probable server, by its port; absent for an unknown port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The process that listens there; absent for another machine, and where the system does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listener: Option<Listener>,
    /// The ids of the models that the server has.
    pub models: Vec<String>,
    /// The consequence for `models.json`.
    pub change: SetupChange,
    /// Models that `models.json` has and the server does not name. They are left as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_served: Vec<String>,
}

/// The process that listens on a port of this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Listener {
    /// The user's number.
    pub user_id: u32,
    /// The user's name, where `/etc/passwd` has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Whether that is neither the user of the daemon nor root.
    pub is_other_user: bool,
    /// The process, where it is one of the daemon's user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The name of that process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
}

/// The consequence of a server for `models.json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum SetupChange {
    /// It gets a provider of its own.
    Added,
    /// Its provider gets more models.
    Updated,
    /// All is there already.
    Unchanged,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_on_the_wire() {
        let check = Check {
            id: "shell".into(),
            title: "shell".into(),
            status: CheckStatus::Warning,
            detail: "d".into(),
            advice: None,
        };
        let text = r#"{"id":"shell","title":"shell","status":"warning","detail":"d"}"#;
        assert_eq!(serde_json::to_string(&check).unwrap(), text);
        let params: SetupLocalParams =
            serde_json::from_str(r#"{"baseUrl":"http://h","dryRun":true}"#).unwrap();
        assert_eq!((params.base_url.as_deref(), params.dry_run), (Some("http://h"), Some(true)));
        assert_eq!(serde_json::to_string(&SetupLocalParams::default()).unwrap(), "{}");
        assert!(CheckStatus::Ok < CheckStatus::Warning && CheckStatus::Warning < CheckStatus::Problem);
    }
}
