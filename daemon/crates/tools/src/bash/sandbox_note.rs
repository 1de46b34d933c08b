//! Tells the model when a command may have failed because of the sandbox, and what can be done.

use agentd_protocol::{message::ContentBlock, tool::ToolResult};
use agentd_sandbox::SandboxPolicy;

/// What programs say when the sandbox refuses them something: the texts of the system's errors, and the code words that runtimes print.
const REFUSALS: [&str; 9] = [
    "Read-only file system",
    "Permission denied",
    "Operation not permitted",
    "Device or resource busy",
    "Invalid cross-device link",
    "Function not implemented",
    "EROFS",
    "EACCES",
    "EPERM",
];

/// What they say when there is no network.
const NO_NETWORK: [&str; 9] = [
    "Could not resolve",
    "Couldn't connect",
    "Failed to connect",
    "Name or service not known",
    "Temporary failure in name resolution",
    "Network is unreachable",
    "unable to access",
    "EAI_AGAIN",
    "ENETUNREACH",
];

/// Adds to the result of a failed command what the sandbox did not allow, if its output looks as if that was the reason.
pub(super) fn explain(result: &mut ToolResult, policy: &SandboxPolicy) {
    if result.is_error != Some(true) {
        return;
    }
    let Some(ContentBlock::Text { text, .. }) = result.content.last_mut() else { return };
    let says = |texts: &[&str]| texts.iter().any(|refusal| text.contains(refusal));
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
        assert_eq!(explained(refused, None, true), refused);
        assert_eq!(explained("error: test failed", Some(true), false), "error: test failed");
        let offline = "curl: (6) Could not resolve host: example.org";
        assert_eq!(explained(offline, Some(true), true), offline);
        assert!(explained(offline, Some(true), false).contains("it had no network"));
    }
}
