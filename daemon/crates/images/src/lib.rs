//! Prepares images for models: of a supported kind, upright, and not too large.
//!
//! [`Images`] is the interface. It decodes off the runtime's threads, and bounds the memory of all decoding in the
//! process. This crate knows nothing of files, tools or sessions.

mod content;
mod decode;
mod encode;
mod fit;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzz;
mod images;
mod job;
mod outcome;
mod raster;
mod resize;
#[cfg(test)]
mod testing;

pub use self::{
    images::{Images, MAX_FILE_BYTES},
    outcome::{Omission, Prepared},
    resize::{ResizeLimits, Resized},
};
