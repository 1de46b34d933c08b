//! Each kind of file against a token endpoint of the test's own.

use std::{
    fs,
    sync::atomic::{AtomicU32, Ordering},
};

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use ring::signature::{KeyPair, RSA_PKCS1_2048_8192_SHA256, RsaKeyPair, UnparsedPublicKey};

use super::*;
use crate::oauth::testing::TokenServer;

/// Made for these tests; it opens nothing.
const KEY: &str = include_str!("test_key.pem");

struct TestFolder {
    folder: tempfile::TempDir,
    server: TokenServer,
}

impl TestFolder {
    fn new() -> Self {
        let count = AtomicU32::new(0);
        let server = TokenServer::start(move |_| {
            let n = count.fetch_add(1, Ordering::SeqCst) + 1;
            (
                200,
                json!({"access_token": format!("hush-{n}"), "expires_in": 3599, "token_type": "Bearer"})
                    .to_string(),
            )
        });
        Self { folder: tempfile::tempdir().unwrap(), server }
    }

    fn file(&self, content: &str) -> Environment {
        let path = self.folder.path().join("key.json");
        fs::write(&path, content).unwrap();
        let variables = [
            ("GOOGLE_APPLICATION_CREDENTIALS", path.display().to_string()),
            ("GOOGLE_CLOUD_LOCATION", "europe-west4".into()),
        ];
        variables.into_iter().collect()
    }

    fn service_account(&self) -> Value {
        json!({"type": "service_account", "project_id": "of-file", "private_key_id": "kid", "private_key": KEY,
            "client_email": "me@x", "token_uri": self.server.url("/token")})
    }
}

async fn get(
    environment: &Environment,
    tokens: &TokenCache,
    refused: &str,
) -> Result<(String, Account), String> {
    let found = token(environment, &HttpClients::default(), tokens, |token| token.expose() == refused).await;
    let found = found.map_err(|error| {
        assert!(!format!("{error} {error:?}").contains("hush"), "{error}");
        error.to_string()
    });
    found.map(|(token, account)| (token.expose().to_owned(), account))
}

fn fields(body: &str) -> Vec<(String, String)> {
    let url = reqwest::Url::parse(&format!("http://h/?{body}")).unwrap();
    url.query_pairs().map(|(name, value)| (name.into_owned(), value.into_owned())).collect()
}

#[tokio::test]
async fn a_service_account_signs_for_its_token_and_keeps_it() {
    let place = TestFolder::new();
    let environment = place.file(&place.service_account().to_string());
    assert!(is_configured(&environment));
    let tokens = TokenCache::default();
    let (first, account) = get(&environment, &tokens, "").await.unwrap();
    assert_eq!(
        (first.as_str(), account.project.as_deref(), account.location.as_deref()),
        ("hush-1", Some("of-file"), Some("europe-west4"))
    );
    assert_eq!(get(&environment, &tokens, "").await.unwrap().0, "hush-1");
    assert_eq!(get(&environment, &tokens, "hush-1").await.unwrap().0, "hush-2");
    let asked = place.server.asked();
    assert_eq!(asked.len(), 2);
    let sent = fields(&asked[0].body);
    assert_eq!(sent[0], ("grant_type".to_owned(), GRANT_JWT.to_owned()));
    let (signed, signature) = sent[1].1.rsplit_once('.').unwrap();
    let der =
        STANDARD.decode(KEY.lines().filter(|line| !line.starts_with("-----")).collect::<String>()).unwrap();
    let pair = RsaKeyPair::from_pkcs8(&der).unwrap();
    let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, pair.public_key().as_ref());
    public.verify(signed.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap()).unwrap();
    let part = |n: usize| -> Value {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(signed.split('.').nth(n).unwrap()).unwrap()).unwrap()
    };
    assert_eq!(part(0), json!({"alg": "RS256", "typ": "JWT", "kid": "kid"}));
    let claims = part(1);
    assert_eq!(
        (&claims["iss"], &claims["scope"], &claims["aud"]),
        (&json!("me@x"), &json!(SCOPE), &json!(place.server.url("/token")))
    );
    assert_eq!(claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap(), 3600);
}

#[tokio::test]
async fn a_user_and_another_cloud() {
    let place = TestFolder::new();
    let user = json!({"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r",
        "quota_project_id": "q", "token_uri": place.server.url("/token")});
    let mut environment = place.file(&user.to_string());
    environment.set("GCLOUD_PROJECT", "named");
    let (_, account) = get(&environment, &TokenCache::default(), "").await.unwrap();
    assert_eq!(account.project.as_deref(), Some("named"));
    let body = "grant_type=refresh_token&client_id=c&client_secret=s&refresh_token=r";
    assert_eq!(place.server.asked()[0].body, body);

    let subject = place.folder.path().join("subject");
    fs::write(&subject, r#"{"t": "hush-subject"}"#).unwrap();
    let external = json!({"type": "external_account", "audience": "//iam/x", "subject_token_type": "urn:jwt",
        "token_url": place.server.url("/sts"), "credential_source": {"file": subject,
        "format": {"type": "json", "subject_token_field_name": "t"}}});
    let mut environment = place.file(&external.to_string());
    environment.set("GOOGLE_CLOUD_PROJECT", "p");
    get(&environment, &TokenCache::default(), "").await.unwrap();
    let sent = fields(&place.server.asked()[1].body);
    assert!(sent.contains(&("subject_token".into(), "hush-subject".into())), "{sent:?}");
    assert!(
        sent.contains(&("grant_type".into(), GRANT_EXCHANGE.into()))
            && sent.contains(&("scope".into(), SCOPE.into()))
    );
}

#[tokio::test]
async fn a_metadata_server_is_asked_where_it_is_named() {
    let place = TestFolder::new();
    let host = place.server.url("").replace("http://", "");
    let variables = [
        ("GCE_METADATA_HOST", host.as_str()),
        ("GOOGLE_CLOUD_PROJECT", "p"),
        ("GOOGLE_CLOUD_LOCATION", "l"),
        ("HOME", "/nowhere"),
    ];
    let environment: Environment = variables.into_iter().collect();
    assert!(is_configured(&environment));
    assert_eq!(get(&environment, &TokenCache::default(), "").await.unwrap().0, "hush-1");
    let asked = place.server.asked().remove(0);
    assert_eq!(asked.target, "GET /computeMetadata/v1/instance/service-accounts/default/token");
    assert!(asked.headers.contains(&"metadata-flavor: Google".to_owned()), "{asked:?}");
}

#[tokio::test]
async fn all_three_parts_are_needed_and_files_of_no_use_are_named() {
    let place = TestFolder::new();
    let check = async |environment: &Environment, says: &str| {
        assert!(!is_configured(environment), "{says}");
        let error = get(environment, &TokenCache::default(), "").await.unwrap_err();
        assert!(error.contains(says), "{error}");
    };
    let mut account = place.service_account();
    let mut environment = place.file(&account.to_string());
    environment.remove("GOOGLE_CLOUD_LOCATION");
    check(&environment, "GOOGLE_CLOUD_LOCATION is not set").await;
    account.as_object_mut().unwrap().remove("project_id");
    check(&place.file(&account.to_string()), "GOOGLE_CLOUD_PROJECT is not set").await;
    check(&Environment::default(), "GOOGLE_APPLICATION_CREDENTIALS is not set").await;
    check(&place.file("{\"hush\": hush"), "key.json cannot be used: it is no JSON (line 1)").await;
    check(&place.file("[\"hush\"]"), "it holds no JSON object").await;
    fs::remove_file(place.folder.path().join("key.json")).unwrap();
    let gone =
        [("GOOGLE_APPLICATION_CREDENTIALS", place.folder.path().join("key.json").display().to_string())];
    check(&gone.into_iter().collect(), "key.json cannot be read: No such file").await;

    // These are found out when they are used.
    let used = async |change: &dyn Fn(&mut Value), says: &str| {
        let mut account = place.service_account();
        change(&mut account);
        let error = get(&place.file(&account.to_string()), &TokenCache::default(), "").await.unwrap_err();
        assert!(error.contains(says), "{error}");
    };
    used(&|account| account["type"] = "hush".into(), "its \"type\" is none of").await;
    used(&|account| account["private_key"] = "hush".into(), "its \"private_key\" is no RSA key").await;
    used(&|account| account["client_email"] = Value::Null, "it has no \"client_email\"").await;
    used(&|account| account["token_uri"] = "http://h/".into(), "https addresses only").await;
}
