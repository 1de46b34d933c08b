//! Exit codes: the numbers with which `agentctl` and `agentd -p` end, and which end of a prompt means which. Pure.

use std::process::ExitCode;

use crate::{
    budget::BudgetReached,
    error::ErrorCode,
    event::{DecisionMaker, PermissionDecision, PermissionVerdict},
    message::{AssistantMessage, StopReason},
};

/// The text about an answer that was cut off.
const TRUNCATED: &str = "Response was truncated: the model reached its output token limit.";

/// How a program ends. Scripts rely on the numbers: they never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// 0: the model answered.
    Answered,
    /// 1: the model or the run failed, or the daemon refused to start.
    Failed,
    /// 2: the command line cannot be used.
    Usage,
    /// 3: `agentd` is missing, broke down, or was killed, or no daemon answers.
    NoDaemon,
    /// 4: the model refused to answer.
    Refused,
    /// 5: a budget ended the run, or was used up before it.
    OutOfBudget,
    /// 6: a permission was denied. Of `agentctl policy check`: the call would be.
    Denied,
    /// 7: `agentctl policy check`: the user would be asked.
    Asks,
    /// 9: the daemon is ending, and takes no new work.
    Ending,
    /// 129: SIGHUP, the terminal went away.
    HungUp,
    /// 130: SIGINT, Ctrl-C.
    Interrupted,
    /// 141: the reader of stdout stopped reading.
    OutputClosed,
    /// 143: SIGTERM.
    Terminated,
}

impl Exit {
    /// The number that the shell sees.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Answered => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::NoDaemon => 3,
            Self::Refused => 4,
            Self::OutOfBudget => 5,
            Self::Denied => 6,
            Self::Asks => 7,
            Self::Ending => 9,
            Self::HungUp => 129,
            Self::Interrupted => 130,
            Self::OutputClosed => 141,
            Self::Terminated => 143,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// The end of a program that ran a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptExit {
    /// The exit code.
    pub exit: Exit,
    /// The last words on stderr.
    pub message: Option<String>,
}

impl PromptExit {
    /// The prompt was answered.
    #[must_use]
    pub fn answered() -> Self {
        Self { exit: Exit::Answered, message: None }
    }

    /// This, unless the model answered though a call of it was denied by a rule, by the preset, or since nobody answered the question: the
    /// work may lack what was denied. A no of the user is an answer that somebody knows of.
    #[must_use]
    pub fn unless_denied(self, denied: &DeniedCalls) -> Self {
        match denied.told() {
            Some(told) if self.exit == Exit::Answered => Self { exit: Exit::Denied, message: Some(told) },
            _ => self,
        }
    }

    /// The prompt failed.
    pub fn failed(message: impl Into<String>) -> Self {
        Self { exit: Exit::Failed, message: Some(message.into()) }
    }
}

/// The calls of a prompt that were denied without a word of the user. The first ones are kept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeniedCalls {
    told: Vec<String>,
    count: usize,
}

/// Denied calls that are told one by one.
const MOST_DENIED: usize = 5;

impl DeniedCalls {
    /// Takes a decision. One about a command of a user is told to the client that sent it.
    pub fn take(&mut self, decision: &PermissionDecision) {
        let is_call = decision.tool_call_id.is_some();
        if !is_call || decision.decision != PermissionVerdict::Denied || decision.by == DecisionMaker::User {
            return;
        }
        self.count += 1;
        if self.told.len() < MOST_DENIED {
            let how = match decision.by {
                DecisionMaker::Timeout => ", and nobody answered in time",
                DecisionMaker::Nobody => ", and nobody is there to be asked",
                DecisionMaker::Policy | DecisionMaker::User => "",
            };
            self.told.push(format!("{}: {}{how}", decision.tool, decision.reason));
        }
    }

    /// The last words about them; `None` without any.
    fn told(&self) -> Option<String> {
        let left = self.count.saturating_sub(self.told.len());
        let more = if left > 0 { format!("; and {left} more") } else { String::new() };
        (self.count > 0).then(|| {
            format!("Permission denied ({}{more}). --permissions and the setting permissions say what is allowed.", self.told.join("; "))
        })
    }
}

/// The programs that run prompts. They end alike but for the words of a client, and for a stream of events, which tells failures
/// itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptProgram {
    /// `agentctl prompt`, with and without `--json`.
    Agentctl,
    /// `agentd -p`.
    AgentdText,
    /// `agentd --mode json`.
    AgentdEvents,
}

impl PromptProgram {
    /// The exit after the run; its last answer decides.
    #[must_use]
    pub fn after_run(self, last: Option<&AssistantMessage>) -> PromptExit {
        let Some(answer) = last else {
            return match self {
                Self::Agentctl => PromptExit::failed("agentctl: the run ended without an answer."),
                // A command took the prompt.
                Self::AgentdText | Self::AgentdEvents => PromptExit::answered(),
            };
        };
        let exit = match answer.code {
            Some(ErrorCode::ModelRefused) => Exit::Refused,
            Some(ErrorCode::LimitReached) => Exit::OutOfBudget,
            _ => Exit::Failed,
        };
        match (self, failure(answer), answer.stop_reason) {
            (Self::AgentdEvents, Some(_), _) if exit != Exit::Failed => PromptExit { exit, message: None },
            (Self::AgentdEvents, ..) => PromptExit::answered(),
            (_, Some(reason), _) => PromptExit { exit, message: Some(self.error(reason)) },
            (_, None, StopReason::Length) => PromptExit::failed(TRUNCATED),
            (_, None, _) => PromptExit::answered(),
        }
    }

    /// The exit after the daemon refused the prompt. A daemon that takes no new work is told from others by the client alone.
    #[must_use]
    pub fn after_refused_prompt(
        self,
        error: &str,
        hint: Option<&str>,
        code: Option<ErrorCode>,
    ) -> PromptExit {
        let hint = hint.map(|hint| format!("\n{hint}")).unwrap_or_default();
        let exit = match code {
            Some(ErrorCode::ShuttingDown) if self == Self::Agentctl => Exit::Ending,
            Some(code) if BudgetReached::is_in(code, error) => Exit::OutOfBudget,
            _ => Exit::Failed,
        };
        PromptExit { exit, message: Some(self.error(error) + &hint) }
    }

    /// `agentd -p` prints an error as pi does, without a prefix.
    fn error(self, text: &str) -> String {
        match self {
            Self::Agentctl => format!("Error: {text}"),
            Self::AgentdText | Self::AgentdEvents => text.to_owned(),
        }
    }
}

/// The reason why a message is no answer; `None` for an answer, also for one that was cut off.
#[must_use]
pub fn failure(answer: &AssistantMessage) -> Option<&str> {
    let default = match answer.stop_reason {
        StopReason::Error => "Request error",
        StopReason::Aborted => "Request aborted",
        _ => return None,
    };
    Some(answer.error_message.as_deref().filter(|text| !text.is_empty()).unwrap_or(default))
}

#[cfg(test)]
mod tests {
    use super::{
        PromptProgram::{Agentctl, AgentdEvents, AgentdText},
        *,
    };
    use crate::{
        budget::{BudgetQuantity, BudgetScope},
        error::Failure,
    };

    fn answer(stop_reason: StopReason, error: Option<&str>, code: Option<ErrorCode>) -> AssistantMessage {
        let error_message = error.map(str::to_owned);
        AssistantMessage { stop_reason, error_message, code, ..AssistantMessage::pending("a", "p", "m", 0) }
    }

    #[test]
    fn the_last_answer_decides() {
        let refusal = Some(ErrorCode::ModelRefused);
        for (stop, error, code, client, text, events) in [
            (StopReason::Stop, None, None, (0, ""), (0, ""), 0),
            (StopReason::ToolUse, None, None, (0, ""), (0, ""), 0),
            (StopReason::Length, None, None, (1, TRUNCATED), (1, TRUNCATED), 0),
            (StopReason::Error, Some("503: busy"), None, (1, "Error: 503: busy"), (1, "503: busy"), 0),
            (StopReason::Error, None, None, (1, "Error: Request error"), (1, "Request error"), 0),
            (StopReason::Aborted, Some(""), None, (1, "Error: Request aborted"), (1, "Request aborted"), 0),
            (StopReason::Error, Some("No."), refusal, (4, "Error: No."), (4, "No."), 4),
            (
                StopReason::Error,
                Some("Too much."),
                Some(ErrorCode::LimitReached),
                (5, "Error: Too much."),
                (5, "Too much."),
                5,
            ),
            (StopReason::Error, Some("?"), Some(ErrorCode::Internal), (1, "Error: ?"), (1, "?"), 0),
        ] {
            let answer = answer(stop, error, code);
            let said = |program: PromptProgram| {
                let PromptExit { exit, message } = program.after_run(Some(&answer));
                (exit.code(), message.unwrap_or_default())
            };
            assert_eq!(said(Agentctl), (client.0, client.1.to_owned()), "{answer:?}");
            assert_eq!(said(AgentdText), (text.0, text.1.to_owned()), "{answer:?}");
            assert_eq!(said(AgentdEvents), (events, String::new()), "{answer:?}");
        }
    }

    #[test]
    fn a_denied_call_is_no_success_and_a_command_of_a_user_is_no_call() {
        let decision = |call: bool, decision, by| PermissionDecision {
            tool_call_id: call.then(|| "call_1".to_owned()),
            tool: "bash".to_owned(),
            decision,
            by,
            client: None,
            reason: "so".to_owned(),
            source: None,
            rule: None,
            session_rule: None,
            waited_ms: 0,
        };
        use DecisionMaker::{Nobody, Policy, User};
        use PermissionVerdict::{Allowed, Denied};
        for (taken, exit) in [
            (decision(true, Denied, Policy), Exit::Denied),
            (decision(true, Denied, Nobody), Exit::Denied),
            (decision(true, Denied, User), Exit::Answered),
            (decision(true, Allowed, Nobody), Exit::Answered),
            (decision(false, Denied, Policy), Exit::Answered),
        ] {
            let mut denied = DeniedCalls::default();
            denied.take(&taken);
            assert_eq!(PromptExit::answered().unless_denied(&denied).exit, exit, "{taken:?}");
        }
    }

    #[test]
    fn a_run_without_an_answer_is_a_failure_for_the_client_alone() {
        assert_eq!(Agentctl.after_run(None).exit, Exit::Failed);
        assert_eq!(AgentdText.after_run(None), PromptExit::answered());
        assert_eq!(AgentdEvents.after_run(None), PromptExit::answered());
    }

    #[test]
    fn a_refused_prompt_keeps_its_hint() {
        let said = |program: PromptProgram, code| {
            let PromptExit { exit, message } =
                program.after_refused_prompt("No model", Some("Do this."), code);
            (exit.code(), message.unwrap_or_default())
        };
        let ending = Some(ErrorCode::ShuttingDown);
        assert_eq!(said(Agentctl, None), (1, "Error: No model\nDo this.".into()));
        assert_eq!(said(Agentctl, ending), (9, "Error: No model\nDo this.".into()));
        assert_eq!(said(AgentdText, ending), (1, "No model\nDo this.".into()));
        // Other limits are none of money.
        assert_eq!(said(Agentctl, Some(ErrorCode::LimitReached)).0, 1);
        let reached =
            BudgetReached { scope: BudgetScope::Day, what: BudgetQuantity::CostUsd, limit: 1.0, used: 1.0 };
        let Failure { error, hint, code } = reached.failure();
        for program in [Agentctl, AgentdText, AgentdEvents] {
            assert_eq!(program.after_refused_prompt(&error, hint.as_deref(), Some(code)).exit.code(), 5);
        }
    }
}
