use std::fs;

use super::*;

struct Place {
    root: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for folder in ["home/.ssh", "agent", "work/.agentd"] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        Self { root }
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.root.path().join(path), text).unwrap();
    }

    fn hosts(&self, trusted: bool) -> (Vec<SshHostConfig>, Vec<String>) {
        let home = self.root.path().join("home");
        let agent = self.root.path().join("agent");
        let environment: Environment =
            [("HOME", home.as_os_str()), ("AGENTD_DIR", agent.as_os_str())].into_iter().collect();
        let cwd = self.root.path().join("work");
        let agent_dir = AgentDir::find(&environment, false, &cwd).unwrap();
        let folders = ProjectFolders::of(&cwd, &agent_dir);
        let project = trusted.then_some((&folders, cwd.as_path()));
        let (hosts, problems) =
            ssh_hosts(SshHostSources { agent_dir: &agent_dir, project, environment: &environment });
        (hosts, problems.into_iter().map(|problem| problem.message).collect())
    }
}

#[test]
fn the_users_names_come_first_and_a_project_counts_once_it_is_trusted() {
    let place = Place::new();
    place.write(
        "agent/ssh.json",
        r#"{"hosts": {"box": {"host": "10.0.0.1", "username": "me", "port": 2222, "key": "~/k", "description": "a\n b"}}}"#,
    );
    place.write(
        "work/.agentd/ssh.json",
        r#"{"hosts": {"box": {"host": "evil"}, "mine": {"host": "m", "keyPath": "k"}}}"#,
    );
    place.write("work/ssh.json", r#"{"hosts": {"root": {"host": "r"}}}"#);
    place.write("home/.ssh/config", "Host box alias\n");
    let names = |hosts: &[SshHostConfig]| hosts.iter().map(|host| host.name.clone()).collect::<Vec<_>>();
    let (hosts, problems) = place.hosts(true);
    assert_eq!(
        (names(&hosts), problems),
        (vec!["box".into(), "mine".into(), "root".into(), "alias".into()], vec![])
    );
    let root = place.root.path();
    assert_eq!(
        hosts[0],
        SshHostConfig {
            name: "box".into(),
            host: "10.0.0.1".into(),
            username: Some("me".into()),
            port: Some(2222),
            key: Some(root.join("home/k")),
            description: Some("a b".into()),
        }
    );
    assert_eq!(hosts[1].key, Some(root.join("work/.agentd/k")));
    assert_eq!(names(&place.hosts(false).0), ["box", "alias"]);
}

#[test]
fn what_cannot_be_used_is_told_and_the_rest_counts() {
    let place = Place::new();
    for (text, told) in [
        (r#"{"hosts": {"-x": {"host": "a"}}}"#, "begins with a dash"),
        (r#"{"hosts": {"a": {"host": "-oProxyCommand=x"}}}"#, "host begins with a dash"),
        (r#"{"hosts": {"a": {"host": "h", "username": "-l"}}}"#, "username begins with a dash"),
        (r#"{"hosts": {"a b": {"host": "h"}}}"#, "white space"),
        (r#"{"hosts": {"a/b": {"host": "h"}}}"#, "a slash"),
        (r#"{"hosts": {"a": {"host": "h", "port": 70000}}}"#, "not used"),
        (r#"{"hosts": {"a": {"host": "h", "port": 0}}}"#, "from 1 to 65535"),
        (r#"{"hosts": {"a": {"host": "h", "pasword": "x"}}}"#, "pasword"),
        (r#"{"hosts": {"a": {}}}"#, "host"),
        (r#"{"hosts": []}"#, "must be an object"),
        (r#"{"host": {}}"#, "must be an object"),
        ("[]", "expected"),
        ("{", "not JSON"),
    ] {
        place.write("agent/ssh.json", text);
        let (hosts, problems) = place.hosts(false);
        assert!(
            hosts.is_empty() && problems.len() == 1 && problems[0].contains(told),
            "{text}: {problems:?}"
        );
    }
    place.write("agent/ssh.json", r#"{"hosts": {"-x": {"host": "a"}, "ok": {"host": "b", "compat": true}}}"#);
    let (hosts, problems) = place.hosts(false);
    assert_eq!((hosts.len(), problems.len()), (1, 1));
    let many: Vec<String> = (0..250).map(|n| format!("\"h{n}\": {{\"host\": \"x\"}}")).collect();
    place.write("agent/ssh.json", &format!("{{\"hosts\": {{{}}}}}", many.join(",")));
    let (hosts, problems) = place.hosts(false);
    assert_eq!(hosts.len(), MAX_HOSTS);
    assert!(problems[0].starts_with("50 hosts are left out"), "{problems:?}");
}
