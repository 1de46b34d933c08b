//! What a call has shown so far, and its result.

use std::time::Duration;

use agentd_process::{OutputStorage, OutputTail};
use agentd_protocol::{
    message::{ContentBlock, ImageContent},
    tool::ToolResult,
};
use agentd_tools::{tail_details, tail_text};
use serde_json::{Map, Value, json};

use crate::{arguments::EvalCall, records::CellDone};

/// The most images of a result, and the most of their base64 together.
const MAX_IMAGES: (usize, usize) = (16, 24 << 20);

/// The most JSON values of a result's details, and the most bytes of them together.
const MAX_JSON: (usize, usize) = (64, 256 << 10);

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CallEnd {
    /// The cell ended by itself.
    Done(CellDone),
    /// It took too long; with why its kernel is gone, if it is.
    TimedOut { kernel_gone: Option<String> },
    /// The run was aborted.
    Aborted,
    /// The kernel ended while the cell ran: why.
    KernelGone(String),
    /// A client ran it.
    OfClient(ClientEnd),
}

/// How a cell ended that a client ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ClientEnd {
    Done,
    /// It failed: why.
    Failed(String),
    TimedOut,
    /// There is no answer, or none that can be used: a sentence that says why.
    Lost(String),
}

/// What a cell has shown.
pub(crate) struct CellOutput {
    pub(crate) tail: OutputTail,
    images: Vec<ImageContent>,
    image_bytes: usize,
    images_left_out: usize,
    json: Vec<Value>,
    json_bytes: usize,
    json_left_out: usize,
}

impl CellOutput {
    pub(crate) fn new(outputs: OutputStorage) -> Self {
        Self {
            tail: OutputTail::new(outputs),
            images: Vec::new(),
            image_bytes: 0,
            images_left_out: 0,
            json: Vec::new(),
            json_bytes: 0,
            json_left_out: 0,
        }
    }

    pub(crate) fn image(&mut self, image: ImageContent) {
        let bytes = self.image_bytes + image.data.len();
        if self.images.len() == MAX_IMAGES.0 || bytes > MAX_IMAGES.1 {
            self.images_left_out += 1;
            return;
        }
        self.image_bytes = bytes;
        self.images.push(image);
    }

    pub(crate) fn json(&mut self, value: Value) {
        let bytes = self.json_bytes + value.to_string().len();
        if self.json.len() == MAX_JSON.0 || bytes > MAX_JSON.1 {
            self.json_left_out += 1;
            return;
        }
        self.json_bytes = bytes;
        self.json.push(value);
    }

    /// The output so far.
    pub(crate) fn update(&self, call: &EvalCall) -> ToolResult {
        let text = self.tail.snapshot().content;
        let details = self.details(call, &text, "running", None, None, None);
        ToolResult { details: Some(details), ..ToolResult::text(text) }
    }

    /// The result; the tail must be finished.
    pub(crate) fn result(
        mut self,
        call: &EvalCall,
        end: CallEnd,
        notice: Option<String>,
        time: Duration,
    ) -> ToolResult {
        let mut text = tail_text(&self.tail);
        let exit_code = match &end {
            CallEnd::Done(CellDone { has_failed: false, .. }) => None,
            CallEnd::Done(done) => Some(done.exit_code.unwrap_or(1)),
            CallEnd::TimedOut { .. } | CallEnd::Aborted | CallEnd::KernelGone(_) | CallEnd::OfClient(_) => {
                None
            }
        };
        let is_good = match &end {
            CallEnd::Done(done) => !done.has_failed,
            end => *end == CallEnd::OfClient(ClientEnd::Done),
        };
        if text.is_empty() && is_good {
            text = match self.images.len() {
                0 => "(no output)".to_owned(),
                count => format!("(displayed {count} image(s); no text output)"),
            };
        }
        if self.images_left_out > 0 {
            let kept = self.images.len();
            add(&mut text, &format!("[{} more images are left out: {kept} are shown]", self.images_left_out));
        }
        match &end {
            CallEnd::Done(_) => {
                if let Some(code) = exit_code {
                    add(&mut text, &format!("Command exited with code {code}"));
                }
            }
            CallEnd::Aborted => add(&mut text, "Cell aborted"),
            CallEnd::OfClient(end) => {
                if let Some(line) = end.line(call) {
                    add(&mut text, &line);
                }
            }
            CallEnd::TimedOut { kernel_gone } => {
                let seconds = call.timeout.unwrap_or_default().as_secs_f64();
                let after = match kernel_gone {
                    None => "it was interrupted, and the kernel keeps its variables".to_owned(),
                    Some(why) => format!("the kernel is gone, with its variables: {why}"),
                };
                add(&mut text, &format!("Cell timed out after {seconds} seconds: {after}"));
            }
            CallEnd::KernelGone(why) => add(
                &mut text,
                &format!(
                    "The kernel ended while the cell ran: {why}. The cell was not repeated, since it may have had effects. The next call starts \
                     a new kernel, without the variables of before."
                ),
            ),
        }
        if let Some(notice) = &notice {
            text = format!("[{notice}]\n\n{text}");
        }
        let status = if is_good { "complete" } else { "error" };
        let shown = self.tail.snapshot().content;
        let mut details = self.details(call, &shown, status, Some(time), exit_code, notice.as_deref());
        if let (Value::Object(details), Some(Value::Object(of_tail))) =
            (&mut details, tail_details(&self.tail))
        {
            details.extend(of_tail);
        }
        let mut content = vec![ContentBlock::text(text)];
        content.extend(std::mem::take(&mut self.images).into_iter().map(ContentBlock::Image));
        ToolResult {
            content,
            details: Some(details),
            is_error: (!is_good).then_some(true),
            ..ToolResult::default()
        }
    }

    fn details(
        &self,
        call: &EvalCall,
        output: &str,
        status: &str,
        time: Option<Duration>,
        exit_code: Option<i32>,
        notice: Option<&str>,
    ) -> Value {
        let language = call.language.name();
        let mut cell = Map::new();
        cell.insert("index".to_owned(), 0.into());
        cell.extend(call.title.as_ref().map(|title| ("title".to_owned(), title.as_str().into())));
        cell.insert("code".to_owned(), call.code.as_str().into());
        cell.insert("language".to_owned(), language.into());
        cell.insert("output".to_owned(), output.into());
        cell.insert("status".to_owned(), status.into());
        let ms = time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        cell.extend(ms.map(|ms| ("durationMs".to_owned(), ms.into())));
        cell.extend(exit_code.map(|code| ("exitCode".to_owned(), code.into())));
        let mut details = Map::new();
        details.insert("cells".to_owned(), json!([cell]));
        details.insert("language".to_owned(), language.into());
        details.insert("jsonOutputs".to_owned(), json!(self.json));
        if self.json_left_out > 0 {
            details.insert("jsonOutputsLeftOut".to_owned(), self.json_left_out.into());
        }
        let images = self.images.len() + self.images_left_out;
        if images > 0 {
            details.insert("images".to_owned(), images.into());
        }
        details.extend(notice.map(|notice| ("notice".to_owned(), notice.into())));
        details.insert("isError".to_owned(), (status == "error").into());
        Value::Object(details)
    }
}

impl ClientEnd {
    /// What the result says of it.
    fn line(&self, call: &EvalCall) -> Option<String> {
        match self {
            Self::Done => None,
            Self::Failed(why) => Some(why.clone()),
            Self::TimedOut => {
                let seconds = call.timeout.unwrap_or_default().as_secs_f64();
                Some(format!(
                    "Cell timed out after {seconds} seconds: the client that runs it was told to stop it"
                ))
            }
            Self::Lost(why) => {
                Some(format!("{why} The cell was not repeated, since it may have had effects."))
            }
        }
    }
}

fn add(text: &mut String, line: &str) {
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(line);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::Language;

    fn call() -> EvalCall {
        EvalCall {
            language: Language::Python,
            code: "1".into(),
            title: Some("one".into()),
            timeout: Some(Duration::from_secs(2)),
            reset: false,
        }
    }

    async fn result(printed: &str, images: usize, end: CallEnd, notice: Option<&str>) -> ToolResult {
        let folder = tempfile::tempdir().unwrap();
        let mut output = CellOutput::new(folder.path().into());
        output.tail.push(printed.as_bytes()).await;
        output.tail.finish().await;
        for _ in 0..images {
            output.image(ImageContent { data: "AA==".into(), mime_type: "image/png".into() });
        }
        output.result(&call(), end, notice.map(str::to_owned), Duration::from_millis(7))
    }

    fn text(result: &ToolResult) -> &str {
        result.content[0].as_text().unwrap()
    }

    #[tokio::test]
    async fn texts_of_ends() {
        let good = || CallEnd::Done(CellDone::default());
        let failed = CallEnd::Done(CellDone { has_failed: true, exit_code: Some(3), was_cancelled: false });
        assert_eq!(text(&result("", 0, good(), None).await), "(no output)");
        assert_eq!(text(&result("hi\n", 0, good(), Some("New.")).await), "[New.]\n\nhi\n");
        let shown = result("", 2, good(), None).await;
        assert_eq!(text(&shown), "(displayed 2 image(s); no text output)");
        assert_eq!((shown.content.len(), shown.is_error), (3, None));
        let shown = result("no\n", 0, failed, None).await;
        assert_eq!((text(&shown), shown.is_error), ("no\n\n\nCommand exited with code 3", Some(true)));
        let cell = &shown.details.unwrap()["cells"][0];
        assert_eq!(
            (&cell["status"], &cell["exitCode"], &cell["durationMs"]),
            (&json!("error"), &json!(3), &json!(7))
        );
        let late = result("", 0, CallEnd::TimedOut { kernel_gone: None }, None).await;
        assert_eq!(
            text(&late),
            "Cell timed out after 2 seconds: it was interrupted, and the kernel keeps its variables"
        );
        assert_eq!(text(&result("x", 0, CallEnd::Aborted, None).await), "x\n\nCell aborted");
        let of_client = |end| CallEnd::OfClient(end);
        let shown = result("", 0, of_client(ClientEnd::Done), None).await;
        assert_eq!((text(&shown), shown.is_error), ("(no output)", None));
        for (end, says) in [
            (ClientEnd::Failed("no such name".into()), "x\n\nno such name"),
            (
                ClientEnd::TimedOut,
                "x\n\nCell timed out after 2 seconds: the client that runs it was told to stop it",
            ),
            (
                ClientEnd::Lost("It left.".into()),
                "x\n\nIt left. The cell was not repeated, since it may have had effects.",
            ),
        ] {
            let shown = result("x", 0, of_client(end), None).await;
            assert_eq!((text(&shown), shown.is_error), (says, Some(true)));
        }
    }

    #[tokio::test]
    async fn many_images_are_cut() {
        let shown = result("", 40, CallEnd::Done(CellDone::default()), None).await;
        assert_eq!(shown.content.len(), 1 + MAX_IMAGES.0);
        assert!(text(&shown).ends_with("[24 more images are left out: 16 are shown]"), "{}", text(&shown));
    }
}
