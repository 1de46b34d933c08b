//! What starting commands and taking their output costs at least.

use std::{
    fs::File,
    io::{Read, Write},
    process::{Child, Command, Stdio},
};

use rustix::process::{getpid, set_child_subreaper};

use crate::report::{Scale, measure};

/// A subreaper starts a shell, reads its output to the end, and waits for it. The standard library starts a program without a copy of this
/// one, as agentd's supervisors do.
pub(crate) fn command(scale: Scale) {
    set_child_subreaper(Some(getpid())).unwrap();
    for shell in ["/bin/sh", "/bin/bash"] {
        measure(&format!("{shell} -c true"), scale.of(500, 5), || {
            let mut child = shell_command(shell, "true");
            let mut output = Vec::new();
            child.stdout.take().unwrap().read_to_end(&mut output).unwrap();
            assert!(child.wait().unwrap().success() && output.is_empty());
        });
    }
}

/// The shell writes into a file itself; then into a pipe, which is copied into a file and does nothing else.
pub(crate) fn flood(scale: Scale) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("output");
    let bytes = scale.of(200_000_000, 2_000_000);
    let line = "0123456789abcdefghijklmnopqrstuvwxyz 0123456789abcdefghijklmnopqrstuvwxyz";
    let script = format!("yes {line} | head -c {bytes}");
    let rounds = scale.of(7, 1);
    measure("the shell, into a file", rounds, || {
        let file = File::create(&path).unwrap();
        let status = Command::new("/bin/bash").args(["-c", &script]).stdout(file).status().unwrap();
        assert!(status.success());
    });
    measure("the shell, into a pipe that is copied into a file", rounds, || {
        let mut file = File::create(&path).unwrap();
        let mut child = shell_command("/bin/bash", &script);
        let mut output = child.stdout.take().unwrap();
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match output.read(&mut buffer).unwrap() {
                0 => break,
                count => file.write_all(&buffer[..count]).unwrap(),
            }
        }
        assert!(child.wait().unwrap().success());
    });
    assert_eq!(path.metadata().unwrap().len(), bytes as u64);
}

fn shell_command(shell: &str, script: &str) -> Child {
    let mut command = Command::new(shell);
    command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::piped());
    command.spawn().unwrap()
}
