//! A server that repeats a key in whatever form is not passed on.

use std::fs;

use agentd_e2e::{Home, MockServer, Reply, ctl};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::json;

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
        // What keys have in common is no secret.
        assert!(done.stderr.contains("sk-proj- keys"), "{what}: {}", done.stderr);
        let files = home.session_files().into_iter().map(|file| fs::read_to_string(file).unwrap());
        for text in files.chain([done.stdout, done.stderr]) {
            assert!(!text.contains(&form), "{what}: {text}");
        }
    }
}
