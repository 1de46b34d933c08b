//! Signing in to MCP servers (OAuth), through the real programs and an authorization server of the test.

use std::{fs, os::unix::fs::PermissionsExt, thread};

use agentd_e2e::{MockServer, Reply, ctl, sse};
use serde_json::{Value, json};

use crate::{
    logins::visit,
    mcp::{call, servers, wait_for},
    mcp_oauth_server::{Servers, begin, daemon, of_url, sent_to, sign_in, stored},
    support::{assert_says, text},
};

const WANTED: &str = "MCP server \"web\" requires sign-in: run agentctl mcp login web";

#[test]
fn a_sign_in_connects_the_server_and_lasts() {
    let web = Servers::start();
    let model = MockServer::start([]);
    let home = web.home(&model, json!({}));
    let mut client = daemon(&home);
    let waiting = wait_for(&mut client, "needs-auth");
    assert_eq!(waiting[0]["error"], WANTED);
    let started = begin(&mut client);
    for (name, expected) in [
        ("response_type", "code"),
        ("client_id", "registered"),
        ("code_challenge_method", "S256"),
        ("scope", "read"),
    ] {
        assert_eq!(of_url(&started, name), expected);
    }
    assert_eq!(of_url(&started, "resource"), web.url().replace(':', "%3A").replace('/', "%2F"));
    let registered = &web.asked("/register")[0].body;
    assert_eq!(registered["redirect_uris"], json!([started["redirectUri"]]));
    assert_eq!(
        (&registered["application_type"], &registered["client_name"]),
        (&json!("native"), &json!("agentd"))
    );
    let after = sign_in(&mut client);
    assert_eq!((&after[0]["state"], &after[0]["error"]), (&json!("connected"), &Value::Null));
    let exchanged = &web.grants("authorization_code")[0];
    assert_eq!(exchanged.field("client_id"), Some("registered"));
    assert!(exchanged.field("code_verifier").is_some_and(|verifier| verifier.len() == 43));
    assert_eq!(exchanged.field("resource"), Some(of_url(&started, "resource").as_str()));
    assert_eq!(text(&call(&mut client, &model, "mcp__web__echo", json!({}))), "called");

    let file = home.agent_dir().join("mcp-auth.json");
    assert_eq!(fs::metadata(&file).expect("the file").permissions().mode() & 0o777, 0o600);
    assert_eq!(stored(&home)["tokens"]["access"], "hush-access-1");
    let key = format!("mcp__web|{}", web.url());
    assert!(fs::read_to_string(&file).expect("the file").contains(&key));
    assert!(client.close().status.success());

    // Another program has it at once.
    let mut other = daemon(&home);
    assert_eq!(text(&call(&mut other, &model, "mcp__web__echo", json!({}))), "called");
    assert_eq!((web.asked("/authorize").len(), web.grants("authorization_code").len()), (1, 1));
    for session in home.session_files() {
        let text = fs::read_to_string(session).expect("a session");
        assert!(!text.contains("hush-"), "{text}");
    }
}

#[test]
fn the_address_that_the_browser_ended_at_can_be_pasted() {
    let web = Servers::start();
    let model = MockServer::start([]);
    let home = web.home(&model, json!({}));
    let mut client = daemon(&home);
    wait_for(&mut client, "needs-auth");
    let started = begin(&mut client);
    let paste = |code: &str| json!({"type": "mcp_login_finish", "loginId": started["loginId"], "code": code});
    let back = sent_to(&started);
    for useless in
        ["hush-code-1", "http://127.0.0.1:1/callback?code=hush-code-1&state=other", "https://x.example/?a=b"]
    {
        let refused = client.refused(paste(useless));
        assert_says(&refused.to_string(), &["what was pasted is of no use"]);
        assert!(!refused.to_string().contains("hush"), "{refused}");
    }
    let after = client.done(paste(&back));
    assert_eq!(after["servers"][0]["state"], "connected");
    let refused = client.refused(paste(&back));
    assert_says(&refused.to_string(), &["no sign-in", "can be begun again"]);
}

#[test]
fn a_session_that_is_open_elsewhere_uses_the_sign_in_with_its_next_prompt() {
    let web = Servers::start();
    let model = MockServer::start([]);
    let home = web.home(&model, json!({}));
    let (mut waiting, mut other) = (daemon(&home), daemon(&home));
    wait_for(&mut waiting, "needs-auth");
    wait_for(&mut other, "needs-auth");
    sign_in(&mut other);
    assert_eq!(text(&call(&mut waiting, &model, "mcp__web__echo", json!({}))), "called");
    assert_eq!(servers(&mut waiting)[0]["state"], "connected");
}

#[test]
fn programs_whose_token_ends_together_renew_it_once() {
    let web = Servers::start();
    let model = MockServer::start([]);
    let home = web.home(&model, json!({}));
    // Shorter than the time before its end at which a token is renewed.
    web.world().life = 5;
    let mut first = daemon(&home);
    wait_for(&mut first, "needs-auth");
    sign_in(&mut first);
    assert!(first.close().status.success());
    {
        let mut world = web.world();
        world.life = 3600;
        world.good.clear();
        world.asked.clear();
    }
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut client = daemon(&home);
                // One that finds the definitions that another has kept would connect with its first call.
                client.done(json!({"type": "reconnect_mcp_server", "name": "web"}));
                wait_for(&mut client, "connected")
            });
        }
    });
    let renewals = web.grants("refresh_token");
    assert_eq!(renewals.len(), 1, "each refresh token is good once");
    assert_eq!(renewals[0].field("client_id"), Some("registered"));
    assert!(renewals[0].field("resource").is_some());
    let tokens = stored(&home)["tokens"].clone();
    assert_eq!(tokens["refresh"], web.world().refresh.as_str(), "the new one is stored");
    assert!(web.world().good.contains(tokens["access"].as_str().expect("a token")));
}

#[test]
fn a_token_that_is_refused_in_mid_call_is_renewed_and_the_call_made() {
    let web = Servers::start();
    let model = MockServer::start([]);
    let home = web.home(&model, json!({}));
    let mut client = daemon(&home);
    wait_for(&mut client, "needs-auth");
    sign_in(&mut client);
    web.world().good.clear();
    assert_eq!(text(&call(&mut client, &model, "mcp__web__echo", json!({}))), "called");
    assert_eq!(web.grants("refresh_token").len(), 1);
}

#[test]
fn further_scopes_are_asked_for_together_with_the_earlier_ones_and_not_twice() {
    let web = Servers::start();
    let model = MockServer::start([]);
    let home = web.home(&model, json!({}));
    let mut client = daemon(&home);
    wait_for(&mut client, "needs-auth");
    sign_in(&mut client);
    web.world().call_scope = Some("write");
    let lacks = call(&mut client, &model, "mcp__web__echo", json!({}));
    assert_says(&text(&lacks), &["requires sign-in with further scopes (write)", "agentctl mcp login web"]);
    assert_eq!(servers(&mut client)[0]["state"], "connected", "other tools go on");
    let started = begin(&mut client);
    assert_eq!(of_url(&started, "scope"), "read%20write");
    sign_in(&mut client);
    // A server that wants what was asked for already gets no further sign-in.
    let lacks = call(&mut client, &model, "mcp__web__echo", json!({}));
    assert_says(&text(&lacks), &["for lack of scopes, which the sign-in had asked for already (write)"]);
    web.world().call_scope = None;
    assert_eq!(text(&call(&mut client, &model, "mcp__web__echo", json!({}))), "called");
}

#[test]
fn agentctl_signs_in_and_out() {
    let web = Servers::start();
    let model = MockServer::start([]);
    let home = web.home(&model, json!({}));
    let listed = ctl::run(&home, &["mcp", "list"]);
    assert_eq!(listed.code, 1, "{listed:?}");
    assert_says(&listed.stdout, &["web  needs-auth", WANTED]);
    let mut login = ctl::Ctl::start(&home, &["mcp", "login", "web", "--no-browser", "--timeout", "120"]);
    login.wait_for_stderr("Ctrl-C to give up");
    let said = login.stderr();
    assert_says(&said, &["To sign in to web, open this address", "Waiting for up to 2 min"]);
    let url = said.lines().find_map(|line| line.trim().strip_prefix("http://")).expect("an address");
    let page = visit(&sent_to(&json!({"url": format!("http://{url}")})));
    assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    let done = login.finish();
    assert_eq!((done.code, done.stdout.as_str()), (0, "Signed in to web: connected, 1 tools.\n"), "{done:?}");
    assert!(!format!("{done:?}").contains("hush"), "{done:?}");
    assert_eq!(ctl::run(&home, &["mcp", "list"]).code, 0);
    let out = ctl::run(&home, &["mcp", "logout", "web"]);
    assert_eq!(out.code, 0, "{out:?}");
    assert_says(&out.stdout, &["The sign-in to web was removed from ", "mcp-auth.json"]);
    let file = fs::read_to_string(home.agent_dir().join("mcp-auth.json")).expect("the file");
    assert_eq!(serde_json::from_str::<Value>(&file).expect("JSON"), json!({}));
    let out = ctl::run(&home, &["mcp", "logout", "web"]);
    assert_eq!(out.code, 1, "{out:?}");
    assert_says(&out.stderr, &["Nothing is stored for the MCP server \"web\""]);
    assert_eq!(ctl::run(&home, &["mcp", "list"]).code, 1);
}

#[test]
fn signing_out_ends_the_connection_and_a_sign_in_can_be_cancelled() {
    let web = Servers::start();
    let model = MockServer::start([]);
    let home = web.home(&model, json!({}));
    let mut client = daemon(&home);
    wait_for(&mut client, "needs-auth");
    sign_in(&mut client);
    client.done(json!({"type": "mcp_logout", "name": "web"}));
    wait_for(&mut client, "needs-auth");
    let started = begin(&mut client);
    client.send(&json!({"id": "f", "type": "mcp_login_finish", "loginId": started["loginId"]}));
    let cancel = json!({"type": "mcp_login_cancel", "loginId": started["loginId"]});
    assert_eq!(client.done(cancel.clone())["cancelled"], true);
    let done = client.until("the end", |line| line["id"] == "f");
    // The command that cancels may come first.
    assert!(done["success"] == false && (done["code"] == "aborted" || done["code"] == "not_found"), "{done}");
    assert_eq!(client.done(cancel)["cancelled"], false);
    // A session that ends with a sign-in under way does not wait for the user.
    let started = begin(&mut client);
    client.send(&json!({"id": "g", "type": "mcp_login_finish", "loginId": started["loginId"]}));
    assert!(client.close().status.success());
}

#[test]
fn a_client_signs_in_by_itself_with_its_secret() {
    let web = Servers::start();
    let model = MockServer::start([]);
    let oauth = json!({"grant": "client_credentials", "clientId": "me", "clientSecret": "${WEB_SECRET}", "scope": "s"});
    let home = web.home(&model, json!({ "oauth": oauth }));
    let mut client = daemon(&home);
    wait_for(&mut client, "connected");
    assert_eq!(text(&call(&mut client, &model, "mcp__web__echo", json!({}))), "called");
    let asked = &web.grants("client_credentials")[0];
    // "me:hush-client-secret"
    assert_eq!(asked.header("authorization"), Some("Basic bWU6aHVzaC1jbGllbnQtc2VjcmV0"));
    assert_eq!(asked.field("scope"), Some("s"));
    assert!(!home.agent_dir().join("mcp-auth.json").exists(), "such tokens are made anew");
    let refused = client.refused(json!({"type": "mcp_login_start", "name": "web"}));
    assert_says(&refused.to_string(), &["signs in by itself"]);
}

#[test]
fn a_server_can_get_the_token_of_a_login() {
    let web = Servers::start();
    let model = MockServer::start([]);
    let home = web.home(&model, json!({"auth": {"provider": "p"}}));
    let login = json!({"type": "oauth", "access": "hush-of-login", "refresh": "hush-r", "expires": 9_000_000_000_000_u64});
    home.write_agent("auth.json", &json!({ "p": login }).to_string());
    web.world().good.insert("hush-of-login".to_owned());
    let mut client = daemon(&home);
    wait_for(&mut client, "connected");
    assert_eq!(text(&call(&mut client, &model, "mcp__web__echo", json!({}))), "called");
    // Without the login, its own command helps.
    home.write_agent("auth.json", "{}");
    model.push(Reply::stream(sse::calls(&[("c1", "mcp__web__echo", json!({}))])));
    model.push(Reply::stream(sse::answer("Ok.")));
    let events = Value::from(client.prompt("Go.")).to_string();
    assert_says(&events, &["requires sign-in: run agentctl login p (", "there is none"]);
    assert!(!events.contains("hush"), "{events}");
    wait_for(&mut client, "needs-auth");
}
