//! Image and classifier models of the providers of extensions.

use agentd_ai::register_secret;
use serde_json::{Map, Value, json};

use crate::{
    connection::RequestTerms, extensions::SessionExtensions, model_registrations::RegisteredProvider,
    provider_stream::AUTH_WAIT,
};

/// A kind of models that do not chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NonChat {
    /// They make images.
    Image,
    /// They answer questions about data with one of the given answers.
    Classifier,
}

impl NonChat {
    /// The `type` of such models.
    #[must_use]
    pub const fn model_type(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Classifier => "classifier",
        }
    }

    /// What such models do, for errors.
    #[must_use]
    pub const fn operation(self) -> &'static str {
        match self {
            Self::Image => "image generation",
            Self::Classifier => "classification",
        }
    }

    const fn request(self) -> &'static str {
        match self {
            Self::Image => "provider.images",
            Self::Classifier => "provider.classify",
        }
    }

    /// Where a provider keeps its functions by API, and the name of the function.
    const fn function(self) -> (&'static str, &'static str) {
        match self {
            Self::Image => ("images", "generateImages"),
            Self::Classifier => ("classifiers", "classify"),
        }
    }
}

impl SessionExtensions {
    /// The models of their providers that do not chat, as extensions list them, with what they leave to their providers.
    #[must_use]
    pub fn non_chat_models(&self) -> Vec<Value> {
        self.0.registrations().models.providers.iter().flat_map(models_of).collect()
    }

    /// Has the extension of a provider run such a model. `model`, `context` and `options` are what its function gets, and the value is what
    /// it returns. There is no limit of time.
    ///
    /// # Errors
    /// Why there is no result.
    ///
    /// Cancel safety: dropped early, the function is asked to stop by the signal in its options.
    pub async fn run_non_chat(
        &self,
        kind: NonChat,
        model: &Value,
        (context, options): (&Value, &Map<String, Value>),
    ) -> Result<Value, String> {
        let (id, api) =
            (model["provider"].as_str().unwrap_or_default(), model["api"].as_str().unwrap_or_default());
        let (extension, cb, resolve) = {
            let registrations = self.0.registrations();
            let provider = registrations.models.providers.iter().find(|known| known.id == id);
            let Some(provider) = provider else {
                return Err(format!("Provider {id} does not support {}", kind.operation()));
            };
            let resolve =
                provider.is_native.then(|| provider.function(&["auth", "apiKey", "resolve"])).flatten();
            (provider.extension, function(provider, kind, api)?, resolve)
        };
        let (host, epoch) = (self.0.host_of(extension), self.0.epoch_of(extension));
        let (mut model, mut options) = (model.clone(), options.clone());
        if let Some(resolve) = resolve {
            let fields = json!({"epoch": epoch, "cb": resolve, "args": [{}]});
            let terms = RequestTerms { limit: Some(AUTH_WAIT), ..RequestTerms::default() };
            let found = host.request("provider.auth", &fields, terms).await;
            let found = found.map_err(|error| self.0.explain(&error, "provider.auth"))?;
            let found: Value = serde_json::from_str(found.get()).map_err(|error| error.to_string())?;
            take_auth(&mut model, &mut options, &found);
        }
        options.insert("signal".to_owned(), true.into());
        let fields = json!({"epoch": epoch, "cb": cb, "args": [model, context, options]});
        let answer = host.request(kind.request(), &fields, RequestTerms::default()).await;
        let answer = answer.map_err(|error| self.0.explain(&error, kind.request()))?;
        serde_json::from_str(answer.get()).map_err(|error| error.to_string())
    }
}

/// Puts what a provider resolved into a request; what is there already counts more.
fn take_auth(model: &mut Value, options: &mut Map<String, Value>, found: &Value) {
    let auth = &found["auth"];
    if let Some(key) = auth["apiKey"].as_str() {
        // It must not stand in logs and errors.
        register_secret(key);
        options.entry("apiKey").or_insert_with(|| key.into());
    }
    if let Some(env) = found.get("env").filter(|env| !env.is_null()) {
        options.entry("env").or_insert_with(|| env.clone());
    }
    if auth["baseUrl"].is_string() {
        model["baseUrl"] = auth["baseUrl"].clone();
    }
    if let Some(found) = auth["headers"].as_object() {
        let headers = options.entry("headers").or_insert_with(|| json!({}));
        let Some(headers) = headers.as_object_mut() else { return };
        for (name, value) in found {
            if !headers.keys().any(|known| known.eq_ignore_ascii_case(name)) {
                headers.insert(name.clone(), value.clone());
            }
        }
    }
}

/// The function of a provider that runs models of a kind that speak this API.
fn function(provider: &RegisteredProvider, kind: NonChat, api: &str) -> Result<u64, String> {
    let (of_apis, name) = kind.function();
    let found = if provider.is_native {
        provider.function(&[name])
    } else {
        provider.function(&[of_apis, api, name])
    };
    found.ok_or_else(|| {
        let others = provider.fields.get(of_apis).and_then(Value::as_object);
        match others {
            Some(others) if !provider.is_native && !others.is_empty() => {
                format!("Provider {} has no {} implementation for \"{api}\"", provider.id, kind.model_type())
            }
            _ => format!("Provider {} does not support {}", provider.id, kind.operation()),
        }
    })
}

fn models_of(provider: &RegisteredProvider) -> impl Iterator<Item = Value> {
    let models = provider.fields.get("models").and_then(Value::as_array).into_iter().flatten();
    models.filter_map(|model| {
        let mut model = model.as_object()?.clone();
        let kind = model.get("type").and_then(Value::as_str)?;
        if ![NonChat::Image, NonChat::Classifier].iter().any(|known| known.model_type() == kind) {
            return None;
        }
        for shared in ["api", "baseUrl"] {
            if let (false, Some(of_provider)) = (model.contains_key(shared), provider.fields.get(shared)) {
                model.insert(shared.to_owned(), of_provider.clone());
            }
        }
        model.insert("provider".to_owned(), provider.id.as_str().into());
        Some(Value::Object(model))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn provider(is_native: bool, fields: Value) -> RegisteredProvider {
        let Value::Object(fields) = fields else { panic!() };
        RegisteredProvider { extension: 0, id: "p".to_owned(), is_native, fields, modified: None }
    }

    #[test]
    fn models_have_what_they_leave_to_their_provider() {
        let known = provider(
            false,
            json!({"api": "a", "baseUrl": "u", "models": [
                {"id": "chats"}, {"id": "chats too", "type": "chat"}, {"id": "sings", "type": "song"},
                {"id": "i", "type": "image"}, {"id": "c", "type": "classifier", "api": "b", "baseUrl": "v"},
            ]}),
        );
        let expected = [
            json!({"id": "i", "type": "image", "api": "a", "baseUrl": "u", "provider": "p"}),
            json!({"id": "c", "type": "classifier", "api": "b", "baseUrl": "v", "provider": "p"}),
        ];
        assert_eq!(models_of(&known).collect::<Vec<_>>(), expected);
        assert_eq!(models_of(&provider(true, json!({}))).count(), 0);
    }

    #[test]
    fn what_is_given_counts_more_than_what_a_provider_resolves() {
        let found = json!({"auth": {"apiKey": "k", "headers": {"A": "2", "b": "3"}, "baseUrl": "u"}, "env": {"E": "1"}});
        let (mut model, mut options) = (json!({"id": "m", "baseUrl": "v"}), Map::new());
        take_auth(&mut model, &mut options, &found);
        let expected = json!({"apiKey": "k", "headers": {"A": "2", "b": "3"}, "env": {"E": "1"}});
        assert_eq!((&model["baseUrl"], Value::Object(options)), (&json!("u"), expected));
        let Value::Object(mut options) = json!({"apiKey": "own", "headers": {"a": "1"}}) else { panic!() };
        take_auth(&mut model, &mut options, &found);
        assert_eq!((&options["apiKey"], &options["headers"]), (&json!("own"), &json!({"a": "1", "b": "3"})));
    }

    #[test]
    fn functions_are_found_by_the_api_and_the_way_of_the_provider() {
        let listed =
            provider(false, json!({"images": {"a": {"generateImages": {"cb": 1}}}, "classifiers": {}}));
        assert_eq!(function(&listed, NonChat::Image, "a"), Ok(1));
        let other = function(&listed, NonChat::Image, "b");
        assert_eq!(other, Err("Provider p has no image implementation for \"b\"".to_owned()));
        let none = function(&listed, NonChat::Classifier, "a");
        assert_eq!(none, Err("Provider p does not support classification".to_owned()));
        let native = provider(true, json!({"classify": {"cb": 2}}));
        assert_eq!(function(&native, NonChat::Classifier, "any"), Ok(2));
        let none = function(&native, NonChat::Image, "any");
        assert_eq!(none, Err("Provider p does not support image generation".to_owned()));
    }
}
