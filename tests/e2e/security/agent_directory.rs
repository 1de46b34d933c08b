//! Everything in the agent directory is believed: it has to be the user's, and nobody else's to change.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, chown},
    path::Path,
};

use agentd_e2e::{Daemon, Home, MockServer, Reply, ctl, sse};

use super::files::with_umask;
use crate::support::assert_says;

fn with_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Neither program works with the agent directory as it is; both say this.
#[track_caller]
fn assert_refused(home: &Home, says: &[&str]) {
    for args in [&["-p", "--no-session", "Hi"][..], &["--stdio"], &["--list-models"], &["--fsck"], &[]] {
        let done = ctl::feed(ctl::agentd(home, args), "");
        assert_eq!(done.code, 1, "{args:?} {done:?}");
        assert_says(&done.stderr, says);
    }
    for args in [&["up"][..], &["status"], &["prompt", "Hi"], &["doctor"]] {
        let done = ctl::run(home, args);
        assert_ne!(done.code, 0, "{args:?} {done:?}");
        assert_says(&done.stderr, says);
    }
    let made: Vec<_> = fs::read_dir(home.agent_dir()).into_iter().flatten().flatten().collect();
    assert!(made.len() <= 1, "{made:?}");
    // What does without it works.
    assert_eq!(ctl::feed(ctl::agentd(home, &["--version"]), "").code, 0);
}

#[test]
fn one_that_others_can_change_is_refused() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    for mode in [0o777, 0o707, 0o1777] {
        with_mode(&home.agent_dir(), mode);
        let agent_dir = home.agent_dir().display().to_string();
        assert_refused(&home, &["other users can change", &agent_dir, "chmod go-w", "AGENTD_DIR"]);
    }
    // As it says.
    with_mode(&home.agent_dir(), 0o755);
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    daemon.prompt("Hi");
    daemon.close();
}

#[test]
fn one_of_another_user_is_refused() {
    if !rustix::process::getuid().is_root() {
        return;
    }
    let server = MockServer::start([]);
    let home = Home::with_model(&server);
    chown(home.agent_dir(), Some(65534), Some(65534)).unwrap();
    assert_refused(
        &home,
        &["belongs to another user (uid 65534; this program runs as uid 0)", "HOME", "AGENTD_DIR"],
    );
    chown(home.agent_dir(), Some(0), Some(0)).unwrap();
    // The home directory of another user, who could put another folder in the place of this one.
    chown(home.root(), Some(65534), Some(65534)).unwrap();
    assert_refused(&home, &["in a folder of another user", "uid 65534", "HOME"]);
    fs::remove_dir_all(home.agent_dir()).unwrap();
    assert_refused(&home, &["would be", "in a folder of another user", "uid 65534", "HOME"]);
    assert!(!home.agent_dir().exists());
}

/// A folder around it that everybody can change is told of.
#[test]
fn a_folder_around_it_that_is_open_to_all_is_told_of() {
    let server = MockServer::start([]);
    let home = Home::with_model(&server);
    with_mode(home.root(), 0o777);
    let done = ctl::feed(ctl::agentd(&home, &["--stdio", "--no-session"]), "");
    assert_eq!(done.code, 0, "{done:?}");
    assert_says(&done.stderr, &["put another folder in the place of the agent directory", "chmod o-w"]);
    assert_says(&ctl::run(&home, &["doctor"]).stdout, &["put another folder in its place", "chmod o-w"]);
    // Of those where only the owner can take something away, nothing is said.
    with_mode(home.root(), 0o1777);
    let done = ctl::feed(ctl::agentd(&home, &["--stdio", "--no-session"]), "");
    assert!(!done.stderr.contains("another folder"), "{done:?}");
}

#[test]
fn one_that_is_made_is_the_users_alone() {
    let home = Home::new();
    fs::remove_dir_all(home.agent_dir()).unwrap();
    let up = with_umask(&home, "000", &ctl::command(&home, &["up"]));
    let done = ctl::feed(up, "");
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(home.agent_dir().metadata().unwrap().mode() & 0o7777, 0o700);
    assert_eq!(ctl::run(&home, &["down"]).code, 0);
}
