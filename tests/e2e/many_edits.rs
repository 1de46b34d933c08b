//! Many changes in one answer: those of one file follow each other whatever it is called, and none is lost.

use std::os::unix::fs::symlink;

use agentd_e2e::{Daemon, Home, MockServer, Reply, sse};
use serde_json::{Value, json};

use crate::support::ended;

const CALLS: usize = 100;

/// Has a model make all these calls in one answer; gives the results' `isError`.
fn at_once(home: &Home, calls: &[(String, &str, Value)]) -> Vec<Value> {
    let calls: Vec<(&str, &str, Value)> =
        calls.iter().map(|(id, tool, arguments)| (id.as_str(), *tool, arguments.clone())).collect();
    let server = MockServer::start([Reply::stream(sse::calls(&calls)), Reply::stream(sse::answer("Ok."))]);
    home.configure(&agentd_e2e::home::models(&server.base_url()));
    let mut daemon = Daemon::start(home, &["--no-session"]);
    let events = daemon.prompt("Go.");
    ended(&events, "toolResult").iter().map(|result| result["isError"].clone()).collect()
}

#[test]
fn a_hundred_edits_of_one_file_by_two_names_all_land() {
    let home = Home::new();
    home.write("real/file.txt", &(0..CALLS).map(|number| format!("<{number}>\n")).collect::<String>());
    symlink("real/file.txt", home.project().join("link.txt")).unwrap();
    symlink("real", home.project().join("folder")).unwrap();
    let calls: Vec<_> = (0..CALLS)
        .map(|number| {
            let path = ["link.txt", "folder/file.txt"][number % 2];
            let edits = json!([{"oldText": format!("<{number}>"), "newText": format!("done {number}")}]);
            (format!("c{number}"), "edit", json!({"path": path, "edits": edits}))
        })
        .collect();
    assert_eq!(at_once(&home, &calls), vec![json!(false); CALLS]);
    let expected: String = (0..CALLS).map(|number| format!("done {number}\n")).collect();
    assert_eq!(home.read("real/file.txt"), expected);
    assert!(home.project().join("link.txt").is_symlink() && home.project().join("folder").is_symlink());
}

#[test]
fn writes_and_edits_of_one_file_keep_the_order_of_the_calls() {
    let home = Home::new();
    home.write("real.txt", "0\n");
    symlink("real.txt", home.project().join("link.txt")).unwrap();
    // Each edit finds only what the call before it has written.
    let calls: Vec<_> = (1..=CALLS)
        .map(|number| {
            let path = ["real.txt", "link.txt"][number % 2];
            let call = if number % 10 == 0 {
                ("write", json!({"path": path, "content": format!("{number}\n")}))
            } else {
                let edits =
                    json!([{"oldText": format!("{}\n", number - 1), "newText": format!("{number}\n")}]);
                ("edit", json!({"path": path, "edits": edits}))
            };
            (format!("c{number}"), call.0, call.1)
        })
        .collect();
    assert_eq!(at_once(&home, &calls), vec![json!(false); CALLS]);
    assert_eq!(home.read("real.txt"), format!("{CALLS}\n"));
}

#[test]
fn a_hundred_files_are_written_and_edited_in_one_answer() {
    let home = Home::new();
    let calls: Vec<_> = (0..CALLS)
        .flat_map(|number| {
            let path = format!("new/{number}.txt");
            let edits = json!([{"oldText": "before", "newText": format!("after {number}")}]);
            [
                (format!("w{number}"), "write", json!({"path": path, "content": "before\n"})),
                (format!("e{number}"), "edit", json!({"path": path, "edits": edits})),
            ]
        })
        .collect();
    assert_eq!(at_once(&home, &calls), vec![json!(false); 2 * CALLS]);
    for number in 0..CALLS {
        assert_eq!(home.read(&format!("new/{number}.txt")), format!("after {number}\n"));
    }
}
