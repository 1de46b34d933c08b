//! The files and the shell of another machine, over the user's own `ssh`.
//!
//! Nothing is installed there: each operation is a constant script for that machine's POSIX shell. The script and its
//! data (paths, contents, commands) arrive on its input, with their lengths; nothing that a model or a user wrote
//! becomes part of a command line. A script that receives less than announced changes nothing.
//!
//! One connection is opened when first needed and shared by all operations (`ControlMaster`), unless the user's own
//! configuration already shares connections. All `ssh` processes run under the process guard.

mod connection;
mod exchange;
mod files;
mod problem;
mod request;
mod run;
mod target;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::Arc,
};

use agentd_process::{
    CommandStreams, ProcessGroup, RunningCommand, Shell, ShellError, ShellFuture, ShellJob,
};
use tokio_util::sync::CancellationToken;

pub use self::target::{SshTarget, SshTargetError};
use self::{connection::Connection, exchange::remote_folders, files::SshFiles, run::SshRun};
use super::{FileHost, FileSystem, Unreachable};

/// The options of a connection.
pub struct SshOptions {
    /// The machine, and the folder there.
    pub target: SshTarget,
    /// Arguments of `ssh` before the host, such as `-p 2222`.
    pub arguments: Vec<OsString>,
    /// The group for the connection and the work on files.
    pub connections: ProcessGroup,
    /// The group for the session's commands.
    pub commands: ProcessGroup,
    /// The complete environment of `ssh` itself. It is not sent to the other machine, unless the user's configuration
    /// says so.
    pub env: Arc<[(OsString, OsString)]>,
    /// The folder for the private folder of the connection's socket.
    pub temp_dir: PathBuf,
}

/// The files and the shell of another machine. Cheap to clone; clones share one connection.
#[derive(Clone)]
pub struct SshHost {
    connection: Arc<Connection>,
    commands: ProcessGroup,
}

impl SshHost {
    /// The machine; connects when first used.
    #[must_use]
    pub fn new(options: SshOptions) -> Self {
        let SshOptions { target, arguments, connections, commands, env, temp_dir } = options;
        let connection = Connection::new((target, arguments), connections, env, temp_dir);
        Self { connection: Arc::new(connection), commands }
    }

    /// Connects unless that is done; the home directory there.
    ///
    /// # Errors
    /// Why the host cannot be reached.
    ///
    /// Cancel safe: a connection that is being made is given up.
    pub(crate) async fn connect(&self) -> Result<PathBuf, Unreachable> {
        Ok(remote_folders(&self.connection).await?.home.clone())
    }

    async fn run(&self, job: ShellJob) -> Result<Box<dyn RunningCommand>, ShellError> {
        if job.streams != CommandStreams::Output {
            let host = &self.connection.target().host;
            return Err(ShellError::Unreachable(format!(
                "Commands on {host} have no terminal and no input: run it without."
            )));
        }
        let group = self.commands.working_for(job.work.clone());
        Ok(Box::new(SshRun::start(Arc::clone(&self.connection), &group, job).await?))
    }
}

impl FileHost for SshHost {
    fn files(&self, cancel: &CancellationToken) -> Box<dyn FileSystem> {
        Box::new(SshFiles::new(Arc::clone(&self.connection), cancel.clone()))
    }

    fn home(&self) -> Option<PathBuf> {
        self.connection.known_home()
    }
}

impl Shell for SshHost {
    fn directory<'a>(&'a self, _: &'a Path) -> ShellFuture<'a, Result<PathBuf, ShellError>> {
        Box::pin(async {
            let place = remote_folders(&self.connection).await;
            place.map(|place| place.directory.clone()).map_err(|error| ShellError::Unreachable(error.0))
        })
    }

    fn start(&self, job: ShellJob) -> ShellFuture<'_, Result<Box<dyn RunningCommand>, ShellError>> {
        Box::pin(self.run(job))
    }
}
