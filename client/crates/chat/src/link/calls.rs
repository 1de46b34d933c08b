//! Calls about the session, one by one.

use std::path::PathBuf;

use agentd_protocol::{
    agent_mode::SetModeParams,
    checkpoints::{DiffCheckpointParams, DiffSince, RestoreCheckpointParams},
    command::{
        CompactParams, ExportHtmlParams, GetEntriesParams, NavigateTreeParams, NoParams, SetModelParams,
        SetSessionNameParams, SetThinkingLevelParams,
    },
    daemon::ListSessionsParams,
    model_list::ListModelsParams,
    permissions::SetPermissionsParams,
    prompt_history::SearchHistoryParams,
    tool_list::SetActiveToolsParams,
};
use agentd_rpc as rpc;
use agentd_rpc::{CallError, Client};

use super::attachments::attach;
use crate::app::{Call, CallFailure, Reply};

/// How many earlier prompts are taken.
const MOST_PROMPTS: u32 = 1_000;

/// How many models a list has of those without a key is not limited; sessions are.
const MOST_SESSIONS: u32 = 200;

impl From<CallError> for CallFailure {
    fn from(error: CallError) -> Self {
        let is_lost = matches!(error, CallError::Ended { .. } | CallError::TurnedAway { .. });
        match error {
            CallError::Refused { error, code, hint } => Self { error, code, hint, is_lost },
            CallError::TurnedAway { error, hint } => Self { error, code: None, hint, is_lost },
            CallError::Ended { .. } | CallError::Unreadable { .. } => {
                Self { error: error.to_string(), code: None, hint: None, is_lost }
            }
        }
    }
}

/// Makes a call; gives its answer, or why there is none.
pub(super) async fn perform(client: &Client, session: &str, folder: PathBuf, call: Call) -> Reply {
    if let Call::Prompt(params) = call {
        let wanted = params.clone();
        let whole = match tokio::task::spawn_blocking(move || attach(&wanted, &folder)).await {
            Ok(Ok(whole)) => whole,
            Ok(Err(failure)) => return Reply::PromptFailed(params, failure),
            Err(error) => {
                let failure =
                    CallFailure { error: error.to_string(), hint: None, code: None, is_lost: false };
                return Reply::PromptFailed(params, failure);
            }
        };
        return match client.call_in::<rpc::Prompt>(session, &whole).await {
            Ok(_) => Reply::Accepted(params.request_key),
            Err(error) => Reply::PromptFailed(params, error.into()),
        };
    }
    answered(client, session, folder, call).await.unwrap_or_else(|error| Reply::Failed(error.into()))
}

async fn answered(client: &Client, session: &str, folder: PathBuf, call: Call) -> Result<Reply, CallError> {
    let none = NoParams {};
    Ok(match call {
        Call::Prompt(params) => {
            client.call_in::<rpc::Prompt>(session, &params).await?;
            Reply::Accepted(params.request_key)
        }
        Call::Abort => Reply::Aborted(client.call_in::<rpc::Abort>(session, &none).await?),
        Call::ClearQueue => Reply::Cleared(client.call_in::<rpc::ClearQueue>(session, &none).await?),
        Call::ListModels => {
            let params = ListModelsParams { all: Some(true), ..ListModelsParams::default() };
            Reply::Models(client.call_in::<rpc::ListModels>(session, &params).await?)
        }
        Call::SetModel { provider, id } => {
            let params = SetModelParams { provider: Some(provider), model_id: Some(id) };
            Reply::ModelSet(Box::new(client.call_in::<rpc::SetModel>(session, &params).await?))
        }
        Call::ListLevels => {
            Reply::Levels(client.call_in::<rpc::GetAvailableThinkingLevels>(session, &none).await?.levels)
        }
        Call::SetLevel(level) => {
            let params = SetThinkingLevelParams { level: level.as_str().to_owned() };
            client.call_in::<rpc::SetThinkingLevel>(session, &params).await?;
            Reply::LevelSet(client.call_in::<rpc::GetState>(session, &none).await?.thinking_level)
        }
        Call::Compact(custom_instructions) => {
            client.call_in::<rpc::Compact>(session, &CompactParams { custom_instructions }).await?;
            Reply::Compacted
        }
        Call::Rename(name) => {
            let params = SetSessionNameParams { name: name.clone() };
            client.call_in::<rpc::SetSessionName>(session, &params).await?;
            Reply::Renamed(name)
        }
        Call::Stats => Reply::Stats(client.call_in::<rpc::GetSessionStats>(session, &none).await?),
        Call::Commands => Reply::Commands(client.call_in::<rpc::GetCommands>(session, &none).await?.commands),
        Call::History => {
            let params = SearchHistoryParams { limit: Some(MOST_PROMPTS), ..SearchHistoryParams::default() };
            // Without them, those of this session are there all the same.
            let found = client.call::<rpc::SearchHistory>(&params).await.unwrap_or_default();
            Reply::History(found.entries.into_iter().rev().map(|entry| entry.prompt).collect())
        }
        Call::Usage => Reply::Usage(client.call_in::<rpc::GetSessionStats>(session, &none).await?),
        Call::Tree => {
            Reply::Tree(client.call_in::<rpc::GetEntries>(session, &GetEntriesParams::default()).await?)
        }
        Call::Navigate(entry_id) => {
            let params = NavigateTreeParams { entry_id, ..NavigateTreeParams::default() };
            let navigated = client.call_in::<rpc::NavigateTree>(session, &params).await?;
            let messages = client.call_in::<rpc::GetMessages>(session, &none).await?.messages;
            Reply::Navigated(Box::new(navigated), messages)
        }
        Call::Tools => Reply::Tools(client.call_in::<rpc::GetTools>(session, &none).await?),
        Call::SetTools(tools) => {
            let params = SetActiveToolsParams { tools };
            Reply::ToolsSet(client.call_in::<rpc::SetActiveTools>(session, &params).await?)
        }
        Call::SetPermissions(preset) => {
            let params = SetPermissionsParams { preset, ..SetPermissionsParams::default() };
            Reply::Permissions(Some(client.call_in::<rpc::SetPermissions>(session, &params).await?))
        }
        Call::SetMode(mode) => {
            let params = SetModeParams { mode, client: String::new() };
            Reply::Mode(client.call_in::<rpc::SetMode>(session, &params).await?.mode)
        }
        Call::Answer(answer) => {
            client.call_in::<rpc::PermissionResponse>(session, &answer).await?;
            Reply::Answered
        }
        Call::AnswerDialog(answer) => {
            client.answer_question(&answer).await?;
            Reply::Answered
        }
        Call::Diff { since_start } => {
            let since = Some(if since_start { DiffSince::Session } else { DiffSince::Prompt });
            let params = DiffCheckpointParams { since, ..DiffCheckpointParams::default() };
            Reply::Diff(client.call_in::<rpc::DiffCheckpoint>(session, &params).await?)
        }
        Call::Restore(step) => {
            let params = RestoreCheckpointParams { step: Some(step), ..RestoreCheckpointParams::default() };
            Reply::Restored(step, client.call_in::<rpc::RestoreCheckpoint>(session, &params).await?)
        }
        Call::Export(output_path) => {
            let exported =
                client.call_in::<rpc::ExportHtml>(session, &ExportHtmlParams { output_path }).await?;
            Reply::Exported(folder.join(exported.path).display().to_string())
        }
        Call::ListSessions { of_folder } => {
            let cwd = of_folder.then(|| folder.display().to_string());
            let params =
                ListSessionsParams { cwd, limit: Some(MOST_SESSIONS), ..ListSessionsParams::default() };
            let sessions = client.call::<rpc::ListSessions>(&params).await?.sessions;
            Reply::Sessions { sessions, of_folder }
        }
        Call::Bash(params) => Reply::Ran(client.call_in::<rpc::Bash>(session, &params).await?),
        Call::AbortBash => {
            client.call_in::<rpc::AbortBash>(session, &none).await?;
            Reply::Answered
        }
    })
}
