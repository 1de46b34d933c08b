//! Asking extensions whether a project is trusted, before anything of the project is used.

use serde_json::{Value, json};

use crate::{
    event::EventKind, extensions::SessionExtensions, hooks::GATE_WAIT, registrations::HandlerRef,
    runtime::Runtime,
};

/// What an extension says about a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrustAnswer {
    /// Whether the project is trusted.
    pub trusted: bool,
    /// Whether the answer is to be saved.
    pub remember: bool,
}

impl SessionExtensions {
    /// Asks the handlers of `project_trust`: the first that says yes or no decides. Also gives what went wrong, in pi's words.
    pub async fn project_trust(&self, cwd: &str) -> (Option<TrustAnswer>, Vec<String>) {
        let event = json!({"type": EventKind::ProjectTrust.name(), "cwd": cwd});
        let mut errors = Vec::new();
        for handler in self.0.handlers(EventKind::ProjectTrust) {
            match self.0.asked_about_trust(handler, &event).await {
                Ok(Some(answer)) => return (Some(answer), errors),
                Ok(None) => {}
                Err(error) => errors.push(error),
            }
        }
        (None, errors)
    }
}

impl Runtime {
    async fn asked_about_trust(
        &self,
        handler: HandlerRef,
        event: &Value,
    ) -> Result<Option<TrustAnswer>, String> {
        let kind = EventKind::ProjectTrust.name();
        let returned = self.ask(handler, event, GATE_WAIT).await;
        let text = match returned.map(|returned| read_answer(&returned.value.unwrap_or_default())) {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(text)) => text,
            Err(failure) => self.failure_text(kind, handler, failure),
        };
        let path = self.path(handler.extension).to_owned();
        let told = format!("Extension \"{path}\" {kind} error: {text}");
        self.failed(path, kind, text);
        Err(told)
    }
}

/// What a handler says; `None` where it leaves the decision to others.
fn read_answer(value: &Value) -> Result<Option<TrustAnswer>, String> {
    let remember = value["remember"] == true;
    match value["trusted"].as_str() {
        Some("yes") => Ok(Some(TrustAnswer { trusted: true, remember })),
        Some("no") => Ok(Some(TrustAnswer { trusted: false, remember })),
        Some("undecided") => Ok(None),
        _ => Err("it must return \"trusted\" as \"yes\", \"no\" or \"undecided\"".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers() {
        let read = |value: Value| read_answer(&value);
        let answer = |trusted, remember| Ok(Some(TrustAnswer { trusted, remember }));
        assert_eq!(read(json!({"trusted": "yes"})), answer(true, false));
        assert_eq!(read(json!({"trusted": "no", "remember": true})), answer(false, true));
        assert_eq!(read(json!({"trusted": "undecided", "remember": true})), Ok(None));
        for unusable in [json!(null), json!({}), json!({"trusted": true}), json!("yes")] {
            assert!(read(unusable).is_err());
        }
    }
}
