//! Whole logins, against a provider of the test's own.

use std::{fs, sync::Arc, time::Duration};

use agentd_config::{AgentDir, models::ModelRegistry};
use agentd_protocol::oauth_setting::LoginFlow;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{
    LoginError, now_ms,
    testing::{Asked, TokenServer},
};
use crate::{Auth, AuthServices, AuthSources, FinishedLogin, Secret};

struct TestFolder(tempfile::TempDir);

impl TestFolder {
    fn new(providers: Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("models.json"), json!({"providers": providers}).to_string()).unwrap();
        Self(folder)
    }

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

    fn stored(&self) -> Value {
        let text = fs::read_to_string(self.0.path().join("auth.json")).unwrap_or_else(|_| "{}".into());
        serde_json::from_str(&text).unwrap()
    }
}

fn mine(server: &TokenServer, more: Value) -> Value {
    let mut oauth = json!({"clientId": "mine", "authorizeUrl": "https://h/authorize?x=1", "tokenUrl": server.url("/token"),
        "deviceUrl": server.url("/device"), "scopes": ["a", "b"], "authorizeParams": {"prompt": "login"}});
    oauth.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"p": {"baseUrl": "https://h", "api": "a", "models": [{"id": "m"}], "oauth": oauth}})
}

fn answering(status: u16, answer: Value) -> TokenServer {
    TokenServer::start(move |_| (status, answer.to_string()))
}

fn tokens() -> TokenServer {
    answering(200, json!({"access_token": "hush-a", "refresh_token": "hush-r", "expires_in": "3600"}))
}

/// A member of the query of an address.
fn member(url: &str, name: &str) -> String {
    let url = reqwest::Url::parse(url).unwrap();
    url.query_pairs()
        .find(|(other, _)| other == name)
        .map(|(_, value)| value.into_owned())
        .unwrap_or_default()
}

/// Goes to an address as a browser does.
async fn visit(url: &str) -> String {
    let url = reqwest::Url::parse(url).unwrap();
    let mut stream = TcpStream::connect(("127.0.0.1", url.port().unwrap())).await.unwrap();
    let target = format!("{}?{}", url.path(), url.query().unwrap_or_default());
    stream.write_all(format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

fn finished(replaced: bool) -> Result<FinishedLogin, LoginError> {
    Ok(FinishedLogin { provider: "p".into(), replaced, models: None })
}

#[tokio::test]
async fn a_browser_comes_back_with_a_code() {
    let server = tokens();
    let place = TestFolder::new(mine(&server, json!({})));
    let auth = place.auth();
    let started = auth.start_login("p", None, false).await.unwrap();
    assert_eq!((started.flow, &started.user_code), (LoginFlow::Browser, &None));
    assert!(
        started.url.starts_with("https://h/authorize?x=1&response_type=code&client_id=mine&"),
        "{}",
        started.url
    );
    assert_eq!(
        (member(&started.url, "scope"), member(&started.url, "prompt")),
        ("a b".into(), "login".into())
    );
    assert_eq!(member(&started.url, "code_challenge_method"), "S256");
    let redirect = started.redirect_uri.clone().unwrap();
    assert_eq!(member(&started.url, "redirect_uri"), redirect);
    let logins = auth.services().logins.clone();
    let finishing = logins.finish(&started.id, None);
    let coming = async {
        assert!(visit(&format!("{redirect}?code=c&state=guess")).await.starts_with("HTTP/1.1 400"));
        let state = member(&started.url, "state");
        assert!(visit(&format!("{redirect}?code=c%2F1&state={state}")).await.starts_with("HTTP/1.1 200"));
    };
    let (done, ()) = tokio::join!(finishing, coming);
    assert_eq!(done, finished(false));
    let Asked { body, .. } = server.asked().remove(0);
    let url = reqwest::Url::parse(&format!("http://h/?{body}")).unwrap().to_string();
    let fields = ["grant_type", "code", "client_id", "redirect_uri"].map(|name| member(&url, name));
    assert_eq!(fields, ["authorization_code".to_owned(), "c/1".into(), "mine".into(), redirect]);
    let challenge = ring::digest::digest(&ring::digest::SHA256, member(&url, "code_verifier").as_bytes());
    let challenge = base64::Engine::encode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, challenge);
    assert_eq!(challenge, member(&started.url, "code_challenge"));
    let stored = place.stored()["p"].clone();
    assert_eq!(
        (&stored["type"], &stored["access"], &stored["refresh"]),
        (&json!("oauth"), &json!("hush-a"), &json!("hush-r"))
    );
    let lasts = stored["expires"].as_i64().unwrap() - now_ms();
    assert!((3_500_000..=3_600_000).contains(&lasts), "{lasts}");
    assert_eq!(logins.finish(&started.id, None).await, Err(LoginError::NotThere(started.id)));
}

#[tokio::test]
async fn what_is_pasted_counts_as_well() {
    let server = answering(
        200,
        json!({"access_token": "x.eyJodHRwczovL2FwaS5vcGVuYWkuY29tL2F1dGgiOnsiY2hhdGdwdF9hY2NvdW50X2lkIjoiYWNjIn19.y"}),
    );
    let place = TestFolder::new(mine(&server, json!({"tokenFormat": "json"})));
    let auth = place.auth();
    let started = auth.start_login("p", None, false).await.unwrap();
    let logins = auth.services().logins.clone();
    let of_other = Secret::new("hush#other");
    let bad = logins.finish(&started.id, Some(&of_other));
    let waiting = logins.finish(&started.id, None);
    let good = Secret::new(format!("code#{}", member(&started.url, "state")));
    let paste = async {
        // The one that waits keeps the login through a paste of no use.
        let refused = bad.await.unwrap_err();
        assert_eq!(refused.to_string(), "what was pasted is of no use: it belongs to another login");
        logins.finish(&started.id, Some(&good)).await
    };
    let (waited, pasted) = tokio::join!(waiting, paste);
    assert_eq!((waited, pasted), (finished(false), finished(false)));
    let body: Value = serde_json::from_str(&server.asked()[0].body).unwrap();
    assert_eq!((&body["code"], &body["state"]), (&json!("code"), &json!(member(&started.url, "state"))));
    let stored = place.stored()["p"].clone();
    assert_eq!(
        (&stored["accountId"], &stored["expires"]),
        (&json!("acc"), &json!(9_007_199_254_740_991_i64))
    );
}

#[tokio::test]
async fn a_key_comes_back_where_the_provider_gives_keys() {
    let server = answering(200, json!({"key": "hush-key"}));
    let place = TestFolder::new(json!({"openrouter": {"oauth": {"tokenUrl": server.url("/keys")}}}));
    let auth = place.auth();
    let started = auth.start_login("openrouter", None, false).await.unwrap();
    assert!(started.url.starts_with("https://openrouter.ai/auth?callback_url=http%3A%2F%2F127.0.0.1%3A"));
    let redirect = started.redirect_uri.unwrap();
    let logins = auth.services().logins.clone();
    let address = format!("{redirect}?code=c");
    let (done, answer) = tokio::join!(logins.finish(&started.id, None), visit(&address));
    assert!(done.is_ok() && answer.starts_with("HTTP/1.1 200"), "{done:?}");
    let body: Value = serde_json::from_str(&server.asked()[0].body).unwrap();
    assert_eq!((&body["code"], &body["code_challenge_method"]), (&json!("c"), &json!("S256")));
    let expected =
        json!({"type": "oauth", "access": "hush-key", "refresh": "", "expires": 9_007_199_254_740_991_i64});
    assert_eq!(place.stored()["openrouter"], expected);
    let model = ModelRegistry::builtin().models_of("openrouter").next().unwrap().clone();
    let found = auth.credentials(&model).await.unwrap().credentials;
    assert!(found.api_key == Some(Secret::new("hush-key")) || !found.headers.is_empty());
}

/// A server of the device flow: these refusals one after the other, then tokens.
fn device_server(refusals: &'static [(u16, &'static str)]) -> TokenServer {
    let polls = std::sync::atomic::AtomicUsize::new(0);
    TokenServer::start(move |asked| {
        match asked.target.as_str() {
        "POST /device" => (
            200,
            json!({"device_code": "hush-d", "user_code": "AB-\u{1b}CD", "verification_uri": "https://h/device",
                "expires_in": 60, "interval": 1})
            .to_string(),
        ),
        _ => match refusals.get(polls.fetch_add(1, std::sync::atomic::Ordering::SeqCst)) {
            Some((status, error)) => (*status, json!({"error": error}).to_string()),
            None => (200, json!({"access_token": "hush-a", "refresh_token": "hush-r"}).to_string()),
        },
    }
    })
}

#[tokio::test]
async fn a_code_is_typed_somewhere_else() {
    let server = device_server(&[(400, "authorization_pending"), (503, "x")]);
    let place = TestFolder::new(mine(&server, json!({})));
    let auth = place.auth();
    let started = auth.start_login("p", Some(LoginFlow::Device), false).await.unwrap();
    assert_eq!(started.user_code.as_deref(), Some("AB- CD"));
    assert_eq!((started.url.as_str(), started.life), ("https://h/device", Duration::from_secs(60)));
    assert_eq!(auth.services().logins.finish(&started.id, None).await, finished(false));
    let bodies: Vec<String> = server.asked().into_iter().map(|asked| asked.body).collect();
    assert_eq!(bodies[0], "client_id=mine&scope=a%20b");
    let poll =
        "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Adevice_code&device_code=hush-d&client_id=mine";
    assert_eq!(bodies[1..], [poll, poll, poll]);
    assert_eq!(place.stored()["p"]["access"], json!("hush-a"));
}

#[tokio::test]
async fn a_refusal_by_the_user_is_reported() {
    for (refusals, expected) in [
        (&[(400, "access_denied")], LoginError::Denied("access_denied".into())),
        (&[(200, "expired_token")], LoginError::Expired),
    ] {
        let server = device_server(refusals);
        let place = TestFolder::new(mine(&server, json!({"flow": "device"})));
        let auth = place.auth();
        let started = auth.start_login("p", None, false).await.unwrap();
        assert_eq!(auth.services().logins.finish(&started.id, None).await, Err(expected));
        assert_eq!(place.stored(), json!({}));
    }
    let server = tokens();
    let place = TestFolder::new(mine(&server, json!({})));
    let auth = place.auth();
    let started = auth.start_login("p", None, false).await.unwrap();
    let back = format!(
        "{}?error=access_denied&state={}",
        started.redirect_uri.unwrap(),
        member(&started.url, "state")
    );
    let logins = auth.services().logins.clone();
    let (done, _) = tokio::join!(logins.finish(&started.id, None), visit(&back));
    assert_eq!(done, Err(LoginError::Denied("access_denied".into())));
    assert_eq!(server.asked(), []);
}

#[tokio::test]
async fn hostile_answers_store_nothing() {
    for (status, answer, says) in [
        (200, json!({"access_token": 5}), "does not hold a token"),
        (200, json!([]), "no JSON object"),
        (
            400,
            json!({"error": "invalid_grant", "error_description": "code hush-code"}),
            "invalid_grant: code [redacted]",
        ),
    ] {
        let server = answering(status, answer);
        let place = TestFolder::new(mine(&server, json!({})));
        let auth = place.auth();
        let started = auth.start_login("p", None, false).await.unwrap();
        let error =
            auth.services().logins.finish(&started.id, Some(&Secret::new("hush-code"))).await.unwrap_err();
        assert!(error.to_string().contains(says) && !error.to_string().contains("hush"), "{error}");
        assert_eq!(place.stored(), json!({}));
    }
    // Nothing that is no address is given to a browser.
    let server = answering(
        200,
        json!({"device_code": "d", "user_code": "u", "verification_uri": "file:///etc/passwd"}),
    );
    let place = TestFolder::new(mine(&server, json!({"flow": "device"})));
    let error = place.auth().start_login("p", None, false).await.unwrap_err();
    assert!(error.to_string().contains("an address that can be opened"), "{error}");
}

#[tokio::test]
async fn who_gives_up_leaves_nothing() {
    let server = tokens();
    let place = TestFolder::new(mine(&server, json!({})));
    let auth = place.auth();
    let logins = auth.services().logins.clone();
    let port_of = |redirect: &Option<String>| {
        reqwest::Url::parse(redirect.as_deref().unwrap()).unwrap().port().unwrap()
    };
    // One that is cancelled, one whose only waiter leaves, one in whose place another comes.
    let first = auth.start_login("p", None, false).await.unwrap();
    assert!(logins.cancel(&first.id) && !logins.cancel(&first.id));
    let second = auth.start_login("p", None, false).await.unwrap();
    let waited = tokio::time::timeout(Duration::from_millis(20), logins.finish(&second.id, None)).await;
    assert!(waited.is_err());
    assert_eq!(logins.finish(&second.id, None).await, Err(LoginError::NotThere(second.id)));
    let third = auth.start_login("p", None, false).await.unwrap();
    let fourth = auth.start_login("p", None, false).await.unwrap();
    assert_eq!(logins.finish(&third.id, None).await, Err(LoginError::NotThere(third.id)));
    logins.cancel(&fourth.id);
    for port in
        [first.redirect_uri, second.redirect_uri, third.redirect_uri, fourth.redirect_uri].iter().map(port_of)
    {
        // Tasks end when the runtime comes to them.
        while TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!((place.stored(), server.asked()), (json!({}), Vec::new()));
}

#[tokio::test]
async fn what_lacks_is_named() {
    let server = tokens();
    let taken = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port();
    let place = TestFolder::new(mine(&server, json!({"redirectPort": port})));
    let auth = place.auth();
    let check = async |auth: &Auth, provider: &str, flow, says: &str| {
        let error = auth.start_login(provider, flow, false).await.unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    };
    check(&auth, "p", None, &format!("127.0.0.1:{port} cannot be listened at")).await;
    check(&auth, "anthropic", None, "a login with anthropic needs a client id").await;
    check(&auth, "groq", None, "nothing says how a login with groq works").await;
    check(&auth, "openrouter", Some(LoginFlow::Device), "nothing names its \"deviceUrl\"").await;
    fs::write(place.0.path().join("auth.json"), r#"{"openrouter": {"type": "api_key", "key": "hush"}}"#)
        .unwrap();
    check(&auth, "openrouter", None, "holds a key for openrouter").await;
    assert!(auth.start_login("openrouter", None, true).await.is_ok());
}
