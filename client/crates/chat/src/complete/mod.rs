//! What can be put in at the cursor: commands behind a `/`, files behind an `@`.

mod files;
mod offers;

pub(crate) use self::{
    files::find,
    offers::{Completions, Offer, Wanted, wanted},
};
