//! `agentctl prompt -c` in two terminals, and `--resume`.

use std::{collections::BTreeMap, fs, os::unix::fs::PermissionsExt};

use agentd_e2e::{Home, MockServer, Reply, Service, Terminal, binaries, ctl, mock_server::Request, sse};

use crate::support::{assert_says, text};

/// Answers with all that the user said so far.
fn echo(request: &Request) -> Reply {
    let users = request.messages().iter().filter(|message| message["role"] == "user");
    Reply::stream(sse::answer(&format!("[{}]", users.map(text).collect::<Vec<_>>().join("+"))))
}

/// A shell in a terminal of its own, that does what is typed.
struct Tab {
    shell: Terminal,
    answers: usize,
}

impl Tab {
    fn open(home: &Home) -> Self {
        let mut shell = Terminal::start(home, "/bin/sh".as_ref(), &[]);
        shell.press(&format!("PS1=; alias a='{}'\n", binaries::agentctl().display()));
        Self { shell, answers: 0 }
    }

    fn says(&mut self, args: &str, answer: &str) {
        self.answers += 1;
        let end = format!("done {} 0", self.answers);
        self.shell.press(&format!("a prompt {args} </dev/null; echo done {} $?\n", self.answers));
        self.shell.wait_for(answer);
        self.shell.wait_for(&end);
    }
}

fn each_goes_on_with_its_own(shared: bool) {
    let server = MockServer::answering(echo);
    let home = Home::with_model(&server);
    let _service = shared.then(|| Service::start(&home, &[]));
    let (mut one, mut two) = (Tab::open(&home), Tab::open(&home));
    one.says("a1", "[a1]");
    two.says("b1", "[b1]");
    one.says("-c a2", "[a1+a2]");
    two.says("-c b2", "[b1+b2]");
    // Without a terminal: the most recent of the folder.
    assert_eq!(ctl::run(&home, &["prompt", "-c", "c"]).stdout, "[b1+b2+c]\n");
    // A terminal that has none of its own takes that, too.
    let mut three = Tab::open(&home);
    three.says("-c d", "[b1+b2+c+d]");
    one.says("-c a3", "[a1+a2+a3]");
    // Another folder has sessions of its own.
    home.write("other/x", "");
    one.says("--cwd other -c e", "[e]");
    one.says("-c a4", "[a1+a2+a3+a4]");
    // One that is not kept is not remembered.
    one.says("--no-session f", "[f]");

    let files = || {
        let dir = fs::read_dir(home.agent_dir().join("run/terminals")).unwrap();
        dir.map(|file| file.unwrap().path()).collect::<Vec<_>>()
    };
    assert_eq!(files().len(), 3);
    for file in files() {
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
    // What stands there is looked up among the sessions of the folder, and is nothing else.
    for nonsense in ["/etc/passwd", "../../x", "none", "--no-session"] {
        for file in files() {
            let folder = home.project().display().to_string();
            fs::write(file, serde_json::to_string(&BTreeMap::from([(folder, nonsense)])).unwrap()).unwrap();
        }
        let said = ctl::run(&home, &["prompt", "-c", "last"]).stdout;
        one.says("-c mine", &said.trim().replace("last]", "last+mine]"));
    }
    // The files of terminals that are closed go with the next one that is written.
    drop((two, three));
    let mut four = Tab::open(&home);
    four.says("new", "[new]");
    assert!(files().len() <= 3, "{:?}", files());
}

#[test]
fn each_terminal_goes_on_with_its_own_session_of_the_daemon() {
    each_goes_on_with_its_own(true);
}

#[test]
fn each_terminal_goes_on_with_its_own_session_without_a_daemon() {
    each_goes_on_with_its_own(false);
}

#[test]
fn a_session_is_picked_from_a_list() {
    let server = MockServer::answering(echo);
    let home = Home::with_model(&server);
    let _service = Service::start(&home, &[]);
    assert_eq!(ctl::run(&home, &["prompt", "first"]).code, 0);
    assert_eq!(ctl::run(&home, &["prompt", "second"]).code, 0);
    let mut picking = Terminal::start(&home, &binaries::agentctl(), &["prompt", "--resume", "third"]);
    picking.wait_for("Which one");
    picking.press("9\n");
    picking.wait_for("Which one (1-2, Enter for none)? 9\nWhich one");
    picking.press("2\n");
    let done = picking.finish();
    assert_eq!(done.code, 0, "{done:?}");
    assert_says(&done.stdout, &["  1 ", "second", "  2 ", "first", "[first+third]"]);
    let mut picking = Terminal::start(&home, &binaries::agentctl(), &["prompt", "-r", "third"]);
    picking.wait_for("Which one");
    picking.press("\n");
    assert_eq!(picking.finish().code, 1);
    let refused = ctl::run(&home, &["prompt", "--resume", "third"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert_says(&refused.stderr, &["--session ID", "--continue"]);
}

#[test]
fn a_key_and_a_name_are_passed_on() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let args = ["prompt", "--model", "fake/fake", "--api-key", "another-key-of-mine", "--name", "Mine", "Hi"];
    let done = ctl::run(&home, &args);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(server.requests()[0].header("authorization"), Some("Bearer another-key-of-mine"));
    assert_says(&ctl::run(&home, &["sessions"]).stdout, &["Mine"]);
    assert_eq!(ctl::run(&home, &["prompt", "--api-key", "k", "Hi"]).code, 2);
}
