//! The floor: a program that writes as many bytes to as many sockets out of one buffer, and does nothing else.

use std::{
    env,
    io::{self, Read, Write},
    os::unix::net::{UnixListener, UnixStream},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use agentd_e2e::usage;

/// Makes this program the one that writes.
pub(crate) const COMMAND: &str = "write-the-floor";

/// The processor time of writing `bytes` to each of `clients`, `at_once` with each system call.
pub(crate) fn measure(clients: usize, bytes: u64, at_once: u64) -> Duration {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("floor.sock");
    let listener = UnixListener::bind(&path).expect("a socket");
    let mut child = Command::new(env::current_exe().expect("this program"))
        .args([COMMAND, path.to_str().expect("a name")])
        .args([clients as u64, bytes, at_once].map(|number| number.to_string()))
        .stdout(Stdio::piped())
        .spawn()
        .expect("this program starts");
    let reading: Vec<_> = (0..clients)
        .map(|_| {
            let (mut stream, _) = listener.accept().expect("a connection");
            let reading = move || {
                let mut buffer = vec![0; 64 << 10];
                let mut read = 0;
                while let Ok(count @ 1..) = stream.read(&mut buffer) {
                    read += count as u64;
                }
                read
            };
            thread::Builder::new().stack_size(128 << 10).spawn(reading).expect("a thread")
        })
        .collect();
    let mut said = String::new();
    child.stdout.take().expect("a pipe").read_to_string(&mut said).expect("a number");
    assert!(child.wait().expect("an end").success());
    for reader in reading {
        assert_eq!(reader.join().expect("a reader"), bytes);
    }
    Duration::from_nanos(said.trim().parse().expect("nanoseconds"))
}

/// Writes: `SOCKET CLIENTS BYTES AT_ONCE`. Says how much processor time it took, in nanoseconds.
pub(crate) fn write(args: &[String]) {
    let number = |index: usize| args[index].parse::<usize>().expect("a number");
    let (clients, bytes, at_once) = (number(1), number(2), number(3).max(1));
    let mut streams: Vec<UnixStream> =
        (0..clients).map(|_| UnixStream::connect(&args[0]).expect("a connection")).collect();
    let buffer = vec![b'x'; at_once];
    let before = usage::of(std::process::id()).cpu;
    let mut left = bytes;
    while left > 0 {
        let count = left.min(at_once);
        for stream in &mut streams {
            stream.write_all(&buffer[..count]).expect("a reader");
        }
        left -= count;
    }
    let took = usage::of(std::process::id()).cpu.saturating_sub(before);
    writeln!(io::stdout(), "{}", took.as_nanos()).expect("a reader");
}
