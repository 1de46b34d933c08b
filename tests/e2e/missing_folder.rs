//! A session whose folder is gone: what is said of it, and how to go on.

use std::fs;

use agentd_e2e::{Home, MockServer, Reply, Service, ctl, sse};
use serde_json::{Value, json};

use crate::support::{assert_says, complaint, records};

/// A session with something said in it, of a folder that is gone; its id.
fn left_behind(home: &Home) -> String {
    home.write("old/file.txt", "x");
    let old = home.project().join("old");
    let done = ctl::run(home, &["prompt", "--private", "--cwd", &old.display().to_string(), "Hi"]);
    assert_eq!(done.code, 0, "{done:?}");
    fs::remove_dir_all(old).unwrap();
    records(&home.session_files()[0])[0]["id"].as_str().unwrap().to_owned()
}

fn header_of(home: &Home, id: &str) -> Value {
    let files = home.session_files();
    let file = files.iter().find(|file| file.display().to_string().contains(id)).expect("the copy");
    records(file)[0].clone()
}

fn goes_on_elsewhere(shared: bool) {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let id = left_behind(&home);
    let original = home.session_files()[0].display().to_string();
    let service = shared.then(|| Service::start(&home, &[]));

    let refused = ctl::run(&home, &["prompt", "--session", &original, "And?"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    let how = format!("agentctl fork --cwd DIR {id}");
    assert_says(&refused.stderr, &["does not exist", "/old", &how]);
    if let Some(service) = &service {
        let mut client = service.client();
        let refused = client.refused(json!({"type": "attach_session", "sessionId": id}));
        assert_says(&complaint(&refused), &["does not exist", &how]);
        assert_says(refused["hint"].as_str().unwrap(), &[&how]);
    }

    home.write("new/file.txt", "x");
    let new = home.project().join("new").display().to_string();
    let forked = ctl::run(&home, &["fork", "--cwd", &new, &id]);
    assert_eq!((forked.code, forked.stderr.as_str()), (0, ""), "{forked:?}");
    let copy = forked.stdout.trim();
    let header = header_of(&home, copy);
    assert_eq!((&header["cwd"], &header["parentSession"]), (&json!(new), &json!(original)));
    let done = ctl::run(&home, &["prompt", "--cwd", &new, "--session", copy, "And now?"]);
    assert_eq!((done.code, done.stdout.as_str()), (0, "Ok.\n"), "{done:?}");
    let asked = server.requests();
    let said = asked.last().unwrap().messages().to_vec();
    assert!(said.iter().any(|message| message.to_string().contains("Hi")), "{said:?}");

    let refused = ctl::run(&home, &["fork", "--cwd", "nowhere", &id]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert_says(&refused.stderr, &["--cwd nowhere"]);
}

#[test]
fn it_goes_on_elsewhere_with_the_daemon() {
    goes_on_elsewhere(true);
}

#[test]
fn it_goes_on_elsewhere_without_the_daemon() {
    goes_on_elsewhere(false);
}
