//! The few calls that no safe interface offers. All of them are made by the guard and its forks, which have one thread.
#![allow(
    unsafe_code,
    reason = "fork, signal masks and pre_exec have no safe form; each use says why it is sound"
)]

use std::{
    io,
    mem::MaybeUninit,
    os::{
        fd::{AsFd, AsRawFd, FromRawFd, OwnedFd},
        unix::process::CommandExt,
    },
    process::Command,
    ptr,
};

use rustix::process::Pid;

/// Which side of a fork this is.
pub(super) enum Fork {
    /// The one that asked, with the id of the new process.
    Parent(Pid),
    /// The new process.
    Child,
}

/// Forks the calling process.
///
/// Only the guard and its forks call this, and [`super::guard`] checks when it starts that it is alone in its process.
///
/// # Errors
/// Whatever the system refuses it for: too many processes, too little memory.
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

/// Gives every signal its default effect. What the daemon's starter ignored must not be ignored by commands.
pub(super) fn reset_dispositions() {
    for signal in 1..=libc::SIGRTMAX() {
        // SAFETY: `SIG_DFL` installs no code of ours. It fails for SIGKILL, SIGSTOP and the C library's own signals,
        // which always have their default effect anyway.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// A descriptor that is readable when a child has ended. The caller must have blocked SIGCHLD.
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

/// Closes every descriptor but the three standard ones: some that the daemon's starter left open would otherwise be
/// held for as long as the guard lives, and reach every command.
///
/// To be called before anything is opened, when nobody can own such a descriptor.
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

/// Gives back the memory that holds the program's own code, all of it: what is needed again comes back from the file.
///
/// Starting a program touches far more of its code than waiting for requests does.
pub(super) fn release_code() -> io::Result<()> {
    for line in std::fs::read_to_string("/proc/self/maps")?.lines() {
        let mut fields = line.split_ascii_whitespace();
        let (Some(range), Some("r-xp"), Some(path)) = (fields.next(), fields.next(), fields.nth(3)) else {
            continue;
        };
        let bound = |text: &str| usize::from_str_radix(text, 16).ok();
        let Some((Some(start), Some(end))) =
            range.split_once('-').map(|(start, end)| (bound(start), bound(end)))
        else {
            continue;
        };
        if path.starts_with('/') {
            // SAFETY: this is a whole mapping of a file that can be read and executed and never was written to (code
            // has no relocations), so dropping its pages changes nothing: the next access reads them from the file.
            // Of a mapping that was written to this would lose the changes; those are `rw-p`, or `r--p` once sealed.
            unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_DONTNEED) };
        }
    }
    Ok(())
}

/// Makes `fd` the standard input.
pub(super) fn replace_stdin(fd: impl AsFd) -> io::Result<()> {
    // SAFETY: descriptor 0 belongs to the standard library, which never closes it and does not care what it is.
    check(unsafe { libc::dup2(fd.as_fd().as_raw_fd(), 0) }).map(drop)
}

/// Has the started program lead a session of its own, with no signal blocked.
pub(super) fn detach_on_start(command: &mut Command) {
    // SAFETY: both calls are async-signal-safe and touch nothing but the new process.
    unsafe {
        command.pre_exec(|| {
            check(libc::setsid())?;
            let mut set = MaybeUninit::<libc::sigset_t>::uninit();
            libc::sigemptyset(set.as_mut_ptr());
            check(libc::sigprocmask(libc::SIG_SETMASK, set.as_ptr(), ptr::null_mut())).map(drop)
        });
    }
}

fn check(outcome: i32) -> io::Result<i32> {
    if outcome == -1 { Err(io::Error::last_os_error()) } else { Ok(outcome) }
}
