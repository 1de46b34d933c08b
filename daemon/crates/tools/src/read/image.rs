//! Shows an image file to the model.

use std::io::{self, Read};

use agentd_images::{Images, MAX_FILE_BYTES, Omission};
use agentd_protocol::image_kind::ImageKind;
use agentd_protocol::{message::ContentBlock, tool::ToolResult};
use serde_json::{Value, json};

/// The line for models without image input: pi's text, like all texts in brackets here.
const UNSEEN: &str = "[Current model does not support images. The image will be omitted from this request.]";

/// Bytes read at once.
const CHUNK: u64 = 1 << 20;

/// The whole file, of which `start` was already read, or one byte more than [`MAX_FILE_BYTES`]; `None` when stopped.
///
/// # Errors
/// As reading does.
pub(super) fn rest(
    start: Vec<u8>,
    mut file: impl Read,
    stop: impl Fn() -> bool,
) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = start;
    loop {
        if stop() {
            return Ok(None);
        }
        let room = (MAX_FILE_BYTES + 1).saturating_sub(bytes.len() as u64);
        if (&mut file).take(room.min(CHUNK)).read_to_end(&mut bytes)? == 0 {
            return Ok(Some(bytes));
        }
    }
}

/// The result for an image.
pub(super) async fn show(kind: ImageKind, bytes: Vec<u8>, images: &Images, sees_images: bool) -> ToolResult {
    let prepared = if bytes.len() as u64 > MAX_FILE_BYTES {
        Err(Omission::TooLarge)
    } else {
        images.prepare(bytes).await
    };
    match prepared {
        Ok(prepared) => {
            let mut lines = vec![named(&prepared.image.mime_type)];
            lines.extend(prepared.hints);
            if !sees_images {
                lines.push(UNSEEN.to_owned());
            }
            let note = lines.join("\n");
            let image = prepared.image;
            let structured =
                json!({"type": "image", "data": image.data, "mimeType": image.mime_type, "note": note});
            ToolResult {
                content: vec![ContentBlock::text(note), ContentBlock::Image(image)],
                structured_content: Some(structured),
                ..ToolResult::default()
            }
        }
        Err(omission) => {
            let text = format!("{}\n{omission}", named(kind.mime_type()));
            ToolResult { structured_content: Some(Value::from(text.clone())), ..ToolResult::text(text) }
        }
    }
}

fn named(mime_type: &str) -> String {
    format!("Read image file [{mime_type}]")
}
