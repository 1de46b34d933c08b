//! The order of sources, and what users are told.

use std::fs;

use agentd_config::{AgentDir, models::ModelRegistry};

use super::*;
use crate::{AuthServices, AuthSources, KeySource, KeyStatus};

struct TestFolder {
    folder: tempfile::TempDir,
    variables: Vec<(&'static str, &'static str)>,
}

const MODELS: &str = r#"{"providers": {
    "plain": {"baseUrl": "http://127.0.0.1:1/v1", "api": "a", "models": [{"id": "m"}]},
    "keyed": {"baseUrl": "https://h", "api": "a", "apiKey": "hush-models", "models": [{"id": "m"}]},
    "openai": {"baseUrl": "https://h", "api": "a", "apiKey": "$MISSING", "models": [{"id": "m"}]},
    "anthropic": {"baseUrl": "https://h", "api": "a", "models": [{"id": "m"}]},
    "command": {"baseUrl": "https://h", "api": "a", "apiKey": "!echo hush-command", "models": [{"id": "m"}]},
    "failing": {"baseUrl": "https://h", "api": "a", "apiKey": "!echo hush; exit 1", "models": [{"id": "m"}]},
    "headers": {"baseUrl": "https://h", "api": "a", "apiKey": "hush", "authHeader": true,
        "headers": {"X-One": "$ONE", "X-Two": "2"},
        "models": [{"id": "m", "headers": {"x-two": "hush-two"}}, {"id": "own", "headers": {"authorization": "Basic x", "x-one": null}}]}
}}"#;

impl TestFolder {
    fn new(auth: &str, variables: &[(&'static str, &'static str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("models.json"), MODELS).unwrap();
        if !auth.is_empty() {
            fs::write(folder.path().join("auth.json"), auth).unwrap();
        }
        Self { folder, variables: variables.to_vec() }
    }

    fn auth(&self) -> Auth {
        let agent_dir = AgentDir::at(self.folder.path());
        let registry = ModelRegistry::load(&agent_dir.models_file());
        assert_eq!(registry.load_error(), None);
        Auth::load(AuthSources {
            environment: self.variables.iter().copied().collect(),
            registry: Arc::new(registry),
            services: AuthServices::default(),
            agent_dir,
        })
    }

    fn without_path(&self, text: &str) -> String {
        text.replace(&format!("{}/", self.folder.path().display()), "")
    }
}

async fn credentials(auth: &Auth, provider: &str, id: &str) -> Result<ProviderCredentials, AuthError> {
    let model = auth.registry().find(provider, id).unwrap();
    auth.credentials(&model).await
}

/// The key, or the error with file names instead of paths.
async fn key(place: &TestFolder, provider: &str) -> Result<String, String> {
    let auth = place.auth();
    let configured = auth.is_configured(provider);
    let status = auth.status(provider);
    assert_eq!(
        status.as_ref().is_some_and(|status| status.problem.is_none()),
        configured,
        "{provider} {status:?}"
    );
    assert!(!format!("{status:?}").contains("hush"), "{status:?}");
    match credentials(&auth, provider, "m").await {
        Ok(found) => {
            assert!(configured, "{provider} has credentials and is not configured");
            assert!(!format!("{found:?} {auth:?}").contains("hush"));
            Ok(found.credentials.api_key.unwrap().expose().to_owned())
        }
        Err(error) => {
            let shown = place.without_path(&error.to_string());
            assert!(!format!("{shown}{error:?}").contains("hush"), "{error:?}");
            Err(shown)
        }
    }
}

async fn check(
    auth: &str,
    variables: &[(&'static str, &'static str)],
    provider: &str,
    expected: Result<&str, &str>,
) {
    let got = key(&TestFolder::new(auth, variables), provider).await;
    assert_eq!(got.as_deref().map_err(String::as_str), expected, "{provider} {auth} {variables:?}");
}

#[tokio::test]
async fn sources_in_order() {
    let stored = r#"{"keyed": {"type": "api_key", "key": "hush-stored"}}"#;
    check(stored, &[], "keyed", Ok("hush-stored")).await;
    check("", &[], "keyed", Ok("hush-models")).await;
    check("", &[("MISSING", "hush-variable"), ("OPENAI_API_KEY", "hush-env")], "openai", Ok("hush-variable"))
        .await;
    check("", &[("OPENAI_API_KEY", "hush-env")], "openai", Ok("hush-env")).await;
    check("", &[("PATH", "/bin")], "command", Ok("hush-command")).await;
    let place = TestFolder::new(stored, &[]);
    let auth = place.auth();
    auth.set_override("keyed", Secret::new("hush-flag"));
    auth.set_override("plain", Secret::new("hush-flag"));
    assert!(auth.is_configured("plain"));
    for provider in ["keyed", "plain"] {
        let found = credentials(&auth, provider, "m").await.unwrap();
        assert_eq!(found.credentials.api_key, Some(Secret::new("hush-flag")));
    }
}

#[test]
fn the_status_names_the_source() {
    let stored = r#"{"openai": {"type": "api_key", "key": "hush"}}"#;
    let place = TestFolder::new(stored, &[("OPENAI_API_KEY", "hush"), ("MISSING", "hush")]);
    let auth = place.auth();
    auth.set_override("openai", Secret::new("hush"));
    let variable = KeySource::Variable("OPENAI_API_KEY");
    let mut sources = vec![KeySource::Flag, KeySource::Stored, KeySource::ModelsFile, variable];
    let all = KeyStatus { source: sources.remove(0), problem: None, shadowed: sources.clone() };
    assert_eq!(auth.status("openai"), Some(all));
    // One taken away after the other, the next one counts.
    let source = |place: &TestFolder| place.auth().status("openai").map(|status| status.source);
    assert_eq!(source(&place), Some(KeySource::Stored));
    place.auth().store().remove("openai").unwrap();
    assert_eq!(source(&place), Some(KeySource::ModelsFile));
    let place = TestFolder { variables: vec![("OPENAI_API_KEY", "hush")], ..place };
    assert_eq!(source(&place), Some(variable));
    let place = TestFolder { variables: Vec::new(), ..place };
    let problem = place.auth().status("openai").and_then(|status| status.problem);
    assert_eq!(problem.as_deref(), Some("it is empty, or names a variable that is not set"));
    assert_eq!(place.auth().status("nobody"), None);
}

#[tokio::test]
async fn addresses_take_their_variables_from_the_credential_too() {
    let address = |place: TestFolder| async move {
        let mut model = (*place.auth().registry().find("plain", "m").unwrap()).clone();
        model.provider = "cloudflare-workers-ai".into();
        model.base_url = "https://h/{CLOUDFLARE_ACCOUNT_ID}/v1".into();
        place.auth().credentials(&model).await.map(|found| found.base_url).map_err(|error| error.to_string())
    };
    let stored =
        |env: &str| format!(r#"{{"cloudflare-workers-ai": {{"type": "api_key", "key": "k"{env}}}}}"#);
    let variables = [("CLOUDFLARE_ACCOUNT_ID", "outer")];
    let with_env = stored(r#", "env": {"CLOUDFLARE_ACCOUNT_ID": "own"}"#);
    assert_eq!(address(TestFolder::new(&with_env, &variables)).await, Ok(Some("https://h/own/v1".into())));
    assert_eq!(
        address(TestFolder::new(&stored(""), &variables)).await,
        Ok(Some("https://h/outer/v1".into()))
    );
    let place = TestFolder::new(&stored(""), &[]);
    assert_eq!(place.auth().missing_variables("cloudflare-workers-ai"), ["CLOUDFLARE_ACCOUNT_ID"]);
    assert_eq!(
        address(place).await.unwrap_err(),
        "The address of cloudflare-workers-ai needs CLOUDFLARE_ACCOUNT_ID.\n\nSet it in the environment, or store it \
         with the key: `agentctl login cloudflare-workers-ai --env CLOUDFLARE_ACCOUNT_ID=...`."
    );
    let place = TestFolder::new(&with_env, &[]);
    assert!(place.auth().missing_variables("cloudflare-workers-ai").is_empty());
}

#[tokio::test]
async fn azure_is_where_the_environment_or_the_credential_says() {
    let found = |auth: &'static str, variables: &'static [(&str, &str)]| async move {
        let place = TestFolder::new(auth, variables);
        let mut model = (*place.auth().registry().find("plain", "m").unwrap()).clone();
        model.provider = "azure".into();
        model.base_url = String::new();
        let found = place.auth().credentials(&model).await.map_err(|error| error.to_string())?;
        Ok::<_, String>((found.base_url.unwrap(), found.credentials.account.deployment))
    };
    let stored = r#"{"azure": {"type": "api_key", "key": "k", "env": {"AZURE_OPENAI_RESOURCE_NAME": "own",
        "AZURE_OPENAI_DEPLOYMENT_NAME_MAP": "m=d"}}}"#;
    let address = |name: &str| format!("https://{name}.openai.azure.com/openai/v1");
    let outer = &[("AZURE_OPENAI_API_KEY", "k"), ("AZURE_OPENAI_RESOURCE_NAME", "outer")];
    assert_eq!(found(stored, &[]).await, Ok((address("own"), Some("d".into()))));
    assert_eq!(found(stored, outer).await, Ok((address("own"), Some("d".into()))));
    assert_eq!(found("", outer).await, Ok((address("outer"), None)));
    let error = found(r#"{"azure": {"type": "api_key", "key": "k"}}"#, &[]).await.unwrap_err();
    assert!(error.starts_with("The address of azure is not known: set AZURE_OPENAI_BASE_URL"), "{error}");
}

#[tokio::test]
async fn stored_entries() {
    let entry = |entry: &str| format!("{{\"openai\": {entry}}}");
    let env = [("OPENAI_API_KEY", "hush-env"), ("KEY", "hush-key")];
    check(&entry(r#"{"type":"api_key","key":"$KEY"}"#), &env, "openai", Ok("hush-key")).await;
    check(
        &entry(r#"{"type":"api_key","key":"$KEY","env":{"KEY":"hush-own"}}"#),
        &env,
        "openai",
        Ok("hush-own"),
    )
    .await;
    check(
        &entry(r#"{"type":"api_key","env":{"OPENAI_API_KEY":"hush-own"}}"#),
        &env,
        "openai",
        Ok("hush-own"),
    )
    .await;
    check(
        &entry(r#"{"type":"api_key","key":"$NONE"}"#),
        &env,
        "openai",
        Err("No API key found for openai.\n\nThe key in the entry \"openai\" of auth.json cannot be used: the environment variable NONE is not set."),
    )
    .await;
    check(
        &entry(r#"{"type":"hush"}"#),
        &env,
        "openai",
        Err("No API key found for openai.\n\nThe entry \"openai\" in auth.json cannot be used: its \"type\" is neither \"api_key\" nor \"oauth\". Repair or remove it."),
    )
    .await;
    let place = TestFolder::new(&entry(r#"{"type":"oauth","access":"hush","expires":1}"#), &env);
    let error = key(&place, "openai").await.unwrap_err();
    assert!(
        error.starts_with(
            "Authentication failed for \"openai\". Credentials may have expired or network is unavailable. Run '/login openai' to re-authenticate.\n\n"
        ),
        "{error}"
    );
    assert!(!place.auth().is_configured("openai"));
}

#[tokio::test]
async fn advice_names_where_a_key_could_be() {
    check(
        "",
        &[],
        "anthropic",
        Err("No API key found for anthropic.\n\nTo give one, set ANTHROPIC_API_KEY in the environment, run `agentctl login anthropic`, or put it as \"apiKey\" of \"anthropic\" in models.json."),
    )
    .await;
    check(
        "",
        &[],
        "plain",
        Err("No API key found for plain.\n\nTo give one, run `agentctl login plain`, or put it as \"apiKey\" of \"plain\" in models.json. A server that needs no key still needs some text there, such as \"none\"."),
    )
    .await;
    check(
        "",
        &[],
        "openai",
        Err("No API key found for openai.\n\nThe key in \"apiKey\" of \"openai\" in models.json cannot be used: the environment variable MISSING is not set."),
    )
    .await;
    check(
        "",
        &[("PATH", "/bin")],
        "failing",
        Err("No API key found for failing.\n\nThe key in \"apiKey\" of \"failing\" in models.json cannot be used: its command failed with exit status: 1: run it in a shell to see why."),
    )
    .await;
}

#[tokio::test]
async fn what_is_configured_is_known_without_running_anything() {
    let place = TestFolder::new("", &[("ANTHROPIC_AUTH_TOKEN", "hush")]);
    let auth = place.auth();
    let configured = |provider: &str| auth.is_configured(provider);
    for provider in ["keyed", "command", "failing", "headers", "anthropic", "demo"] {
        assert!(configured(provider), "{provider}");
    }
    for provider in ["plain", "openai", "nobody"] {
        assert!(!configured(provider), "{provider}");
    }
}

#[tokio::test]
async fn headers_and_bearer_tokens() {
    let shown = |found: ProviderCredentials| {
        let headers =
            found.credentials.headers.iter().map(|(name, value)| format!("{name}: {}", value.expose()));
        (found.credentials.api_key.is_some(), headers.collect::<Vec<_>>())
    };
    let place = TestFolder::new("", &[("ONE", "1"), ("ANTHROPIC_AUTH_TOKEN", "token")]);
    let auth = place.auth();
    let all = ["X-One: 1", "x-two: hush-two", "Authorization: Bearer hush"].map(str::to_owned).to_vec();
    assert_eq!(shown(credentials(&auth, "headers", "m").await.unwrap()), (true, all));
    let own = ["X-Two: 2", "authorization: Basic x", "x-one: "].map(str::to_owned).to_vec();
    assert_eq!(shown(credentials(&auth, "headers", "own").await.unwrap()), (true, own));
    let bearer = vec!["Authorization: Bearer token".to_owned()];
    assert_eq!(shown(credentials(&auth, "anthropic", "m").await.unwrap()), (false, bearer));
    let place = TestFolder::new("", &[]);
    assert_eq!(
        key(&place, "headers").await.unwrap_err(),
        "The header \"X-One\" of headers in models.json cannot be used: the environment variable ONE is not set."
    );
}

#[tokio::test]
async fn the_demo_needs_nothing_and_the_placeholder_gets_advice() {
    let place = TestFolder::new("", &[]);
    let auth = place.auth();
    assert_eq!(credentials(&auth, "demo", "demo").await.unwrap(), ProviderCredentials::default());
    let error = auth.credentials(&Model::placeholder()).await.unwrap_err();
    let error = place.without_path(&error.to_string());
    assert!(
        error.starts_with("No API key found for the selected model.\n\nNo usable model is configured."),
        "{error}"
    );
    for named in [
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "`agentctl login PROVIDER`",
        "`agentctl setup local`",
        "models.json",
    ] {
        assert!(error.contains(named), "{named}: {error}");
    }
}

#[tokio::test]
async fn a_changed_file_counts_at_once_and_a_broken_one_stops_requests() {
    let place = TestFolder::new("", &[]);
    let auth = place.auth();
    let file = place.folder.path().join("auth.json");
    assert!(!auth.is_configured("plain"));
    fs::write(&file, r#"{"plain": {"type": "api_key", "key": "hush"}}"#).unwrap();
    assert!(credentials(&auth, "plain", "m").await.is_ok());
    assert!(auth.is_configured("plain"));
    fs::write(&file, "{\"plain\": hush").unwrap();
    let error = place.without_path(&credentials(&auth, "keyed", "m").await.unwrap_err().to_string());
    assert_eq!(
        error,
        "stored credentials cannot be used: auth.json, line 1, column 11: expected value. Repair the file or remove it."
    );
    assert!(auth.load_error().is_some() && auth.is_configured("keyed"));
    assert_eq!(fs::read_to_string(&file).unwrap(), "{\"plain\": hush");
    let found = credentials(&auth, "demo", "demo").await;
    assert_eq!(found.unwrap(), ProviderCredentials::default());
}

#[test]
fn local_urls() {
    for url in [
        "http://localhost:8080/v1",
        "http://127.0.0.1",
        "https://[::1]:1/x",
        "http://192.168.1.5:80",
        "http://u@box.local/",
    ] {
        assert!(is_local(url), "{url}");
    }
    for url in ["https://api.openai.com/v1", "http://8.8.8.8", "https://localhost.example.com", ""] {
        assert!(!is_local(url), "{url}");
    }
}
