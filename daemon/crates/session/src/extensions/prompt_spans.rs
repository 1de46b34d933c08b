//! The events `ui_prompt_start` and `ui_prompt_end`: questions that overlap are one span.

use std::sync::{Arc, Mutex, PoisonError};

use agentd_extensions::{EventKind, SessionExtensions};
use serde_json::{Value, json};

/// The questions of a session's extensions that are open. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct PromptSpans(Arc<Mutex<OpenPrompts>>);

#[derive(Default)]
struct OpenPrompts {
    open: usize,
    /// The end of the span, which tells of the question that began it.
    end: Value,
}

/// A question that is open until this is dropped.
pub(crate) struct PromptSpan {
    spans: PromptSpans,
    extensions: SessionExtensions,
}

impl PromptSpans {
    /// A question begins. `method`: the call, as `ui.select`.
    pub(crate) fn begin(
        &self,
        extensions: &SessionExtensions,
        method: &str,
        title: Option<&str>,
    ) -> PromptSpan {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.open += 1;
        if open.open == 1 {
            let kind = method.strip_prefix("ui.").unwrap_or(method);
            let event = |name: &str| {
                let mut event = json!({"type": name, "reason": "ui_prompt", "kind": kind});
                if let Some(title) = title.filter(|title| !title.is_empty()) {
                    event["title"] = title.into();
                }
                event
            };
            open.end = event("ui_prompt_end");
            tell(extensions, EventKind::UiPromptStart, event("ui_prompt_start"));
        }
        PromptSpan { spans: self.clone(), extensions: extensions.clone() }
    }
}

impl Drop for PromptSpan {
    fn drop(&mut self) {
        let mut open = self.spans.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.open -= 1;
        if open.open == 0 {
            tell(&self.extensions, EventKind::UiPromptEnd, std::mem::take(&mut open.end));
        }
    }
}

/// Nobody waits for the handlers.
fn tell(extensions: &SessionExtensions, kind: EventKind, event: Value) {
    if extensions.listens(kind) {
        extensions.notify_detached(kind, event);
    }
}
