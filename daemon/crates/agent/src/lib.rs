//! The agent loop: turns, tools, steering. No disk, no network, no sessions: its host supplies them.
//!
//! A *run* goes from `agent_start` to `agent_end`. It is made of *turns*: one answer of the model and the results of its
//! tool calls. [`run()`] drives the turns, [`queue`] holds what waits to be said in between, [`ToolSet`] what can be
//! called, and [`Host`] is everything that the loop does not do itself.

mod arguments;
mod execute;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzz;
pub mod hooks;
mod host;
mod images;
mod in_flight;
pub mod observer;
pub mod queue;
mod run;
mod tool;
mod turn;

pub use arguments::ArgumentSchema;
pub use host::{Host, HostError, StoppedCall, StreamInterrupt, TurnSetup, TurnSetupError};
pub use images::of_result as images_of_result;
pub use in_flight::{nothing_in_flight, serve_in_flight_queries};
pub use run::{RunOutcome, RunStart, run, user_message};
pub use tool::{
    ExecutionMode, Exposure, Invocation, PrepareFuture, RegisteredTool, Tool, ToolEnvironment, ToolError,
    ToolFuture, ToolProgress, ToolSet,
};
