//! One call to whoever answers: the daemon, where one runs, else one of our own.

use super::{daemon, one_call};
use crate::{connect::socket::Endpoint, exit::Fault, rpc::Call};

/// Makes one call.
///
/// # Errors
/// As [`one_call::call`].
pub(crate) fn call<C: Call>(params: &C::Params) -> Result<C::Data, Fault> {
    let answer = daemon::block_on(async {
        match Endpoint::find()?.connect().await? {
            Some(connection) => {
                let answer = connection.client.call::<C>(params).await;
                answer.map(Some).map_err(|error| one_call::fault(&error))
            }
            None => Ok(None),
        }
    })?;
    match answer {
        Some(data) => Ok(data),
        None => one_call::call::<C>(params),
    }
}
