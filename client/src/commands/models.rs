//! `agentctl models`: which models there are, what they cost, and which have a key.

mod footer;
mod table;
mod update;

use agentd_protocol::model_list::ListModelsParams;

use super::one_call;
use crate::{
    cli::ModelsOptions,
    exit::{Exit, Fault, tell},
    render::Screen,
    rpc::ListModels,
};

/// Asks agentd, and prints the table or the JSON.
pub(crate) fn run(options: &ModelsOptions) -> Exit {
    one_call::conclude(match update::params(options) {
        Ok(Some(params)) => update::run(&params, options.json),
        Ok(None) => list(options),
        Err(fault) => Err(fault),
    })
}

fn list(options: &ModelsOptions) -> Result<Exit, Fault> {
    let pattern = options.pattern.clone();
    let params = ListModelsParams { pattern, all: options.all.then_some(true) };
    let list = one_call::call_quietly::<ListModels>(&params)?;
    for warning in &list.warnings {
        tell(&format!("Warning: {warning}"));
    }
    let printed = if options.json {
        one_call::print_json(&list)?
    } else {
        let printed = one_call::print(&table::table(&list, Screen::of_stdout().width))?;
        tell(&footer::footer(&list, &params));
        printed
    };
    Ok(match printed {
        Exit::Answered if list.models.is_empty() => Exit::Failed,
        printed => printed,
    })
}
