//! How long a command may take.

use std::time::Duration;

use agentd_agent::ToolError;

/// The longest timeout: the most milliseconds of JavaScript's timers, which pi uses.
pub(crate) const MAX_TIMEOUT: Duration = Duration::from_millis(2_147_483_647);

/// A timeout.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BashTimeout {
    pub(crate) time: Duration,
    /// The same as the model wrote it.
    seconds: f64,
    /// Whether it is that of the setting, and not of the call.
    is_default: bool,
}

impl BashTimeout {
    /// Of a call, in seconds.
    ///
    /// # Errors
    /// pi's texts.
    pub(crate) fn of_call(seconds: f64) -> Result<Self, ToolError> {
        // Written so that NaN is refused, too.
        if !(seconds > 0.0 && seconds.is_finite()) {
            return Err(ToolError("Invalid timeout: must be a finite number of seconds".into()));
        }
        match Duration::try_from_secs_f64(seconds) {
            Ok(time) if time <= MAX_TIMEOUT => Ok(Self { time, seconds, is_default: false }),
            Ok(_) | Err(_) => Err(ToolError("Invalid timeout: maximum is 2147483.647 seconds".into())),
        }
    }

    /// That of the setting.
    pub(crate) fn by_default(time: Duration) -> Self {
        Self { time, seconds: time.as_secs_f64(), is_default: true }
    }

    /// What the model is told of a command that took longer; pi's text for a timeout of the call.
    pub(super) fn reached(&self) -> String {
        let text = format!("Command timed out after {} seconds", self.seconds);
        if self.is_default {
            text + ", the default here: the argument timeout gives a command more time"
        } else {
            text
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_have_bounds() {
        let message =
            |seconds| BashTimeout::of_call(seconds).map(|timeout| timeout.time).map_err(|error| error.0);
        assert_eq!(message(0.5), Ok(Duration::from_millis(500)));
        assert_eq!(message(2_147_483.647), Ok(MAX_TIMEOUT));
        let maximum = Err("Invalid timeout: maximum is 2147483.647 seconds".into());
        assert_eq!(message(2_147_483.648), maximum);
        assert_eq!(message(1e300), maximum);
        for seconds in [0.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(message(seconds), Err("Invalid timeout: must be a finite number of seconds".into()));
        }
    }

    #[test]
    fn the_default_is_told_from_that_of_a_call() {
        let text = |timeout: BashTimeout| timeout.reached();
        assert_eq!(text(BashTimeout::of_call(1.5).unwrap()), "Command timed out after 1.5 seconds");
        let default = text(BashTimeout::by_default(Duration::from_millis(90_000)));
        assert!(default.starts_with("Command timed out after 90 seconds, the default here: "), "{default}");
    }
}
