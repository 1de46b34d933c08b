//! What a command cannot do in a sandbox.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use agentd_process::{CommandSpec, ExitStatus, SpawnError};
use agentd_sandbox::{Layer, SandboxPolicy, SandboxSupport};

use crate::fixture::{HELPER, env, launcher, read_all, script, soon};

/// A folder that may be written, one outside and one that is denied; a terminal and a message queue outside.
struct Places {
    _folder: tempfile::TempDir,
    base: PathBuf,
    _terminal: fs::File,
    queue: Queue,
}

/// A message queue, removed in the end.
struct Queue {
    key: libc::key_t,
    id: libc::c_int,
}

impl Queue {
    #[allow(unsafe_code, reason = "message queues have no safe form")]
    fn new() -> Self {
        loop {
            let key = i32::from_ne_bytes(uuid::Uuid::new_v4().as_bytes()[..4].try_into().unwrap());
            // SAFETY: the call takes numbers alone.
            let id = unsafe { libc::msgget(key, libc::IPC_CREAT | libc::IPC_EXCL | 0o600) };
            if id >= 0 {
                return Self { key, id };
            }
            let error = std::io::Error::last_os_error();
            assert_eq!(error.raw_os_error(), Some(libc::EEXIST), "{error}");
        }
    }
}

impl Drop for Queue {
    #[allow(unsafe_code, reason = "message queues have no safe form")]
    fn drop(&mut self) {
        // SAFETY: without the information that the call could return, it takes numbers alone.
        unsafe { libc::msgctl(self.id, libc::IPC_RMID, std::ptr::null_mut()) };
    }
}

impl Places {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        for name in ["root/.git/hooks", "root/.agentd", "root/.pi", "outside", "denied"] {
            fs::create_dir_all(base.join(name)).unwrap();
        }
        fs::write(base.join("root/.git/config"), "[core]\n").unwrap();
        fs::write(base.join("outside/file"), "outside").unwrap();
        fs::write(base.join("denied/key"), "key").unwrap();
        let terminal = fs::File::options().read(true).write(true).open("/dev/ptmx").unwrap();
        Self { _folder: folder, base, _terminal: terminal, queue: Queue::new() }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.base.join(name)
    }

    fn policy(&self) -> SandboxPolicy {
        SandboxPolicy {
            writable: vec![self.at("root")],
            denied: vec![self.at("denied")],
            layers: Layer::ALL.to_vec(),
            ..SandboxPolicy::default()
        }
    }
}

/// What this system offers.
fn support() -> SandboxSupport {
    let output = Command::new(HELPER).arg("probe").output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Whether everything can be enforced here; otherwise it must be said.
fn is_complete() -> bool {
    let support = support();
    let is_complete = support.layers.len() == Layer::ALL.len() && support.landlock_abi >= 6;
    assert_eq!(is_complete, support.gaps().is_empty(), "{support:?}");
    is_complete
}

async fn run(command: CommandSpec, policy: SandboxPolicy, cwd: &Path) -> (String, ExitStatus) {
    let group = launcher().group();
    let command = CommandSpec { sandbox: Some(Arc::new(policy)), cwd: cwd.to_owned(), ..command };
    let mut process = soon(group.spawn(command)).await.expect("a process");
    let output = read_all(&mut process.output).await;
    (output, soon(process.wait()).await)
}

fn escapes(places: &Places) -> CommandSpec {
    let text = |name: &str| places.at(name).into_os_string();
    CommandSpec {
        program: HELPER.into(),
        args: vec![
            "escape".into(),
            text("root"),
            text("outside"),
            text("denied"),
            places.queue.key.to_string().into(),
        ],
        env: env(),
        ..script("")
    }
}

fn outcomes(output: &str) -> BTreeMap<&str, &str> {
    output.lines().filter_map(|line| line.split_once('=')).collect()
}

/// Checks what became of all attempts.
fn check_escapes(places: &Places, output: &str) {
    let found = outcomes(output);
    let open = [
        "write_inside",
        "git_index",
        "unix_pair",
        "plain_memory_file",
        "temporary_in_shm",
        "own_terminal",
        "own_limits",
    ];
    for (name, outcome) in &found {
        match *name {
            name if open.contains(&name) => assert_eq!(*outcome, "ok", "{name}"),
            name => assert_ne!(*outcome, "ok", "{name} leads out: {output}"),
        }
    }
    assert!(found.len() > 40, "{output}");
    // The codes that programs turn into messages.
    let code = |name: &str| found[name].parse::<i32>().unwrap();
    assert_eq!(code("write_outside"), libc::EROFS);
    assert_eq!(code("hard_link"), libc::EXDEV);
    assert_eq!(code("hook"), libc::EROFS);
    assert_eq!(code("git_moved"), libc::EBUSY);
    assert_eq!(code("tcp"), libc::EPERM);
    assert_eq!(code("clone3"), libc::ENOSYS);
    assert_eq!(code("memory_file"), libc::EACCES);
    assert_eq!(fs::read_to_string(places.at("outside/file")).unwrap(), "outside");
    assert_eq!(fs::read_dir(places.at("outside")).unwrap().count(), 1);
    assert_eq!(fs::metadata(places.at("outside/file")).unwrap().permissions().mode() & 0o777, 0o644);
    assert_eq!(fs::read_to_string(places.at("root/.git/config")).unwrap(), "[core]\n");
}

#[tokio::test]
async fn no_way_out_is_open() {
    if !is_complete() {
        return;
    }
    let places = Places::new();
    let (output, status) = run(escapes(&places), places.policy(), &places.at("root")).await;
    assert_eq!(status, ExitStatus::exited(0), "{output}");
    check_escapes(&places, &output);
}

#[tokio::test]
async fn no_way_out_is_open_where_bwrap_makes_the_mounts() {
    let bwrap = Path::new("/usr/bin/bwrap");
    let probe = Command::new(HELPER).arg("probe").arg(bwrap).output().unwrap();
    let support: SandboxSupport = serde_json::from_slice(&probe.stdout).unwrap();
    if !bwrap.exists() {
        assert!(support.missing.iter().any(|why| why.contains("/usr/bin/bwrap")), "{support:?}");
        return;
    }
    if !is_complete() || support.layers.len() != Layer::ALL.len() {
        return;
    }
    let places = Places::new();
    let policy = SandboxPolicy { bwrap: Some(bwrap.to_owned()), ..places.policy() };
    let (output, status) = run(escapes(&places), policy.clone(), &places.at("root")).await;
    assert_eq!(status, ExitStatus::exited(0), "{output}");
    check_escapes(&places, &output);
    let (output, status) = run(script("pwd; exit 7"), policy, &places.at("root")).await;
    assert_eq!((output.trim_end(), status), (places.at("root").to_str().unwrap(), ExitStatus::exited(7)));
}

#[tokio::test]
async fn without_a_sandbox_the_same_attempts_succeed() {
    let places = Places::new();
    let group = launcher().group();
    let mut process = soon(group.spawn(escapes(&places))).await.expect("a process");
    let output = read_all(&mut process.output).await;
    let found = outcomes(&output);
    for name in [
        "write_outside",
        "through_link",
        "hook",
        "git_moved",
        "read_denied",
        "unix",
        "tcp",
        "memory_file",
        "setuid_programs",
        "terminals_of_others",
        "datagram_pair",
        "limits_of_supervisor",
        "message_queue_of_others",
    ] {
        assert_eq!(found.get(name), Some(&"ok"), "{name}: {output}");
    }
}

#[tokio::test]
async fn the_network_is_for_those_who_may_use_it() {
    if !is_complete() {
        return;
    }
    let places = Places::new();
    let policy = SandboxPolicy { network: true, unix_sockets: true, ..places.policy() };
    let (output, _) = run(escapes(&places), policy, &places.at("root")).await;
    let found = outcomes(&output);
    for name in ["tcp", "udp", "tcp6", "unix"] {
        assert_eq!(found[name], "ok", "{name}: {output}");
    }
    for name in ["raw", "packet", "vsock", "alg", "write_outside", "user_namespace"] {
        assert_ne!(found[name], "ok", "{name}: {output}");
    }
}

#[tokio::test]
async fn work_as_usual_goes_on() {
    if !is_complete() {
        return;
    }
    let places = Places::new();
    let text = "mkdir -p a/b && echo one > a/b/c && mv a/b/c a/d && ln a/d a/e && ln -s d a/f && rm a/e && cat a/f && \
                echo two | tee /dev/null /dev/stderr > /dev/stdout 2>&1 && (sleep 0; echo three) & wait; \
                cat <<< here; pwd; : < /dev/zero; test ! -w /etc && echo guarded";
    let spec = CommandSpec { program: "/bin/bash".into(), ..script(text) };
    let (output, status) = run(spec, places.policy(), &places.at("root")).await;
    assert_eq!(status, ExitStatus::exited(0), "{output}");
    for line in ["one", "two", "three", "here", "guarded", &places.at("root").display().to_string()] {
        assert!(output.lines().any(|found| found == line), "{line} is missing: {output}");
    }
    assert_eq!(fs::read_to_string(places.at("root/a/d")).unwrap(), "one\n");
}

#[tokio::test]
async fn everything_that_it_starts_is_confined_and_ends_with_it() {
    if !is_complete() {
        return;
    }
    let places = Places::new();
    let outside = places.at("outside/late");
    let text = format!("(setsid sh -c 'echo x > {}; echo ended $?' 2>&1) ; echo done", outside.display());
    let (output, _) = run(script(&text), places.policy(), &places.at("root")).await;
    assert!(output.contains("Read-only file system") && output.contains("done"), "{output}");
    assert!(!outside.exists());
}

#[tokio::test]
async fn what_lies_deeper_is_not_moved_away_from_its_protection() {
    if !is_complete() {
        return;
    }
    let places = Places::new();
    for name in ["root/a/b", "root/a/locked", "root/in/project/.git/hooks"] {
        fs::create_dir_all(places.at(name)).unwrap();
    }
    fs::write(places.at("root/a/b/secret"), "canary").unwrap();
    let policy = SandboxPolicy {
        writable: vec![places.at("root"), places.at("root/in/project")],
        read_only: vec![places.at("root/a/locked")],
        denied: vec![places.at("root/a/b/secret")],
        ..places.policy()
    };
    // The second command finds what the first one did.
    let moves = "mv a/b a/b2; mv a a2; mv in in2; touch a/new a/b/new in/new in/project/new; true";
    for text in [moves, "cat a*/b*/secret; touch a*/locked/x in*/project/.git/hooks/x; true"] {
        let (output, _) = run(script(text), policy.clone(), &places.at("root")).await;
        assert!(!output.contains("canary"), "{output}");
    }
    for name in ["a/b/secret", "a/new", "a/b/new", "in/new", "in/project/new"] {
        assert!(places.at("root").join(name).exists(), "{name}");
    }
    for name in ["a/locked", "in/project/.git/hooks"] {
        assert_eq!(fs::read_dir(places.at("root").join(name)).unwrap().count(), 0, "{name}");
    }
}

#[tokio::test]
async fn a_folder_in_shared_memory_can_be_worked_in() {
    if !is_complete() {
        return;
    }
    let places = Places::new();
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let others = tempfile::tempdir_in("/dev/shm").unwrap();
    fs::create_dir_all(folder.path().join(".git/hooks")).unwrap();
    let policy = SandboxPolicy { writable: vec![folder.path().to_owned()], ..places.policy() };
    let text = format!("echo x > made; echo x > .git/hooks/x; ls {}; true", others.path().display());
    for bwrap in [None, Some(PathBuf::from("/usr/bin/bwrap"))] {
        if bwrap.as_ref().is_some_and(|program| !program.exists()) {
            continue;
        }
        let policy = SandboxPolicy { bwrap, ..policy.clone() };
        let (output, _) = run(script(&text), policy, folder.path()).await;
        assert!(output.contains("Read-only file system") && output.contains("No such file"), "{output}");
        fs::remove_file(folder.path().join("made")).unwrap();
        assert_eq!(fs::read_dir(folder.path().join(".git/hooks")).unwrap().count(), 0);
    }
}

#[tokio::test]
async fn a_link_on_the_way_to_a_writable_folder_makes_nothing_else_writable() {
    if !is_complete() {
        return;
    }
    let places = Places::new();
    fs::create_dir(places.at("outside/project")).unwrap();
    std::os::unix::fs::symlink(places.at("outside"), places.at("root/in")).unwrap();
    let policy =
        SandboxPolicy { writable: vec![places.at("root"), places.at("root/in/project")], ..places.policy() };
    let (output, _) = run(script("touch in/project/x"), policy, &places.at("root")).await;
    assert!(output.contains("Read-only file system"), "{output}");
    assert!(!places.at("outside/project/x").exists());
}

#[tokio::test]
async fn a_command_whose_sandbox_fails_does_not_run() {
    if !is_complete() {
        return;
    }
    let places = Places::new();
    let made = places.at("root/made");
    let group = launcher().group();
    // No path has a NUL character, so the mounts cannot be made.
    let policy = SandboxPolicy { writable: vec![PathBuf::from("/a\u{0}")], ..places.policy() };
    let spec = script(&format!("touch {}", made.display()));
    let spec = CommandSpec { sandbox: Some(Arc::new(policy)), ..spec };
    let Err(error) = soon(group.spawn(spec)).await else { panic!("it runs without its sandbox") };
    assert!(matches!(error, SpawnError::Sandbox { .. }), "{error}");
    assert!(error.to_string().contains("did not run"), "{error}");
    assert!(!made.exists());
}
