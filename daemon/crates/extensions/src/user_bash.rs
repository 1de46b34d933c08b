//! Commands of the user that extensions see before they run: they may run them elsewhere, or give their result.

use std::sync::Weak;

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    connection::{RequestError, RequestTerms},
    event::EventKind,
    extensions::SessionExtensions,
    hooks::{GATE_WAIT, HandlerFailure},
    runtime::Runtime,
};

/// Time for an extension to stop a command.
const ABORT_GRACE: std::time::Duration = std::time::Duration::from_secs(5);

/// What extensions make of a command of the user.
pub enum UserBashVerdict {
    /// It runs as usual.
    Usual,
    /// An extension runs it.
    Elsewhere(BashOperations),
    /// It has run, with this result.
    Done(UserBashResult),
    /// It must not run.
    Blocked(String),
}

/// The result of a command, as an extension gives it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserBashResult {
    /// What it printed.
    pub output: String,
    /// How it ended.
    #[serde(default)]
    pub exit_code: Option<i32>,
    /// Whether it was stopped.
    pub cancelled: bool,
    /// Whether `output` is not all.
    pub truncated: bool,
    /// The file with all of it.
    #[serde(default)]
    pub full_output_path: Option<String>,
}

/// Functions of an extension that run commands.
#[derive(Clone)]
pub struct BashOperations {
    extensions: Weak<Runtime>,
    extension: usize,
    exec: u64,
}

impl BashOperations {
    /// Runs a command to its end and gives `data` what it prints. `None`: nobody knows how it ended.
    ///
    /// # Errors
    /// What the extension says, for people.
    pub async fn exec(
        &self,
        (command, cwd): (&str, &str),
        cancel: &CancellationToken,
        data: impl Fn(Vec<u8>) + Send + Sync + 'static,
    ) -> Result<Option<i32>, String> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Ended {
            #[serde(default)]
            exit_code: Option<i32>,
        }
        let Some(extensions) = self.extensions.upgrade() else {
            return Err("The extension that runs the command is closed.".to_owned());
        };
        let fields = json!({
            "epoch": extensions.epoch_of(self.extension), "cb": self.exec, "method": "exec", "args": [command, cwd, {}],
        });
        let partials = move |chunk: Value| {
            if let Some(Ok(bytes)) = chunk.as_str().map(|chunk| BASE64.decode(chunk)) {
                data(bytes);
            }
        };
        let terms = RequestTerms {
            limit: None,
            cancel: Some(cancel),
            grace: ABORT_GRACE,
            partials: Some(Box::new(partials)),
            ..RequestTerms::default()
        };
        let host = extensions.host_of(self.extension);
        let answer = host.request("ops.call", &fields, terms).await.map_err(|error| match error {
            RequestError::Late => "The extension did not stop the command.".to_owned(),
            error => extensions.explain(&error, "user_bash"),
        })?;
        serde_json::from_str::<Ended>(answer.get())
            .map(|Ended { exit_code }| exit_code)
            .map_err(|error| format!("The end of the command cannot be used: {error}"))
    }
}

impl SessionExtensions {
    /// Asks about a command of the user. The first handler that returns something decides; one that throws, or does not answer, prevents the
    /// command.
    pub async fn user_bash(&self, command: &str, exclude_from_context: bool, cwd: &str) -> UserBashVerdict {
        if let Some(reason) = self.0.missing_gate(EventKind::UserBash) {
            return UserBashVerdict::Blocked(reason);
        }
        let event = json!({
            "type": "user_bash", "command": command, "excludeFromContext": exclude_from_context, "cwd": cwd,
        });
        for handler in self.0.handlers(EventKind::UserBash) {
            let path = self.0.path(handler.extension).to_owned();
            let failed = |text: String| {
                self.0.failed(path.clone(), "user_bash", text.clone());
                UserBashVerdict::Blocked(text)
            };
            let returned = match self.0.ask(handler, &event, GATE_WAIT).await {
                Ok(returned) => returned,
                Err(HandlerFailure::Threw(message)) => return failed(message),
                Err(HandlerFailure::Missing(RequestError::Late)) => {
                    return failed(format!("Extension \"{path}\" did not answer in time"));
                }
                Err(HandlerFailure::Missing(_)) if self.0.runs_when_down() => continue,
                Err(HandlerFailure::Missing(error)) => return failed(self.0.explain(&error, "user_bash")),
            };
            let Some(value) = returned.value.filter(|value| !value.is_null()) else { continue };
            let operations = value["operations"]["exec"]["cb"].as_u64();
            let result = value.get("result").filter(|result| !result.is_null());
            return match (operations, result) {
                (Some(exec), None) => UserBashVerdict::Elsewhere(BashOperations {
                    extensions: std::sync::Arc::downgrade(&self.0),
                    extension: handler.extension,
                    exec,
                }),
                (None, Some(result)) => match serde_json::from_value(result.clone()) {
                    Ok(result) => UserBashVerdict::Done(result),
                    Err(_) => failed(INVALID.to_owned()),
                },
                _ => failed(INVALID.to_owned()),
            };
        }
        UserBashVerdict::Usual
    }
}

/// The text of pi for what no handler may return.
const INVALID: &str = "Invalid user_bash handler result: return undefined for local execution or exactly one valid { operations } or { result } object";
