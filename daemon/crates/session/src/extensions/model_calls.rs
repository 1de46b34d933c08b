//! Model requests of extensions: made here, with the session's credentials, within its budgets.

use std::{sync::Arc, time::Duration};

use agentd_agent::observer::CallPurpose;
use agentd_ai::{
    Accumulator, CacheRetention, Credentials, Delta, Request, ThinkingBudgets,
    failure::{Failure as ModelFailure, FailureKind},
};
use agentd_extensions::{CallResponder, HostFailure};
use agentd_protocol::{
    Json,
    message::{Message, MessageContent, SystemMessage},
    model::{Model, ThinkingLevel},
    secret::Secret,
    shown_url::shown,
    tool::ToolSpec,
};
use futures::StreamExt as _;
use serde::Deserialize;
use serde_json::{Map, Value, json, value::to_raw_value};

use super::{
    provider_hooks::{provider_hooks, secret},
    route::route_directly,
};
use crate::{
    clock::now_ms,
    context::SessionContext,
    models::{Choice, credential_renewer},
};

/// A request of an extension.
#[derive(Deserialize)]
struct ModelCall {
    model: Map<String, Value>,
    #[serde(default)]
    context: CallContext,
    #[serde(default)]
    options: Map<String, Value>,
    /// The API to speak, where it is not the model's own.
    #[serde(default)]
    api: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct CallContext {
    #[serde(default)]
    system_prompt: Option<String>,
    #[serde(default)]
    messages: Vec<Value>,
    #[serde(default)]
    tools: Vec<Arc<ToolSpec>>,
}

fn invalid(what: impl Into<String>) -> HostFailure {
    HostFailure::new("invalid", what)
}

/// Asks a model for an extension: the events of the answer go to it by notes, the whole answer is the value. An answer that fails is one,
/// too. `is_in_stream`: the extension asks to answer a request of ours, which counts by itself.
///
/// # Errors
/// The request cannot be made.
pub(crate) async fn ask_model(
    context: &Arc<SessionContext>,
    params: Value,
    (responder, is_in_stream): (&CallResponder, bool),
) -> Result<Value, HostFailure> {
    let call: ModelCall = serde_json::from_value(params).map_err(|error| invalid(error.to_string()))?;
    let ModelCall { model, context: said, options, api } = call;
    let model = Arc::new(called_model(context, model, api.as_deref())?);
    let messages = transcript(said)?;
    let level = thinking_level(&options).unwrap_or(ThinkingLevel::Off);
    let asked = Choice { model: Arc::clone(&model), level };
    let routed = route_directly(context, &asked, &messages).await;
    let Choice { model, level } = routed.map_err(|error| HostFailure::new("failed", error))?;
    let is_named = api.is_some();
    let spoken = match api {
        Some(api) if api != model.api => Arc::new(Model { api, ..(*model).clone() }),
        _ => Arc::clone(&model),
    };
    let failed = |failure: agentd_protocol::error::Failure| HostFailure::new("failed", failure.error);
    // An API that is named is never that of an extension, which asks here to be answered by its adapter.
    let provider = match is_named {
        true => context.adapter(&spoken.api),
        false => context.provider(&spoken),
    };
    let provider = provider.map_err(failed)?;
    let provider = match is_in_stream {
        true => provider,
        false => context.budget.meter(provider, CallPurpose::Extension),
    };
    let cancel = responder.cancelled().clone();
    let found = cancel.run_until_cancelled(credentials(context, &spoken, &options)).await;
    let (credentials, addressed) = match found {
        Some(found) => found?,
        None => (Credentials::default(), spoken),
    };
    let renews = !options.contains_key("apiKey");
    let request = Request {
        messages,
        credentials,
        idle_timeout: context.idle_timeout,
        deadlines: context.deadlines,
        network: Some(Arc::clone(&context.network)),
        cache_retention: context.cache_retention,
        thinking_budgets: context.thinking_budgets,
        retries: context.http_retries,
        thinking_level: model.clamp_thinking(Some(level)),
        hooks: if is_in_stream {
            provider_hooks(context.extensions.as_ref(), CallPurpose::Extension)
        } else {
            None
        },
        renew: renews.then(|| credential_renewer(&context.auth, &model)),
        ..Request::new(addressed, Vec::new())
    };
    let request = with_options(request, &options);
    let observed = context.observe_call(&request, CallPurpose::Extension);
    let mut accumulator = Accumulator::new(model, now_ms());
    let mut deltas = provider.stream(request, cancel);
    let mut usage = accumulator.usage_json();
    while !accumulator.is_finished() {
        let ended = || {
            let text = "The provider's stream ended without saying why";
            let failure = ModelFailure::new(FailureKind::Retryable, text);
            Delta::Failed { failure, raw_stop_reason: None }
        };
        let delta = deltas.next().await.unwrap_or_else(ended);
        let mut event = match delta {
            Delta::Stalled(_) => continue,
            Delta::Started => {
                json!({"type": "start", "message": Message::Assistant(accumulator.so_far())})
            }
            delta => match accumulator.fold(delta) {
                Some(event) => json!(event),
                None => continue,
            },
        };
        let counted = accumulator.usage_json();
        if counted.text() != usage.text() {
            event["usage"] = json!(counted);
            usage = counted;
        }
        responder.event(&event).await;
    }
    let failure = accumulator.failure().cloned();
    let answer = accumulator.into_message();
    context.observe_answer(observed, &answer, failure.as_ref());
    Ok(json!(Message::Assistant(answer)))
}

/// The model of a request: as the extension has it, but for an address of which it was shown a part.
fn called_model(
    context: &SessionContext,
    mut model: Map<String, Value>,
    api: Option<&str>,
) -> Result<Model, HostFailure> {
    let missing = |field: &str| invalid(format!("the model has no {field}"));
    let id = model.get("id").and_then(Value::as_str).ok_or_else(|| missing("id"))?.to_owned();
    let provider =
        model.get("provider").and_then(Value::as_str).ok_or_else(|| missing("provider"))?.to_owned();
    model.entry("name").or_insert_with(|| id.as_str().into());
    if let Some(api) = api {
        model.entry("api").or_insert_with(|| api.into());
    }
    let mut model: Model = serde_json::from_value(Value::Object(model))
        .map_err(|error| invalid(format!("the model cannot be used: {error}")))?;
    if let Some(known) = context.models.find(&provider, &id)
        && shown(&known.base_url) == model.base_url
    {
        model.base_url.clone_from(&known.base_url);
    }
    Ok(model)
}

/// The messages of a request, with its prompt and its tools as the first one.
fn transcript(said: CallContext) -> Result<Vec<Json<Message>>, HostFailure> {
    let CallContext { system_prompt, messages, tools } = said;
    let prompt = system_prompt.filter(|prompt| !prompt.is_empty());
    let mut transcript = Vec::with_capacity(messages.len() + 1);
    if prompt.is_some() || !tools.is_empty() {
        let message = Message::System(SystemMessage {
            content: MessageContent::Text(prompt.unwrap_or_default()),
            tools_added: (!tools.is_empty()).then_some(tools),
            timestamp: now_ms(),
            ..SystemMessage::default()
        });
        transcript.push(Json::new(message).map_err(|error| invalid(error.to_string()))?);
    }
    for (at, mut message) in messages.into_iter().enumerate() {
        if let Value::Object(fields) = &mut message {
            fields.entry("timestamp").or_insert_with(|| now_ms().into());
        }
        let unusable = |why: String| invalid(format!("message {at} cannot be used{why}"));
        let raw = to_raw_value(&message).map_err(|error| unusable(format!(": {error}")))?;
        let message = Json::<Message>::from_raw(raw);
        if message.get().is_none() {
            return Err(unusable(String::new()));
        }
        transcript.push(message);
    }
    Ok(transcript)
}

/// The credentials of a request: with the key of the extension, if it gives one, and with its headers.
async fn credentials(
    context: &SessionContext,
    model: &Arc<Model>,
    options: &Map<String, Value>,
) -> Result<(Credentials, Arc<Model>), HostFailure> {
    let headers = options.get("headers").and_then(Value::as_object);
    let key = options.get("apiKey").and_then(Value::as_str).filter(|key| !key.is_empty());
    let found = match key {
        Some(key) => {
            let auth = context.auth.with_registry(Arc::clone(&context.models));
            auth.set_override(model.provider.clone(), Secret::new(key));
            context.credentials_from(&auth, model).await
        }
        None => context.credentials(model).await,
    };
    let (mut credentials, addressed) = match found {
        Ok(found) => found,
        // Headers may be all that the provider asks for.
        Err(_) if headers.is_some_and(|headers| !headers.is_empty()) => {
            (Credentials::default(), Arc::clone(model))
        }
        Err(failure) => return Err(HostFailure::new("failed", failure.error)),
    };
    for (name, value) in headers.into_iter().flatten() {
        credentials.headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
        credentials.headers.extend(secret(value).map(|value| (name.clone(), value)));
    }
    Ok((credentials, addressed))
}

/// The request with the options that extensions of pi know.
fn with_options(mut request: Request, options: &Map<String, Value>) -> Request {
    let text = |name: &str| options.get(name).and_then(Value::as_str);
    let number = |name: &str| options.get(name).and_then(Value::as_u64);
    let mut model = (*request.model).clone();
    if let Some(tokens) = number("maxTokens").filter(|tokens| *tokens > 0) {
        model.max_tokens = tokens;
    }
    let mut params = model.sampling_params.take().unwrap_or_default();
    for (name, field) in [("temperature", "temperature"), ("serviceTier", "service_tier")] {
        if let Some(value) = options.get(name).filter(|value| !value.is_null()) {
            params.insert(field.to_owned(), value.clone());
        }
    }
    if let Some(choice) = options.get("toolChoice").filter(|_| model.api.starts_with("openai")) {
        params.insert("tool_choice".to_owned(), choice.clone());
    }
    if let Some(Value::Object(more)) = options.get("samplingParams") {
        params.extend(more.clone());
    }
    model.sampling_params = (!params.is_empty()).then_some(params);
    request.model = Arc::new(model);
    request.thinking_budgets = thinking_budgets(options, request.thinking_budgets);
    request.cache_retention = match text("cacheRetention") {
        Some("none") => CacheRetention::None,
        Some("short") => CacheRetention::Short,
        Some("long") => CacheRetention::Long,
        _ => request.cache_retention,
    };
    if let Some(session) = text("sessionId") {
        session.clone_into(&mut request.session_id);
    }
    if let Some(timeout) = number("timeoutMs").filter(|timeout| *timeout > 0) {
        request.idle_timeout = Some(Duration::from_millis(timeout));
    }
    if let Some(most) = number("maxRetries") {
        request.retries.max = u32::try_from(most).unwrap_or(u32::MAX);
    }
    if let Some(delay) = number("maxRetryDelayMs") {
        request.retries.max_delay = Duration::from_millis(delay);
    }
    request
}

/// The thinking level that is asked for, by the names that it has in pi's options of all APIs.
fn thinking_level(options: &Map<String, Value>) -> Option<ThinkingLevel> {
    let named = ["reasoning", "reasoningEffort", "effort"];
    let named = named.into_iter().filter_map(|name| options.get(name)?.as_str());
    let in_google = options.get("thinking").filter(|thinking| thinking["enabled"] == true);
    let of_google = in_google.and_then(|thinking| thinking["level"].as_str());
    let level = named.chain(of_google).find_map(|name| ThinkingLevel::from_name(&name.to_lowercase()));
    let is_on = in_google.is_some() || options.get("thinkingEnabled") == Some(&Value::Bool(true));
    level.or(is_on.then_some(ThinkingLevel::Medium))
}

fn thinking_budgets(options: &Map<String, Value>, before: ThinkingBudgets) -> ThinkingBudgets {
    let given = options.get("thinkingBudgets");
    let of = |name: &str, before: u64| given.and_then(|given| given[name].as_u64()).unwrap_or(before);
    let mut budgets = ThinkingBudgets {
        minimal: of("minimal", before.minimal),
        low: of("low", before.low),
        medium: of("medium", before.medium),
        high: of("high", before.high),
    };
    let of_google = options.get("thinking").and_then(|thinking| thinking["budgetTokens"].as_u64());
    if let Some(tokens) = options.get("thinkingBudgetTokens").and_then(Value::as_u64).or(of_google) {
        budgets = ThinkingBudgets { minimal: tokens, low: tokens, medium: tokens, high: tokens };
    }
    budgets
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(options: Value) -> Request {
        let model = Model { id: "m".into(), reasoning: true, max_tokens: 9000, ..Model::placeholder() };
        let Value::Object(options) = options else { panic!() };
        with_options(Request::new(Arc::new(model), Vec::new()), &options)
    }

    #[test]
    fn options_of_all_apis_are_understood() {
        assert_eq!(request(json!({})).model.max_tokens, 9000);
        for (options, level) in [
            (json!({"reasoning": "high"}), ThinkingLevel::High),
            (json!({"reasoningEffort": "low"}), ThinkingLevel::Low),
            (json!({"thinkingEnabled": true}), ThinkingLevel::Medium),
            (json!({"thinking": {"enabled": true, "level": "HIGH"}}), ThinkingLevel::High),
            (json!({"thinking": {"enabled": false, "level": "HIGH"}}), ThinkingLevel::Off),
        ] {
            let Value::Object(fields) = &options else { panic!() };
            assert_eq!(thinking_level(fields).unwrap_or(ThinkingLevel::Off), level, "{options}");
        }
        let asked = request(json!({
            "maxTokens": 5, "temperature": 0.5, "cacheRetention": "none", "sessionId": "s", "maxRetries": 4,
            "thinkingBudgetTokens": 77,
        }));
        assert_eq!((asked.model.max_tokens, asked.cache_retention), (5, CacheRetention::None));
        assert_eq!(asked.model.sampling_params.as_ref().unwrap()["temperature"], 0.5);
        assert_eq!((asked.session_id.as_str(), asked.retries.max), ("s", 4));
        assert_eq!(asked.thinking_budgets.of(ThinkingLevel::High), 77);
    }

    #[test]
    fn a_prompt_and_tools_are_the_first_message() {
        let said: CallContext = serde_json::from_value(json!({
            "systemPrompt": "Be kind.", "tools": [{"name": "t"}], "messages": [{"role": "user", "content": "Hi"}],
        }))
        .unwrap();
        let messages = transcript(said).unwrap();
        let Some(Message::System(system)) = messages[0].get() else { panic!() };
        assert_eq!(system.tools_added.as_ref().unwrap()[0].name, "t");
        assert!(matches!(messages[1].get(), Some(Message::User(_))));
        let broken: CallContext = serde_json::from_value(json!({"messages": [{"role": "user"}, 3]})).unwrap();
        assert!(transcript(broken).unwrap_err().message.starts_with("message "));
    }
}
