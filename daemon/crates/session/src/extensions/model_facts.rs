//! What extensions are told of models and credentials.

use std::sync::Arc;

use agentd_auth::KeySource;
use agentd_extensions::SessionExtensions;
use agentd_protocol::{model::Model, models_file::ConfigValue};
use serde_json::{Map, Value, json};

use super::provider_hooks::header_value;
use crate::context::SessionContext;

/// The value of the topic `models`.
pub(crate) async fn models_topic(context: &Arc<SessionContext>) -> Value {
    let of_auth = Arc::clone(context);
    let found = context.with_usable_models(move |usable| {
        let (mut models, mut providers) = (Vec::new(), Map::new());
        for provider in usable.registry.providers() {
            models.extend(usable.registry.models_of(provider).map(|model| json!(&**model)));
            let configured = (usable.has_auth)(provider);
            providers.insert(provider.to_owned(), provider_facts(&of_auth, provider, configured));
        }
        for model in of_auth.extensions.iter().flat_map(SessionExtensions::non_chat_models) {
            let provider = model["provider"].as_str().unwrap_or_default().to_owned();
            if !providers.contains_key(&provider) {
                let configured = (usable.has_auth)(&provider);
                providers.insert(provider.clone(), provider_facts(&of_auth, &provider, configured));
            }
            models.push(model);
        }
        let mut value = json!({"models": models, "providers": providers});
        if let Some(error) = usable.registry.load_error() {
            value["error"] = error.into();
        }
        value
    });
    found.await
}

fn provider_facts(context: &SessionContext, provider: &str, configured: bool) -> Value {
    let config = context.models.provider(provider);
    let name = config.map(|config| config.name.as_str()).filter(|name| !name.is_empty()).unwrap_or(provider);
    let status = context.auth.status(provider).filter(|status| configured && status.problem.is_none());
    let source = status.as_ref().map(|status| status.source);
    let oauth = source == Some(KeySource::Stored) && context.auth.login(provider).is_some();
    let mut facts = json!({"name": name, "configured": configured, "oauth": oauth});
    if let Some(base_url) = config.and_then(|config| config.base_url.as_deref()) {
        facts["baseUrl"] = agentd_protocol::shown_url::shown(base_url).into();
    }
    let key = || config.and_then(|config| config.api_key.as_ref()).map(ConfigValue::expose);
    match source {
        Some(KeySource::Flag) => facts["source"] = "runtime".into(),
        Some(KeySource::Stored) => facts["source"] = "stored".into(),
        Some(KeySource::ModelsFile) => {
            facts["source"] = match key() {
                Some(key) if key.starts_with('!') => "models_json_command",
                Some(key) if key.replace("$$", "").contains('$') => "environment",
                _ => "models_json_key",
            }
            .into();
        }
        Some(KeySource::Variable(name)) => {
            facts["source"] = "environment".into();
            facts["label"] = name.into();
        }
        None => {}
    }
    facts
}

/// The credentials of requests to a model, or to the first model of a provider: as pi gives them to extensions, which are trusted with them.
pub(crate) async fn model_auth(context: &Arc<SessionContext>, params: &Value) -> Value {
    let failed = |error: String| json!({"ok": false, "error": error});
    let Some(provider) = params["provider"].as_str() else {
        return failed("the parameter provider is missing".to_owned());
    };
    let known = match params["id"].as_str() {
        Some(id) => context.models.find(provider, id),
        None => context.models.models_of(provider).next().cloned(),
    };
    let named = || {
        let (provider, id) = (provider.to_owned(), params["id"].as_str().unwrap_or_default().to_owned());
        Arc::new(Model { provider, id, ..Model::placeholder() })
    };
    auth_of(context, &known.unwrap_or_else(named)).await
}

/// The credentials of requests to this model, in the same way.
pub(super) async fn auth_of(context: &Arc<SessionContext>, model: &Arc<Model>) -> Value {
    let failed = |error: String| json!({"ok": false, "error": error});
    let provider = model.provider.as_str();
    if !context.services.has_auth(&context.auth, provider) {
        // Headers may be all that there is.
        let mut auth = json!({"ok": true});
        let headers = context.models.headers_of(model);
        if !headers.is_empty() {
            let plain = headers.into_iter().filter_map(|(name, value)| {
                let text = value.as_ref().map_or("", ConfigValue::expose);
                (!text.starts_with('!') && !text.contains('$'))
                    .then(|| (name, json!(value.as_ref().map(|_| text))))
            });
            auth["headers"] = Value::Object(plain.collect());
        }
        return auth;
    }
    match context.credentials(model).await {
        Ok((credentials, addressed)) => {
            let mut auth = json!({"ok": true});
            if let Some(key) = &credentials.api_key {
                auth["apiKey"] = key.expose().into();
            }
            if !credentials.headers.is_empty() {
                let headers =
                    credentials.headers.iter().map(|(name, value)| (name.clone(), header_value(value)));
                auth["headers"] = Value::Object(headers.collect());
            }
            if addressed.base_url != model.base_url {
                auth["baseUrl"] = addressed.base_url.as_str().into();
            }
            auth
        }
        Err(failure) => failed(failure.error),
    }
}
