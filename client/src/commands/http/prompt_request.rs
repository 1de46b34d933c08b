//! What a request asks for: the JSON object of `POST /prompt`.

use std::path::PathBuf;

use agentd_protocol::{
    command::{Image, PromptParams},
    settings::BudgetLimits,
};
use serde::Deserialize;

/// The body of `POST /prompt`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Body {
    message: String,
    #[serde(default)]
    images: Vec<Image>,
    cwd: Option<PathBuf>,
    session: Option<String>,
    #[serde(default)]
    no_session: bool,
    model: Option<String>,
    thinking: Option<String>,
    tools: Option<String>,
    name: Option<String>,
    budget: Option<BudgetLimits>,
    #[serde(default)]
    on_disconnect: OnDisconnect,
}

/// What becomes of the run when the request is closed before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum OnDisconnect {
    /// It is stopped.
    #[default]
    Abort,
    /// It goes on, in the daemon that all clients share.
    Detach,
}

/// A prompt, and the session for it.
#[derive(Debug, PartialEq)]
pub(super) struct PromptRequest {
    pub(super) params: PromptParams,
    /// The folder; `None` for ours.
    pub(super) cwd: Option<PathBuf>,
    /// Flags of `agentd --stdio`.
    pub(super) args: Vec<String>,
    pub(super) on_disconnect: OnDisconnect,
}

impl PromptRequest {
    /// Reads a body.
    ///
    /// # Errors
    /// A sentence for the user about what is wrong.
    pub(super) fn parse(body: &[u8]) -> Result<Self, String> {
        let body: Body = serde_json::from_slice(body).map_err(|error| format!("Invalid body: {error}"))?;
        if body.message.trim().is_empty() && body.images.is_empty() {
            return Err("Invalid field \"message\": it is empty".into());
        }
        if body.cwd.as_ref().is_some_and(|cwd| !cwd.is_absolute()) {
            return Err("Invalid field \"cwd\": an absolute path is needed".into());
        }
        if body.no_session && body.session.is_some() {
            return Err("Invalid field \"noSession\": \"session\" names one".into());
        }
        let mut args = Vec::new();
        for (field, flag, value) in [
            ("session", "--session", body.session),
            ("model", "--model", body.model),
            ("thinking", "--thinking", body.thinking),
            ("name", "--name", body.name),
        ] {
            let Some(value) = value else { continue };
            if value.is_empty() || value.starts_with('-') {
                return Err(format!("Invalid field \"{field}\": it is empty or begins with -"));
            }
            args.extend([flag.to_owned(), value]);
        }
        if let Some(tools) = body.tools {
            args.push(format!("--tools={tools}"));
        }
        if body.no_session {
            args.push("--no-session".to_owned());
        }
        Ok(Self {
            params: PromptParams {
                message: body.message,
                images: body.images,
                budget: body.budget,
                ..PromptParams::default()
            },
            cwd: body.cwd,
            args,
            on_disconnect: body.on_disconnect,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_become_flags() {
        let body = br#"{"message":"Hi","cwd":"/tmp","model":"a/b","tools":"-bash","noSession":true,"onDisconnect":"detach"}"#;
        let request = PromptRequest::parse(body).unwrap();
        assert_eq!(request.args, ["--model", "a/b", "--tools=-bash", "--no-session"]);
        assert_eq!((request.params.message.as_str(), request.cwd), ("Hi", Some("/tmp".into())));
        assert_eq!(request.on_disconnect, OnDisconnect::Detach);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (body, named) in [
            ("hello", "expected value"),
            ("{}", "missing field `message`"),
            (r#"{"message":" "}"#, "\"message\""),
            (r#"{"message":"x","prompt":"y"}"#, "unknown field `prompt`"),
            (r#"{"message":"x","cwd":"here"}"#, "\"cwd\""),
            (r#"{"message":"x","session":"--fork"}"#, "\"session\""),
            (r#"{"message":"x","session":"a","noSession":true}"#, "\"noSession\""),
            (r#"{"message":"x","onDisconnect":"stay"}"#, "unknown variant `stay`"),
        ] {
            let error = PromptRequest::parse(body.as_bytes()).expect_err(body);
            assert!(error.contains(named), "{body}: {error}");
        }
    }
}
