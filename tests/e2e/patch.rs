//! The tool `patch` on the real binaries: several files by one diff, or none.

use agentd_e2e::{Daemon, Home, MockServer, Reply, sse};
use serde_json::{Value, json};

use crate::{
    client_tools::{hello, offered},
    support::{assert_says, ended, text},
};

struct Session {
    model: MockServer,
    home: Home,
    daemon: Daemon,
}

impl Session {
    fn new(settings: &Value) -> Self {
        let model = MockServer::start([]);
        let home = Home::with_model(&model);
        home.settings(settings);
        let mut daemon = Daemon::start(&home, &["--tools", "+patch"]);
        hello(&mut daemon, "test");
        Self { model, home, daemon }
    }

    /// Has the model apply a diff: all events, and the result.
    fn patch(&mut self, diff: &str) -> (Vec<Value>, Value) {
        self.model.push(Reply::stream(sse::calls(&[("c1", "patch", json!({ "diff": diff }))])));
        self.model.push(Reply::stream(sse::answer("Ok.")));
        let events = self.daemon.prompt("Go.");
        let result = ended(&events, "toolResult")[0].clone();
        (events, result)
    }
}

const DIFF: &str = "\
diff --git a/a.rs b/a.rs
--- a/a.rs
+++ b/a.rs
@@ -1,2 +1,2 @@
 fn a() {
-    one();
+    two();
diff --git a/kept/b.rs b/kept/b.rs
--- a/kept/b.rs
+++ b/kept/b.rs
@@ -7,1 +7,2 @@
 fn b() {}
+fn c() {}
diff --git a/new.rs b/new.rs
new file mode 100644
--- /dev/null
+++ b/new.rs
@@ -0,0 +1,1 @@
+fn n() {}
diff --git a/gone.rs b/gone.rs
deleted file mode 100644
--- a/gone.rs
+++ /dev/null
@@ -1,1 +0,0 @@
-fn g() {}
diff --git a/from.rs b/to.rs
similarity index 100%
rename from from.rs
rename to to.rs
";

/// The files that the diff is of.
fn write_files(home: &Home) {
    home.write("a.rs", "fn a() {\r\n    one();\r\n}\r\n");
    home.write("kept/b.rs", "// moved down\nfn b() {}\n");
    home.write("gone.rs", "fn g() {}\n");
    home.write("from.rs", "fn f() {}\n");
}

fn assert_unchanged(home: &Home) {
    assert_eq!(home.read("a.rs"), "fn a() {\r\n    one();\r\n}\r\n");
    assert_eq!(home.read("kept/b.rs"), "// moved down\nfn b() {}\n");
    assert_eq!((home.read("gone.rs"), home.read("from.rs")), ("fn g() {}\n".into(), "fn f() {}\n".into()));
    let is_there = |name: &str| home.project().join(name).exists();
    assert!(!is_there("new.rs") && !is_there("to.rs"));
}

#[test]
fn the_tool_is_there_where_it_is_asked_for() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    let ask = |args: &[&str]| {
        let mut daemon = Daemon::start(&home, args);
        hello(&mut daemon, "test");
        model.push(Reply::stream(sse::answer("Ok.")));
        daemon.prompt("Go.");
        offered(&model, model.requests().len() - 1)
    };
    assert_eq!(ask(&["--no-session"]), ["read", "bash", "edit", "write"]);
    assert_eq!(ask(&["--no-session", "--tools", "read,patch"]), ["read", "patch"]);
    home.settings(&json!({"defaultTools": ["-edit", "+patch"]}));
    assert_eq!(ask(&["--no-session"]), ["read", "bash", "write", "patch"]);
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    hello(&mut daemon, "test");
    let set = daemon.done(json!({"type": "set_active_tools", "tools": ["read"]}));
    assert_eq!(set["tools"], json!(["read"]));
    let set = daemon.done(json!({"type": "set_active_tools", "tools": ["read", "patch"]}));
    assert_eq!(set["tools"], json!(["read", "patch"]));
}

#[test]
fn a_diff_changes_all_of_its_files_and_is_undone_in_one_step() {
    let mut session = Session::new(&json!({"undo": {"enabled": true}}));
    write_files(&session.home);
    let (events, result) = session.patch(DIFF);
    assert_eq!(
        text(&result),
        "Successfully applied 4 hunk(s) to 5 files:\napplied 1 hunk(s) to a.rs\napplied 1 hunk(s) to kept/b.rs\ncreated new.rs\n\
         removed gone.rs\nrenamed from.rs to to.rs"
    );
    let home = &session.home;
    assert_eq!(home.read("a.rs"), "fn a() {\r\n    two();\r\n}\r\n");
    assert_eq!(home.read("kept/b.rs"), "// moved down\nfn b() {}\nfn c() {}\n");
    assert_eq!((home.read("new.rs"), home.read("to.rs")), ("fn n() {}\n".into(), "fn f() {}\n".into()));
    assert!(!home.project().join("gone.rs").exists() && !home.project().join("from.rs").exists());
    let files = result["details"]["files"].as_array().expect("the files");
    assert_eq!((files.len(), &files[1]["hunks"]), (5, &json!(1)));
    let kept: Vec<&Value> = events.iter().filter(|event| event["type"] == "checkpoint_created").collect();
    assert_eq!((kept.len(), &kept[0]["checkpoint"]["tool"]), (1, &json!("patch")));
    session.daemon.done(json!({"type": "restore_checkpoint", "step": "undo"}));
    assert_unchanged(&session.home);
}

#[test]
fn a_diff_that_does_not_fit_or_is_refused_changes_nothing() {
    let rule = json!({"tool": "edit", "path": "./kept/**", "action": "deny"});
    let mut session = Session::new(&json!({"permissions": {"preset": "full", "rules": [rule]}}));
    write_files(&session.home);
    let (_, result) = session.patch(DIFF);
    assert_eq!(result["isError"], true);
    assert_says(
        &text(&result),
        &["Permission denied: rule 1 of the setting permissions.rules refuses it", "Nothing was changed."],
    );
    assert_unchanged(&session.home);
    let (_, result) = session.patch(&DIFF.replace("-fn g() {}", "-fn other() {}"));
    assert_eq!(result["isError"], true);
    assert_says(
        &text(&result),
        &[
            "Hunk 1 of gone.rs (@@ -1,1 +0,0 @@) has no place: line 1 is \"fn g() {}\", where the diff has \"fn other() {}\"",
            "Nothing was changed.",
        ],
    );
    assert_unchanged(&session.home);
    // In plan mode nothing is changed either.
    session.daemon.done(json!({"type": "set_mode", "mode": "plan"}));
    let (_, result) = session.patch("--- a/a.rs\n+++ b/a.rs\n@@ -1,1 +1,1 @@\n-fn a() {\n+fn z() {\n");
    assert!(result["isError"] == true && text(&result).contains("plan mode refuses writing"), "{result}");
    assert_unchanged(&session.home);
}
