//! The loop against a host, a model and tools made of tables.

mod fakes;
mod loop_order;
mod tools;
