use super::*;
use crate::testing::{png, png_that_claims, quarters};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_than_the_memory_holds_is_done_in_turn() {
    let images = Images::default();
    // Each counts as more than a quarter of it.
    let bytes = png(&quarters(2100, 40));
    let all: Vec<_> = (0..6)
        .map(|_| {
            tokio::spawn({
                let (images, bytes) = (images.clone(), bytes.clone());
                async move { images.prepare(bytes).await }
            })
        })
        .collect();
    for done in all {
        assert_eq!(done.await.unwrap().unwrap().hints.len(), 1);
    }
    assert_eq!(images.memory.available_permits(), MEMORY_MIB as usize);
}

#[tokio::test]
async fn memory_is_given_back_whatever_happens() {
    let images = Images::default();
    let bomb = png_that_claims(60_000, 60_000);
    assert_eq!(images.prepare(bomb).await, Err(Omission::Unconvertible));
    let given = ImageContent { data: "nothing".into(), mime_type: "image/png".into() };
    assert_eq!(images.prepare_content(given).await, Err(Omission::NoImage));
    let empty = images.prepare(png_that_claims(1000, 1000)).await;
    assert_eq!(empty, Err(Omission::Unconvertible));
    assert_eq!(images.memory.available_permits(), MEMORY_MIB as usize);
    drop(images.resizing(false).prepare(png(&quarters(2100, 40))));
    assert_eq!(images.memory.available_permits(), MEMORY_MIB as usize);
}

#[tokio::test]
async fn what_is_left_in_its_size_is_not_looked_at() {
    let images = Images::default().resizing(false);
    let claims = png_that_claims(60_000, 60_000);
    let prepared = images.prepare(claims).await.unwrap();
    assert_eq!((prepared.image.mime_type.as_str(), prepared.hints.len()), ("image/png", 0));
}
