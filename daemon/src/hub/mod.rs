//! The live sessions of the daemon.

mod registry;

pub use registry::Registry;
