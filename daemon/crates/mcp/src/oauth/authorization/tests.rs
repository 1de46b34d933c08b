//! What requests carry, and what follows their refusal, without any server.

use agentd_config::AgentDir;
use agentd_http::{HttpClients, Network};
use reqwest::StatusCode;

use super::*;
use crate::oauth::values::{FilledIn, ValueResolver};

struct TestServer {
    authorization: Arc<Authorization>,
    store: SignInStore,
    key: String,
    _folder: tempfile::TempDir,
}

impl TestServer {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = SignInStore::of(&AgentDir::at(folder.path()));
        let url = Url::parse("https://s.example/mcp").unwrap();
        let key = key_of("s", url.as_str());
        let authorization = Authorization::new(AuthorizationParts {
            name: "s".into(),
            url,
            source: TokenSource::OAuth(Box::default()),
            http: OAuthHttp {
                clients: Arc::new(HttpClients::new(Network::default())),
                network: Arc::new(Network::default()),
            },
            store: store.clone(),
            values: ValueResolver {
                fill_in: Arc::new(|_, value| {
                    let value = value.expose().to_owned();
                    let filled: FilledIn = Box::pin(async move { Ok(value) });
                    filled
                }),
                path: Arc::new(|text| text.into()),
            },
            listen_host: None,
            tasks: TaskTracker::new(),
        });
        Self { authorization, store, key, _folder: folder }
    }

    /// As another process signs in.
    fn sign_in(&self, access: &str, scope: &str) {
        let signed_in = StoredSignIn {
            issuer: "https://a.example".into(),
            token_endpoint: "https://a.example/token".into(),
            token_auth_methods: None,
            resource: "https://s.example/mcp".into(),
            resource_metadata: None,
            client: None,
            tokens: Some(Tokens {
                access: Secret::new(access),
                refresh: None,
                expires: None,
                scope: Some(scope.into()),
            }),
            wanted_scope: None,
        };
        self.store.update(&self.key, |_| Some(signed_in)).unwrap();
    }

    async fn token(&self) -> Option<String> {
        self.authorization.token().await.unwrap().map(|token| token.expose().to_owned())
    }

    async fn refused(&self, status: u16, challenge: &str, sent: Option<&str>) -> AfterRefusal {
        let (sent, mut course) = (sent.map(Secret::new), RequestCourse::default());
        let challenge = Challenge::read(challenge).unwrap();
        let status = StatusCode::from_u16(status).unwrap();
        self.authorization.refused(&mut course, status, challenge, sent.as_ref()).await
    }
}

const SIGN_IN: &str = "MCP server \"s\" requires sign-in: run agentctl mcp login s";

#[tokio::test]
async fn a_sign_in_of_another_process_counts_with_the_next_request() {
    let server = TestServer::new();
    assert_eq!(server.token().await, None);
    server.sign_in("token-1", "a");
    assert_eq!(server.token().await.as_deref(), Some("token-1"));
    server.sign_in("token-two", "a");
    assert_eq!(server.token().await.as_deref(), Some("token-two"));
    assert_eq!(server.authorization.known_token().unwrap().expose(), "token-two");
    server.store.remove_all("s").unwrap();
    assert_eq!(server.token().await, None);
}

#[tokio::test]
async fn a_request_is_made_again_with_another_token_alone() {
    let server = TestServer::new();
    assert_eq!(server.refused(401, "Bearer", None).await, AfterRefusal::SignIn(SIGN_IN.into()));
    assert_eq!(server.authorization.needed_sign_in().as_deref(), Some(SIGN_IN));
    assert!(!server.authorization.has_news().await);
    server.sign_in("token-1", "a");
    assert!(server.authorization.has_news().await);
    assert_eq!(server.refused(401, "Bearer", None).await, AfterRefusal::Repeat);
    assert_eq!(server.refused(401, "Bearer", Some("older")).await, AfterRefusal::Repeat);
    // Without a refresh token there is nothing to renew it with.
    assert_eq!(server.refused(401, "Bearer", Some("token-1")).await, AfterRefusal::SignIn(SIGN_IN.into()));
    server.authorization.accepted();
    assert_eq!(server.authorization.needed_sign_in(), None);
    let (mut course, sent) = (RequestCourse::default(), Secret::new("older"));
    let mut again = async || {
        let challenge = Challenge::default();
        server.authorization.refused(&mut course, StatusCode::UNAUTHORIZED, challenge, Some(&sent)).await
    };
    assert_eq!((again().await, again().await), (AfterRefusal::Repeat, AfterRefusal::Repeat));
    assert!(matches!(again().await, AfterRefusal::Fail(_)), "not for ever");
}

#[tokio::test]
async fn scopes_are_noted_for_the_next_sign_in_and_asked_for_once() {
    let server = TestServer::new();
    server.sign_in("token-1", "a");
    let lacks = r#"Bearer error="insufficient_scope", scope="b""#;
    assert_eq!(server.refused(403, "Bearer", Some("token-1")).await, AfterRefusal::Other);
    assert_eq!(server.refused(403, lacks, Some("older")).await, AfterRefusal::Repeat);
    let AfterRefusal::SignIn(text) = server.refused(403, lacks, Some("token-1")).await else {
        panic!("no sign-in")
    };
    assert!(text.contains("further scopes (b)"), "{text}");
    assert_eq!(server.store.read(&server.key).unwrap().unwrap().wanted_scope.as_deref(), Some("a b"));
    assert_eq!(server.authorization.needed_sign_in(), None, "other requests go on");
    server.sign_in("token-2", "a b");
    let AfterRefusal::Fail(text) = server.refused(403, lacks, Some("token-2")).await else {
        panic!("another sign-in")
    };
    assert!(text.contains("had asked for already"), "{text}");
}
