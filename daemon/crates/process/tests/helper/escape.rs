//! Tries ways out of a sandbox and prints what became of each: `name=ok` or `name=` and the system's error code.
#![allow(unsafe_code, reason = "attempts that no library offers; each use says why it is sound")]

use std::{
    fs::{self, File},
    io,
    os::unix::fs::symlink,
    path::Path,
    process::ExitCode,
    ptr,
};

/// What the attempts are made on, from the arguments: a folder that may be written, one outside, one that is denied, and the key of a
/// message queue that the test made.
struct Places<'a> {
    root: &'a Path,
    outside: &'a Path,
    denied: &'a Path,
    queue: libc::key_t,
}

pub(crate) fn run(args: &[String]) -> ExitCode {
    let [root, outside, denied, queue] = args else { return ExitCode::FAILURE };
    let Ok(queue) = queue.parse() else { return ExitCode::FAILURE };
    let places = Places { root: root.as_ref(), outside: outside.as_ref(), denied: denied.as_ref(), queue };
    let attempts = files(&places).into_iter().chain(sockets()).chain(calls(places.queue));
    let lines: Vec<String> = attempts
        .map(|(name, outcome)| match outcome {
            Ok(()) => format!("{name}=ok"),
            Err(error) => format!("{name}={}", error.raw_os_error().unwrap_or(-1)),
        })
        .collect();
    match io::Write::write_all(&mut io::stdout(), (lines.join("\n") + "\n").as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

type Attempts = Vec<(&'static str, io::Result<()>)>;

fn files(Places { root, outside, denied, .. }: &Places<'_>) -> Attempts {
    let write = |path: &Path| fs::write(path, "escaped");
    let through_proc = Path::new("/proc/self/root").join(outside.strip_prefix("/").unwrap_or(outside));
    let mut found: Attempts = vec![
        ("write_inside", write(&root.join("inside"))),
        ("write_outside", write(&outside.join("file"))),
        ("create_outside", write(&outside.join("new"))),
        ("remove_outside", fs::remove_file(outside.join("file"))),
        ("rename_in", fs::rename(outside.join("file"), root.join("taken"))),
        ("chmod_outside", chmod(&outside.join("file"))),
        (
            "times_outside",
            File::open(outside.join("file")).and_then(|file| file.set_modified(std::time::UNIX_EPOCH)),
        ),
        ("through_link", symlink(outside, root.join("link")).and_then(|()| write(&root.join("link/new")))),
        ("through_proc_root", write(&through_proc.join("new"))),
        ("through_init_root", fs::read_dir("/proc/1/root/etc").map(drop)),
        ("hard_link", fs::hard_link(outside.join("file"), root.join("hard"))),
        ("hook", write(&root.join(".git/hooks/pre-commit"))),
        ("git_config", write(&root.join(".git/config"))),
        ("git_index", write(&root.join(".git/index"))),
        ("git_moved", fs::rename(root.join(".git"), root.join("git"))),
        ("own_settings", write(&root.join(".agentd/settings.json"))),
        ("read_denied", fs::read(denied.join("key")).map(drop)),
        ("write_denied", write(&denied.join("key"))),
        ("sysctl", write(Path::new("/proc/sys/kernel/core_pattern"))),
        ("disks", has_disks()),
        ("descriptors", has_descriptors()),
        ("device_node", device_node(&root.join("device"))),
        ("terminals_of_others", has_terminals()),
        ("own_terminal", File::options().read(true).write(true).open("/dev/ptmx").map(drop)),
    ];
    found.push(("temporary_in_shm", write(Path::new("/dev/shm/x"))));
    found
}

fn chmod(path: &Path) -> io::Result<()> {
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o777))
}

/// Succeeds if a disk can be seen.
fn has_disks() -> io::Result<()> {
    use std::os::unix::fs::FileTypeExt as _;
    let mut entries = fs::read_dir("/dev")?.flatten();
    let found = entries.any(|entry| entry.file_type().is_ok_and(|kind| kind.is_block_device()));
    if found { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::ENOENT)) }
}

/// Succeeds if there is another descriptor than the standard ones and that of the listing.
fn has_descriptors() -> io::Result<()> {
    let count = fs::read_dir("/proc/self/fd")?.count();
    if count > 4 { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::EBADF)) }
}

/// Succeeds if a terminal can be seen: none was opened here yet.
fn has_terminals() -> io::Result<()> {
    let is_number = |name: &std::ffi::OsStr| name.to_string_lossy().parse::<u32>().is_ok();
    let found = fs::read_dir("/dev/pts")?.flatten().any(|entry| is_number(&entry.file_name()));
    if found { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::ENOENT)) }
}

fn device_node(path: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    Ok(mknodat(CWD, path, FileType::CharacterDevice, Mode::RUSR, rustix::fs::makedev(1, 1))?)
}

fn sockets() -> Attempts {
    let socket = |family, kind| {
        // SAFETY: the call takes numbers alone.
        check(unsafe { libc::socket(family, kind, 0) }.into())
    };
    let pair = || std::os::unix::net::UnixStream::pair().map(drop);
    let pair_of = |family, kind| {
        let mut pair = [0; 2];
        // SAFETY: the call writes two descriptors to `pair`.
        check(unsafe { libc::socketpair(family, kind, 0, pair.as_mut_ptr()) }.into())
    };
    vec![
        ("unix", socket(libc::AF_UNIX, libc::SOCK_STREAM)),
        ("unix_pair", pair()),
        // Datagrams can be sent to any socket that has a name.
        ("datagram_pair", pair_of(libc::AF_UNIX, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC)),
        ("raw_pair", pair_of(libc::AF_UNIX, libc::SOCK_RAW)),
        ("tipc_pair", pair_of(libc::AF_TIPC, libc::SOCK_STREAM)),
        ("tcp", socket(libc::AF_INET, libc::SOCK_STREAM)),
        ("udp", socket(libc::AF_INET, libc::SOCK_DGRAM)),
        ("tcp6", socket(libc::AF_INET6, libc::SOCK_STREAM)),
        ("raw", socket(libc::AF_INET, libc::SOCK_RAW)),
        ("packet", socket(libc::AF_PACKET, libc::SOCK_RAW)),
        ("vsock", socket(libc::AF_VSOCK, libc::SOCK_STREAM)),
        ("alg", socket(libc::AF_ALG, libc::SOCK_SEQPACKET)),
    ]
}

fn calls(outside_queue: libc::key_t) -> Attempts {
    // SAFETY: each call takes numbers, null pointers where that is allowed, or a name that outlives it; none touches memory of this
    // process. A clone that succeeds ends at once.
    unsafe {
        let child = libc::syscall(libc::SYS_clone, libc::CLONE_NEWUSER | libc::SIGCHLD, 0, 0, 0, 0);
        if child == 0 {
            libc::_exit(0);
        }
        let parent = libc::getppid();
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::prlimit(parent, libc::RLIMIT_CORE, ptr::null(), &raw mut limit);
        let mut calls = vec![
            ("user_namespace", check(child)),
            ("unshare", check(libc::unshare(libc::CLONE_NEWUSER).into())),
            ("clone3", check(libc::syscall(libc::SYS_clone3, ptr::null::<u8>(), 0))),
            (
                "mount",
                check(
                    libc::mount(c"/".as_ptr(), c"/mnt".as_ptr(), ptr::null(), libc::MS_BIND, ptr::null())
                        .into(),
                ),
            ),
            ("unmount", check(libc::umount2(c"/dev".as_ptr(), libc::MNT_DETACH).into())),
            ("chroot", check(libc::chroot(c"/".as_ptr()).into())),
            ("trace_supervisor", check(libc::ptrace(libc::PTRACE_ATTACH, parent, 0, 0))),
            ("read_memory", check(libc::process_vm_readv(parent, ptr::null(), 0, ptr::null(), 0, 0) as i64)),
            ("signal_supervisor", check(libc::kill(parent, 0).into())),
            (
                "limits_of_supervisor",
                check(libc::prlimit(parent, libc::RLIMIT_CORE, &raw const limit, ptr::null_mut()).into()),
            ),
            (
                "own_limits",
                check(libc::prlimit(0, libc::RLIMIT_CORE, &raw const limit, ptr::null_mut()).into()),
            ),
            ("message_queue_of_others", check(libc::msgget(outside_queue, 0).into())),
            ("io_uring", check(libc::syscall(libc::SYS_io_uring_setup, 1, ptr::null::<u8>()))),
            ("memory_file", check(libc::memfd_create(c"x".as_ptr(), 0).into())),
            ("plain_memory_file", check(libc::memfd_create(c"x".as_ptr(), 8).into())),
            ("terminal_input", check(libc::ioctl(0, libc::TIOCSTI, c"x".as_ptr()).into())),
            ("bpf", check(libc::syscall(libc::SYS_bpf, 0, ptr::null::<u8>(), 0))),
            // Succeeds if programs with the setuid bit could give rights.
            ("setuid_programs", check(-i64::from(libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)))),
        ];
        #[cfg(target_arch = "x86_64")]
        calls.push(("x32", check(libc::syscall(0x4000_0000 | libc::SYS_getpid))));
        calls
    }
}

fn check(outcome: i64) -> io::Result<()> {
    if outcome >= 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
