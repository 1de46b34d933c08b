//! Resizing within limits that the caller chooses.

use agentd_protocol::message::ImageContent;

use crate::{
    Images, Omission,
    fit::Limits,
    job::{self, Wish},
};

/// The limits of a resizing; the defaults are those of [`Images::prepare`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResizeLimits {
    /// The most pixels in a row; at least 1 counts.
    pub max_width: u32,
    /// The most rows; at least 1 counts.
    pub max_height: u32,
    /// Base64 is shorter than this, in bytes.
    pub max_base64: usize,
    /// The quality that is tried first where the image becomes a JPEG, from 1 to 100.
    pub jpeg_quality: u8,
}

impl Default for ResizeLimits {
    fn default() -> Self {
        let Limits { sides: (max_width, max_height), base64: max_base64, quality: jpeg_quality } =
            Limits::default();
        Self { max_width, max_height, max_base64, jpeg_quality }
    }
}

/// An image of another size, or as it was where it fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resized {
    /// The image, in plain base64 and with the media type of its bytes.
    pub image: ImageContent,
    /// Its width and height before, upright.
    pub original: (u32, u32),
    /// Its width and height now.
    pub size: (u32, u32),
    /// Whether the bytes are those that came.
    pub is_unchanged: bool,
}

impl From<job::Resized> for Resized {
    fn from(job::Resized { image, original, size, is_unchanged }: job::Resized) -> Self {
        Self { image, original, size, is_unchanged }
    }
}

impl Images {
    /// Makes an image in base64 fit these limits. Its media type is determined from the bytes.
    ///
    /// # Errors
    /// Why it cannot be changed.
    ///
    /// Cancel safety: when dropped, the work ends soon, on its own thread.
    pub async fn resize(&self, data: String, limits: ResizeLimits) -> Result<Resized, Omission> {
        let ResizeLimits { max_width, max_height, max_base64, jpeg_quality } = limits;
        let sides = (max_width.max(1), max_height.max(1));
        let limits = Limits { sides, base64: max_base64, quality: jpeg_quality.clamp(1, 100) };
        self.work_on(data, Wish::Fit(limits)).await.map(Resized::from)
    }

    /// Makes a PNG of an image in base64, of the same size.
    ///
    /// # Errors
    /// As of [`Self::resize`], also for dropping.
    pub async fn png(&self, data: String) -> Result<Resized, Omission> {
        self.work_on(data, Wish::Png).await.map(Resized::from)
    }
}

#[cfg(test)]
mod tests {
    use image::RgbImage;

    use super::*;
    use crate::{
        content,
        testing::{jpeg, noise, png, quarters},
    };

    #[tokio::test]
    async fn an_image_is_made_to_fit() {
        let images = Images::default();
        let limits = ResizeLimits { max_width: 50, max_height: 10, ..ResizeLimits::default() };
        let resized = images.resize(content::encode(&jpeg(&quarters(200, 100))), limits).await.unwrap();
        assert_eq!((resized.original, resized.size), ((200, 100), (20, 10)));
        let small = content::encode(&png(&quarters(20, 10)));
        let same = images.resize(small.clone(), limits).await.unwrap();
        assert_eq!((same.image.data, same.original, same.size), (small, (20, 10), (20, 10)));
        let limits = ResizeLimits { max_base64: 3000, ..ResizeLimits::default() };
        let light = images.resize(content::encode(&png(&noise(200, 200))), limits).await.unwrap();
        assert!(light.image.data.len() < 3000, "{}", light.image.data.len());
        let none = ResizeLimits { max_base64: 1, ..limits };
        let refused = images.resize(content::encode(&png(&RgbImage::new(9, 9))), none).await;
        assert_eq!(refused, Err(Omission::TooLarge));
    }

    #[tokio::test]
    async fn a_picture_becomes_a_png() {
        let made = Images::default().png(content::encode(&jpeg(&quarters(30, 20)))).await.unwrap();
        assert_eq!((made.image.mime_type.as_str(), made.size), ("image/png", (30, 20)));
        assert_eq!(Images::default().png("AAAA".to_owned()).await, Err(Omission::NoImage));
    }
}
