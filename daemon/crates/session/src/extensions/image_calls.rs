//! Images that extensions have resized.

use agentd_extensions::CallResponder;
use agentd_images::{Images, ResizeLimits, Resized};
use serde::Deserialize;
use serde_json::{Value, json};

/// The call `image.resize`. Numbers are those of JavaScript.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResizeCall {
    /// The image, in base64.
    data: String,
    /// `image/png`: the kind that is wanted, in the size that it has.
    format: Option<String>,
    max_width: Option<f64>,
    max_height: Option<f64>,
    /// The length of the base64.
    max_bytes: Option<f64>,
    jpeg_quality: Option<f64>,
}

/// Resizes an image, or makes a PNG of it. The answer is null where it cannot be changed so.
pub(crate) async fn resize_image(images: Images, wanted: ResizeCall, responder: CallResponder) {
    let work = async {
        if wanted.format.as_deref() == Some("image/png") {
            images.png(wanted.data).await
        } else {
            let limits = limits(&wanted);
            images.resize(wanted.data, limits).await
        }
    };
    // Nobody reads the answer to a call that was given up.
    let Some(done) = responder.cancelled().run_until_cancelled(work).await else { return };
    let answer = done.map(|resized| answer(&resized)).unwrap_or_default();
    responder.send(&Ok(answer));
}

/// What is not said has its default. Numbers that make no sense count as the nearest ones that do.
fn limits(wanted: &ResizeCall) -> ResizeLimits {
    let default = ResizeLimits::default();
    let side = |said: Option<f64>, default: u32| said.map_or(default, |said| said as u32);
    ResizeLimits {
        max_width: side(wanted.max_width, default.max_width),
        max_height: side(wanted.max_height, default.max_height),
        max_base64: wanted.max_bytes.map_or(default.max_base64, |said| said as usize),
        jpeg_quality: wanted.jpeg_quality.map_or(default.jpeg_quality, |said| said as u8),
    }
}

fn answer(resized: &Resized) -> Value {
    let Resized { image, original, size, is_unchanged } = resized;
    json!({
        "data": image.data, "mimeType": image.mime_type, "originalWidth": original.0, "originalHeight": original.1,
        "width": size.0, "height": size.1, "wasResized": !is_unchanged,
    })
}
