//! Each kind of credential, each with a failure that repeats it; servers that repeat a key in any form.

use std::fs;

use agentd_e2e::{Daemon, Home, MockServer, Reply, Service, ctl};
use base64::{Engine, engine::general_purpose::STANDARD};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::canary::{MARK, Seen, secret};

/// Variables with cloud secrets, and with the paths of their files.
fn variables(home: &Home, server: &MockServer) -> Vec<(String, String)> {
    let of = |name: &str, value: String| (name.to_owned(), value);
    vec![
        of("AWS_ACCESS_KEY_ID", "AKIAOFTHETEST".to_owned()),
        of("AWS_SECRET_ACCESS_KEY", secret("aws-secret")),
        of("AWS_SESSION_TOKEN", secret("aws-session")),
        of("AWS_REGION", "us-east-1".to_owned()),
        of("AZURE_OPENAI_API_KEY", secret("azure")),
        of("AZURE_OPENAI_BASE_URL", server.base_url().replace("/v1", "/openai/v1")),
        of("GOOGLE_APPLICATION_CREDENTIALS", home.root().join("home/service.json").display().to_string()),
        of("GOOGLE_CLOUD_PROJECT", "p".to_owned()),
        of("GOOGLE_CLOUD_LOCATION", "us-east1".to_owned()),
        of("OPENAI_API_KEY", secret("variable")),
        of("AGENTD_LOG", "trace".to_owned()),
    ]
}

fn home(server: &MockServer) -> Home {
    let home = Home::new();
    let url = server.base_url();
    let root = url.trim_end_matches("/v1");
    let models = json!([{"id": "m"}]);
    home.configure(&json!({"providers": {
        "account": {"api": "openai-completions", "baseUrl": url, "models": models, "oauth": {"clientId": "c",
            "clientSecret": secret("client"), "tokenUrl": format!("{url}/token"), "deviceUrl": format!("{url}/device")}},
        "amazon-bedrock": {"api": "bedrock-converse-stream", "baseUrl": root, "models": models},
        "azure": {"api": "azure-openai-responses", "baseUrl": format!("{root}/openai/v1"), "models": models},
        "google-vertex": {"api": "google-vertex", "baseUrl": format!("{root}/v1/projects/p/locations/us-east1"), "models": models},
        "tls": {"api": "openai-completions", "baseUrl": url.replace("http:", "https:"), "apiKey": secret("tls"), "models": models},
        "broken": {"api": "openai-completions", "baseUrl": "http://nowhere.invalid/v1", "apiKey": format!("!exit 3; echo {}", secret("broken")), "models": models},
        "far": {"api": "openai-completions", "baseUrl": "http://far.invalid/v1", "apiKey": secret("far"), "models": models},
    }}));
    home.write_agent(
        "auth.json",
        &json!({"account": {"type": "oauth", "access": secret("access"), "refresh": secret("refresh"),
        "expires": 4_000_000_000_000_u64}})
        .to_string(),
    );
    home.settings(&json!({"retry": {"enabled": false}, "httpProxy": format!("http://me:{}@127.0.0.1:9", secret("proxy"))}));
    let key =
        format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", secret("service-account"));
    home.write_home(
        "service.json",
        &json!({"type": "service_account", "client_email": "a@b.c", "private_key": key, "private_key_id": "1",
            "token_uri": format!("{url}/token")})
        .to_string(),
    );
    home
}

fn tell(purposes: &[&str]) -> Reply {
    let all: Vec<String> = purposes.iter().map(|purpose| secret(purpose)).collect();
    let said = all.join(" Bearer ");
    Reply::status(
        401,
        "application/json",
        json!({"error": {"message": said, "type": said, "code": said}, "message": said,
        "error_description": said})
        .to_string(),
    )
}

#[test]
fn no_secret_of_any_kind_of_credentials() {
    let mut seen = Seen::default();
    let server = MockServer::start([]);
    let home = home(&server);
    let mut daemon = Daemon::start_with(&home, &["--no-session"], |command| {
        command.envs(variables(&home, &server));
    });
    let cases: [(&str, Vec<Reply>); 7] = [
        ("account", vec![tell(&["access"]), tell(&["refresh", "access", "client"])]),
        ("amazon-bedrock", vec![tell(&["aws-secret", "aws-session"]), tell(&["aws-secret", "aws-session"])]),
        ("azure", vec![tell(&["azure"])]),
        ("google-vertex", vec![]),
        ("tls", vec![]),
        ("broken", vec![]),
        ("far", vec![]),
    ];
    for (provider, replies) in cases {
        replies.into_iter().for_each(|reply| server.push(reply));
        daemon.done(json!({"type": "set_model", "provider": provider, "modelId": "m"}));
        let answer = daemon.call(json!({"type": "prompt", "message": "Hello?"}));
        seen.add(format!("the answer of {provider}"), answer.to_string());
        if answer["success"] == false {
            continue;
        }
        let events = daemon.settled();
        let failed = events.iter().any(|event| event.to_string().contains("errorMessage"));
        assert!(failed, "{provider} did not fail: {events:#?}");
        seen.add(format!("an event of {provider}"), Value::from(events).to_string());
    }
    assert!(server.requests().len() >= 3, "nothing was sent: the test proves nothing");
    // The login's provider repeats everything.
    let device = json!({"device_code": secret("device"), "user_code": "ABCD", "verification_uri": "http://127.0.0.1:9/", "interval": 0, "expires_in": 60});
    server.push(Reply::status(200, "application/json", device.to_string()));
    server.push(tell(&["device", "client"]));
    let started = daemon.call(json!({"type": "login_start", "provider": "account", "flow": "device"}));
    seen.add("login_start", started.to_string());
    if let Some(id) = started["data"]["loginId"].as_str() {
        seen.add("login_finish", daemon.call(json!({"type": "login_finish", "loginId": id})).to_string());
    }
    for command in [
        json!({"type": "get_state"}),
        json!({"type": "get_diagnostics"}),
        json!({"type": "get_tools"}),
        json!({"type": "get_commands"}),
        json!({"type": "diagnose"}),
        json!({"type": "get_auth_status"}),
        json!({"type": "list_models", "all": true}),
        json!({"type": "explain_setting", "key": "httpProxy"}),
        json!({"type": "export_html", "outputPath": home.root().join("home/page.html")}),
    ] {
        seen.add(command.to_string(), daemon.call(command.clone()).to_string());
    }
    let ended = daemon.close();
    assert!(ended.stderr.contains("TRACE") || ended.stderr.contains("DEBUG"), "nothing was logged");
    seen.add("the log", ended.stderr);
    fs::remove_file(home.root().join("home/service.json")).unwrap();
    let settings = home.agent_dir().join("settings.json");
    fs::remove_file(settings).unwrap();
    seen.files(home.root());
    seen.assert_clean();
}

/// Process arguments are visible to others: those of the daemon, its guard and a session's commands hold no key that a
/// client passed by a flag.
#[test]
fn no_secret_in_the_arguments_of_processes() {
    let server = MockServer::start([]);
    let home = home(&server);
    let service = Service::start(&home, &[]);
    let mut client = service.client();
    // A key of this test alone: other tests, which run at the same time, give theirs to an agentd as an argument.
    let key = secret("passed-on-by-a-client");
    let args = json!(["--api-key", key, "--model", "tls/m"]);
    client.done(json!({"type": "open_session", "cwd": home.project(), "args": args, "env": {"PATH": "/usr/bin:/bin"}}));
    let look = "for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline; echo; done 2>/dev/null";
    // A process that begins or ends has no arguments to show, and on a busy machine that takes a while: a look that misses one of the
    // two proves nothing.
    let is_whole = (0..50).any(|_| {
        let seen = client.done(json!({"type": "bash", "command": look}));
        let seen = seen["output"].as_str().unwrap();
        assert!(!seen.contains(&key), "{seen}");
        seen.contains("agentd serve") && seen.contains("guard")
    });
    assert!(is_whole, "the daemon and its guard were never seen");
    service.signal(Signal::TERM);
    let ended = service.wait();
    assert!(!ended.stderr.contains(MARK), "{ended:?}");
}

/// A message about a file that holds a secret names the file and not the secret.
#[test]
fn no_secret_in_what_is_wrong_with_files() {
    let mut seen = Seen::default();
    let home = Home::new();
    for (file, text) in [
        (
            "models.json",
            json!({"providers": {"p": {"apiKey": {"key": secret("object")}, "models": [{"id": 5}]}}}),
        ),
        (
            "models.json",
            json!({"providers": {"p": {"apiKey": secret("good"), "api": secret("api"), "baseUrl": format!("ftp://u:{}@h", secret("url")), "models": [{"id": "m", "api": 7}]}}}),
        ),
        (
            "models.json",
            json!({"providers": {"p": {"apiKey": secret("key"), "headers": [secret("list")], "models": "none"}}}),
        ),
        (
            "auth.json",
            json!({"openai": {"type": "api_key", "key": [secret("list")]}, "xai": secret("bare"), "groq": {"type": secret("type")}}),
        ),
        ("auth.json", json!([secret("array")])),
        ("settings.json", json!({"httpProxy": 5, "caFile": [secret("ca")]})),
        ("settings.json", json!({"httpProxy": format!("nonsense://me:{}@", secret("no-proxy"))})),
        ("settings.json", json!({"httpProxy": format!("me:{}@proxy:3128", secret("no-scheme"))})),
        (
            "settings.json",
            json!({"httpProxy": {"url": format!("http://me:{}@proxy:3128", secret("in-object"))}}),
        ),
    ] {
        home.write_agent(file, &text.to_string());
        for args in [
            &["doctor"][..],
            &["doctor", "--json"],
            &["models", "--all"],
            &["auth", "status"],
            &["config", "check"],
            &["config", "explain", "httpProxy"],
            &["prompt", "--model", "p/m", "Hi"],
        ] {
            let mut command = ctl::command(&home, args);
            command.env("AGENTD_LOG", "trace");
            let done = ctl::feed(command, "");
            seen.add(format!("{args:?} with {file} {text}").replace(MARK, "…"), done.stdout + &done.stderr);
        }
        fs::remove_file(home.agent_dir().join(file)).unwrap();
    }
    seen.files(home.root());
    seen.assert_clean();
}

const KEY: &str = "sk-proj-Abc1Def2Ghi3/Jkl4+Mno5=Pqr6Stu7Vwx8Yz90";

fn each_byte(format: impl Fn(u8) -> String) -> String {
    KEY.bytes().map(format).collect()
}

/// The key in the forms in which servers and their proxies repeat it.
fn forms() -> Vec<(&'static str, String)> {
    let reserved = |byte: u8| !(byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte));
    let percent = |upper: bool, all: bool| {
        each_byte(|byte| match (all || reserved(byte), upper) {
            (false, _) => char::from(byte).to_string(),
            (true, true) => format!("%{byte:02X}"),
            (true, false) => format!("%{byte:02x}"),
        })
    };
    vec![
        ("as it is", KEY.to_owned()),
        ("percent-encoded", percent(true, false)),
        ("percent-encoded, lower case", percent(false, false)),
        ("percent-encoded, every byte", percent(true, true)),
        ("percent-encoded, every byte, lower case", percent(false, true)),
        ("hexadecimal", each_byte(|byte| format!("{byte:02x}"))),
        ("hexadecimal, upper case", each_byte(|byte| format!("{byte:02X}"))),
        ("Base64", STANDARD.encode(KEY)),
        ("its beginning", KEY[..30].to_owned()),
        ("its beginning, in hexadecimal", each_byte(|byte| format!("{byte:02x}"))[..60].to_owned()),
    ]
}

#[test]
fn a_key_is_not_repeated_in_any_form() {
    let server = MockServer::start([]);
    let home = Home::new();
    home.settings(&json!({"retry": {"enabled": false}}));
    home.configure(&json!({"providers": {"fake": {
        "baseUrl": server.base_url(), "api": "openai-completions", "apiKey": KEY, "models": [{"id": "fake"}],
    }}}));
    for (what, form) in forms() {
        let message =
            format!("Incorrect API key provided: <{form}>. sk-proj- keys are made on the page of keys.");
        server.push(Reply::status(
            401,
            "application/json",
            json!({"error": {"message": message}}).to_string(),
        ));
        let mut command = ctl::agentd(&home, &["-p", "--model", "fake/fake", "hi"]);
        command.env("AGENTD_LOG", "trace");
        let done = ctl::feed(command, "");
        assert_eq!(done.code, 1, "{what}: {done:?}");
        assert!(
            done.stderr.contains("<[redacted]>") || done.stderr.contains("<[redacted]=>"),
            "{what}: {}",
            done.stderr
        );
        // The common prefix of keys is not secret.
        assert!(done.stderr.contains("sk-proj- keys"), "{what}: {}", done.stderr);
        let files = home.session_files().into_iter().map(|file| fs::read_to_string(file).unwrap());
        for text in files.chain([done.stdout, done.stderr]) {
            assert!(!text.contains(&form), "{what}: {text}");
        }
    }
}
