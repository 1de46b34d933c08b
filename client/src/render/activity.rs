//! What a session is doing, in a few words.

use std::time::Duration;

use agentd_protocol::daemon::{ActivityState, RunningWork, SessionActivity};

use super::{cut, one_line};

/// The columns of a command that are shown beside others.
const SUBJECT: usize = 40;

/// Such as ``running `cargo test` 12 s`` or `waits for the user`. `now_ms` is the Unix time in milliseconds.
pub(crate) fn activity_text(activity: &SessionActivity, now_ms: i64) -> String {
    let what = match activity.state {
        ActivityState::Idle if activity.commands > 0 => return background(activity.commands),
        ActivityState::Idle => return "idle".into(),
        ActivityState::Waiting => "waits for the model".into(),
        ActivityState::Thinking => "thinking".into(),
        ActivityState::Answering => "answering".into(),
        ActivityState::Running => running(&activity.running),
        ActivityState::Asking => "waits for the user".into(),
        ActivityState::Compacting => "compacting".into(),
        ActivityState::Retrying => "pauses before a retry".into(),
    };
    match activity.since_ms.map(|since| seconds_since(since, now_ms)) {
        Some(seconds) if seconds > 0 => format!("{what} {}", short_time(seconds)),
        _ => what,
    }
}

/// The whole seconds since a Unix time in milliseconds; 0 for a time that is yet to come.
fn seconds_since(since_ms: i64, now_ms: i64) -> u64 {
    u64::try_from(now_ms.saturating_sub(since_ms)).unwrap_or_default() / 1_000
}

fn background(commands: u32) -> String {
    let noun = if commands == 1 { "command" } else { "commands" };
    format!("idle, {commands} {noun} in the background")
}

/// The first command, and how many others.
fn running(works: &[RunningWork]) -> String {
    let Some(first) = works.first() else { return "running".into() };
    let name = match (first.tool.as_str(), first.subject.as_deref()) {
        ("bash", Some(command)) => format!("`{}`", cut(&one_line(command), SUBJECT)),
        (tool, Some(subject)) => format!("{} {}", one_line(tool), cut(&one_line(subject), SUBJECT)),
        (tool, None) => one_line(tool),
    };
    match works.len() {
        1 => format!("running {name}"),
        count => format!("running {name} and {} more", count - 1),
    }
}

/// A time in whole seconds, in its two largest units.
pub(crate) fn short_time(seconds: u64) -> String {
    if seconds < 60 { format!("{seconds} s") } else { super::duration(Duration::from_secs(seconds)) }
}

#[cfg(test)]
pub(crate) fn example_activity(id: &str) -> SessionActivity {
    SessionActivity {
        session_id: id.into(),
        state: ActivityState::Idle,
        since_ms: None,
        provider: "anthropic".into(),
        model_id: "claude".into(),
        thinking_level: agentd_protocol::model::ThinkingLevel::Off,
        running: Vec::new(),
        answer_tokens: None,
        tokens: 1_234,
        output_tokens: 200,
        cost: 0.25,
        context_tokens: Some(50_000),
        context_window: Some(200_000),
        commands: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_in_words() {
        let work = |tool: &str, subject: Option<&str>| RunningWork {
            tool: tool.into(),
            subject: subject.map(str::to_owned),
            since_ms: Some(0),
        };
        let text = |state, running: &[RunningWork], since_ms| {
            let activity =
                SessionActivity { state, running: running.to_vec(), since_ms, ..example_activity("a") };
            activity_text(&activity, 12_900)
        };
        for (state, running, since, expected) in [
            (ActivityState::Idle, vec![], Some(0), "idle"),
            (ActivityState::Thinking, vec![], Some(12_000), "thinking"),
            (ActivityState::Answering, vec![], Some(99_000), "answering"),
            (ActivityState::Waiting, vec![], Some(0), "waits for the model 12 s"),
            (
                ActivityState::Running,
                vec![work("bash", Some("cargo\x1b[2J test"))],
                Some(0),
                "running `cargo [2J test` 12 s",
            ),
            (
                ActivityState::Running,
                vec![work("read", Some("a.rs")), work("ls", None)],
                None,
                "running read a.rs and 1 more",
            ),
            (ActivityState::Running, vec![work("mine", None)], None, "running mine"),
            (ActivityState::Asking, vec![], Some(0), "waits for the user 12 s"),
            (ActivityState::Compacting, vec![], None, "compacting"),
        ] {
            assert_eq!(text(state, &running, since), expected);
        }
        let busy = SessionActivity { commands: 2, ..example_activity("a") };
        assert_eq!(activity_text(&busy, 0), "idle, 2 commands in the background");
        assert_eq!((short_time(59), short_time(125)), ("59 s".into(), "2 min 5 s".into()));
    }
}
