//! What clients send: the parameters of their requests, read leniently. An optional field that is `null`, or of a form that this
//! version does not know, reads as absent.

use std::path::Path;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::{
    mcp_servers::McpServer,
    rpc::{RpcError, quoted},
};

/// The one version of the protocol that is spoken.
pub(crate) const PROTOCOL_VERSION: u16 = 1;

/// Reads a value of any form; what cannot be read is the default.
fn lenient<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: for<'a> Deserialize<'a> + Default,
{
    Ok(T::deserialize(Value::deserialize(deserializer)?).unwrap_or_default())
}

/// An object that says by being there that something is supported.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct Supported {}

/// `initialize`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InitializeParams {
    /// The newest version that the client speaks. Any number is answered with ours.
    #[serde(rename = "protocolVersion")]
    pub(crate) _protocol_version: u64,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) client_capabilities: ClientCapabilities,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) client_info: Option<ClientInfo>,
}

/// The client's name.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ClientInfo {
    pub(crate) name: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) version: Option<String>,
}

/// What the client can do for us.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub(crate) struct ClientCapabilities {
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) fs: FileCapabilities,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) terminal: bool,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) session: SessionCapabilities,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) elicitation: ElicitationCapabilities,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) auth: AuthCapabilities,
    #[serde(default, rename = "_meta", deserialize_with = "lenient")]
    pub(crate) meta: MetaCapabilities,
}

/// The client's access to files.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FileCapabilities {
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) read_text_file: bool,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) write_text_file: bool,
}

/// Updates that only some clients know.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub(crate) struct SessionCapabilities {
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) compaction: Option<Supported>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) notices: Option<Supported>,
}

/// Questions that the client can show.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub(crate) struct ElicitationCapabilities {
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) form: Option<Supported>,
}

/// Ways to log in that the client supports.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub(crate) struct AuthCapabilities {
    /// Whether it runs the agent's command line, with arguments added, in a terminal.
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) terminal: bool,
}

/// What clients said before it had a place in the protocol.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub(crate) struct MetaCapabilities {
    /// Whether it runs a command that a way to log in names, in a terminal.
    #[serde(default, rename = "terminal-auth", deserialize_with = "lenient")]
    pub(crate) terminal_auth: bool,
}

/// `authenticate`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AuthenticateParams {
    pub(crate) method_id: String,
}

/// `session/new`, `session/load`, `session/resume`, `session/fork`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OpenParams {
    #[serde(default)]
    pub(crate) session_id: Option<String>,
    pub(crate) cwd: String,
    #[serde(default)]
    pub(crate) mcp_servers: Option<Vec<McpServer>>,
    #[serde(default)]
    pub(crate) additional_directories: Option<Vec<String>>,
}

impl OpenParams {
    /// Checks the folders.
    ///
    /// # Errors
    /// For a relative path.
    pub(crate) fn check(&self) -> Result<(), RpcError> {
        let further =
            self.additional_directories.iter().flatten().map(|folder| ("additionalDirectories", folder));
        for (field, folder) in std::iter::once(("cwd", &self.cwd)).chain(further) {
            if !Path::new(folder).is_absolute() {
                let text =
                    format!("Invalid params: {field}: expected an absolute path, got \"{}\"", quoted(folder));
                return Err(RpcError::invalid_params(text));
            }
        }
        Ok(())
    }
}

/// `session/list`.
#[derive(Debug, Deserialize)]
pub(crate) struct ListParams {
    #[serde(default)]
    pub(crate) cwd: Option<String>,
    #[serde(default)]
    pub(crate) cursor: Option<String>,
}

/// `session/close`, `session/delete`, `session/cancel`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionParams {
    pub(crate) session_id: String,
}

/// `session/set_mode`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SetModeParams {
    pub(crate) session_id: String,
    pub(crate) mode_id: String,
}

/// `session/set_config_option`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SetOptionParams {
    pub(crate) session_id: String,
    pub(crate) config_id: String,
    pub(crate) value: Value,
}

/// `session/prompt`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PromptParams {
    pub(crate) session_id: String,
    pub(crate) prompt: Vec<PromptBlock>,
}

/// A block of a prompt.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(crate) enum PromptBlock {
    /// Text.
    Text { text: String },
    /// An image, in Base64.
    Image { data: String, mime_type: String },
    /// Sound, which no model here takes.
    Audio { mime_type: String },
    /// A file or page that the agent can look at.
    ResourceLink { uri: String },
    /// A file or page with its content.
    Resource { resource: EmbeddedResource },
}

/// An embedded file: as text, or as bytes in Base64.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EmbeddedResource {
    pub(crate) uri: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) mime_type: Option<String>,
    #[serde(default)]
    pub(crate) text: Option<String>,
    #[serde(default)]
    pub(crate) blob: Option<String>,
}

/// `$/cancel_request`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CancelRequestParams {
    pub(crate) request_id: Box<serde_json::value::RawValue>,
}

/// The answer to `session/request_permission`.
#[derive(Debug, Deserialize)]
pub(crate) struct PermissionOutcome {
    pub(crate) outcome: Outcome,
}

/// What the user chose.
#[derive(Debug, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(crate) enum Outcome {
    /// One of the options.
    Selected { option_id: String },
    /// None: the turn was cancelled.
    Cancelled,
}

/// The answer to `elicitation/create`.
#[derive(Debug, Deserialize)]
pub(crate) struct ElicitationAnswer {
    pub(crate) action: String,
    #[serde(default)]
    pub(crate) content: Option<serde_json::Map<String, Value>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capabilities(text: &str) -> ClientCapabilities {
        let text = format!(r#"{{"protocolVersion":1,"clientCapabilities":{text}}}"#);
        serde_json::from_str::<InitializeParams>(&text).unwrap().client_capabilities
    }

    #[test]
    fn capabilities_are_read_leniently() {
        for nothing in ["null", "{}", "5", r#"{"fs":null,"elicitation":null,"session":{"notices":null}}"#] {
            let read = capabilities(nothing);
            assert!(!read.fs.read_text_file && read.elicitation.form.is_none(), "{nothing}");
            assert!(read.session.notices.is_none() && read.session.compaction.is_none(), "{nothing}");
        }
        let read = capabilities(
            r#"{"fs":{"readTextFile":true,"writeTextFile":null},"session":{"notices":{"x":1},"compaction":{}},"elicitation":{"form":{},"url":{}}}"#,
        );
        assert!(read.fs.read_text_file && !read.fs.write_text_file);
        assert!(read.session.notices.is_some() && read.session.compaction.is_some());
        assert!(read.elicitation.form.is_some());
        assert!(!read.auth.terminal && !read.meta.terminal_auth && !read.terminal);
        let read =
            capabilities(r#"{"auth":{"terminal":true},"_meta":{"terminal-auth":true},"terminal":true}"#);
        assert!(read.auth.terminal && read.meta.terminal_auth && read.terminal);
    }

    #[test]
    fn a_folder_has_to_be_absolute() {
        let open = |cwd: &str, further: Option<&str>| OpenParams {
            session_id: None,
            cwd: cwd.to_owned(),
            mcp_servers: None,
            additional_directories: further.map(|folder| vec!["/b".to_owned(), folder.to_owned()]),
        };
        assert!(open("/a", None).check().is_ok() && open("/a", Some("/c")).check().is_ok());
        assert!(open("a", None).check().is_err() && open("", None).check().is_err());
        assert!(open("/a", Some("c")).check().is_err());
    }
}
