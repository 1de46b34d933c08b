//! What git runs later: a session with a sandbox leaves it as it is.

use std::{fs, os::unix::fs::symlink};

use agentd_e2e::{Home, MockServer, ctl};
use serde_json::json;

use crate::{
    sandbox::{WORKSPACE, calling, is_enforced, one_call},
    support::assert_says,
};

#[test]
fn what_runs_later_stays_as_it_is() {
    if !is_enforced() {
        return;
    }
    let command = "for f in .git/hooks/post-commit .git/config .agentd/settings.json .pi/settings.json; do echo x > $f; done; \
                   mv .git moved; rm -rf .git; mkdir -p .git/hooks; echo x > .git/hooks/pre-commit; echo y > .git/HEAD; true";
    let server = calling("bash", &json!({ "command": command }));
    let home = Home::with_model(&server);
    let git = home.project().join(".git");
    fs::create_dir_all(git.join("hooks")).unwrap();
    fs::write(git.join("config"), "[core]\n").unwrap();
    fs::create_dir(home.project().join(".agentd")).unwrap();
    one_call(&home, &server, &WORKSPACE);
    assert_eq!(fs::read_to_string(git.join("config")).unwrap(), "[core]\n");
    assert_eq!(fs::read_dir(git.join("hooks")).unwrap().count(), 0);
    assert_eq!(fs::read_to_string(git.join("HEAD")).unwrap(), "y\n");
    assert_eq!(
        fs::read_dir(home.project().join(".agentd")).unwrap().count(),
        0,
        "the user's own folder stays"
    );
    assert!(!home.project().join(".pi").exists());
}

#[test]
fn a_link_in_the_place_of_what_is_protected_is_refused() {
    if !is_enforced() {
        return;
    }
    for link in [".git/hooks", ".git"] {
        let server = MockServer::start([]);
        let home = Home::with_model(&server);
        let target = tempfile::tempdir().unwrap();
        fs::create_dir(target.path().join("hooks")).unwrap();
        let link = home.project().join(link);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(target.path(), &link).unwrap();
        let ran =
            ctl::run(&home, &[&["prompt", "--model", "fake/fake"], &WORKSPACE[..], &["Hello."]].concat());
        assert_ne!(ran.code, 0);
        assert_says(&ran.stderr, &[&format!("{} is a symbolic link", link.display())]);
        assert!(target.path().is_dir());
    }
}

#[test]
fn the_git_file_of_a_worktree_stays_as_it_is() {
    if !is_enforced() {
        return;
    }
    for (tool, arguments) in [
        (
            "bash",
            json!({"command": "rm .git; mv .git x; mkdir -p .git/hooks; echo 'gitdir: x' > .git; false"}),
        ),
        ("write", json!({"path": ".git", "content": "gitdir: x"})),
    ] {
        let server = calling(tool, &arguments);
        let home = Home::with_model(&server);
        let file = home.project().join(".git");
        fs::write(&file, "gitdir: /no/such\n").unwrap();
        one_call(&home, &server, &WORKSPACE);
        assert_eq!(fs::read_to_string(&file).unwrap(), "gitdir: /no/such\n", "{tool}");
    }
}

#[test]
fn a_writable_git_folder_keeps_its_hooks_and_its_configuration() {
    if !is_enforced() {
        return;
    }
    let command = "cd ../repository && for f in hooks/pre-commit config index; do echo x > $f; done; mv hooks moved; true";
    let server = calling("bash", &json!({ "command": command }));
    let home = Home::with_model(&server);
    let git = home.project().parent().unwrap().join("repository");
    for name in ["objects", "refs"] {
        fs::create_dir_all(git.join(name)).unwrap();
    }
    fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::write(git.join("config"), "[core]\n").unwrap();
    one_call(&home, &server, &[&WORKSPACE[..], &["--writable-root", "../repository"]].concat());
    assert_eq!(fs::read_to_string(git.join("config")).unwrap(), "[core]\n");
    assert_eq!(fs::read_to_string(git.join("index")).unwrap(), "x\n");
    assert!(!git.join("hooks").exists() && !git.join("moved").exists());
}
