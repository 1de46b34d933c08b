//! Which model a session asks, how hard it thinks, and what happens when it fails.

mod choice;
mod fallback;
mod of_extensions;
mod provider_requests;
mod retry;

pub(crate) use self::{
    choice::{Choice, Chooser},
    fallback::{FallbackChain, Substitute, check_names, reason},
    of_extensions::{UnusableModels, extend_models, spoken_apis, unmodified_models},
    provider_requests::{credential_renewer, stall_event},
    retry::{Retries, RetryPolicy},
};
