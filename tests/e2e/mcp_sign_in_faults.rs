//! Sign-ins to MCP servers that go wrong: each is a clear error, and no token goes where it does not belong.

use agentd_e2e::{MockServer, Reply};
use serde_json::json;

use crate::{
    logins::visit,
    mcp::{call, wait_for},
    mcp_oauth_server::{Servers, begin, daemon, sent_to, sign_in, stored},
    support::{assert_says, text},
};

#[test]
fn a_token_endpoint_that_fails_is_said_and_costs_no_sign_in() {
    let web = Servers::start();
    let model = MockServer::start([]);
    let home = web.home(&model, json!({}));
    let mut client = daemon(&home);
    wait_for(&mut client, "needs-auth");
    sign_in(&mut client);
    web.world().good.clear();
    web.world().refuses = Some((503, "hush-access-1"));
    let failed = text(&call(&mut client, &model, "mcp__web__echo", json!({})));
    assert_says(&failed, &["MCP server \"web\" could not be authorized", "503", "[redacted]"]);
    assert!(!failed.contains("hush") && !failed.contains("requires sign-in"), "{failed}");
    web.world().refuses = None;
    assert_eq!(text(&call(&mut client, &model, "mcp__web__echo", json!({}))), "called");
    assert_eq!(web.asked("/authorize").len(), 1);
}

#[test]
fn a_refresh_token_that_is_refused_for_good_is_forgotten() {
    let web = Servers::start();
    let model = MockServer::start([]);
    let home = web.home(&model, json!({}));
    let mut client = daemon(&home);
    wait_for(&mut client, "needs-auth");
    sign_in(&mut client);
    web.world().good.clear();
    "another".clone_into(&mut web.world().refresh);
    let failed = text(&call(&mut client, &model, "mcp__web__echo", json!({})));
    assert_eq!(failed, "MCP server \"web\" requires sign-in: run agentctl mcp login web");
    wait_for(&mut client, "needs-auth");
    let entry = stored(&home);
    assert!(entry.get("tokens").is_none() && entry.get("client").is_some(), "{entry}");
    let failed = text(&call(&mut client, &model, "mcp__web__echo", json!({})));
    assert_says(&failed, &["requires sign-in"]);
    assert_eq!(web.grants("refresh_token").len(), 1, "it is not tried again");
    // The client is known already.
    sign_in(&mut client);
    assert_eq!((web.asked("/register").len(), web.asked("/authorize").len()), (1, 2));
}

#[test]
fn metadata_of_another_resource_ends_the_sign_in_before_it_begins() {
    let web = Servers::start();
    let model = MockServer::start([]);
    let home = web.home(&model, json!({}));
    web.world().resource = Some("https://evil.example/mcp".to_owned());
    let mut client = daemon(&home);
    wait_for(&mut client, "needs-auth");
    let refused = client.refused(json!({"type": "mcp_login_start", "name": "web"}));
    assert_says(&refused.to_string(), &["evil.example", "does not hold", "no_credentials"]);
    assert!(web.world().asked.is_empty(), "the authorization server hears nothing");
}

#[test]
fn a_server_without_pkce_is_refused() {
    let web = Servers::start();
    let model = MockServer::start([]);
    let home = web.home(&model, json!({}));
    web.world().pkce = json!(["plain"]);
    let mut client = daemon(&home);
    wait_for(&mut client, "needs-auth");
    let refused = client.refused(json!({"type": "mcp_login_start", "name": "web"}));
    assert_says(&refused.to_string(), &["PKCE with S256", "unsupported"]);
    assert!(web.asked("/register").is_empty());
}

#[test]
fn a_browser_that_comes_back_from_another_server_is_refused() {
    let web = Servers::start();
    let model = MockServer::start([]);
    let home = web.home(&model, json!({}));
    web.world().iss = Some("https://evil.example".to_owned());
    let mut client = daemon(&home);
    wait_for(&mut client, "needs-auth");
    let started = begin(&mut client);
    client.send(&json!({"id": "f", "type": "mcp_login_finish", "loginId": started["loginId"]}));
    visit(&sent_to(&started));
    let done = client.until("the end", |line| line["id"] == "f");
    assert_says(&done.to_string(), &["another authorization server", "no_credentials"]);
    assert!(web.grants("authorization_code").is_empty(), "the code goes nowhere");
    assert!(!home.agent_dir().join("mcp-auth.json").exists());
}

#[test]
fn a_token_never_follows_a_redirect() {
    let web = Servers::start();
    let model = MockServer::start([]);
    let home = web.home(&model, json!({}));
    let mut client = daemon(&home);
    wait_for(&mut client, "needs-auth");
    sign_in(&mut client);
    let other = MockServer::always(Reply::status(200, "application/json", "{}"));
    web.world().moved_to = Some(other.base_url());
    let failed = text(&call(&mut client, &model, "mcp__web__echo", json!({})));
    assert_says(&failed, &["MCP tool web/echo failed", "307"]);
    assert!(other.requests().is_empty());
}

#[test]
fn an_authorization_server_that_changes_gets_neither_the_client_nor_its_secret() {
    let (one, other) = (Servers::start(), Servers::start());
    let model = MockServer::start([]);
    let issuer = one.auth.base_url().replace("/v1", "");
    let oauth = json!({"clientId": "me", "clientSecret": "${WEB_SECRET}", "issuer": issuer});
    // The server of the entry names another authorization server than the user accepts.
    let home = other.home(&model, json!({ "oauth": oauth }));
    let mut client = daemon(&home);
    wait_for(&mut client, "needs-auth");
    let refused = client.refused(json!({"type": "mcp_login_start", "name": "web"}));
    assert_says(&refused.to_string(), &["Not signed in", "the metadata of the authorization server"]);
    assert!(other.grants("authorization_code").is_empty() && other.asked("/authorize").is_empty());
}

#[test]
fn a_file_of_tokens_that_is_broken_is_said_and_left_alone() {
    let web = Servers::start();
    let model = MockServer::start([]);
    let home = web.home(&model, json!({}));
    home.write_agent("mcp-auth.json", "{hush");
    let mut client = daemon(&home);
    let failed = wait_for(&mut client, "failed");
    let error = failed[0]["error"].as_str().expect("an error");
    assert_says(error, &["could not be authorized", "mcp-auth.json"]);
    assert!(!error.contains("hush"), "{error}");
    assert_eq!(std::fs::read_to_string(home.agent_dir().join("mcp-auth.json")).expect("the file"), "{hush");
}
