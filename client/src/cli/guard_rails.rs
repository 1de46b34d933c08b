//! The flags that limit what a run may do and spend.

use agentd_protocol::settings::{BudgetLimits, PermissionPreset, parse_count, parse_dollars, parse_duration};
use clap::{Args, builder::PossibleValuesParser};

/// The heading of these flags in `--help`.
const HEADING: &str = "Guard rails";

/// The flags of `agentctl prompt` that limit its run.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct GuardRailOptions {
    /// What tools may do where no rule says so (docs/permissions.md); exit code 6 when something was denied
    #[arg(long, value_name = "PRESET", value_parser = PossibleValuesParser::new(PermissionPreset::ALL.map(PermissionPreset::as_str)))]
    pub(crate) permissions: Option<String>,

    /// A file of rules besides those of the settings: {"rules": […]}
    #[arg(long, value_name = "FILE")]
    pub(crate) permission_rules: Option<String>,

    /// What commands and file tools may write (docs/sandbox.md)
    #[arg(long, value_name = "MODE", value_parser = PossibleValuesParser::new(["off", "workspace-write", "read-only"]))]
    pub(crate) sandbox: Option<String>,

    /// Whether commands in the sandbox may use the network
    #[arg(long, value_name = "on|off", value_parser = PossibleValuesParser::new(["on", "off"]))]
    pub(crate) network: Option<String>,

    /// A folder that may be written in the sandbox, too; repeatable
    #[arg(long, value_name = "DIR")]
    pub(crate) writable_root: Vec<String>,

    /// End the run before its model calls cost more than USD, such as 0.50 (exit code 5; docs/budgets.md)
    #[arg(long, value_name = "USD", value_parser = parse_dollars)]
    pub(crate) max_cost: Option<f64>,

    /// End the run before its model calls take more than N tokens, input and output
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub(crate) max_tokens: Option<u64>,

    /// End the run after N answers of the model
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub(crate) max_turns: Option<u64>,

    /// End the run after N tool calls
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub(crate) max_tool_calls: Option<u64>,

    /// End the run after this time: 90s, 10m, 1h30m
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) timeout: Option<u64>,

    /// Keep what tool calls change, so that agentctl undo can undo it (docs/undo.md)
    #[arg(long, value_name = "on|off", value_parser = PossibleValuesParser::new(["on", "off"]))]
    pub(crate) undo: Option<String>,
}

impl GuardRailOptions {
    /// The limits of the run; `None` where no flag sets one.
    pub(crate) fn budget(&self) -> Option<BudgetLimits> {
        let limits = BudgetLimits {
            cost_usd: self.max_cost,
            tokens: self.max_tokens,
            turns: self.max_turns,
            tool_calls: self.max_tool_calls,
            seconds: self.timeout,
        };
        (!limits.is_empty()).then_some(limits)
    }
}
