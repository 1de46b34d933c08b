//! The calls that no safe interface offers. All but [`peer_descriptor`] are made by the guard and its forks, which have
//! one thread.
#![allow(
    unsafe_code,
    reason = "fork, signal masks and pre_exec have no safe form; each use says why it is sound"
)]

use std::{
    ffi::{CStr, CString},
    io,
    mem::MaybeUninit,
    ops::Range,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
        unix::process::CommandExt,
    },
    path::PathBuf,
    process::Command,
    ptr,
    sync::{
        Arc,
        atomic::{AtomicI32, Ordering},
    },
};

use agentd_sandbox::SandboxPolicy;
use rustix::process::Pid;

/// The side of a fork.
pub(super) enum Fork {
    /// The calling process, with the id of the new one.
    Parent(Pid),
    /// The new process.
    Child,
}

/// Forks the calling process.
///
/// Only the guard and its forks call this, and [`super::guard`] checks at its start that its process has no other
/// thread.
///
/// # Errors
/// The system's: too many processes, too little memory.
pub(super) fn fork() -> io::Result<Fork> {
    // SAFETY: the calling process has one thread, checked when the guard starts, and nothing in the guard starts
    // another. So the child is a full copy: no lock of the allocator or of the standard library can be held by a
    // thread that it lacks.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Fork::Child),
        pid => {
            Pid::from_raw(pid).map(Fork::Parent).ok_or_else(|| io::Error::other("fork gave no process id"))
        }
    }
}

/// A descriptor of the process that connected the other end of a local socket, even if another process holds that end
/// now.
///
/// # Errors
/// `ENOPROTOOPT` before Linux 6.5; others when that process has ended.
pub(super) fn peer_descriptor(socket: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let mut descriptor: libc::c_int = -1;
    let size = size_of::<libc::c_int>();
    let mut length = libc::socklen_t::try_from(size).map_err(io::Error::other)?;
    // SAFETY: the kernel writes at most `length` bytes to `descriptor`, which is of that size, and both outlive the call.
    let outcome = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERPIDFD,
            (&raw mut descriptor).cast(),
            &raw mut length,
        )
    };
    check(outcome)?;
    if descriptor < 0 {
        return Err(io::Error::from_raw_os_error(libc::ESRCH));
    }
    // SAFETY: the descriptor is new and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Blocks every signal that can be blocked, so that none of them ends the caller before it has cleaned up.
pub(super) fn block_signals() -> io::Result<()> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `sigfillset` initialises the set that it is given, and `sigprocmask` only reads it.
    let outcome = unsafe {
        libc::sigfillset(set.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, set.as_ptr(), ptr::null_mut())
    };
    check(outcome).map(drop)
}

/// Gives every signal its default effect: signals that the daemon's parent ignored must not be ignored by commands.
pub(super) fn reset_dispositions() {
    for signal in 1..=libc::SIGRTMAX() {
        // SAFETY: `SIG_DFL` installs no code of ours. It fails for SIGKILL, SIGSTOP and the C library's own signals,
        // which always have their default effect anyway.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// A descriptor that becomes readable when a child has ended. The caller must have blocked SIGCHLD.
pub(super) fn child_signals() -> io::Result<OwnedFd> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `sigemptyset` initialises the set before the others use it; -1 asks for a new descriptor.
    let fd = unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD);
        libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
    };
    // SAFETY: the descriptor is new and nobody else's.
    check(fd).map(|fd| unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Closes every descriptor but the three standard ones: descriptors that the daemon's parent left open would otherwise
/// stay open for the guard's life, and reach every command.
///
/// Call it before anything is opened, while nothing can own such a descriptor.
pub(super) fn close_inherited() -> io::Result<()> {
    let listed = std::fs::read_dir("/proc/self/fd")?;
    let open: Vec<i32> = listed.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    for fd in open.into_iter().filter(|fd| *fd > 2) {
        // SAFETY: the guard calls this first of all, so nothing in this process owns a descriptor above 2. The one
        // that listed the folder is closed by now; closing it again fails without effect.
        unsafe { libc::close(fd) };
    }
    Ok(())
}

/// Releases the memory that only mirrors files: the program's own code and constants. Pages that are needed again are
/// read from the file.
///
/// Starting a program touches far more of it, above all the list of its relocations, than waiting for requests does.
pub(super) fn release_mirrors() -> io::Result<()> {
    for mirror in mirrors(&std::fs::read_to_string("/proc/self/smaps")?) {
        // SAFETY: this is a whole mapping of a file that this process cannot write to and of which it has no changed
        // page (relocated data, sealed read-only later, counts as anonymous). So dropping the pages changes nothing:
        // the next access reads the same bytes from the file.
        unsafe { libc::madvise(mirror.start as *mut libc::c_void, mirror.len(), libc::MADV_DONTNEED) };
    }
    Ok(())
}

/// The mappings in `smaps` that contain only what their file contains.
fn mirrors(smaps: &str) -> Vec<Range<usize>> {
    let mut mirrors = Vec::new();
    for line in smaps.lines() {
        let mut words = line.split_ascii_whitespace();
        let (Some(first), Some(second)) = (words.next(), words.next()) else { continue };
        if !first.ends_with(':') {
            // A mapping: its range, its permissions, and as the last of four more its file.
            let bound = |text: &str| usize::from_str_radix(text, 16).ok();
            let range = first.split_once('-').and_then(|(start, end)| Some(bound(start)?..bound(end)?));
            let file = words.nth(3).is_some_and(|path| path.starts_with('/'));
            let constant = file && matches!(second, "r--p" | "r-xp");
            mirrors.push(range.filter(|_| constant));
        } else if matches!(first, "Anonymous:" | "Swap:")
            && second != "0"
            && let Some(last) = mirrors.last_mut()
        {
            *last = None;
        }
    }
    mirrors.into_iter().flatten().collect()
}

/// Makes `fd` the standard input.
pub(super) fn replace_stdin(fd: impl AsFd) -> io::Result<()> {
    // SAFETY: descriptor 0 belongs to the standard library, which never closes it and does not care what it is.
    check(unsafe { libc::dup2(fd.as_fd().as_raw_fd(), 0) }).map(drop)
}

/// The preparation of a new process before it executes its program.
#[derive(Debug, Clone, Copy)]
pub(super) struct OnStart {
    /// Whether its standard input is a terminal that controls its session.
    pub(super) terminal: bool,
    /// The mark of its owner.
    pub(super) owner: u64,
    /// Processor time in seconds after which the system ends it, and each process that it starts.
    pub(super) cpu_seconds: Option<u64>,
    /// Its nice value, if that differs from its parent's.
    pub(super) nice: Option<i32>,
}

/// Gives the caller precedence over the processes that it supervises, where permitted: among thousands of busy
/// processes it would hardly run. Returns the previous nice value.
pub(super) fn raise_priority() -> Option<i32> {
    const FIRST: i32 = -20;
    let before = rustix::process::getpriority_process(None).ok()?;
    // Only root may raise it.
    rustix::process::setpriority_process(None, FIRST).ok()?;
    // If the scheduler groups processes by session, the group's precedence counts. Otherwise there is no such file.
    let _ = std::fs::write("/proc/self/autogroup", FIRST.to_string());
    Some(before)
}

impl OnStart {
    /// Makes the calling process, which is about to execute a program, lead a process session of its own, with no signal blocked, and
    /// all the rest.
    ///
    /// # Errors
    /// The system's.
    ///
    /// # Safety
    /// The caller is a new process that does nothing else before it executes its program. It may share its parent's memory: nothing is
    /// allocated, and no lock is taken.
    unsafe fn apply(self) -> io::Result<()> {
        let limit = |resource, value: u64| {
            let limit = libc::rlimit { rlim_cur: value, rlim_max: value };
            // SAFETY: reads the value that it is given. A failure leaves the limit that there was, which is as well.
            unsafe { libc::setrlimit(resource, &raw const limit) };
        };
        // SAFETY: all calls are async-signal-safe and touch nothing but the new process and its terminal.
        unsafe {
            check(libc::setsid())?;
            if self.terminal {
                check(libc::ioctl(0, libc::TIOCSCTTY, 0))?;
            }
            limit(libc::RLIMIT_LOCKS, self.owner);
            if let Some(seconds) = self.cpu_seconds {
                limit(libc::RLIMIT_CPU, seconds);
            }
            if let Some(nice) = self.nice {
                check(libc::setpriority(libc::PRIO_PROCESS, 0, nice))?;
            }
            let mut set = MaybeUninit::<libc::sigset_t>::uninit();
            libc::sigemptyset(set.as_mut_ptr());
            check(libc::sigprocmask(libc::SIG_SETMASK, set.as_ptr(), ptr::null_mut())).map(drop)
        }
    }
}

/// Prepares the started program as `on_start` says.
pub(super) fn prepare_on_start(command: &mut Command, on_start: OnStart) {
    // SAFETY: a new process runs this right before it executes its program.
    unsafe {
        command.pre_exec(move || on_start.apply());
    }
}

/// A program to start: its path, its arguments with its name, its environment as `NAME=VALUE`.
pub(super) struct ProgramImage<'a> {
    pub(super) path: &'a CStr,
    pub(super) args: &'a [CString],
    pub(super) env: &'a [CString],
}

/// Bytes of the stack on which a process that shares its parent's memory runs until it executes its program: it makes a dozen system calls,
/// none of them deeper than a few hundred bytes.
const START_STACK: usize = 64 * 1024;

/// All that a process needs that shares its parent's memory until it executes its program.
struct SharedStart {
    path: *const libc::c_char,
    args: Vec<*const libc::c_char>,
    env: Vec<*const libc::c_char>,
    /// Its standard streams, each a descriptor above 2; `None` leaves the parent's.
    streams: [Option<i32>; 3],
    on_start: OnStart,
    /// The system's error code, once a step has failed.
    errno: AtomicI32,
}

/// Starts a program without copying the caller's memory first: the new process uses it until it executes the program, and the caller waits
/// until then. Returns its process id. All of the caller's signals must be blocked.
///
/// # Errors
/// The system's: of the preparation, or of executing the program. Then there is no new process.
pub(super) fn spawn_sharing_memory(
    image: &ProgramImage<'_>,
    streams: [Option<BorrowedFd<'_>>; 3],
    on_start: OnStart,
) -> io::Result<Pid> {
    let pointers = |texts: &[CString]| {
        let texts = texts.iter().map(|text| text.as_ptr());
        texts.chain([ptr::null()]).collect()
    };
    let start = SharedStart {
        path: image.path.as_ptr(),
        args: pointers(image.args),
        env: pointers(image.env),
        streams: streams.map(|stream| stream.map(|stream| stream.as_raw_fd())),
        on_start,
        errno: AtomicI32::new(0),
    };
    let mut stack: Vec<MaybeUninit<u128>> = Vec::with_capacity(START_STACK / size_of::<u128>());
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: the stack is exclusively the new process's, is aligned for any architecture (whole 16-byte words from an aligned start), and
    // outlives it there, as `start` does: with `CLONE_VFORK` this call returns when the new process has executed its program or ended. Until
    // then no other code of this process runs: it has one thread, checked when the guard starts, and its signals are blocked.
    let outcome = unsafe {
        let top = stack.as_mut_ptr().add(stack.capacity());
        libc::clone(execute, top.cast(), flags, (&raw const start).cast_mut().cast())
    };
    let pid = check(outcome)?;
    let pid = Pid::from_raw(pid).ok_or_else(|| io::Error::other("clone gave no process id"))?;
    match start.errno.load(Ordering::Relaxed) {
        0 => Ok(pid),
        errno => {
            // It has ended by itself, so this does not wait.
            rustix::io::retry_on_intr(|| {
                rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty())
            })?;
            Err(io::Error::from_raw_os_error(errno))
        }
    }
}

/// The new process of [`spawn_sharing_memory`]: executes its program, or notes the error and ends.
extern "C" fn execute(start: *mut libc::c_void) -> libc::c_int {
    // SAFETY: `spawn_sharing_memory` passes a `SharedStart` that outlives this process's use of it.
    let start = unsafe { &*start.cast::<SharedStart>() };
    let prepare = || {
        for (to, from) in (0..).zip(start.streams) {
            if let Some(from) = from {
                // SAFETY: concerns this process's own table of descriptors alone, which is a copy.
                check(unsafe { libc::dup2(from, to) })?;
            }
        }
        // SAFETY: this process does nothing else before it executes its program.
        unsafe { start.on_start.apply()? };
        // SAFETY: the path is a C string, and the lists end with a null pointer.
        check(unsafe { libc::execve(start.path, start.args.as_ptr(), start.env.as_ptr()) }).map(drop)
    };
    let failed = prepare().err().and_then(|error| error.raw_os_error()).unwrap_or(libc::EINVAL);
    start.errno.store(failed, Ordering::Relaxed);
    // SAFETY: ends this process without running any of the code that ends its parent.
    unsafe { libc::_exit(127) }
}

/// Makes the started program confine itself, after all other preparations. The code of a step that fails goes to `tell`.
pub(super) fn confine_on_start(
    command: &mut Command,
    policy: Arc<SandboxPolicy>,
    cwd: PathBuf,
    tell: OwnedFd,
) {
    // SAFETY: a supervisor has one thread, so its fork is a full copy that may allocate and take locks.
    unsafe {
        command.pre_exec(move || {
            agentd_sandbox::confine(&policy, &cwd).map_err(|error| {
                // If this fails, the error is told without its step.
                let _ = rustix::io::write(&tell, &[error.step.code()]);
                // Only errors with a code of the system reach the supervisor.
                let code = error.source.raw_os_error().unwrap_or(libc::EIO);
                io::Error::from_raw_os_error(code)
            })
        });
    }
}

fn check(outcome: i32) -> io::Result<i32> {
    if outcome == -1 { Err(io::Error::last_os_error()) } else { Ok(outcome) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_mirrors_a_file_is_given_back() {
        let smaps = "\
1000-3000 r--p 00000000 fe:00 123                        /usr/bin/a
Size:                  8 kB
Anonymous:             0 kB
Swap:                  0 kB
VmFlags: rd mr mw me
3000-5000 r-xp 00002000 fe:00 123                        /usr/bin/a
Anonymous:             0 kB
Swap:                  0 kB
5000-6000 r--p 00004000 fe:00 123                        /usr/bin/a
Anonymous:             4 kB
Swap:                  0 kB
6000-7000 r--p 00004000 fe:00 123                        /usr/bin/a
Anonymous:             0 kB
Swap:                  4 kB
7000-8000 rw-p 00005000 fe:00 123                        /usr/bin/a
Anonymous:             0 kB
8000-9000 rw-p 00000000 00:00 0                          [heap]
Anonymous:             0 kB
9000-a000 r--p 00000000 00:00 0
Anonymous:             0 kB
a000-b000 r-xp 00000000 00:00 0                          [vdso]
Anonymous:             0 kB
";
        assert_eq!(mirrors(smaps), [0x1000..0x3000, 0x3000..0x5000]);
    }
}
