//! `agentctl clean`: has agentd remove long outputs that are old, or too much together.

use agentd_protocol::storage::{CleanOutputsParams, CleanedOutputs};

use super::daemon_call;
use crate::{
    cli::CleanOptions,
    exit::{Exit, Fault, conclude},
    output,
    rpc::CleanOutputs,
};

pub(crate) fn run(options: &CleanOptions) -> Exit {
    conclude(clean(options))
}

fn clean(options: &CleanOptions) -> Result<Exit, Fault> {
    let params = CleanOutputsParams {
        older_than_days: options.older_than,
        max_bytes: options.max_size,
        dry_run: options.dry_run.then_some(true),
    };
    let cleaned = daemon_call::private_quietly::<CleanOutputs>(&params)?;
    if options.json {
        return output::print_json(&cleaned);
    }
    output::print(&text(&cleaned, options.dry_run))
}

fn text(cleaned: &CleanedOutputs, is_dry: bool) -> String {
    let CleanedOutputs { removed, removed_bytes, left, left_bytes } = cleaned;
    let would_be = if is_dry { "would be removed" } else { "removed" };
    format!("{removed} outputs ({removed_bytes} bytes) {would_be}, {left} ({left_bytes} bytes) left\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dry_run_says_that_it_is_one() {
        let cleaned = CleanedOutputs { removed: 2, removed_bytes: 30, left: 1, left_bytes: 5 };
        assert_eq!(text(&cleaned, false), "2 outputs (30 bytes) removed, 1 (5 bytes) left\n");
        assert_eq!(text(&cleaned, true), "2 outputs (30 bytes) would be removed, 1 (5 bytes) left\n");
    }
}
