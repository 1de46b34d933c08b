//! Logins that end, and are renewed.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};

use agentd_config::{AgentDir, models::ModelRegistry};
use serde_json::{Value, json};

use super::*;
use crate::oauth::{
    now_ms,
    testing::{Asked, TokenServer},
};
use crate::{AuthServices, AuthSources};

struct TestFolder(tempfile::TempDir);

impl TestFolder {
    fn new(entry: &Value, server: &TokenServer) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let models = json!({"providers": {
            "p": {"baseUrl": "https://h", "api": "a", "models": [{"id": "m"}],
                "oauth": {"clientId": "mine", "clientSecret": "!echo sec-ret", "tokenUrl": server.url("/token")}},
            "bare": {"baseUrl": "https://h", "api": "a", "models": [{"id": "m"}]},
            "keyed": {"baseUrl": "https://h", "api": "anthropic-messages", "models": [{"id": "m"}]},
        }});
        fs::write(folder.path().join("models.json"), models.to_string()).unwrap();
        let place = Self(folder);
        place.store(entry);
        place
    }

    fn store(&self, entry: &Value) {
        // Odd spacing and a comment: what is not changed stays.
        let entries: Vec<String> = ["p", "bare", "keyed", "github-copilot"]
            .iter()
            .map(|name| format!("\"{name}\":  {entry}"))
            .collect();
        fs::write(self.file(), format!("{{ // mine\n{}}}", entries.join(",\n"))).unwrap();
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("auth.json")
    }

    fn stored(&self, provider: &str) -> Value {
        let text = fs::read_to_string(self.file()).unwrap().replace("// mine", "");
        serde_json::from_str::<Value>(&text).unwrap()[provider].clone()
    }

    /// The credentials of one process.
    fn auth(&self) -> Auth {
        let agent_dir = AgentDir::at(self.0.path());
        let registry = ModelRegistry::load(&agent_dir.models_file());
        assert_eq!(registry.load_error(), None);
        Auth::load(AuthSources {
            environment: [("PATH", "/usr/bin:/bin")].into_iter().collect(),
            registry: Arc::new(registry),
            services: AuthServices::default(),
            agent_dir,
        })
    }
}

fn model(auth: &Auth, provider: &str) -> Arc<Model> {
    auth.registry().models_of(provider).next().unwrap().clone()
}

async fn token(auth: &Auth, provider: &str) -> Result<String, String> {
    let found = auth.credentials(&model(auth, provider)).await.map_err(|error| {
        let shown = error.to_string();
        assert!(!format!("{error:?}{shown}").contains("hush"), "{error:?}");
        shown
    })?;
    Ok(found.credentials.api_key.unwrap().expose().to_owned())
}

fn entry(ends_in_s: i64) -> Value {
    json!({"type": "oauth", "access": "hush-1", "refresh": "hush-r1", "expires": now_ms() + ends_in_s * 1000,
        "extra": {"a": [1, 2.0]}})
}

/// Gives one new token after the other.
fn issuer() -> TokenServer {
    let count = std::sync::atomic::AtomicU32::new(1);
    TokenServer::start(move |_| {
        let n = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1;
        let answer = json!({"access_token": format!("hush-{n}"), "refresh_token": format!("hush-r{n}"), "expires_in": 3600});
        (200, answer.to_string())
    })
}

fn refusing(status: u16, answer: &'static str) -> TokenServer {
    TokenServer::start(move |_| (status, answer.into()))
}

#[tokio::test]
async fn a_login_that_lasts_is_used_as_it_is() {
    let server = issuer();
    let place = TestFolder::new(&entry(3600), &server);
    let auth = place.auth();
    assert!(auth.is_configured("p") && auth.status("p").unwrap().problem.is_none());
    assert_eq!(token(&auth, "p").await.unwrap(), "hush-1");
    // An API with a header of its own for keys gets the token as what it is.
    let found = auth.credentials(&model(&auth, "keyed")).await.unwrap();
    assert_eq!(found.credentials.api_key, None);
    assert_eq!(found.credentials.headers, [("Authorization".to_owned(), Secret::new("Bearer hush-1"))]);
    assert_eq!(server.asked(), []);
}

#[tokio::test]
async fn a_login_that_ends_is_renewed_once_however_many_need_it() {
    let server = issuer();
    let place = TestFolder::new(&entry(100), &server);
    let (one, other) = (place.auth(), place.auth());
    let tokens = tokio::join!(token(&one, "p"), token(&other, "p"), token(&one, "p"));
    let new = || Ok("hush-2".to_owned());
    assert_eq!(tokens, (new(), new(), new()));
    let asked = server.asked();
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert_eq!(asked[0].target, "POST /token");
    let body = "grant_type=refresh_token&refresh_token=hush-r1&client_id=mine&client_secret=sec-ret";
    assert_eq!(asked[0].body, body);
    let stored = place.stored("p");
    let ends = stored["expires"].as_i64().unwrap() - now_ms();
    assert!((3_500_000..=3_600_000).contains(&ends), "{ends}");
    assert_eq!((&stored["refresh"], &stored["extra"]), (&json!("hush-r2"), &json!({"a": [1, 2.0]})));
    let text = fs::read_to_string(place.file()).unwrap();
    assert!(text.starts_with("{ // mine\n\"p\":  {") && text.contains("[1,2.0]"), "{text}");
    assert_eq!(fs::metadata(place.file()).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn who_stops_waiting_loses_no_token() {
    let (begun, wait) = (Arc::new(tokio::sync::Notify::new()), Arc::new(std::sync::Barrier::new(2)));
    let (has_begun, gate) = (Arc::clone(&begun), Arc::clone(&wait));
    let server = TokenServer::start(move |_| {
        has_begun.notify_one();
        gate.wait();
        (200, r#"{"access_token": "hush-2"}"#.into())
    });
    let place = TestFolder::new(&entry(0), &server);
    let auth = place.auth();
    let asking = auth.clone();
    let waiting = tokio::spawn(async move { token(&asking, "p").await });
    begun.notified().await;
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    let second = tokio::spawn(async move { token(&auth, "p").await });
    tokio::task::spawn_blocking(move || wait.wait()).await.unwrap();
    assert_eq!(second.await.unwrap().unwrap(), "hush-2");
    assert_eq!((server.asked().len(), &place.stored("p")["refresh"]), (1, &json!("hush-r1")));
}

#[tokio::test]
async fn refused_tokens_are_renewed_unless_somebody_has() {
    let server = issuer();
    let place = TestFolder::new(&entry(3600), &server);
    let auth = place.auth();
    let model = model(&auth, "p");
    let first = auth.credentials(&model).await.unwrap().credentials;
    let renewed = auth.renew(&model, &first).await.unwrap().unwrap().credentials;
    assert_eq!(renewed.api_key, Some(Secret::new("hush-2")));
    // A caller whose old token was refused gets the stored one.
    assert_eq!(auth.renew(&model, &first).await.unwrap().unwrap().credentials, renewed);
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test]
async fn an_early_renewal_that_fails_leaves_what_still_works() {
    let server = refusing(503, "{}");
    let place = TestFolder::new(&entry(100), &server);
    let auth = place.auth();
    assert_eq!(token(&auth, "p").await.unwrap(), "hush-1");
    place.store(&entry(-1));
    let error = token(&auth, "p").await.unwrap_err();
    assert!(error.starts_with("Authentication failed for \"p\"."), "{error}");
    assert!(error.contains("refused with 503. `agentctl login p --force` logs in again"), "{error}");
    assert_eq!(place.stored("p")["access"], json!("hush-1"));
}

#[tokio::test]
async fn hostile_answers_cost_only_the_login() {
    for (status, answer, says) in [
        (
            400,
            r#"{"error": "invalid_grant", "error_description": "hush-r1 is\n used"}"#,
            "refused with 400 (invalid_grant: [redacted] is  used)",
        ),
        (200, r#"{"error": "x"}"#, "refused with 200 (x)"),
        (
            200,
            "<html>hush-r1",
            "answered with 200, and with something else than was asked for: it is no JSON",
        ),
        (200, "{}", "no token in it"),
        (200, r#"{"access_token": ["hush"]}"#, "no token in it"),
        (302, "", "refused with 302"),
    ] {
        let server = refusing(status, answer);
        let place = TestFolder::new(&entry(-1), &server);
        let error = token(&place.auth(), "p").await.unwrap_err();
        assert!(error.contains(says), "{answer}: {error}");
        assert_eq!(place.stored("p")["refresh"], json!("hush-r1"));
    }
}

#[tokio::test]
async fn without_a_client_id_a_login_lasts_as_long_as_its_token() {
    let server = issuer();
    let place = TestFolder::new(&entry(100), &server);
    assert_eq!(token(&place.auth(), "bare").await.unwrap(), "hush-1");
    place.store(&entry(-1));
    let error = token(&place.auth(), "bare").await.unwrap_err();
    let says = [
        "cannot be renewed: nothing says where",
        "Renew it with the program that wrote it",
        "\"clientId\"",
        "models.json",
    ];
    assert!(says.iter().all(|says| error.contains(says)), "{error}");
    // An entry can bring along what it takes.
    let mut own = entry(-1);
    own["tokenUrl"] = server.url("/own").into();
    own["clientId"] = "its".into();
    own["tokenFormat"] = "json".into();
    place.store(&own);
    assert_eq!(token(&place.auth(), "bare").await.unwrap(), "hush-2");
    let asked: Asked = server.asked().remove(0);
    let body = r#"{"grant_type":"refresh_token","refresh_token":"hush-r1","client_id":"its"}"#;
    assert_eq!((asked.target.as_str(), asked.body.as_str()), ("POST /own", body));
}

#[tokio::test]
async fn copilot_gives_short_tokens_that_say_where_to_go() {
    let ends = now_ms() / 1000 + 1800;
    let server = TokenServer::start(move |asked| match asked.target.as_str() {
        "GET /short" => {
            (200, json!({"token": "tid=hush;proxy-ep=proxy.x.invalid", "expires_at": ends}).to_string())
        }
        _ => (404, "{}".into()),
    });
    let mut own = entry(-1);
    own["tokenUrl"] = server.url("/short").into();
    let place = TestFolder::new(&own, &server);
    let auth = place.auth();
    let found = auth.credentials(&model(&auth, "github-copilot")).await.unwrap();
    assert_eq!(found.base_url.as_deref(), Some("https://api.x.invalid"));
    assert!(found.credentials.api_key.is_some());
    assert!(server.asked()[0].headers.contains(&"authorization: Bearer hush-r1".to_owned()));
    let stored = place.stored("github-copilot");
    assert_eq!((&stored["expires"], &stored["refresh"]), (&json!(ends * 1000), &json!("hush-r1")));
}

#[tokio::test]
async fn commands_that_print_refused_keys_run_again() {
    let server = issuer();
    let place = TestFolder::new(&entry(0), &server);
    let counter = place.0.path().join("count");
    let command = format!("!echo x >> {0}; wc -l < {0}; echo key", counter.display());
    fs::write(place.file(), json!({"p": {"type": "api_key", "key": command}}).to_string()).unwrap();
    let auth = place.auth();
    let model = model(&auth, "p");
    let first = auth.credentials(&model).await.unwrap().credentials;
    assert_eq!(auth.credentials(&model).await.unwrap().credentials, first);
    let second = auth.renew(&model, &first).await.unwrap().unwrap().credentials;
    assert_ne!(second, first);
    // Nobody was refused with the second: it stays.
    assert_eq!(auth.renew(&model, &first).await.unwrap().unwrap().credentials, second);
    fs::write(place.file(), json!({"p": {"type": "api_key", "key": "literal"}}).to_string()).unwrap();
    let literal = auth.credentials(&model).await.unwrap().credentials;
    assert!(auth.renew(&model, &literal).await.is_none());
}
