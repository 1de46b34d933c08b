//! The boundaries of a run, `turn_end` and `agent_before_settle`: handlers may add entries and have the model asked once more.

use futures::future::BoxFuture;
use serde_json::{Map, Value};

use crate::{event::EventKind, extensions::SessionExtensions};

/// What handlers have made of a boundary.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Boundary {
    /// Drafts of entries, in order.
    pub entries: Vec<Value>,
    /// Whether the model is asked once more.
    pub goes_on: bool,
}

impl SessionExtensions {
    /// Asks the handlers of a boundary, one after the other: what one returns takes the place of what those before it did. `check` says
    /// whether the drafts can be used. `None` where they cannot be in the end.
    pub async fn boundary<'a>(
        &self,
        kind: EventKind,
        fields: &Map<String, Value>,
        check: &(dyn Fn(Vec<Value>) -> BoxFuture<'a, Result<(), String>> + Send + Sync + 'a),
    ) -> Option<Boundary> {
        let (mut now, mut is_valid) = (Boundary::default(), true);
        for handler in self.0.handlers(kind) {
            let mut event = fields.clone();
            event.insert("type".to_owned(), kind.name().into());
            event.insert("entries".to_owned(), now.entries.clone().into());
            event.insert("continue".to_owned(), now.goes_on.into());
            let returned = self.0.asked(kind, handler, &event).await;
            let Some(Value::Object(mut value)) = returned.and_then(|it| it.value) else { continue };
            if let Some(goes_on) = value.get("continue").and_then(Value::as_bool) {
                now.goes_on = goes_on;
            }
            let Some(entries) = value.remove("entries").filter(|entries| !entries.is_null()) else {
                continue;
            };
            let checked = match entries {
                Value::Array(entries) => {
                    now.entries.clone_from(&entries);
                    if entries.is_empty() { Ok(()) } else { check(entries).await }
                }
                _ => Err("they are no list".to_owned()),
            };
            is_valid = checked.is_ok();
            if let Err(error) = checked {
                let path = self.0.path(handler.extension).to_owned();
                self.0.failed(path, kind.name(), format!("Invalid boundary entries: {error}"));
            }
        }
        is_valid.then_some(now)
    }

    /// Tells the clients of a failure at a boundary.
    pub fn boundary_failed(&self, kind: EventKind, error: String) {
        self.0.failed("<boundary>".to_owned(), kind.name(), error);
    }
}
