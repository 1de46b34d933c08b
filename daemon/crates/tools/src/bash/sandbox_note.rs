//! Tells the model when a command may have failed because of the sandbox, and what can be done.

use agentd_protocol::{message::ContentBlock, tool::ToolResult};
use agentd_sandbox::SandboxPolicy;

/// What programs say when the sandbox refuses them something, in small letters: the texts of the system's errors, which some runtimes
/// begin with a small letter, and the code words that others print.
const REFUSALS: [&str; 10] = [
    "read-only file system",
    "permission denied",
    "operation not permitted",
    "device or resource busy",
    "invalid cross-device link",
    "function not implemented",
    "bad system call",
    "erofs",
    "eacces",
    "eperm",
];

/// What they say when there is no network.
const NO_NETWORK: [&str; 10] = [
    "resolve host",
    "couldn't connect",
    "failed to connect",
    "name or service not known",
    "failure in name resolution",
    "failure resolving",
    "network is unreachable",
    "unable to access",
    "eai_again",
    "enetunreach",
];

/// Adds to the result of a failed command what the sandbox did not allow, if its output looks as if that was the reason.
pub(super) fn explain(result: &mut ToolResult, policy: &SandboxPolicy) {
    if result.is_error != Some(true) {
        return;
    }
    let Some(ContentBlock::Text { text, .. }) = result.content.last_mut() else { return };
    let small = text.to_ascii_lowercase();
    let says = |texts: &[&str]| texts.iter().any(|refusal| small.contains(refusal));
    if says(&REFUSALS) || (!policy.network && says(&NO_NETWORK)) {
        let note = note(policy);
        text.push_str(&note);
    }
}

fn note(policy: &SandboxPolicy) -> String {
    let mut limits = format!("it could write only below {}", policy.writable_text());
    limits.push_str("; .git/hooks, .git/config, .agentd and .pi there are read-only");
    if !policy.network {
        limits.push_str("; it had no network");
    }
    if !policy.unix_sockets {
        limits.push_str("; local sockets, tracing of processes, namespaces and io_uring are refused");
    }
    format!(
        "\n\n[Sandbox: {limits}. If the command failed because of that, do not look for a way around: write elsewhere, or repeat it \
         with outsideSandbox, which the user is asked about. The user can allow more with --writable-root DIR, --network on, the \
         setting sandbox, or --sandbox off.]"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explained(text: &str, is_error: Option<bool>, network: bool) -> String {
        let mut result = ToolResult { is_error, ..ToolResult::text(text) };
        let policy = SandboxPolicy { writable: vec!["/w".into()], network, ..SandboxPolicy::default() };
        explain(&mut result, &policy);
        result.content[0].as_text().unwrap().to_owned()
    }

    #[test]
    fn only_failures_that_look_like_the_sandbox_are_explained() {
        let refused = "touch: cannot touch '/etc/x': Read-only file system";
        let text = explained(refused, Some(true), true);
        assert!(
            text.contains("[Sandbox: it could write only below /w;") && text.contains("--writable-root"),
            "{text}"
        );
        assert!(!text.contains("no network"), "{text}");
        for refused in ["dial unix: socket: operation not permitted", "Error: EROFS, open", "Bad system call"]
        {
            assert!(explained(refused, Some(true), true).contains("[Sandbox: "), "{refused}");
        }
        assert_eq!(explained(refused, None, true), refused);
        assert_eq!(explained("error: test failed", Some(true), false), "error: test failed");
        for offline in
            ["curl: (6) Could not resolve host: x", "Temporary failure resolving 'x'", "errno EAI_AGAIN"]
        {
            assert_eq!(explained(offline, Some(true), true), offline);
            assert!(explained(offline, Some(true), false).contains("it had no network"), "{offline}");
        }
    }
}
