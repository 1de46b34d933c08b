//! The laws of every line that a client or a daemon may send: for fuzz targets (`fuzz/` in the repository) and for the tests
//! that read known inputs again. Only there with the feature `fuzzing`; no part of the interface.
//!
//! Each function takes any bytes and panics where a law is broken.

use serde_json::Value;

use crate::{
    command::Command,
    error::{ErrorCode, Failure},
    event::Event,
    frame::{Head, Response, unknown_command},
    lines::{Line, LineSplitter, write_line},
    shown_url,
};

/// The laws, by the names of their fuzz targets.
pub const LAWS: &[(&str, fn(&[u8]))] =
    &[("commands", commands), ("daemon_lines", daemon_lines), ("shown_urls", shown_urls)];

/// The cap of a line where inputs are to reach it, in bytes.
const SMALL_LINE_BYTES: usize = 48;

/// The most that an error says, in bytes. Lines may have 64 MiB, and an error quotes what it met.
const MOST_SAID: usize = 1024;

/// Lines are the same however their bytes come, none is longer than the cap, and no more memory is held. Each line is a command or
/// is refused in a short message, and the answer is one line that says for which command it is. A command that was read reads as
/// the same again from what it is written as.
pub fn commands(input: &[u8]) {
    for line in lines(input) {
        let answer = match command(&line) {
            Ok(None) => continue,
            Ok(Some(command)) => {
                let Ok(fields) = command.fields() else { panic!("{command:?} cannot be written") };
                let again = Command::parse(command.name(), &fields.to_string());
                assert_eq!(again, Some(Ok(command)), "{fields}");
                continue;
            }
            Err(answer) => answer,
        };
        let mut written = Vec::new();
        write_line(&serde_json::to_vec(&answer).unwrap_or_default(), &mut written);
        assert_eq!(memchr::memchr(b'\n', &written), Some(written.len() - 1), "an answer is one line");
        let read: Response<()> = match serde_json::from_slice(&written) {
            Ok(read) => read,
            Err(error) => panic!("{error}: {}", String::from_utf8_lossy(&written)),
        };
        // An id that is `null` is told, and reads as none.
        let told = Response { id: answer.id.clone().filter(|id| !id.is_null()), ..answer };
        assert_eq!(read, told);
    }
}

/// A client reads a daemon's line as nothing, as an answer, or as an event that reads as the same again from what it is written
/// as.
pub fn daemon_lines(input: &[u8]) {
    for line in lines(input) {
        let Ok(head) = Head::parse(&line) else { continue };
        let Some(kind) = head.kind else { continue };
        if let Some(Ok(event)) = Event::parse(&kind, &line) {
            assert_eq!(event.name(), kind);
            let written = match serde_json::to_string(&event) {
                Ok(written) => written,
                Err(error) => panic!("{error}: {event:?} of {line}"),
            };
            match Event::parse(&kind, &written) {
                Some(Ok(again)) => assert_eq!(again, event, "{written}"),
                other => panic!("{other:?}: {written} of {line}"),
            }
        }
        if let Ok(response) = serde_json::from_str::<Response<Value>>(&line) {
            let written = serde_json::to_string(&response).unwrap_or_default();
            assert_eq!(serde_json::from_str(&written).ok(), Some(response), "{written}");
        }
    }
}

/// No address shows its password or what its query calls a secret; one without any is shown as it is.
pub fn shown_urls(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let shown = shown_url::shown(&text);
    // The rest after a password can look like another address once that is gone.
    if text.matches("://").count() == 1 {
        assert_eq!(shown_url::shown(&shown), shown, "what is shown has no secret");
    }
    let secret: String =
        text.chars().filter(|letter| !matches!(letter, '/' | '?' | '#' | '&' | '@')).collect();
    if secret.is_empty() {
        return;
    }
    let url = format!("https://me:{secret}@host/v1?a=1&Key={secret}&b={}#key=x", secret.len());
    let expected = format!("https://me:[redacted]@host/v1?a=1&Key=[redacted]&b={}#key=x", secret.len());
    assert_eq!(shown_url::shown(&url), expected);
    let plain = format!("https://{}/v1", secret.replace(':', ""));
    assert_eq!(shown_url::shown(&plain), plain);
}

/// The command of a line; `None` for what is no command and needs no answer, else what the answer would be.
#[expect(clippy::result_large_err, reason = "it is as the daemon has it, and made once a line")]
fn command(line: &str) -> Result<Option<Command>, Response<()>> {
    let refused = |head: Option<&Head>, kind: Option<&str>, failure: Failure| {
        assert!(failure.error.len() <= MOST_SAID, "{} bytes are said", failure.error.len());
        Response::<()>::failed(head.and_then(|head| head.id.clone()), kind, failure)
    };
    let head = Head::parse(line).map_err(|failure| {
        assert_eq!(failure.code, ErrorCode::Parse);
        refused(None, Some("parse"), failure)
    })?;
    let kind = head.kind.as_deref();
    if let Some(fault) = head.fault.clone() {
        return Err(refused(Some(&head), kind, fault.into()));
    }
    match kind.and_then(|name| Command::parse(name, line)) {
        None => Err(refused(Some(&head), kind, unknown_command(kind))),
        Some(Err(field)) => {
            let said = field.to_string();
            let names_a_field =
                ["Missing field \"", "Invalid field \""].iter().any(|start| said.starts_with(start));
            assert!(names_a_field, "{said}");
            Err(refused(Some(&head), kind, field.into()))
        }
        Some(Ok(command)) => Ok(Some(command)),
    }
}

/// The lines of the input, after their laws were checked.
fn lines(input: &[u8]) -> Vec<String> {
    let split = |cap: usize, size: usize| {
        let (mut splitter, mut lines) = (LineSplitter::new(cap), Vec::new());
        for piece in input.chunks(size.max(1)) {
            splitter.push(piece, &mut lines);
            assert!(splitter.held_bytes() <= 2 * cap.max(8), "{} bytes held", splitter.held_bytes());
        }
        lines.extend(splitter.finish());
        lines
    };
    let pieces = input.split(|byte| *byte == b'\n').count();
    let count = pieces - usize::from(input.last().is_none_or(|last| *last == b'\n'));
    for cap in [SMALL_LINE_BYTES, input.len()] {
        let whole = split(cap, input.len());
        assert_eq!(whole.len(), count, "one for each LF, and the rest");
        for size in [1, input.len() % 17 + 2] {
            assert_eq!(split(cap, size), whole, "in pieces of {size} bytes with the cap {cap}");
        }
        // A byte that is no UTF-8 becomes a character of three.
        let is_short = |line: &Line| !matches!(line, Line::Text(text) if text.len() > 3 * cap);
        assert!(whole.iter().all(is_short));
    }
    let text = |line| match line {
        Line::Text(text) => text,
        Line::TooLong | Line::Refused(_) => panic!("longer than the input"),
    };
    split(input.len(), input.len()).into_iter().map(text).collect()
}

#[cfg(test)]
#[path = "../../tests/fuzz/src/found.rs"]
mod found;

#[test]
fn inputs_that_were_found() {
    found::check(LAWS);
}
