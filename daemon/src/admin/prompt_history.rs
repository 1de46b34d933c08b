//! `search_history` and `delete_history`: the prompts that the user has sent.

use agentd_prompt_history::{DeleteTarget, HistoryFile, HistoryQuery};
use agentd_protocol::{
    error::{ErrorCode, Failure},
    prompt_history::{DeleteHistoryParams, DeletedHistory, PromptHistoryList, SearchHistoryParams},
};

use super::Context;

/// The prompts of an answer where the client does not say.
const USUAL: u32 = 50;

/// The most prompts of an answer.
const MOST: u32 = 1_000;

/// Handles `search_history`. Blocks.
///
/// # Errors
/// When the history cannot be read.
pub(super) fn search(context: &Context, params: &SearchHistoryParams) -> Result<PromptHistoryList, Failure> {
    let query = HistoryQuery {
        words: params.query.iter().flat_map(|query| query.split_whitespace()).map(str::to_owned).collect(),
        cwd: params.cwd.clone(),
        limit: params.limit.unwrap_or(USUAL).min(MOST) as usize,
    };
    let entries = file(context)?.search(&query).map_err(|error| failed(&error))?;
    Ok(PromptHistoryList { entries })
}

/// Handles `delete_history`. Blocks.
///
/// # Errors
/// When neither or both of the fields are given, no prompt has the id, or the history cannot be written.
pub(super) fn delete(context: &Context, params: &DeleteHistoryParams) -> Result<DeletedHistory, Failure> {
    let target = match (&params.entry_id, params.all.unwrap_or(false)) {
        (Some(id), false) => DeleteTarget::Id(id.clone()),
        (None, true) => DeleteTarget::All,
        _ => {
            let text = "Invalid field \"entryId\": expected either an id, or \"all\": true";
            return Err(Failure::new(ErrorCode::InvalidField, text));
        }
    };
    let deleted = file(context)?.delete(&target).map_err(|error| failed(&error))?;
    match target {
        DeleteTarget::Id(id) if deleted == 0 => {
            let text = format!("No prompt has the id {id}.");
            Err(Failure::new(ErrorCode::NotFound, text).hint("search_history lists prompts with their ids."))
        }
        _ => Ok(DeletedHistory { deleted: deleted as u64 }),
    }
}

fn file(context: &Context) -> Result<HistoryFile, Failure> {
    let agent_dir = context.agent_dir().map_err(|error| failed(&error))?;
    Ok(HistoryFile::of_agent_dir(agent_dir.path()))
}

fn failed(error: &dyn std::fmt::Display) -> Failure {
    Failure::new(ErrorCode::Io, error.to_string())
}
