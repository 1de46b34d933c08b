//! Logins: tokens of an account in the place of a key, how they are had, and how they are renewed.
//!
//! Client ids come from the user: agentd presents no other program's.

mod callback;
mod copilot;
mod description;
mod device;
mod endpoint;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz;
mod login;
#[cfg(test)]
mod login_tests;
mod pkce;
mod refresh;
mod stored;
#[cfg(test)]
pub(crate) mod testing;

pub(crate) use copilot::base_url as copilot_base_url;
pub(crate) use description::Description;
pub use endpoint::EndpointError;
pub(crate) use endpoint::{Ask, What, ask};
pub(crate) use login::Begin;
pub use login::{FinishedLogin, LoginError, Logins, StartedLogin};
pub use refresh::RenewError;
pub(crate) use refresh::{expires, no_way, renew};
pub use stored::StoredLogin;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A token that ends sooner is renewed before it is used.
pub(crate) const EARLY: Duration = Duration::from_secs(5 * 60);

/// The time as entries have it: milliseconds since 1970.
pub(crate) fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}
