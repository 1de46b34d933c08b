//! Seccomp: the system calls that lead out of the sandbox, or that the other layers do not see.

use std::{collections::BTreeMap, io};

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter, sock_filter,
};

use crate::policy::SandboxPolicy;

/// Calls that are refused whatever their arguments are.
const REFUSED: &[i64] = &[
    // Other views of the file system.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_open_by_handle_at,
    // Other namespaces.
    libc::SYS_unshare,
    libc::SYS_setns,
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    // Calls that no filter sees.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // The kernel, the clock, the machine.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_fanotify_init,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
];

/// Flags of `clone` that make a namespace.
const NAMESPACES: u64 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u64;

/// Requests of `ioctl` that type into a terminal as if the user had: `TIOCSTI` and `TIOCLINUX`.
const TYPING: [u64; 2] = [0x5412, 0x541c];

/// The bits of the type of a socket that are not flags.
const SOCKET_KIND: u64 = 0xf;

/// `memfd_create`: the file can never be executed.
const NO_EXECUTION: u64 = 0x0008;

/// Numbers of calls that have this bit are those of the x32 mode, which would pass by the filter of x86-64.
#[cfg(target_arch = "x86_64")]
const X32: u32 = 0x4000_0000;

/// Filters the calling process's system calls.
///
/// # Errors
/// The system's; `Unsupported` on other processors than x86-64 and 64-bit ARM and RISC-V.
pub(crate) fn apply(policy: &SandboxPolicy) -> io::Result<()> {
    for program in programs(policy)? {
        apply_filter(&program).map_err(|error| match error {
            seccompiler::Error::Seccomp(error) | seccompiler::Error::Prctl(error) => error,
            other => io::Error::other(other),
        })?;
    }
    Ok(())
}

/// The filters, each with its own error code.
fn programs(policy: &SandboxPolicy) -> io::Result<[BpfProgram; 3]> {
    let refused = compile(refused(policy)?, libc::EPERM)?;
    // The C library then uses `clone`, whose flags can be seen.
    let unknown = compile(BTreeMap::from([(libc::SYS_clone3, Vec::new())]), libc::ENOSYS)?;
    // As the system answers where it forbids such files itself.
    let memory_files = vec![rule(vec![condition(1, SeccompCmpOp::MaskedEq(NO_EXECUTION), 0)?])?];
    let memory_files = compile(BTreeMap::from([(libc::SYS_memfd_create, memory_files)]), libc::EACCES)?;
    Ok([refused, unknown, memory_files])
}

fn refused(policy: &SandboxPolicy) -> io::Result<BTreeMap<i64, Vec<SeccompRule>>> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    let mut namespaces = Vec::new();
    for bit in (0..u64::from(u32::BITS)).map(|bit| 1 << bit).filter(|bit| NAMESPACES & bit != 0) {
        namespaces.push(rule(vec![condition(0, SeccompCmpOp::MaskedEq(bit), bit)?])?);
    }
    rules.insert(libc::SYS_clone, namespaces);
    let mut ioctls = Vec::new();
    for request in TYPING {
        ioctls.push(rule(vec![condition(1, SeccompCmpOp::Eq, request)?])?);
    }
    rules.insert(libc::SYS_ioctl, ioctls);
    let mut foreign = Vec::new();
    for family in families(policy) {
        foreign.push(condition(0, SeccompCmpOp::Ne, family.unsigned_abs().into())?);
    }
    let foreign = if foreign.is_empty() { Vec::new() } else { vec![rule(foreign)?] };
    rules.insert(libc::SYS_socket, foreign);
    rules.insert(libc::SYS_socketpair, pairs(policy)?);
    // Limits of other processes of the user: one of zero seconds ends them.
    let others = vec![condition(0, SeccompCmpOp::Ne, 0)?, pointer_is_set(2)?];
    rules.insert(libc::SYS_prlimit64, vec![rule(others)?]);
    Ok(rules)
}

/// The pairs of sockets that are refused: other families, and those of datagrams, which can be sent to any local socket that has a name.
/// Pairs of streams lead nowhere.
fn pairs(policy: &SandboxPolicy) -> io::Result<Vec<SeccompRule>> {
    let mut refused = vec![rule(vec![condition(0, SeccompCmpOp::Ne, libc::AF_UNIX.unsigned_abs().into())?])?];
    if !policy.unix_sockets {
        // The system takes raw ones for datagrams.
        for kind in [libc::SOCK_DGRAM, libc::SOCK_RAW] {
            let is_kind = SeccompCmpOp::MaskedEq(SOCKET_KIND);
            refused.push(rule(vec![condition(1, is_kind, kind.unsigned_abs().into())?])?);
        }
    }
    Ok(refused)
}

/// The families of sockets that may be made.
fn families(policy: &SandboxPolicy) -> Vec<libc::c_int> {
    let mut families = Vec::new();
    if policy.network {
        // Raw and packet sockets need a capability that nobody in the sandbox has.
        families.extend([libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK]);
    }
    if policy.unix_sockets {
        families.push(libc::AF_UNIX);
    }
    families
}

fn rule(conditions: Vec<SeccompCondition>) -> io::Result<SeccompRule> {
    SeccompRule::new(conditions).map_err(io::Error::other)
}

fn condition(argument: u8, operator: SeccompCmpOp, value: u64) -> io::Result<SeccompCondition> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value).map_err(io::Error::other)
}

fn pointer_is_set(argument: u8) -> io::Result<SeccompCondition> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0).map_err(io::Error::other)
}

/// A filter that refuses calls with `errno`. Calls of 32-bit programs end the process.
fn compile(rules: BTreeMap<i64, Vec<SeccompRule>>, errno: i32) -> io::Result<BpfProgram> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|_| {
        io::Error::new(io::ErrorKind::Unsupported, "no filter of system calls for this processor")
    })?;
    let refuse = SeccompAction::Errno(errno.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch).map_err(io::Error::other)?;
    let program = BpfProgram::try_from(filter).map_err(io::Error::other)?;
    Ok(beside_x32(program))
}

/// The program behind a check that refuses calls of the x32 mode.
#[cfg(target_arch = "x86_64")]
fn beside_x32(program: BpfProgram) -> BpfProgram {
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const JUMP: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let refuse = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs();
    let check = [
        // The number of the call is the first field.
        sock_filter { code: LOAD, jt: 0, jf: 0, k: 0 },
        sock_filter { code: JUMP, jt: 0, jf: 1, k: X32 },
        sock_filter { code: RETURN, jt: 0, jf: 0, k: refuse },
    ];
    check.into_iter().chain(program).collect()
}

#[cfg(not(target_arch = "x86_64"))]
fn beside_x32(program: BpfProgram) -> BpfProgram {
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filters_compile() {
        for (network, unix_sockets) in [(false, false), (true, false), (false, true), (true, true)] {
            let policy = SandboxPolicy { network, unix_sockets, ..SandboxPolicy::default() };
            assert_eq!(families(&policy).is_empty(), !network && !unix_sockets);
            for program in programs(&policy).unwrap() {
                assert!(program.len() > 5);
            }
        }
    }
}
