//! The fields that the user's configuration adds to a request.

use serde_json::{Map, Value};

use crate::Request;

/// The configured fields of the model, over them those of its thinking level.
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
