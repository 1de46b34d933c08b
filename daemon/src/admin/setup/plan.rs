//! Pure. Plans the changes of `models.json` for the servers that were found.

use agentd_ai::local_servers::{LocalModel, LocalServer, is_same_server};
use agentd_config::ModelsChange;
use agentd_protocol::{
    doctor::{LocalProvider, SetupChange},
    error::{ErrorCode, Failure},
};
use serde_json::{Map, Value, json};

/// The id of the provider of a local server; from the second on a number is appended.
const DEFAULT_ID: &str = "local";

const API: &str = "openai-completions";

/// The `apiKey` of a provider without a key.
const NO_KEY: &str = "none";

/// The limit of tokens of one answer that agentd assumes where `models.json` names none.
const ASSUMED_MAX_TOKENS: u64 = 16_384;

/// The provider and model that the command names.
#[derive(Debug, Default)]
pub(super) struct SetupRequest {
    /// The id of the provider.
    pub(super) provider: Option<String>,
    /// The only model.
    pub(super) model: Option<String>,
}

impl SetupRequest {
    pub(super) fn check(&self) -> Result<(), Failure> {
        let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        match &self.provider {
            Some(id) if id.is_empty() || !id.chars().all(good) => Err(Failure::new(
                ErrorCode::InvalidField,
                format!("{id:?} cannot be the id of a provider: use letters, digits, - _ and ."),
            )),
            _ => Ok(()),
        }
    }
}

/// The changes, and the providers for the answer.
type SetupPlan = (Vec<ModelsChange>, Vec<LocalProvider>);

/// The facts besides `models.json` that the plan depends on.
pub(super) struct ProviderFacts<'a> {
    /// Whether a provider's id is in use, built-in ones included.
    pub(super) is_known: &'a dyn Fn(&str) -> bool,
    /// Whether a provider has a key, from any source.
    pub(super) has_key: &'a dyn Fn(&str) -> bool,
}

/// The changes of a `models.json` with the content `models`.
pub(super) fn plan(
    models: &Value,
    servers: &[LocalServer],
    request: &SetupRequest,
    facts: &ProviderFacts<'_>,
) -> Result<SetupPlan, Failure> {
    if let (Some(id), true) = (&request.provider, servers.len() > 1) {
        let urls: Vec<&str> = servers.iter().map(|server| server.base_url.as_str()).collect();
        let text =
            format!("Several model servers answer, and only one can be provider {id}: {}.", urls.join(", "));
        return Err(Failure::new(ErrorCode::InvalidField, text).hint("Say which one is meant (--url)."));
    }
    let (mut changes, mut providers): (Vec<ModelsChange>, Vec<LocalProvider>) = Default::default();
    let configured = models.get("providers").and_then(Value::as_object);
    for server in servers {
        let wanted = wanted(server, request)?;
        let base_url = server.base_url.clone();
        let server_name = server.name.map(str::to_owned);
        let ids = wanted.iter().map(|model| model.id.clone()).collect();
        let own = own_entry(configured, server, request)?;
        let Some((provider, entry)) = own else {
            let taken = |id: &str| {
                (facts.is_known)(id)
                    || configured.is_some_and(|providers| providers.contains_key(id))
                    || providers.iter().any(|other| other.provider == id)
            };
            let id = free_id(request, &taken)?;
            changes.push(ModelsChange::AddProvider { id: id.clone(), entry: new_entry(&base_url, &wanted) });
            providers.push(LocalProvider {
                provider: id,
                base_url,
                server: server_name,
                listener: None,
                models: ids,
                change: SetupChange::Added,
                not_served: Vec::new(),
            });
            continue;
        };
        let there = model_ids(entry);
        let new: Vec<Value> = wanted
            .iter()
            .filter(|model| !there.contains(&model.id.as_str()))
            .map(|model| model_entry(model))
            .collect();
        let is_served = |id: &str| server.models.iter().any(|model| model.id == id);
        let not_served = there.into_iter().filter(|id| !is_served(id)).map(str::to_owned).collect();
        let provider = provider.to_owned();
        let before = changes.len();
        if !new.is_empty() {
            changes.push(ModelsChange::AddModels { provider: provider.clone(), models: new });
        }
        // Models of a provider without any key text are not offered.
        if entry.get("apiKey").is_none() && !(facts.has_key)(&provider) {
            let (name, value) = ("apiKey".to_owned(), json!(NO_KEY));
            changes.push(ModelsChange::AddMember { provider: provider.clone(), name, value });
        }
        let change = if changes.len() > before { SetupChange::Updated } else { SetupChange::Unchanged };
        providers.push(LocalProvider {
            provider,
            base_url,
            server: server_name,
            listener: None,
            models: ids,
            change,
            not_served,
        });
    }
    Ok((changes, providers))
}

/// The models to write.
fn wanted<'a>(server: &'a LocalServer, request: &SetupRequest) -> Result<Vec<&'a LocalModel>, Failure> {
    let Some(request) = &request.model else { return Ok(server.models.iter().collect()) };
    let found = server.models.iter().find(|model| model.id == *request);
    found.map(|model| vec![model]).ok_or_else(|| {
        let ids: Vec<&str> = server.models.iter().map(|model| model.id.as_str()).collect();
        let text =
            format!("The server at {} has no model {request}. It has: {}.", server.base_url, ids.join(", "));
        Failure::new(ErrorCode::NotFound, text)
    })
}

/// The entry that the file already has for a server.
fn own_entry<'a>(
    configured: Option<&'a Map<String, Value>>,
    server: &LocalServer,
    request: &SetupRequest,
) -> Result<Option<(&'a str, &'a Value)>, Failure> {
    let Some(configured) = configured else { return Ok(None) };
    let is_own = |entry: &Value| {
        entry.get("api").is_some_and(|api| api == API)
            && entry
                .get("baseUrl")
                .and_then(Value::as_str)
                .is_some_and(|url| is_same_server(url, &server.base_url))
    };
    let Some(id) = &request.provider else {
        return Ok(configured
            .iter()
            .find(|(_, entry)| is_own(entry))
            .map(|(id, entry)| (id.as_str(), entry)));
    };
    match configured.get_key_value(id) {
        None => Ok(None),
        Some((id, entry)) if is_own(entry) => Ok(Some((id.as_str(), entry))),
        Some(_) => Err(in_use(id)),
    }
}

fn in_use(id: &str) -> Failure {
    let text = format!("The provider {id} is another server: it was left as it is.");
    Failure::new(ErrorCode::InvalidField, text).hint("Choose another id, or none to have one found.")
}

fn free_id(request: &SetupRequest, taken: &dyn Fn(&str) -> bool) -> Result<String, Failure> {
    if let Some(id) = &request.provider {
        return if taken(id) { Err(in_use(id)) } else { Ok(id.clone()) };
    }
    let mut id = DEFAULT_ID.to_owned();
    let mut number = 2u64;
    while taken(&id) {
        id = format!("{DEFAULT_ID}-{number}");
        number += 1;
    }
    Ok(id)
}

fn model_ids(entry: &Value) -> Vec<&str> {
    let models = entry.get("models").and_then(Value::as_array).into_iter().flatten();
    models.filter_map(|model| model.get("id")?.as_str()).collect()
}

fn new_entry(base_url: &str, models: &[&LocalModel]) -> Value {
    let models: Vec<Value> = models.iter().map(|model| model_entry(model)).collect();
    json!({"baseUrl": base_url, "api": API, "apiKey": NO_KEY, "models": models})
}

fn model_entry(model: &LocalModel) -> Value {
    let mut entry = Map::new();
    entry.insert("id".into(), json!(model.id));
    if let Some(window) = model.context_window {
        entry.insert("contextWindow".into(), json!(window));
        // Servers refuse requests whose answer may not fit into the window beside the prompt.
        if window / 4 < ASSUMED_MAX_TOKENS {
            entry.insert("maxTokens".into(), json!((window / 4).max(1)));
        }
    }
    if model.sees_images {
        entry.insert("input".into(), json!(["text", "image"]));
    }
    Value::Object(entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(port: u16, models: &[&str]) -> LocalServer {
        let model = |id: &&str| LocalModel { id: (*id).into(), context_window: None, sees_images: false };
        LocalServer {
            base_url: format!("http://127.0.0.1:{port}/v1"),
            name: None,
            models: models.iter().map(model).collect(),
        }
    }

    fn entry(url: &str, models: &[&str]) -> Value {
        let models: Vec<Value> = models.iter().map(|id| json!({"id": id})).collect();
        json!({"baseUrl": url, "api": API, "apiKey": "k", "models": models})
    }

    fn run(
        models: &Value,
        servers: &[LocalServer],
        request: &SetupRequest,
    ) -> Result<Vec<LocalProvider>, String> {
        let facts = ProviderFacts { is_known: &|id| id == "openai", has_key: &|id| id == "stored" };
        let planned = plan(models, servers, request, &facts).map_err(|failure| failure.error)?;
        let changed = planned.1.iter().filter(|provider| provider.change != SetupChange::Unchanged).count();
        assert_eq!(planned.0.len(), changed);
        Ok(planned.1)
    }

    fn request(provider: Option<&str>, model: Option<&str>) -> SetupRequest {
        SetupRequest { provider: provider.map(str::to_owned), model: model.map(str::to_owned) }
    }

    #[test]
    fn each_server_gets_a_provider_with_a_free_id() {
        let found = run(
            &json!({"providers": {"local-2": entry("http://other/v1", &["x"])}}),
            &[server(1, &["a", "b"]), server(2, &["c"])],
            &SetupRequest::default(),
        )
        .unwrap();
        let ids: Vec<_> =
            found.iter().map(|provider| (provider.provider.as_str(), provider.change)).collect();
        assert_eq!(ids, [("local", SetupChange::Added), ("local-3", SetupChange::Added)]);
        assert_eq!(found[0].models, ["a", "b"]);
    }

    #[test]
    fn a_server_finds_its_own_provider_by_any_form_of_the_address() {
        for url in ["http://localhost:1", "http://127.0.0.1:1/v1/", "http://127.0.0.1:1/v1"] {
            let models = json!({"providers": {"mine": entry(url, &["a", "old"])}});
            let found = run(&models, &[server(1, &["a", "b"])], &SetupRequest::default()).unwrap();
            assert_eq!(
                (found[0].provider.as_str(), found[0].change),
                ("mine", SetupChange::Updated),
                "{url}"
            );
            assert_eq!(found[0].not_served, ["old"]);
            let again = run(&models, &[server(1, &["a"])], &SetupRequest::default()).unwrap();
            assert_eq!(again[0].change, SetupChange::Unchanged);
        }
        let mut other = json!({"providers": {"mine": entry("http://127.0.0.1:1/v1", &["a"])}});
        other["providers"]["mine"]["api"] = json!("anthropic-messages");
        assert_eq!(run(&other, &[server(1, &["a"])], &SetupRequest::default()).unwrap()[0].provider, "local");
    }

    #[test]
    fn a_provider_without_any_key_gets_the_text_that_stands_for_none() {
        for (id, change) in [("mine", SetupChange::Updated), ("stored", SetupChange::Unchanged)] {
            let mut models = json!({"providers": {id: entry("http://127.0.0.1:1/v1", &["a"])}});
            models["providers"][id].as_object_mut().unwrap().remove("apiKey");
            assert_eq!(
                run(&models, &[server(1, &["a"])], &SetupRequest::default()).unwrap()[0].change,
                change,
                "{id}"
            );
        }
    }

    #[test]
    fn an_id_that_was_asked_for_is_never_taken_from_another() {
        let models = json!({"providers": {"mine": entry("http://127.0.0.1:1/v1", &["a"])}});
        let ask = |port, id| run(&models, &[server(port, &["b"])], &request(Some(id), None));
        assert_eq!(ask(1, "mine").unwrap()[0].change, SetupChange::Updated);
        assert_eq!(ask(1, "second").unwrap()[0].change, SetupChange::Added);
        assert_eq!(ask(2, "mine").unwrap_err(), "The provider mine is another server: it was left as it is.");
        assert_eq!(
            ask(2, "openai").unwrap_err(),
            "The provider openai is another server: it was left as it is."
        );
        let two = [server(1, &["a"]), server(2, &["a"])];
        assert!(
            run(&models, &two, &request(Some("x"), None)).unwrap_err().starts_with("Several model servers")
        );
        for id in ["", "a/b", "a b", "ä"] {
            assert!(request(Some(id), None).check().is_err(), "{id}");
        }
    }

    #[test]
    fn one_model_can_be_chosen() {
        let found = run(&json!({}), &[server(1, &["a", "b"])], &request(None, Some("b"))).unwrap();
        assert_eq!(found[0].models, ["b"]);
        let error = run(&json!({}), &[server(1, &["a", "b"])], &request(None, Some("c"))).unwrap_err();
        assert_eq!(error, "The server at http://127.0.0.1:1/v1 has no model c. It has: a, b.");
    }

    #[test]
    fn entries_hold_the_facts_of_the_listing() {
        let model = |window, sees_images| LocalModel { id: "m".into(), context_window: window, sees_images };
        assert_eq!(model_entry(&model(None, false)), json!({"id": "m"}));
        assert_eq!(model_entry(&model(Some(131_072), false)), json!({"id": "m", "contextWindow": 131_072}));
        assert_eq!(
            model_entry(&model(Some(4096), true)),
            json!({"id": "m", "contextWindow": 4096, "maxTokens": 1024, "input": ["text", "image"]})
        );
    }
}
