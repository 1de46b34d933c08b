//! Calls of extensions of image and classifier models.

use std::sync::Arc;

use agentd_extensions::{HostFailure, NonChat};
use agentd_protocol::model::Model;
use serde_json::{Map, Value};

use super::model_facts::auth_of;
use crate::context::SessionContext;

/// Runs the model of a call with the credentials of the session.
///
/// # Errors
/// Why there is no result, for the extension.
///
/// Cancel safety: dropped early, the model's extension is asked to stop.
pub(crate) async fn run_non_chat(
    context: &Arc<SessionContext>,
    kind: NonChat,
    params: &Value,
) -> Result<Value, HostFailure> {
    let failed = |text: String| HostFailure::new("unsupported", text);
    let given = &params["model"];
    let (Some(provider), Some(id)) = (given["provider"].as_str(), given["id"].as_str()) else {
        return Err(HostFailure::new("invalid", "the parameter model needs a provider and an id"));
    };
    let Some(extensions) = &context.extensions else {
        return Err(failed(format!("Provider {provider} does not support {}", kind.operation())));
    };
    let listed = extensions.non_chat_models().into_iter().find(|known| {
        known["type"] == kind.model_type() && known["provider"] == provider && known["id"] == id
    });
    // A model may be named only.
    let mut model = if given["type"].is_null() { listed.clone().unwrap_or_default() } else { given.clone() };
    if model["type"] != kind.model_type() {
        let article = if kind == NonChat::Image { "an" } else { "a" };
        return Err(failed(format!("Model {provider}/{id} is not {article} {} model", kind.model_type())));
    }
    let has_images = params["context"]["images"].as_array().is_some_and(|images| !images.is_empty());
    let takes_images = model["input"].as_array().is_some_and(|input| input.iter().any(|it| it == "image"));
    if kind == NonChat::Classifier && has_images && !takes_images {
        return Err(failed(format!("Model {provider}/{id} does not accept image input")));
    }
    if listed.is_none() && !context.models.providers().any(|known| known == provider) {
        return Err(failed(format!("Unknown provider: {provider}")));
    }
    let mut options = params["options"].as_object().cloned().unwrap_or_default();
    let headers = listed.as_ref().and_then(|known| known["headers"].as_object());
    let base_url = authorise(context, &model, headers, &mut options).await.map_err(failed)?;
    if let Some(base_url) = base_url {
        model["baseUrl"] = base_url;
    }
    let arguments = (&params["context"], &options);
    extensions.run_non_chat(kind, &model, arguments).await.map_err(failed)
}

/// Adds the credentials of a model to options, which have the last word. Another address is returned.
async fn authorise(
    context: &Arc<SessionContext>,
    model: &Value,
    headers: Option<&Map<String, Value>>,
    options: &mut Map<String, Value>,
) -> Result<Option<Value>, String> {
    let own = |name: &str| model[name].as_str().unwrap_or_default().to_owned();
    let provider = own("provider");
    let has_own_key = options.get("apiKey").is_some_and(Value::is_string);
    if !has_own_key && !context.services.has_auth(&context.auth, &provider) {
        return Err(format!("Provider is not configured: {provider}"));
    }
    let model = Arc::new(Model {
        provider,
        id: own("id"),
        api: own("api"),
        base_url: own("baseUrl"),
        headers: headers.cloned(),
        ..Model::placeholder()
    });
    let mut auth = auth_of(context, &model).await;
    if auth["ok"] != true && !has_own_key {
        return Err(auth["error"].as_str().unwrap_or_default().to_owned());
    }
    if let (false, Some(key)) = (has_own_key, auth.get("apiKey")) {
        options.insert("apiKey".to_owned(), key.clone());
    }
    let mut merged = auth["headers"].as_object().cloned().unwrap_or_default();
    for (name, value) in options.get("headers").and_then(Value::as_object).into_iter().flatten() {
        merged.retain(|known, _| !known.eq_ignore_ascii_case(name));
        merged.insert(name.clone(), value.clone());
    }
    if !merged.is_empty() {
        options.insert("headers".to_owned(), Value::Object(merged));
    }
    Ok(auth.get_mut("baseUrl").map(Value::take))
}
