//! `agentctl usage`.

use agentd_protocol::usage_report::UsageGrouping;
use clap::{Args, builder::PossibleValuesParser, builder::TypedValueParser as _};

const USAGE_HELP: &str = "\
Examples:
  agentctl usage                          day by day
  agentctl usage --by model --since 30d
  agentctl usage --by project --json

The sums come from the session files, of all programs that write them. What a fork took over is counted to the session that
paid for it. Days are those of the local time zone.

Exit codes:
  0    done
  1    the sessions cannot be read
  2    the command line cannot be used
  3    agentd is missing, or broke down";

/// The flags of `agentctl usage`.
#[derive(Debug, Clone, Args)]
#[command(after_help = USAGE_HELP)]
pub(crate) struct UsageOptions {
    /// What the sums are made by
    #[arg(long, value_name = "WHAT", default_value = "day",
          value_parser = PossibleValuesParser::new(["day", "model", "session", "project", "agent"]).map(|name| grouping(&name)))]
    pub(crate) by: UsageGrouping,

    /// Count the last days alone, today included: 7d, 4w
    #[arg(long, value_name = "TIME", value_parser = days)]
    pub(crate) since: Option<u32>,

    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

fn grouping(name: &str) -> UsageGrouping {
    [UsageGrouping::Model, UsageGrouping::Session, UsageGrouping::Project, UsageGrouping::Agent]
        .into_iter()
        .find(|by| by.as_str() == name)
        .unwrap_or_default()
}

/// A number of days.
fn days(text: &str) -> Result<u32, String> {
    let read = || {
        let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
        let factor = match unit {
            "d" => 1,
            "w" => 7,
            _ => return None,
        };
        let is_plain = number.bytes().all(|byte| byte.is_ascii_digit());
        let days = number.parse::<u32>().ok().filter(|_| is_plain)?.checked_mul(factor)?;
        (1..=36_500).contains(&days).then_some(days)
    };
    read().ok_or_else(|| "expected a number of days or weeks, such as 7d or 4w".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_days_or_weeks() {
        assert_eq!((days("7d"), days("4w"), days("1d")), (Ok(7), Ok(28), Ok(1)));
        for bad in ["", "7", "d", "0d", "-1d", "+1d", "1h", "7 d", "ä", "99999999999w", "40000d"] {
            assert!(days(bad).is_err(), "{bad}");
        }
        assert_eq!(grouping("project"), UsageGrouping::Project);
    }
}
