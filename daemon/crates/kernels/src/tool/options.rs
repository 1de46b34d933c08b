//! What the tool `eval` needs of its session.

use std::{ffi::OsString, path::PathBuf, sync::Arc, time::Duration};

use agentd_checkpoints::SessionCheckpoints;
use agentd_process::OutputStorage;
use agentd_sandbox::SandboxPolicy;

use crate::{executor::CellExecutors, language::Language, session::SessionKernels, tool_calls::ToolCaller};

/// What the tool needs of its session.
#[derive(Clone)]
pub struct EvalOptions {
    /// The session's kernels.
    pub kernels: SessionKernels,
    /// The languages of its cells, with their interpreters.
    pub interpreters: Vec<(Language, PathBuf)>,
    /// The complete environment of the session's child processes.
    pub environment: Arc<[(OsString, OsString)]>,
    /// Patterns of variables that kernels get besides the usual ones.
    pub passed: Vec<String>,
    /// What kernels may touch; `None` confines nothing.
    pub sandbox: Option<Arc<SandboxPolicy>>,
    /// The most memory of a kernel with all that it starts, in bytes; 0 is no limit.
    pub memory_bytes: u64,
    /// Idle time after which a kernel ends; `None`: never.
    pub idle: Option<Duration>,
    /// The most kernels of the daemon at a time.
    pub most: usize,
    /// Where long outputs are kept.
    pub outputs: OutputStorage,
    /// Knows who runs cells instead of a kernel.
    pub executors: Arc<dyn CellExecutors>,
    /// Runs the calls of tools that cells make.
    pub tools: Arc<dyn ToolCaller>,
    /// Keeps what cells change; `None` while undo is off.
    pub undo: Option<Arc<SessionCheckpoints>>,
}

impl EvalOptions {
    /// The languages of `wanted` that have an interpreter, with it. Looks at files; blocks briefly.
    #[must_use]
    pub fn available(
        wanted: &[Language],
        find: impl Fn(&Language) -> Option<PathBuf>,
    ) -> Vec<(Language, PathBuf)> {
        let found = |language: &Language| Some((language.clone(), find(language)?));
        let own = Language::ALL.iter().filter(|language| wanted.contains(language));
        let of_jupyter = wanted.iter().filter(|language| matches!(language, Language::Jupyter(_)));
        own.chain(of_jupyter).filter_map(found).collect()
    }
}
