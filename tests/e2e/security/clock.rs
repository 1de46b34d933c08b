//! A machine whose clock was never set shows a time before 1970: nothing fails, except what needs the time, with a reason.

use std::{path::PathBuf, process::Command};

use agentd_e2e::{Home, MockServer, Service, ctl};
use serde_json::json;

use crate::{
    limits::{fine, open},
    support::{answers, records, text},
};

/// A preloaded library that makes a program believe that it is 1969.
const CLOCK: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
int clock_gettime(clockid_t clock, struct timespec *time) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, time);
    if (clock == CLOCK_REALTIME && result == 0) time->tv_sec = -86400 * 30;
    return result;
}
"#;

/// Compiles the library with the linker's compiler.
fn library(home: &Home) -> PathBuf {
    let (source, library) = (home.root().join("clock.c"), home.root().join("clock.so"));
    std::fs::write(&source, CLOCK).unwrap();
    let made =
        Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).arg("-ldl").output();
    let made = made.expect("a C compiler");
    assert!(made.status.success(), "{made:?}");
    library
}

#[test]
fn a_clock_before_1970_breaks_nothing() {
    let server = MockServer::start([fine(), fine()]);
    let home = Home::with_model(&server);
    let library = library(&home);
    let service = Service::start_with(&home, &[], |command| {
        command.env("LD_PRELOAD", &library);
    });
    let mut client = service.client();
    let id = open(&mut client, &home);
    assert!(id.starts_with("00000000-0000-7"), "{id}");
    assert_eq!(text(answers(&client.prompt("Hi"))[0]), "Fine.");
    let ran = client.done(json!({"type": "bash", "command": "echo works; sleep 0"}));
    assert_eq!(ran["output"], "works\n");
    client.done(json!({"type": "set_session_name", "name": "old"}));
    client.done(json!({"type": "close_session", "sessionId": id}));
    client.done(json!({"type": "attach_session", "sessionId": id}));
    assert_eq!(text(answers(&client.prompt("And now?"))[0]), "Fine.");
    assert_eq!(client.done(json!({"type": "list_sessions"}))["sessions"].as_array().unwrap().len(), 1);
    let file = home.session_files().remove(0);
    assert!(records(&file)[0]["timestamp"].as_str().unwrap().starts_with("19"), "{:?}", records(&file)[0]);
    for args in [&["sessions"][..], &["ps"], &["status"], &["watch", "--help"]] {
        let mut command = ctl::command(&home, args);
        command.env("LD_PRELOAD", &library);
        let told = ctl::feed(command, "");
        assert_eq!(told.code, 0, "{args:?}: {told:?}");
    }
    // No certificate is valid at such a time.
    let models = json!({"providers": {"far": {"baseUrl": "https://127.0.0.1:9/v1", "api": "openai-completions",
        "apiKey": "k-123456789", "models": [{"id": "m"}]}}});
    home.configure(&models);
    let far =
        client.done(json!({"type": "open_session", "cwd": home.project(), "args": ["--model", "far/m"]}));
    assert!(far["sessionId"].is_string(), "{far}");
    let said = answers(&client.prompt("Hi"))[0].clone();
    assert!(said["errorMessage"].as_str().is_some_and(|text| text.contains("before 1970")), "{said}");
    drop(client);
    service.signal(rustix::process::Signal::TERM);
    let ended = service.wait();
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
}
