//! The records between the daemon and a kernel. What comes from a kernel is input of a stranger: a cell can write to its descriptors.

use agentd_protocol::message::ImageContent;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::language::Language;

/// The longest record of a kernel: 24 MiB, which holds the largest image that its runner sends.
pub(crate) const MAX_RECORD: usize = 24 << 20;

/// A record of a kernel.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Answer {
    /// It takes cells.
    Ready,
    /// Its interpreter is too old; the version.
    Unsupported(String),
    /// The cell has begun: from here on it may have had effects.
    Started,
    /// An image of the cell.
    Image(ImageContent),
    /// A value of the cell as JSON.
    Json(Value),
    /// The cell calls a tool of the session.
    Call { number: u64, name: String, arguments: Map<String, Value> },
    /// The cell has ended.
    Done(CellDone),
    /// Anything else that says nothing of use here.
    Other,
}

/// How a cell ended by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CellDone {
    /// Its exit code, where it is not 0.
    pub(crate) exit_code: Option<i32>,
    /// Whether it failed.
    pub(crate) has_failed: bool,
    /// Whether an interrupt ended it.
    pub(crate) was_cancelled: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    version: Option<String>,
    #[serde(default)]
    call: Option<u64>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    arguments: Option<Map<String, Value>>,
    #[serde(default)]
    bundle: Option<Map<String, Value>>,
    #[serde(default)]
    status: Option<String>,
    #[serde(default)]
    exit_code: Option<i32>,
    #[serde(default)]
    cancelled: bool,
}

impl Answer {
    /// Reads a line.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn parse(line: &str) -> Result<Self, String> {
        let raw: Raw = serde_json::from_str(line).map_err(|error| error.to_string())?;
        Ok(match raw.kind.as_str() {
            "ready" => Self::Ready,
            "unsupported" => Self::Unsupported(raw.version.unwrap_or_default()),
            "started" => Self::Started,
            "call" => match (raw.call, raw.name) {
                (Some(number), Some(name)) => {
                    Self::Call { number, name, arguments: raw.arguments.unwrap_or_default() }
                }
                _ => return Err("a call without its number or its name".to_owned()),
            },
            "display" => display(raw.bundle.unwrap_or_default()),
            "done" => Self::Done(CellDone {
                exit_code: raw.exit_code.filter(|code| *code != 0),
                has_failed: raw.status.as_deref() != Some("ok"),
                was_cancelled: raw.cancelled,
            }),
            _ => Self::Other,
        })
    }
}

fn display(bundle: Map<String, Value>) -> Answer {
    for (kind, value) in bundle {
        if let (true, Value::String(data)) = (kind.starts_with("image/"), &value) {
            return Answer::Image(ImageContent { data: data.clone(), mime_type: kind });
        }
        if kind == "application/json" {
            return Answer::Json(value);
        }
    }
    Answer::Other
}

/// A record to a kernel.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub(crate) enum Request<'a> {
    /// Runs a cell.
    Run {
        id: u64,
        code: &'a str,
        /// Variables of the session that have changed.
        env: &'a Map<String, Value>,
    },
    /// The result of a tool that a cell has called.
    #[serde(rename_all = "camelCase")]
    Result { call: u64, content: &'a Value, details: Option<&'a Value>, is_error: bool },
    /// Interrupts what runs, for a runner that reads requests beside its cells: a signal does not reach every cell.
    Interrupt,
}

impl Request<'_> {
    /// The line, with its end.
    pub(crate) fn line(&self) -> Result<Vec<u8>, String> {
        let mut line = serde_json::to_vec(self).map_err(|error| error.to_string())?;
        line.push(b'\n');
        Ok(line)
    }
}

/// The first record, which brings the runner.
pub(crate) fn boot_line(language: &Language, memory_bytes: u64) -> Vec<u8> {
    let kernel = if let Language::Jupyter(kernel) = language { Some(kernel.name()) } else { None };
    let options = serde_json::json!({ "memoryBytes": memory_bytes, "kernel": kernel }).to_string();
    let mut line =
        serde_json::json!({ "runner": language.runner(), "options": options }).to_string().into_bytes();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_bytes_are_read(data in proptest::collection::vec(any::<u8>(), 0..300)) {
            let line = String::from_utf8_lossy(&data);
            if let Ok(Answer::Call { .. }) = Answer::parse(&line) {
                prop_assert!(line.contains("call"));
            }
        }

        #[test]
        fn any_fields_are_read(kind in "ready|started|done|call|display|error|x", rest in ".{0,80}") {
            let read = Answer::parse(&format!(r#"{{"type":"{kind}",{rest}}}"#));
            if let Ok(answer) = read {
                prop_assert_eq!(matches!(answer, Answer::Done(_)), kind == "done");
            }
        }

        #[test]
        fn a_cell_is_one_line_whatever_its_code(code in ".*") {
            let line = Request::Run { id: 1, code: &code, env: &Map::new() }.line().unwrap();
            prop_assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
            let read: Value = serde_json::from_slice(&line).unwrap();
            prop_assert_eq!(read["code"].as_str(), Some(&*code));
        }
    }

    #[test]
    fn records_of_kernels() {
        let parse = |line: &str| Answer::parse(line).unwrap();
        assert_eq!(parse(r#"{"type":"ready","version":"3.12.1"}"#), Answer::Ready);
        assert_eq!(parse(r#"{"type":"started","id":1}"#), Answer::Started);
        assert_eq!(
            parse(r#"{"type":"done","id":1,"status":"error","exitCode":3,"cancelled":true}"#),
            Answer::Done(CellDone { exit_code: Some(3), has_failed: true, was_cancelled: true })
        );
        assert_eq!(
            parse(r#"{"type":"done","status":"ok","exitCode":null}"#),
            Answer::Done(CellDone::default())
        );
        let image = ImageContent { data: "AA==".into(), mime_type: "image/png".into() };
        assert_eq!(parse(r#"{"type":"display","bundle":{"image/png":"AA=="}}"#), Answer::Image(image));
        assert_eq!(parse(r#"{"type":"news"}"#), Answer::Other);
        assert!(Answer::parse(r#"{"type":"call","name":"read"}"#).is_err());
        assert!(Answer::parse("[]").is_err());
    }

    #[test]
    fn an_interrupt_is_a_line() {
        assert_eq!(Request::Interrupt.line().unwrap(), b"{\"type\":\"interrupt\"}\n");
    }

    #[test]
    fn a_cell_is_one_line() {
        let line = Request::Run { id: 7, code: "a\nb", env: &Map::new() }.line().unwrap();
        assert_eq!(line, b"{\"type\":\"run\",\"id\":7,\"code\":\"a\\nb\",\"env\":{}}\n");
        let languages = Language::ALL.into_iter().chain(Language::of("jupyter:ir"));
        for line in languages.map(|language| boot_line(&language, 5)) {
            assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        }
    }
}
