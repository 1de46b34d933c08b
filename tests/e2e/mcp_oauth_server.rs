//! An MCP server that wants tokens, and the authorization server that gives them.

use std::{
    collections::BTreeSet,
    fs,
    sync::{Arc, Mutex, MutexGuard},
};

use agentd_e2e::{Daemon, Home, MockServer, Reply, conversation::LineTransport, mock_server::Request};
use serde_json::{Value, json};

use crate::{
    client_tools::hello,
    logins::{member, visit},
    mcp::configure,
    mcp_http::{as_json, initialized, said, tools},
};

/// What both servers know, and have seen.
pub(crate) struct World {
    /// The access tokens that the MCP server takes.
    pub(crate) good: BTreeSet<String>,
    /// The refresh token that the authorization server takes next.
    pub(crate) refresh: String,
    /// The tokens that it has given.
    pub(crate) given: usize,
    /// How long they live, in seconds.
    pub(crate) life: i64,
    /// Refuses all requests for tokens: the status and the error's name.
    pub(crate) refuses: Option<(u16, &'static str)>,
    /// The scope that calls need.
    pub(crate) call_scope: Option<&'static str>,
    /// The resource that the MCP server says it is, in place of itself.
    pub(crate) resource: Option<String>,
    /// The `iss` that the browser brings, in place of the right one.
    pub(crate) iss: Option<String>,
    /// The methods of PKCE that the authorization server names.
    pub(crate) pkce: Value,
    /// Where the MCP server sends requests with a token, in place of answering them.
    pub(crate) moved_to: Option<String>,
    /// What the authorization server was asked.
    pub(crate) asked: Vec<Request>,
    /// What the MCP server was asked.
    pub(crate) called: Vec<Request>,
}

/// Both servers.
pub(crate) struct Servers {
    pub(crate) mcp: MockServer,
    pub(crate) auth: MockServer,
    world: Arc<Mutex<World>>,
}

fn origin(request: &Request) -> String {
    format!("http://{}", request.header("host").expect("a host"))
}

fn not_there() -> Reply {
    Reply::status(404, "text/plain", "")
}

impl Servers {
    pub(crate) fn start() -> Self {
        let world = Arc::new(Mutex::new(World {
            good: BTreeSet::new(),
            refresh: "hush-refresh-0".to_owned(),
            given: 0,
            life: 3600,
            refuses: None,
            call_scope: None,
            resource: None,
            iss: None,
            pkce: json!(["S256"]),
            moved_to: None,
            asked: Vec::new(),
            called: Vec::new(),
        }));
        let of_auth = Arc::clone(&world);
        let auth = MockServer::answering(move |request| {
            let mut world = of_auth.lock().expect("the world");
            world.asked.push(request.clone());
            world.authorize(request)
        });
        let (of_mcp, issuer) = (Arc::clone(&world), auth.base_url().trim_end_matches("/v1").to_owned());
        let mcp = MockServer::answering(move |request| {
            let mut world = of_mcp.lock().expect("the world");
            world.called.push(request.clone());
            world.serve(request, &issuer)
        });
        Self { mcp, auth, world }
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().expect("the world")
    }

    /// The URL of the MCP server.
    pub(crate) fn url(&self) -> String {
        self.mcp.base_url().replace("/v1", "/mcp")
    }

    /// The entry of the MCP server, with more keys.
    pub(crate) fn entry(&self, more: Value) -> Value {
        let mut entry = json!({"url": self.url(), "exposure": "direct"});
        for (key, value) in more.as_object().expect("keys") {
            entry[key] = value.clone();
        }
        entry
    }

    /// A home with the MCP server `web`.
    pub(crate) fn home(&self, model: &MockServer, more: Value) -> Home {
        let home = Home::with_model(model);
        configure(&home, json!({"web": self.entry(more)}));
        home
    }

    /// Requests for tokens with this grant.
    pub(crate) fn grants(&self, grant: &str) -> Vec<Request> {
        let is_it = |request: &&Request| {
            request.target.ends_with("/token") && request.field("grant_type") == Some(grant)
        };
        self.world().asked.iter().filter(is_it).cloned().collect()
    }

    /// Requests to an endpoint of the authorization server.
    pub(crate) fn asked(&self, path: &str) -> Vec<Request> {
        self.world().asked.iter().filter(|request| request.target.contains(path)).cloned().collect()
    }
}

impl World {
    fn tokens(&mut self) -> Reply {
        self.given += 1;
        let (access, refresh) =
            (format!("hush-access-{}", self.given), format!("hush-refresh-{}", self.given));
        self.good.insert(access.clone());
        self.refresh.clone_from(&refresh);
        as_json(
            &json!({"access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expires_in": self.life}),
        )
    }

    fn authorize(&mut self, request: &Request) -> Reply {
        let origin = origin(request);
        match request.target.split(['?', ' ']).nth(1).unwrap_or_default() {
            "/.well-known/oauth-authorization-server" => as_json(&json!({"issuer": origin,
                "authorization_endpoint": format!("{origin}/authorize"), "token_endpoint": format!("{origin}/token"),
                "registration_endpoint": format!("{origin}/register"), "code_challenge_methods_supported": self.pkce,
                "authorization_response_iss_parameter_supported": true,
                "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"]})),
            "/register" => {
                let mut client = request.body.clone();
                client["client_id"] = json!("registered");
                Reply::status(201, "application/json", client.to_string())
            }
            "/authorize" => {
                let back = request
                    .field("redirect_uri")
                    .expect("an address")
                    .replace("%3A", ":")
                    .replace("%2F", "/");
                let state = request.field("state").expect("a state");
                let iss = self.iss.clone().unwrap_or(origin);
                Reply::status(302, "text/plain", "")
                    .header("Location", &format!("{back}?code=hush-code-1&state={state}&iss={iss}"))
            }
            "/token" => match (self.refuses, request.field("grant_type")) {
                (Some((status, error)), _) => {
                    Reply::status(status, "application/json", json!({"error": error}).to_string())
                }
                (None, Some("refresh_token")) if request.field("refresh_token") != Some(&self.refresh) => {
                    Reply::status(400, "application/json", r#"{"error":"invalid_grant"}"#)
                }
                (None, _) => self.tokens(),
            },
            _ => not_there(),
        }
    }

    fn serve(&self, request: &Request, issuer: &str) -> Reply {
        let origin = origin(request);
        if request.target == "GET /.well-known/oauth-protected-resource/mcp" {
            let resource = self.resource.clone().unwrap_or_else(|| format!("{origin}/mcp"));
            return as_json(
                &json!({"resource": resource, "authorization_servers": [issuer], "scopes_supported": ["read"]}),
            );
        }
        if !request.target.starts_with("POST /mcp") {
            return Reply::status(405, "text/plain", "");
        }
        let metadata = format!("{origin}/.well-known/oauth-protected-resource/mcp");
        let token = request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
        if !token.is_some_and(|token| self.good.contains(token)) {
            let challenge = format!("Bearer resource_metadata=\"{metadata}\", error=\"invalid_token\"");
            return Reply::status(401, "text/plain", "no").header("WWW-Authenticate", &challenge);
        }
        if let Some(moved_to) = &self.moved_to {
            return Reply::status(307, "text/plain", "").header("Location", moved_to);
        }
        match request.body["method"].as_str() {
            Some("initialize") => as_json(&initialized(request)),
            Some("tools/list") => as_json(&tools(request, &["echo"])),
            Some("tools/call") => match self.call_scope {
                Some(scope) => {
                    let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"{scope}\"");
                    Reply::status(403, "text/plain", "").header("WWW-Authenticate", &challenge)
                }
                None => as_json(&said(request, "called")),
            },
            Some("server/discover") => Reply::status(400, "text/plain", ""),
            _ => Reply::status(202, "text/plain", ""),
        }
    }
}

/// A daemon of this home, and a client that said hello.
pub(crate) fn daemon(home: &Home) -> Daemon {
    let mut daemon = Daemon::start_with(home, &[], |command| {
        command.env("WEB_SECRET", "hush-client-secret");
    });
    hello(&mut daemon, "test");
    daemon
}

/// What `mcp_login_start` answers.
pub(crate) fn begin<W: LineTransport>(client: &mut agentd_e2e::Conversation<W>) -> Value {
    client.done(json!({"type": "mcp_login_start", "name": "web"}))
}

/// Where the authorization server sends the browser to.
pub(crate) fn sent_to(started: &Value) -> String {
    let answer = visit(started["url"].as_str().expect("an address"));
    let location = answer.lines().find_map(|line| line.strip_prefix("Location: "));
    location.unwrap_or_else(|| panic!("no redirect: {answer}")).to_owned()
}

/// Signs in as a user does, with a browser; the servers afterwards.
pub(crate) fn sign_in<W: LineTransport>(client: &mut agentd_e2e::Conversation<W>) -> Value {
    let started = begin(client);
    client.send(&json!({"id": "sign-in", "type": "mcp_login_finish", "loginId": started["loginId"]}));
    let page = visit(&sent_to(&started));
    assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    let done = client.until("the sign-in", |line| line["id"] == "sign-in");
    assert_eq!(done["success"], true, "{done}");
    done["data"]["servers"].clone()
}

/// The only entry of `mcp-auth.json`.
pub(crate) fn stored(home: &Home) -> Value {
    let text = fs::read_to_string(home.agent_dir().join("mcp-auth.json")).expect("mcp-auth.json");
    let file: Value = serde_json::from_str(&text).expect("JSON");
    let entries = file.as_object().expect("an object");
    assert_eq!(entries.len(), 1, "{file}");
    entries.values().next().expect("an entry").clone()
}

/// A member of the address that a sign-in begins with, as it is encoded.
pub(crate) fn of_url(started: &Value, name: &str) -> String {
    member(started["url"].as_str().expect("an address"), name)
}
