//! Encodes the frames between the daemon and a supervisor. Both are always the same build, so frames have no versions.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::PathBuf,
    sync::Arc,
};

use agentd_sandbox::{ConfineStep, SandboxPolicy};

use crate::{
    command::{CommandSpec, CommandStreams, SpawnError},
    limits::{LimitedResource, ProcessLimits},
    linux::{OWNER_VARIABLE, OwnerMark},
    terminal::TerminalSize,
};

/// An order to a supervisor whose command runs: one byte each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SupervisorOrder {
    /// Ask all processes to end.
    Terminate,
    /// Kill all processes, until nothing is left.
    Kill,
    /// Kill them: the session's commands have too many processes.
    TooManyProcesses,
    /// Kill them: the session's commands use too much memory.
    TooMuchMemory,
    /// Kill them: the command has written too much.
    TooMuchOutput,
    /// Send all processes this signal, which is less than 128.
    Signal(u8),
}

/// The owner and the limits that a command runs with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CommandTerms {
    /// The mark of the command's daemon.
    pub(crate) owner: OwnerMark,
    pub(crate) limits: ProcessLimits,
}

impl SupervisorOrder {
    /// Set in a byte whose other bits are a signal.
    const SIGNAL: u8 = 0x80;

    /// Whether the order kills everything.
    pub(crate) fn is_deadly(self) -> bool {
        !matches!(self, Self::Terminate | Self::Signal(_))
    }

    pub(crate) fn encode(self) -> u8 {
        match self {
            Self::Terminate => b't',
            Self::Kill => b'k',
            Self::TooManyProcesses => b'n',
            Self::TooMuchMemory => b'm',
            Self::TooMuchOutput => b'o',
            Self::Signal(signal) => Self::SIGNAL | signal,
        }
    }

    /// Decodes an order; `None` for a byte that no daemon sends.
    pub(crate) fn decode(byte: u8) -> Option<Self> {
        match byte {
            b't' => Some(Self::Terminate),
            b'k' => Some(Self::Kill),
            b'n' => Some(Self::TooManyProcesses),
            b'm' => Some(Self::TooMuchMemory),
            b'o' => Some(Self::TooMuchOutput),
            signal if signal & Self::SIGNAL != 0 => Some(Self::Signal(signal & !Self::SIGNAL)),
            _ => None,
        }
    }
}

/// The stage at which starting a command failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartStage {
    /// Preparing the supervisor itself.
    Supervisor,
    /// Entering the working directory.
    WorkingDirectory,
    /// Executing the program.
    Program,
    /// Confining it to its sandbox.
    Sandbox(ConfineStep),
}

/// A report of a supervisor to the daemon: [`SupervisorReport::SIZE`] bytes each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SupervisorReport {
    /// The new supervisor has this process id and is about to read its first command.
    Ready(i32),
    /// The command runs with this process id.
    Started(i32),
    /// The command could not be started; the number is the system's error code.
    Failed(StartStage, i32),
    /// The command's own process exited by itself with this code.
    Exited(i32),
    /// The command's own process was ended by this signal.
    Signaled(i32),
    /// The number of processes; reported when it changes, and only while there are limits.
    Processes(i32),
    /// Their memory in KiB; reported likewise.
    MemoryKib(i32),
    /// This limit was exceeded, so everything is being killed; the flag: by the session's commands together.
    Limit(LimitedResource, bool),
    /// Neither the command nor anything that it started is left; the flag: the supervisor waits for another command.
    Empty(bool),
}

impl SupervisorReport {
    /// Bytes of one report.
    pub(crate) const SIZE: usize = 5;

    pub(crate) fn encode(self) -> [u8; Self::SIZE] {
        let (tag, value) = match self {
            Self::Ready(pid) => (b'r', pid),
            Self::Started(pid) => (b's', pid),
            Self::Failed(StartStage::Supervisor, errno) => (b'f', errno),
            Self::Failed(StartStage::WorkingDirectory, errno) => (b'w', errno),
            Self::Failed(StartStage::Program, errno) => (b'p', errno),
            Self::Failed(StartStage::Sandbox(step), errno) => {
                (b'b', errno & 0xffff | i32::from(step.code()) << 16)
            }
            Self::Exited(code) => (b'x', code),
            Self::Signaled(signal) => (b'n', signal),
            Self::Processes(count) => (b'c', count),
            Self::MemoryKib(kib) => (b'm', kib),
            Self::Limit(resource, together) => (b'l', i32::from(resource.tag()) | i32::from(together) << 8),
            Self::Empty(stays) => (b'e', i32::from(stays)),
        };
        let value = value.to_le_bytes();
        [tag, value[0], value[1], value[2], value[3]]
    }

    /// Decodes a report; `None` for bytes that no supervisor writes.
    pub(crate) fn decode(bytes: [u8; Self::SIZE]) -> Option<Self> {
        let [tag, a, b, c, d] = bytes;
        let value = i32::from_le_bytes([a, b, c, d]);
        Some(match tag {
            b'r' => Self::Ready(value),
            b's' => Self::Started(value),
            b'f' => Self::Failed(StartStage::Supervisor, value),
            b'w' => Self::Failed(StartStage::WorkingDirectory, value),
            b'p' => Self::Failed(StartStage::Program, value),
            b'b' => Self::Failed(StartStage::Sandbox(ConfineStep::from_code(c)?), value & 0xffff),
            b'x' => Self::Exited(value),
            b'n' => Self::Signaled(value),
            b'c' => Self::Processes(value),
            b'm' => Self::MemoryKib(value),
            b'l' => Self::Limit(LimitedResource::from_tag(a)?, b != 0),
            b'e' => Self::Empty(value != 0),
            _ => return None,
        })
    }
}

/// Encodes `command` as a supervisor reads it: the length of the rest in 8 bytes, the terms, then counted strings.
///
/// Adds the owner's mark to the environment.
///
/// # Errors
/// [`SpawnError::NulByte`] for a string that cannot be passed to a process.
pub(crate) fn encode_command(command: &CommandSpec, terms: &CommandTerms) -> Result<Vec<u8>, SpawnError> {
    let mut out = vec![0; 8];
    let ProcessLimits { processes, memory_bytes, cpu_seconds, output_bytes } = terms.limits;
    for number in [processes, memory_bytes, cpu_seconds, output_bytes] {
        out.extend_from_slice(&number.unwrap_or(0).to_ne_bytes());
    }
    out.extend_from_slice(&terms.owner.0.to_ne_bytes());
    put(&mut out, command.cwd.as_os_str(), "working directory")?;
    put(&mut out, &command.program, "program")?;
    put_count(&mut out, command.args.len());
    for argument in &command.args {
        put(&mut out, argument, "arguments")?;
    }
    put_count(&mut out, command.env.len() + 1);
    for (name, value) in &command.env {
        put(&mut out, name, "environment")?;
        put(&mut out, value, "environment")?;
    }
    put(&mut out, OsStr::new(OWNER_VARIABLE), "environment")?;
    put(&mut out, OsStr::new(&terms.owner.text()), "environment")?;
    let sandbox = command.sandbox.as_ref().map(|policy| policy.to_bytes()).unwrap_or_default();
    put_count(&mut out, sandbox.len());
    out.extend_from_slice(&sandbox);
    out.push(match command.streams {
        CommandStreams::Output => b'o',
        CommandStreams::InputOutput => b'i',
        CommandStreams::Separate => b's',
        CommandStreams::Terminal(_) => b't',
    });
    let length = (out.len() - 8) as u64;
    out[..8].copy_from_slice(&length.to_ne_bytes());
    Ok(out)
}

/// Decodes what [`encode_command`] wrote, without the length; `None` for other bytes.
///
/// The size of a terminal is not passed on: the terminal itself knows it.
pub(crate) fn decode_command(bytes: &[u8]) -> Option<(CommandSpec, CommandTerms)> {
    let mut rest = bytes;
    let limits = ProcessLimits {
        processes: take_limit(&mut rest)?,
        memory_bytes: take_limit(&mut rest)?,
        cpu_seconds: take_limit(&mut rest)?,
        output_bytes: take_limit(&mut rest)?,
    };
    let owner = OwnerMark(take_number(&mut rest)?);
    let cwd = PathBuf::from(take(&mut rest)?);
    let program = take(&mut rest)?;
    let args = (0..take_count(&mut rest)?).map(|_| take(&mut rest)).collect::<Option<_>>()?;
    let env = (0..take_count(&mut rest)?)
        .map(|_| Some((take(&mut rest)?, take(&mut rest)?)))
        .collect::<Option<_>>()?;
    let sandbox = match take(&mut rest)? {
        none if none.is_empty() => None,
        bytes => Some(Arc::new(SandboxPolicy::from_bytes(bytes.as_bytes())?)),
    };
    let streams = match rest {
        b"o" => CommandStreams::Output,
        b"i" => CommandStreams::InputOutput,
        b"s" => CommandStreams::Separate,
        b"t" => CommandStreams::Terminal(TerminalSize::default()),
        _ => return None,
    };
    Some((CommandSpec { program, args, cwd, env, streams, sandbox }, CommandTerms { owner, limits }))
}

fn put(out: &mut Vec<u8>, text: &OsStr, part: &'static str) -> Result<(), SpawnError> {
    let bytes = text.as_bytes();
    if memchr::memchr(0, bytes).is_some() {
        return Err(SpawnError::NulByte { part });
    }
    put_count(out, bytes.len());
    out.extend_from_slice(bytes);
    Ok(())
}

fn put_count(out: &mut Vec<u8>, count: usize) {
    out.extend_from_slice(&(count as u64).to_ne_bytes());
}

fn take(rest: &mut &[u8]) -> Option<OsString> {
    let length = take_count(rest)?;
    let (text, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(OsString::from_vec(text.to_vec()))
}

fn take_count(rest: &mut &[u8]) -> Option<usize> {
    usize::try_from(take_number(rest)?).ok()
}

fn take_limit(rest: &mut &[u8]) -> Option<Option<u64>> {
    take_number(rest).map(|limit| Some(limit).filter(|limit| *limit > 0))
}

fn take_number(rest: &mut &[u8]) -> Option<u64> {
    let (number, after) = rest.split_first_chunk::<8>()?;
    *rest = after;
    Some(u64::from_ne_bytes(*number))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text() -> impl Strategy<Value = OsString> {
        proptest::collection::vec(1u8..=255, 0..20).prop_map(OsString::from_vec)
    }

    fn terms() -> CommandTerms {
        let limits = ProcessLimits {
            processes: Some(1),
            memory_bytes: None,
            cpu_seconds: Some(u64::MAX),
            output_bytes: Some(3),
        };
        CommandTerms { owner: OwnerMark(0xab), limits }
    }

    proptest! {
        #[test]
        fn a_command_comes_back_as_it_was(
            program in text(),
            cwd in text(),
            args in proptest::collection::vec(text(), 0..5),
            env in proptest::collection::vec((text(), text()), 0..5),
            streams in prop_oneof![
                Just(CommandStreams::Output),
                Just(CommandStreams::InputOutput),
                Just(CommandStreams::Separate),
                Just(CommandStreams::Terminal(TerminalSize::default())),
            ],
            root in proptest::option::of(text()),
        ) {
            let policy = |root: OsString| SandboxPolicy { writable: vec![root.into()], ..SandboxPolicy::default() };
            let sandbox = root.map(|root| Arc::new(policy(root)));
            let mut command = CommandSpec { program, args, cwd: cwd.into(), env, streams, sandbox };
            let bytes = encode_command(&command, &terms()).expect("no NUL bytes");
            prop_assert_eq!(u64::from_ne_bytes(bytes[..8].try_into().unwrap()), (bytes.len() - 8) as u64);
            command.env.push(("AGENTD_OWNER".into(), "00000000000000ab".into()));
            prop_assert_eq!(decode_command(&bytes[8..]), Some((command, terms())));
            prop_assert_eq!(decode_command(&bytes[8..bytes.len() - 1]), None, "a torn command is refused");
        }

        #[test]
        fn a_report_comes_back_as_it_was(value: i32, kind in 0..13) {
            let report = match kind {
                0 => SupervisorReport::Ready(value),
                1 => SupervisorReport::Started(value),
                2 => SupervisorReport::Failed(StartStage::Supervisor, value),
                3 => SupervisorReport::Failed(StartStage::WorkingDirectory, value),
                4 => SupervisorReport::Failed(StartStage::Program, value),
                5 => SupervisorReport::Exited(value),
                6 => SupervisorReport::Signaled(value),
                7 => SupervisorReport::Processes(value),
                8 => SupervisorReport::MemoryKib(value),
                9 => SupervisorReport::Limit(LimitedResource::Memory, value % 2 == 0),
                10 => SupervisorReport::Limit(LimitedResource::Output, false),
                11 => SupervisorReport::Failed(StartStage::Sandbox(ConfineStep::Landlock), value & 0xffff),
                _ => SupervisorReport::Empty(value % 2 == 0),
            };
            prop_assert_eq!(SupervisorReport::decode(report.encode()), Some(report));
        }
    }

    #[test]
    fn a_nul_byte_is_refused_by_its_place() {
        let command = CommandSpec {
            program: "sh".into(),
            args: vec!["-c".into(), "a\0b".into()],
            cwd: "/".into(),
            env: Vec::new(),
            streams: CommandStreams::Output,
            sandbox: None,
        };
        assert!(matches!(encode_command(&command, &terms()), Err(SpawnError::NulByte { part: "arguments" })));
    }

    #[test]
    fn an_order_comes_back_as_it_was() {
        for order in [
            SupervisorOrder::Terminate,
            SupervisorOrder::Kill,
            SupervisorOrder::TooMuchMemory,
            SupervisorOrder::Signal(1),
            SupervisorOrder::Signal(64),
        ] {
            assert_eq!(SupervisorOrder::decode(order.encode()), Some(order));
        }
        assert_eq!(SupervisorOrder::decode(b'?'), None);
    }

    #[test]
    fn unknown_reports_are_refused() {
        assert_eq!(SupervisorReport::decode([b'l', b'?', 0, 0, 0]), None);
        assert_eq!(SupervisorReport::decode([b'?', 0, 0, 0, 0]), None);
    }
}
