//! Parts of requests that several APIs share.

use std::fmt;

use agentd_protocol::message::ImageContent;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::Request;

/// Serialises an image as a data URL without copying it first.
#[derive(Debug)]
pub(crate) struct DataUrl<'a>(pub(crate) &'a ImageContent);

impl fmt::Display for DataUrl<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "data:{};base64,{}", self.0.mime_type, self.0.data)
    }
}

impl Serialize for DataUrl<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Serialises the arguments of a call as JSON text in a JSON string.
#[derive(Debug)]
pub(crate) struct ArgumentsText<'a>(pub(crate) &'a Map<String, Value>);

impl Serialize for ArgumentsText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = serde_json::to_string(self.0).map_err(serde::ser::Error::custom)?;
        serializer.serialize_str(&text)
    }
}

/// The configured fields of the model, overridden by those of its thinking level.
pub(crate) fn sampling_params(request: &Request) -> Map<String, Value> {
    let model = &*request.model;
    let mut params = model.sampling_params.clone().unwrap_or_default();
    let by_level = model.sampling_params_by_thinking_level.as_ref();
    let of_level = by_level.and_then(|levels| levels.get(request.thinking_level.as_str()));
    for (name, value) in of_level.and_then(Value::as_object).into_iter().flatten() {
        params.insert(name.clone(), value.clone());
    }
    params
}
