//! Signing in where a scenario wants it: the keys of `oauth` for its context, and a browser that follows the first redirect by hand.

use std::{env, error::Error};

use agentd_http::Secret;
use agentd_mcp::McpSession;
use agentd_protocol::mcp::McpServerState;
use reqwest::{Client, header::LOCATION, redirect::Policy};
use serde_json::{Value, json};

/// The document that the runner takes for the client's own.
const CLIENT_DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";

/// Sign-ins until a server that still wants another one is given up.
const MAX_SIGN_INS: usize = 3;

/// The key `oauth` of a scenario's entry.
pub(crate) fn oauth(scenario: &str) -> Value {
    let context: Value = env::var("MCP_CONFORMANCE_CONTEXT")
        .ok()
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    match scenario.strip_prefix("auth/").unwrap_or_default() {
        "basic-cimd" => json!({"clientMetadataUrl": CLIENT_DOCUMENT}),
        "pre-registration" => {
            json!({"clientId": context["client_id"], "clientSecret": context["client_secret"],
            "issuer": context["issuer"]})
        }
        "client-credentials-basic" => json!({"grant": "client_credentials", "clientId": context["client_id"],
            "clientSecret": context["client_secret"]}),
        "client-credentials-jwt" => json!({"grant": "client_credentials", "clientId": context["client_id"],
            "privateKey": context["private_key_pem"], "signingAlgorithm": context["signing_algorithm"]}),
        "wif-jwt-bearer" => {
            json!({"grant": "jwt_bearer", "clientId": context["client_id"], "assertion": context["valid_jwt"]})
        }
        "cross-app-access-complete-flow" | "enterprise-managed-authorization" => {
            json!({"grant": "jwt_bearer", "clientId": context["client_id"], "clientSecret": context["client_secret"],
                "identityProvider": {"tokenEndpoint": context["idp_token_endpoint"], "clientId": context["idp_client_id"],
                    "idToken": context["idp_id_token"]}})
        }
        _ => json!({}),
    }
}

/// Signs in for as long as the server wants it.
pub(crate) async fn sign_in_where_wanted(session: &McpSession) {
    for _ in 0..MAX_SIGN_INS {
        let wants_it = session.list().iter().any(|server| server.state == McpServerState::NeedsAuth);
        if !wants_it {
            return;
        }
        if let Err(error) = sign_in(session).await {
            eprintln!("{error}");
            return;
        }
    }
}

/// Signs in to the server of the scenario.
pub(crate) async fn sign_in(session: &McpSession) -> Result<(), Box<dyn Error>> {
    let started = session.start_sign_in("test", None).await?;
    let browser = Client::builder().redirect(Policy::none()).no_proxy().tls_certs_only([]).build()?;
    let answer = browser.get(&started.url).send().await?;
    let back = answer.headers().get(LOCATION).ok_or("the authorization server sends the browser nowhere")?;
    session.finish_sign_in(&started.id, Some(&Secret::new(back.to_str()?))).await?;
    Ok(())
}
