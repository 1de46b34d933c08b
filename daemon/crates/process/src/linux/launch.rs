//! Starts the program of a command, as a child of its supervisor.

use std::{
    collections::BTreeMap,
    ffi::{CString, OsString},
    io,
    os::{
        fd::{AsFd as _, BorrowedFd, OwnedFd},
        unix::ffi::OsStringExt as _,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
};

use agentd_sandbox::{ConfineStep, SandboxPolicy};
use rustix::pipe::{PipeFlags, pipe_with};

use super::sys::{self, OnStart, ProgramImage};
use crate::{
    command::{CommandSpec, CommandStreams},
    frames::StartStage,
};

/// Why a command could not be started: the stage, and the system's error code.
pub(super) type StartFailure = (StartStage, i32);

/// Says at which stage an error of the system happened.
pub(super) fn failed(stage: StartStage) -> impl Fn(io::Error) -> Option<StartFailure> {
    move |error| Some((stage, error.raw_os_error().unwrap_or(libc::EINVAL)))
}

/// Starts the program, in this process's working directory, which is the command's. Returns its process id.
///
/// `streams` are the command's ends; see [`CommandStreams::open`] for their order.
pub(super) fn launch(
    spec: CommandSpec,
    streams: Vec<OwnedFd>,
    on_start: OnStart,
) -> Result<i32, Option<StartFailure>> {
    let mut spec = spec;
    if let Some(policy) = spec.sandbox.as_ref().filter(|policy| policy.bwrap.is_some()) {
        (spec.program, spec.args) = by_bwrap(policy, &spec)?;
        // bwrap starts this program again, which confines itself.
        spec.sandbox = None;
    }
    let fds = StandardStreams::of(spec.streams, &streams).map_err(failed(StartStage::Supervisor))?;
    if spec.sandbox.is_none()
        && let Some(started) = launch_path(&spec, &fds, on_start)
    {
        return started.map_err(failed(StartStage::Program));
    }
    let mut command = Command::new(&spec.program);
    command.args(&spec.args).env_clear().envs(spec.env);
    fds.connect(&mut command).map_err(failed(StartStage::Supervisor))?;
    sys::prepare_on_start(&mut command, on_start);
    let child = match spec.sandbox {
        Some(policy) => spawn_confined(command, &policy, spec.cwd)?,
        None => command.spawn().map_err(failed(StartStage::Program))?,
    };
    i32::try_from(child.id()).map_err(|_| Some((StartStage::Supervisor, libc::ERANGE)))
}

/// Starts a program that is given by its path, without copying this process first. `None` when it takes a search, or another program that
/// runs it: a copy of this process does both.
fn launch_path(spec: &CommandSpec, fds: &StandardStreams<'_>, on_start: OnStart) -> Option<io::Result<i32>> {
    let path = c_string(spec.program.clone())?;
    if !path.as_bytes().contains(&b'/') {
        return None;
    }
    let args: Vec<CString> =
        [&spec.program].into_iter().chain(&spec.args).cloned().map(c_string).collect::<Option<_>>()?;
    // The later of two variables with one name wins.
    let env: BTreeMap<_, _> = spec.env.iter().map(|(name, value)| (name, value)).collect();
    let env: Vec<CString> = env
        .into_iter()
        .map(|(name, value)| c_string([name.as_os_str(), value].join("=".as_ref())))
        .collect::<Option<_>>()?;
    let image = ProgramImage { path: &path, args: &args, env: &env };
    match sys::spawn_sharing_memory(&image, fds.0, on_start) {
        // A script that does not name its interpreter.
        Err(error) if error.raw_os_error() == Some(libc::ENOEXEC) => None,
        started => Some(started.map(|pid| pid.as_raw_nonzero().get())),
    }
}

/// `None` for a text with a NUL byte, of which a command has none.
fn c_string(text: OsString) -> Option<CString> {
    CString::new(text.into_vec()).ok()
}

/// The standard streams of a command; `None` is this process's own, which is empty as an input.
struct StandardStreams<'a>([Option<BorrowedFd<'a>>; 3]);

impl<'a> StandardStreams<'a> {
    fn of(streams: CommandStreams, fds: &'a [OwnedFd]) -> io::Result<Self> {
        let mut fds = fds.iter();
        let mut next = || {
            fds.next().map(|fd| Some(fd.as_fd())).ok_or_else(|| io::Error::from_raw_os_error(libc::EBADMSG))
        };
        let input = match streams {
            CommandStreams::Output => None,
            CommandStreams::InputOutput | CommandStreams::Separate => next()?,
            CommandStreams::Terminal(_) => {
                let terminal = next()?;
                return Ok(Self([terminal; 3]));
            }
        };
        let output = next()?;
        let errors = if streams == CommandStreams::Separate { next()? } else { output };
        Ok(Self([input, output, errors]))
    }

    fn connect(&self, command: &mut Command) -> io::Result<()> {
        let [input, output, errors] = self
            .0
            .map(|fd| fd.map_or_else(|| Ok(Stdio::inherit()), |fd| fd.try_clone_to_owned().map(Stdio::from)));
        command.stdin(input?).stdout(output?).stderr(errors?);
        Ok(())
    }
}

/// The command line by which `bwrap` makes the mounts of a sandbox.
fn by_bwrap(
    policy: &SandboxPolicy,
    spec: &CommandSpec,
) -> Result<(OsString, Vec<OsString>), Option<StartFailure>> {
    let bwrap = policy.bwrap.as_deref().unwrap_or(Path::new("bwrap"));
    agentd_sandbox::command_line(bwrap, policy, &spec.cwd, &spec.program, &spec.args)
        .map_err(failed(StartStage::Sandbox(ConfineStep::Mounts)))
}

/// Starts a command that confines itself before it executes its program.
fn spawn_confined(
    mut command: Command,
    policy: &Arc<SandboxPolicy>,
    cwd: PathBuf,
) -> Result<Child, Option<StartFailure>> {
    let (told, tell) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)
        .map_err(|errno| Some((StartStage::Supervisor, errno.raw_os_error())))?;
    sys::confine_on_start(&mut command, Arc::clone(policy), cwd, tell);
    command.spawn().map_err(|error| {
        // The step that failed, if it was one of these.
        let mut code = [0];
        let told = rustix::io::read(&told, &mut code).is_ok_and(|count| count == 1);
        let step = ConfineStep::from_code(code[0]).filter(|_| told);
        failed(step.map_or(StartStage::Program, StartStage::Sandbox))(error)
    })
}
