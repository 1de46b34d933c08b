//! The catalogue: the models of well-known providers, packed into the program, or stored by an update.

#[cfg(any(test, feature = "fuzzing"))]
pub(super) mod fuzz;
mod import;
mod packed;
mod packing;
mod stored;

pub use import::{MAX_CATALOGUE_BYTES, reset_catalogue, update_catalogue};
pub(super) use packed::Catalogue;
use packed::CatalogueProvider;
pub use stored::{CatalogueError, CatalogueFault};
pub(super) use stored::{StoredCatalogueProblem, load};
