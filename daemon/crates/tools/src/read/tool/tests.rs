use std::{fs, sync::Arc};

use agentd_protocol::message::ContentBlock;

use super::*;
use crate::testing::{call, call_with, done, refused, text};

fn tool() -> Arc<dyn Tool> {
    Arc::new(ReadTool::new())
}

fn numbered(count: usize) -> String {
    (1..=count).map(|number| format!("{number}\n")).collect()
}

/// Reads a file with `content`; gives the text and whether details came with it.
async fn read_text(content: impl AsRef<[u8]>, mut arguments: Value) -> (String, Option<Value>) {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("f.txt"), content).unwrap();
    arguments["path"] = "f.txt".into();
    let result = call(&tool(), dir.path(), arguments).await.unwrap();
    assert_eq!(result.structured_content, Some(Value::from(text(&result))));
    (text(&result).to_owned(), result.details)
}

async fn check(content: &str, arguments: Value, expected: &str) {
    assert_eq!(read_text(content, arguments.clone()).await, (expected.to_owned(), None), "{arguments}");
}

#[tokio::test]
async fn short_files_come_whole() {
    check("", json!({}), "").await;
    check("a\r\nb\n", json!({}), "a\r\nb\n").await;
    check("a\nb\nc", json!({"offset": 2}), "b\nc").await;
    check("a\nb\nc", json!({"offset": 0}), "a\nb\nc").await;
    check("a\nb\nc", json!({"offset": -4}), "a\nb\nc").await;
    check("a\nb\nc", json!({"offset": "2", "limit": "2"}), "b\nc").await;
    check("a\nb\nc", json!({"offset": null, "limit": 3.9}), "a\nb\nc").await;
    check("a\n", json!({"offset": 2}), "").await;
    assert_eq!(read_text(b"a\xffb", json!({})).await.0, "a\u{fffd}b");
}

#[tokio::test]
async fn a_limit_says_where_to_go_on() {
    check("a\nb\nc", json!({"limit": 1}), "a\n\n[2 more lines in file. Use offset=2 to continue.]").await;
    check(
        "a\nb\nc\n",
        json!({"offset": 2, "limit": 2}),
        "b\nc\n\n[1 more lines in file. Use offset=4 to continue.]",
    )
    .await;
    check("a", json!({"limit": 0}), "\n\n[1 more lines in file. Use offset=1 to continue.]").await;
    check("a", json!({"limit": -1}), "\n\n[1 more lines in file. Use offset=1 to continue.]").await;
}

#[tokio::test]
async fn too_many_lines_are_cut() {
    let (text, details) = read_text(numbered(2500), json!({"offset": 11})).await;
    assert!(text.starts_with("11\n12\n"));
    assert!(
        text.ends_with("2010\n\n[Showing lines 11-2010 of 2501. Use offset=2011 to continue.]"),
        "{text}"
    );
    let mut truncation = details.unwrap()["truncation"].take();
    assert!(truncation["content"].take().as_str().unwrap().ends_with("\n2010"));
    assert_eq!(
        truncation,
        json!({
            "content": null, "truncated": true, "truncatedBy": "lines", "totalLines": 2490, "totalBytes": 11372,
            "outputLines": 2000, "outputBytes": 8921, "lastLinePartial": false, "firstLineExceedsLimit": false,
            "maxLines": 2000, "maxBytes": 51200,
        })
    );
    // The limit of the tool comes before a limit beyond it.
    let (text, _) = read_text(numbered(2500), json!({"limit": 2200})).await;
    assert!(text.ends_with("\n2000\n\n[Showing lines 1-2000 of 2501. Use offset=2001 to continue.]"));
}

#[tokio::test]
async fn too_many_bytes_are_cut() {
    let content = format!("{}\n", "x".repeat(999)).repeat(100);
    let (text, details) = read_text(&content, json!({"offset": 3})).await;
    assert!(text.ends_with("x\n\n[Showing lines 3-53 of 101 (50.0KB limit). Use offset=54 to continue.]"));
    assert_eq!(details.unwrap()["truncation"]["truncatedBy"], "bytes");
}

#[tokio::test]
async fn a_line_too_long_to_show_names_a_command() {
    let content = format!("a\n{}\nc\n", "é".repeat(60_000));
    let (text, details) = read_text(&content, json!({"offset": 2})).await;
    assert_eq!(
        text,
        "[Line 2 is 117.2KB, exceeds 50.0KB limit. Use bash: sed -n '2p' f.txt | head -c 51200]"
    );
    let truncation = &details.unwrap()["truncation"];
    assert_eq!(truncation["firstLineExceedsLimit"], true);
    assert_eq!(truncation["totalBytes"], 120_003);
    assert_eq!(truncation["totalLines"], 2);
}

#[tokio::test]
async fn what_cannot_be_read_is_told() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("text.png"), "a\n").unwrap();
    let refused = async |arguments| refused(&tool(), dir.path(), arguments).await;
    let missing = dir.path().join("no/such");
    assert_eq!(
        refused(json!({"path": "no/such"})).await,
        format!("ENOENT: no such file or directory, access '{}'", missing.display())
    );
    assert_eq!(refused(json!({"path": "."})).await, "EISDIR: illegal operation on a directory, read");
    assert_eq!(
        refused(json!({"path": "text.png", "offset": 3})).await,
        "Offset 3 is beyond end of file (2 lines total)"
    );
    assert_eq!(
        refused(json!({"path": "text.png", "offset": 1e300})).await,
        format!("Offset {} is beyond end of file (2 lines total)", 1e300)
    );
}

#[tokio::test]
async fn paths_may_begin_with_the_home_directory() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a b"), "found").unwrap();
    let tool: Arc<dyn Tool> = Arc::new(ReadTool::new().with_home(dir.path()));
    assert_eq!(done(&tool, Path::new("/"), json!({"path": "~/a\u{a0}b"})).await, "found");
}

#[tokio::test]
async fn an_abort_is_told() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("x"), "").unwrap();
    let cancel = CancellationToken::new();
    cancel.cancel();
    let error = call_with(&tool(), dir.path(), json!({"path": "x"}), cancel).await.unwrap_err();
    assert_eq!(error.0, "Operation aborted");
}

#[tokio::test]
async fn a_huge_file_is_no_trouble() {
    let dir = tempfile::tempdir().unwrap();
    // A hole takes no room on the disk; reading it gives zeros.
    fs::File::create(dir.path().join("x")).unwrap().set_len(64 << 20).unwrap();
    let text = done(&tool(), dir.path(), json!({"path": "x"})).await;
    assert_eq!(text, "[Line 1 is 64.0MB, exceeds 50.0KB limit. Use bash: sed -n '1p' x | head -c 51200]");
}

/// One grey pixel, as a bitmap.
const BMP: &[u8] = b"BM\x3a\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\x01\0\0\0\x01\0\0\0\x01\0\x18\0\
    \0\0\0\0\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x80\x80\x80\0";

#[tokio::test]
async fn images_come_as_images_whatever_they_are_called() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("notes.txt"), BMP).unwrap();
    let result = call(&tool(), dir.path(), json!({"path": "notes.txt", "offset": 7})).await.unwrap();
    let note = "Read image file [image/png]\n[Image converted from image/bmp to image/png.]";
    let [ContentBlock::Text { text, .. }, ContentBlock::Image(image)] = &result.content[..] else {
        panic!("{:?}", result.content)
    };
    assert_eq!((text.as_str(), image.mime_type.as_str()), (note, "image/png"));
    assert_eq!(
        result.structured_content,
        Some(json!({"type": "image", "data": image.data, "mimeType": "image/png", "note": note}))
    );
    assert_eq!((result.details, result.is_error), (None, None));
}

#[tokio::test]
async fn an_image_that_cannot_be_shown_is_named() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.png"), "GIF89a").unwrap();
    let result = call(&tool(), dir.path(), json!({"path": "a.png"})).await.unwrap();
    let expected = "Read image file [image/gif]\n\
                    [Image omitted: could not be converted to a supported inline image format.]";
    assert_eq!(text(&result), expected);
    assert_eq!(result.structured_content, Some(Value::from(expected)));
    // More than is worth reading; a hole takes no room on the disk.
    fs::write(dir.path().join("b.png"), "GIF89a").unwrap();
    fs::File::options().write(true).open(dir.path().join("b.png")).unwrap().set_len(200 << 20).unwrap();
    assert_eq!(
        done(&tool(), dir.path(), json!({"path": "b.png"})).await,
        "Read image file [image/gif]\n[Image omitted: could not be resized below the inline image size limit.]"
    );
}

#[tokio::test]
async fn a_model_that_sees_no_images_is_told() {
    let images = agentd_images::Images::default();
    let shown = image::show(ImageKind::Bmp, BMP.to_vec(), &images, false).await;
    assert_eq!(shown.content.len(), 2);
    let ContentBlock::Text { text, .. } = &shown.content[0] else { panic!("{shown:?}") };
    assert!(
        text.ends_with(
            "png.]\n[Current model does not support images. The image will be omitted from this request.]"
        ),
        "{text}"
    );
    let omitted = image::show(ImageKind::Gif, b"GIF89a".to_vec(), &images, false).await;
    assert!(self::text(&omitted).ends_with("inline image format.]"));
}

#[tokio::test]
async fn the_end_of_a_large_file_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    fs::write(&path, "first\n").unwrap();
    let file = fs::File::options().append(true).open(&path).unwrap();
    file.set_len(64 << 20).unwrap();
    std::io::Write::write_all(&mut &file, b"\nlast but one\nlast").unwrap();
    let text = done(&tool(), dir.path(), json!({"path": "x", "offset": 3})).await;
    assert_eq!(text, "last but one\nlast");
}

/// They say that they are empty.
#[tokio::test]
async fn files_of_sys_have_content() {
    let path = "/sys/kernel/mm/transparent_hugepage/enabled";
    if Path::new(path).exists() {
        let text = done(&tool(), Path::new("/"), json!({"path": path})).await;
        assert!(text.contains("never"), "{text}");
    }
}

#[test]
fn files_of_the_kernel_without_end_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("x"), "x").unwrap();
    let limit = |path: &Path| kernel::limit(&fs::File::open(path).unwrap()).unwrap();
    assert_eq!(limit(&dir.path().join("x")), u64::MAX);
    assert_eq!(limit(Path::new("/proc/self/status")), 16 << 20);
    assert_eq!(
        kernel::endless("/proc/kcore").0,
        "Cannot read /proc/kcore: it is a file of the kernel that goes on past 16.0MB, perhaps without end. Use bash to \
         read a part of it, such as its start: head -c 51200 /proc/kcore"
    );
}
