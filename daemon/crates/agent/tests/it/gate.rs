//! The order of the gate: first hooks, permissions, other hooks; and a question that a first hook wants.

use std::{path::Path, sync::Arc};

use agentd_agent::hooks::{Action, GateDecision, HookFuture, HookGate, HookVerdict, Hooks, Requester};
use agentd_protocol::tool::ToolResult;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// Answers always the same, and says what it was shown as its error if it has no answer.
struct Fixed {
    verdict: Option<HookVerdict>,
    idle: bool,
    suffix: &'static str,
}

impl Fixed {
    fn says(verdict: HookVerdict) -> Arc<Self> {
        Arc::new(Self { verdict: Some(verdict), idle: false, suffix: "" })
    }

    /// Blocks with the arguments and the wish for a question.
    fn shows(idle: bool) -> Arc<Self> {
        Arc::new(Self { verdict: None, idle, suffix: "" })
    }

    fn adds(suffix: &'static str) -> Arc<Self> {
        Arc::new(Self { verdict: Some(HookVerdict::Run), idle: false, suffix })
    }
}

impl Hooks for Fixed {
    fn is_idle(&self) -> bool {
        self.idle
    }

    fn before<'a>(&'a self, action: &'a Action<'a>, _: &'a CancellationToken) -> HookFuture<'a, HookVerdict> {
        let shown = format!("{} {:?}", action.arguments, action.must_ask);
        Box::pin(async move { self.verdict.clone().ok_or(shown) })
    }

    fn after<'a>(
        &'a self,
        _: &'a Action<'a>,
        result: ToolResult,
        failed: bool,
        _: &'a CancellationToken,
    ) -> HookFuture<'a, (ToolResult, bool)> {
        let text = format!("{}{}", result.content[0].as_text().unwrap(), self.suffix);
        Box::pin(async move { Ok((ToolResult::text(text), failed)) })
    }
}

fn action(arguments: &Value) -> Action<'_> {
    Action {
        by: Requester::Model { call_id: "1" },
        tool: "bash",
        arguments,
        cwd: Path::new("/"),
        is_trusted_read: false,
        declares_reading: false,
        schema: None,
        must_ask: None,
    }
}

async fn decide(gate: HookGate) -> GateDecision {
    gate.before(&action(&json!({"n": 1})), &CancellationToken::new()).await
}

fn blocked(reason: &str) -> GateDecision {
    GateDecision::Blocked { reason: reason.to_owned(), terminate: false }
}

fn ask(arguments: Option<Value>) -> HookVerdict {
    HookVerdict::Ask { reason: "why".to_owned(), arguments }
}

fn gate(first: Arc<Fixed>, permissions: Arc<Fixed>) -> HookGate {
    HookGate::default().after_first(first).after_permissions(permissions)
}

#[tokio::test]
async fn permissions_see_what_first_hooks_change() {
    let first = || Fixed::says(HookVerdict::RunWith { arguments: json!({"n": 2}) });
    assert_eq!(decide(gate(first(), Fixed::shows(false))).await, blocked("{\"n\":2} None"));
    let free = decide(gate(first(), Fixed::says(HookVerdict::Run))).await;
    assert_eq!(free, GateDecision::Free { arguments: Some(json!({"n": 2})) });
}

#[tokio::test]
async fn a_question_goes_to_the_permissions_even_if_they_are_idle() {
    let asks = || Fixed::says(ask(Some(json!({"n": 3}))));
    assert_eq!(decide(gate(asks(), Fixed::shows(true))).await, blocked("{\"n\":3} Some(\"why\")"));
    let answered = decide(gate(asks(), Fixed::says(HookVerdict::Run))).await;
    assert_eq!(answered, GateDecision::Free { arguments: Some(json!({"n": 3})) });
    // Without permissions nobody can be asked; hooks after them cannot have it asked either.
    let nobody = "It needs the user's permission, and nobody can be asked here: why";
    assert_eq!(decide(HookGate::default().after_first(asks())).await, blocked(nobody));
    assert_eq!(decide(HookGate::new(asks())).await, blocked(nobody));
    // The question is over once it is answered.
    let after = gate(asks(), Fixed::says(HookVerdict::Run)).with_hooks(Fixed::shows(false));
    assert_eq!(decide(after).await, blocked("{\"n\":3} None"));
}

#[tokio::test]
async fn results_pass_first_hooks_and_then_the_others() {
    let gate = HookGate::new(Fixed::adds("b")).after_first(Fixed::adds("a"));
    let (arguments, never) = (json!({}), CancellationToken::new());
    let passed = gate.after(&action(&arguments), ToolResult::text("x"), false, &never).await;
    assert_eq!(passed, Some(Ok((ToolResult::text("xab"), false))));
    assert!(HookGate::default().after_first(Fixed::shows(true)).is_open());
}
