//! Another machine, over the user's own `ssh`.
//!
//! Nothing is installed there: each operation is a constant script for the POSIX shell of that machine. The script and all
//! that it works on (paths, contents, commands) come over its input, counted; no word of a model or a user is ever part of a
//! command line. A script that gets less than was counted changes nothing.
//!
//! One connection is made when it is first needed and shared by all operations (`ControlMaster`), unless the user's own
//! configuration shares connections already. All `ssh` processes run under the process guard.

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
use self::{connection::Connection, files::SshFiles, run::SshRun};
use super::{FileHost, FileSystem};

/// What a connection is made with.
pub struct SshOptions {
    /// Which machine, and which folder there.
    pub target: SshTarget,
    /// Where the connection and the work on files run.
    pub connections: ProcessGroup,
    /// Where the commands of the session run.
    pub commands: ProcessGroup,
    /// The complete environment of `ssh` itself. Nothing of it goes to the other machine, unless the user's configuration says
    /// so.
    pub env: Arc<[(OsString, OsString)]>,
    /// Where a private folder for the connection's socket is made.
    pub temp_dir: PathBuf,
}

/// The files and the shell of another machine. Cheap to clone; every clone uses the same connection.
#[derive(Clone)]
pub struct SshHost {
    connection: Arc<Connection>,
    commands: ProcessGroup,
}

impl SshHost {
    /// The machine, to which nothing is connected yet.
    #[must_use]
    pub fn new(options: SshOptions) -> Self {
        let SshOptions { target, connections, commands, env, temp_dir } = options;
        Self { connection: Arc::new(Connection::new(target, connections, env, temp_dir)), commands }
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
            let place = self.connection.place().await;
            place.map(|place| place.directory.clone()).map_err(|error| ShellError::Unreachable(error.0))
        })
    }

    fn start(&self, job: ShellJob) -> ShellFuture<'_, Result<Box<dyn RunningCommand>, ShellError>> {
        Box::pin(self.run(job))
    }
}
