//! Limits of a subscription, which end when their period does, and not in a moment.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;

/// What the server calls these limits.
const CODES: [&str; 2] = ["usage_limit_reached", "usage_not_included"];

/// What a refusal means to the user (the text is the reference's); `None` for every other one, which too many requests in a
/// short time are as well.
pub(super) fn explain(status: u16, body: &str) -> Option<String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    explain_at(status, body, now)
}

/// The same at a time in seconds since 1970.
fn explain_at(status: u16, body: &str, now: u64) -> Option<String> {
    let body: Value = serde_json::from_str(body).ok()?;
    let error = body.get("error")?;
    let text = |name: &str| error.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let number = |name: &str| error.get(name).and_then(Value::as_f64).filter(|number| *number >= 0.0);
    let code = text("code").or_else(|| text("type")).unwrap_or_default().to_ascii_lowercase();
    let plan = text("plan_type").map(str::to_ascii_lowercase);
    let seconds =
        number("resets_at").map(|at| (at - now as f64).max(0.0)).or_else(|| number("resets_in_seconds"));
    let is_limit = CODES.contains(&code.as_str()) || (status == 429 && (plan.is_some() || seconds.is_some()));
    is_limit.then(|| {
        let plan = plan.map(|plan| format!(" ({plan} plan)")).unwrap_or_default();
        let minutes = seconds.map(|seconds| (seconds / 60.0).round());
        let again = minutes.map(|minutes| format!(" Try again in ~{minutes} min.")).unwrap_or_default();
        format!("You have hit your ChatGPT usage limit{plan}.{again}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::{FailureKind, classify_message};

    fn check(status: u16, body: &str, expected: Option<&str>) {
        let found = explain_at(status, body, 1_000_000);
        assert_eq!(found.as_deref(), expected, "{body}");
        if let Some(text) = found {
            assert_eq!(classify_message("openai-codex", &text), FailureKind::Fatal, "{text}");
        }
    }

    #[test]
    fn limits_of_the_plan_are_told_with_their_end() {
        check(
            429,
            r#"{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached","plan_type":"Plus",
                "resets_at":1000420,"resets_in_seconds":420}}"#,
            Some("You have hit your ChatGPT usage limit (plus plan). Try again in ~7 min."),
        );
        check(
            429,
            r#"{"error":{"type":"usage_limit_reached","resets_in_seconds":90}}"#,
            Some("You have hit your ChatGPT usage limit. Try again in ~2 min."),
        );
        check(
            403,
            r#"{"error":{"code":"USAGE_NOT_INCLUDED","plan_type":"free","resets_at":5}}"#,
            Some("You have hit your ChatGPT usage limit (free plan). Try again in ~0 min."),
        );
        check(
            429,
            r#"{"error":{"plan_type":"pro"}}"#,
            Some("You have hit your ChatGPT usage limit (pro plan)."),
        );
    }

    #[test]
    fn limits_of_the_moment_stay_what_they_are() {
        check(429, r#"{"error":{"code":"rate_limit_exceeded","message":"Rate limit reached"}}"#, None);
        check(429, r#"{"detail":"Too many requests"}"#, None);
        check(429, "<html>", None);
        check(400, r#"{"error":{"code":"invalid","plan_type":"plus"}}"#, None);
        check(429, r#"{"error":null}"#, None);
    }
}
