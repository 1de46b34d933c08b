//! The tool `eval`: code of the model in interpreters that keep their state from cell to cell.
//!
//! A *kernel* is one such interpreter, a process of its session under the process guard, with a runner of ours in it (`runners/`). A
//! [`KernelPool`] bounds the kernels of the daemon; [`SessionKernels`] are those of one session; [`EvalTool`] is what a model calls.
//!
//! Requests and answers are JSON lines on two descriptors of their own (`records`). What cells print is no record: it comes by one pipe of
//! its own, so that its order is exact, also beside that of child processes. Cells can call the session's tools through a [`ToolCaller`].
//!
//! This crate knows nothing of sessions: what it needs of one comes with [`EvalOptions`].

mod arguments;
mod cell;
mod environment;
mod executor;
mod interpreter;
mod kernel;
mod language;
mod pool;
mod records;
mod report;
mod session;
mod start;
mod tool;
mod tool_calls;

pub use executor::{CellExecutor, CellExecutors, ExecutorCell, ExecutorEnd};
pub use interpreter::InterpreterSources;
pub use language::Language;
pub use pool::KernelPool;
pub use session::SessionKernels;
pub use tool::{EvalOptions, EvalTool};
pub use tool_calls::{CellToolCall, ToolCallFuture, ToolCaller};
