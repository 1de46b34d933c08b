//! Calls the function of each command.

use agentd_protocol::{
    command::AdminCommand,
    error::{ErrorCode, Failure},
};
use agentd_session::SessionHandle;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::Context;

/// Handles a command, and gives the `data` of its answer. `session` is the one that a `login_start` is about.
///
/// # Errors
/// The failure that the client gets instead.
///
/// Cancel safety: work on a blocking thread goes on to its end; a login that nobody waits for any more is cancelled.
pub(crate) async fn answer(
    context: Context,
    command: AdminCommand,
    session: Option<SessionHandle>,
) -> Result<Box<RawValue>, Failure> {
    match command {
        AdminCommand::ListModels(params) => blocking(move || super::models::list(&context, &params)).await,
        AdminCommand::UpdateModels(params) => blocking(move || super::models::update(&context, params)).await,
        AdminCommand::Login(params) => blocking(move || super::credentials::login(&context, params)).await,
        AdminCommand::LoginStart(params) => {
            data(&super::credentials::login_start(context, params, session).await?)
        }
        AdminCommand::LoginFinish(params) => data(&super::credentials::login_finish(context, params).await?),
        AdminCommand::LoginCancel(params) => data(&super::credentials::login_cancel(&context, &params)),
        AdminCommand::Logout(params) => blocking(move || super::credentials::logout(&context, &params)).await,
        AdminCommand::GetAuthStatus(params) => {
            blocking(move || super::credentials::status(&context, &params)).await
        }
        AdminCommand::Diagnose(_) => data(&super::doctor::diagnose(context).await),
        AdminCommand::CleanOutputs(params) => {
            blocking(move || super::outputs::clean(&context, &params)).await
        }
        AdminCommand::SearchHistory(params) => {
            blocking(move || super::prompt_history::search(&context, &params)).await
        }
        AdminCommand::DeleteHistory(params) => {
            blocking(move || super::prompt_history::delete(&context, &params)).await
        }
        AdminCommand::SetupLocal(params) => data(&super::setup::local(context, params).await?),
    }
}

/// Runs blocking work on a thread of its own.
async fn blocking<T: Serialize + Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<Box<RawValue>, Failure> {
    let done = tokio::task::spawn_blocking(work).await.map_err(|error| internal(&error))?;
    data(&done?)
}

fn data<T: Serialize>(data: &T) -> Result<Box<RawValue>, Failure> {
    to_raw_value(data).map_err(|error| internal(&error))
}

fn internal(error: &dyn std::fmt::Display) -> Failure {
    Failure::new(ErrorCode::Internal, error.to_string())
}
