//! Logins: tokens of an account in place of a key, how to get them and how to renew them.
//!
//! Client ids come from the user: agentd presents no other program's.

mod callback;
mod copilot;
mod description;
mod device;
mod endpoint;
mod error;
mod flow;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz;
mod login;
#[cfg(test)]
mod login_tests;
mod outside;
mod refresh;
mod stored;
#[cfg(test)]
pub(crate) mod testing;

pub use callback::{Callback, CallbackOutcome, ExpectedCallback, read_pasted, wait_for_callback};
pub(crate) use copilot::base_url as copilot_base_url;
pub(crate) use description::Description;
pub(crate) use endpoint::ask;
pub use endpoint::{EndpointError, EndpointRequest, RequestKind, address, ask_by, query};
pub use error::{LoginError, RenewError};
pub(crate) use flow::LoginRequest;
pub use flow::{Pkce, StartedLogin, random_text};
pub use login::{FinishedLogin, Logins};
pub use outside::OutsideLogin;
pub(crate) use refresh::{expires, no_way, renew};
pub use stored::StoredLogin;
pub(crate) use stored::{EARLY, now_ms};
