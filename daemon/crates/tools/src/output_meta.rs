//! `details.meta` of a result: where a content comes from and where the rest of it is, for clients. Pure.

use serde_json::{Map, Value, json};

/// The key in the details of a result.
const META: &str = "meta";

/// What clients are told of a content, besides what pi tells them. Nothing is said of what is not there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct OutputMeta {
    /// The artifact that has all of it.
    pub(crate) artifact_id: Option<String>,
    /// The URL that was read in the place of a path.
    pub(crate) internal_source: Option<String>,
}

impl OutputMeta {
    /// Adds it to the details of a result.
    pub(crate) fn add_to(self, details: &mut Map<String, Value>) {
        let Self { artifact_id, internal_source } = self;
        let mut meta = Map::new();
        meta.extend(artifact_id.map(|id| ("artifactId".to_owned(), id.into())));
        meta.extend(internal_source.map(|url| ("source".to_owned(), json!({ "internal": url }))));
        if !meta.is_empty() {
            details.insert(META.to_owned(), meta.into());
        }
    }

    /// The details of a result with it. Details that are no object stay as they are.
    pub(crate) fn with(self, details: Option<Value>) -> Option<Value> {
        match details {
            None => {
                let mut details = Map::new();
                self.add_to(&mut details);
                (!details.is_empty()).then_some(Value::Object(details))
            }
            Some(Value::Object(mut details)) => {
                self.add_to(&mut details);
                Some(Value::Object(details))
            }
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_there_only_where_it_says_something() {
        assert_eq!(OutputMeta::default().with(None), None);
        assert_eq!(OutputMeta::default().with(Some(json!({"a": 1}))), Some(json!({"a": 1})));
        let meta = OutputMeta { artifact_id: Some("0a".to_owned()), ..OutputMeta::default() };
        assert_eq!(meta.with(None), Some(json!({"meta": {"artifactId": "0a"}})));
        let meta = || OutputMeta { internal_source: Some("rule://x".to_owned()), ..OutputMeta::default() };
        assert_eq!(
            meta().with(Some(json!({"a": 1}))),
            Some(json!({"a": 1, "meta": {"source": {"internal": "rule://x"}}}))
        );
        assert_eq!(meta().with(Some(json!(3))), Some(json!(3)));
    }
}
