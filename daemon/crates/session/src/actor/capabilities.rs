//! What the files of agentd and of other tools give the session, and switching items of that on and off.

use std::sync::Arc;

use agentd_config::settings::save_listed;
use agentd_protocol::{
    capabilities::{CapabilityList, GetCapabilitiesParams, SetCapabilityParams},
    error::{ErrorCode, Failure},
};
use tokio::task::spawn_blocking;

use super::session_actor::Actor;
use crate::{context::SessionContext, reply::Reply};

/// The longest id that is taken, in bytes.
const MAX_ID: usize = 256;

impl Actor {
    /// Answers when the files were read; the session goes on meanwhile.
    pub(super) fn get_capabilities(&mut self, params: GetCapabilitiesParams, reply: Reply) {
        let (feed, context) = (self.feed.clone(), Arc::clone(&self.context));
        self.tasks.spawn(async move {
            let listed = spawn_blocking(move || context.capability_list(&params)).await;
            reply.result(&feed, listed.map_err(|error| Failure::new(ErrorCode::Internal, error.to_string())));
        });
    }

    /// The choice counts at once, also when it cannot be saved; that is then said. Answers when it is saved.
    pub(super) fn set_capability(&mut self, params: SetCapabilityParams, reply: Reply) {
        let (feed, context) = (self.feed.clone(), Arc::clone(&self.context));
        self.tasks.spawn(async move {
            let set = spawn_blocking(move || set(&context, &params)).await;
            let failed = |error: tokio::task::JoinError| Failure::new(ErrorCode::Internal, error.to_string());
            reply.result(&feed, set.unwrap_or_else(|error| Err(failed(error))));
        });
    }
}

/// Switches an item and lists what has that id.
///
/// # Errors
/// There is no such item; the choice could not be saved.
fn set(context: &SessionContext, params: &SetCapabilityParams) -> Result<CapabilityList, Failure> {
    let SetCapabilityParams { capability_id: id, enabled } = params;
    let everything = GetCapabilitiesParams { kind: None, include_shadowed: true };
    let is_there = || context.capability_list(&everything).items.iter().any(|item| item.id == *id);
    // An item whose file is gone can be switched on all the same.
    if !context.discovery.get().disables(id) && (id.len() > MAX_ID || !is_there()) {
        let failure = Failure::new(ErrorCode::NotFound, format!("There is no item \"{}\".", shown(id)));
        return Err(failure.hint("`agentctl config explain --json` lists items with their ids."));
    }
    context.discovery.set(context.discovery.get().with_item(id, *enabled));
    save_listed(&context.agent_dir, &["discovery", "disabledItems"], id, !enabled)
        .map_err(|error| Failure::new(ErrorCode::Io, error.to_string()))?;
    let mut list = context.capability_list(&everything);
    list.items.retain(|item| item.id == *id);
    list.warnings.clear();
    Ok(list)
}

fn shown(id: &str) -> String {
    id.chars().take(MAX_ID).collect()
}
