//! Images on their way to a model: from files, from prompts, and left alone where the settings say so.

use agentd_e2e::{Daemon, Home, MockServer, Reply, Service, Terminal, binaries, home::models, sse};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use crate::support::{ended, text};

/// A home whose model accepts images, and its server.
fn home_with_eyes(replies: impl IntoIterator<Item = Reply>) -> (Home, MockServer) {
    let server = MockServer::start(replies);
    let home = Home::new();
    let mut models = models(&server.base_url());
    models["providers"]["fake"]["models"][0]["input"] = json!(["text", "image"]);
    home.configure(&models);
    (home, server)
}

/// A grey bitmap file: a header of 54 bytes, then lines of three bytes a pixel, padded to a multiple of four.
fn bitmap(width: u32, height: u32) -> Vec<u8> {
    let pixels = (width * 3).next_multiple_of(4) * height;
    let mut bytes = b"BM".to_vec();
    for number in [54 + pixels, 0, 54, 40, width, height] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend([1, 0, 24, 0]);
    for number in [0, pixels, 2835, 2835, 0, 0] {
        bytes.extend(u32::to_le_bytes(number));
    }
    bytes.resize(54 + pixels as usize, 0x80);
    bytes
}

/// Width and height from the header of a PNG in Base64.
fn png_size(data: &Value) -> (u32, u32) {
    let bytes = BASE64_STANDARD.decode(data.as_str().unwrap()).unwrap();
    assert!(bytes.starts_with(b"\x89PNG"), "{:?}", &bytes[..8]);
    let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    (number(16), number(20))
}

/// The result that the model receives for `read` of `file`, and the request.
fn read(home: &Home, server: &MockServer) -> (Value, String) {
    let events = Daemon::start(home, &[]).prompt("Look.");
    let result = ended(&events, "toolResult")[0].clone();
    assert_eq!(result["isError"], false, "{result}");
    (result["content"].clone(), server.requests()[1].body.to_string())
}

fn reading(file: &str) -> [Reply; 2] {
    [
        Reply::stream(sse::calls(&[("c1", "read", json!({"path": file}))])),
        Reply::stream(sse::answer("I see.")),
    ]
}

pub(crate) const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

#[test]
fn a_text_file_that_is_an_image_comes_back_as_one() {
    let (home, server) = home_with_eyes(reading("notes.txt"));
    std::fs::write(home.project().join("notes.txt"), BASE64_STANDARD.decode(PIXEL).unwrap()).unwrap();
    let (content, sent) = read(&home, &server);
    assert_eq!(
        content,
        json!([{"type": "text", "text": "Read image file [image/png]"},
            {"type": "image", "data": PIXEL, "mimeType": "image/png"}])
    );
    assert!(sent.contains(&format!("data:image/png;base64,{PIXEL}")), "{sent}");
    // The end event of the call holds the image, too.
    let home = Home::new();
    let server = MockServer::start(reading("notes.txt"));
    home.configure(&models(&server.base_url()));
    std::fs::write(home.project().join("notes.txt"), BASE64_STANDARD.decode(PIXEL).unwrap()).unwrap();
    let events = Daemon::start(&home, &[]).prompt("Look.");
    let end = events.iter().find(|event| event["type"] == "tool_execution_end").expect("an end");
    let note = "Read image file [image/png]\n\
                [Current model does not support images. The image will be omitted from this request.]";
    assert_eq!(
        end["result"]["structuredContent"],
        json!({"type": "image", "data": PIXEL, "mimeType": "image/png", "note": note})
    );
}

#[test]
fn a_large_bitmap_is_converted_and_made_smaller() {
    let (home, server) = home_with_eyes(reading("photo"));
    std::fs::write(home.project().join("photo"), bitmap(3000, 1500)).unwrap();
    let (content, sent) = read(&home, &server);
    assert_eq!(
        content[0]["text"],
        "Read image file [image/png]\n[Image converted from image/bmp to image/png.]\n\
         [Image: original 3000x1500, displayed at 2000x1000. Multiply coordinates by 1.50 to map to original image.]"
    );
    assert_eq!(png_size(&content[1]["data"]), (2000, 1000));
    assert!(sent.contains("data:image/png;base64,"));
}

#[test]
fn an_image_that_claims_too_much_is_left_out() {
    let (home, server) = home_with_eyes(reading("bomb.png"));
    // The header of a PNG of 60,000 by 60,000 pixels, and nothing more.
    let mut bomb = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\xea\x60\0\0\xea\x60\x08\x06\0\0\0".to_vec();
    bomb.extend([0x30, 0xee, 0x2c, 0x34]);
    std::fs::write(home.project().join("bomb.png"), bomb).unwrap();
    let (content, sent) = read(&home, &server);
    let text = "Read image file [image/png]\n\
                [Image omitted: could not be converted to a supported inline image format.]";
    assert_eq!(content, json!([{"type": "text", "text": text}]));
    assert!(!sent.contains("base64,"), "{sent}");
}

/// Images of prompts are prepared, too, with a note after a blank line; those of queued messages at delivery.
#[test]
fn images_of_prompts_are_prepared() {
    let (home, server) =
        home_with_eyes([Reply::stream(sse::answer("One.")), Reply::stream(sse::answer("Two."))]);
    let image =
        json!({"type": "image", "data": BASE64_STANDARD.encode(bitmap(2500, 500)), "mimeType": "image/png"});
    let mut daemon = Daemon::start(&home, &[]);
    daemon.done(json!({"type": "follow_up", "message": "Later.", "images": [image]}));
    daemon.send(&json!({"id": "p", "type": "prompt", "message": "Now.", "images": [image]}));
    let events = daemon.settled();
    let users = ended(&events, "user");
    for (user, words) in users.iter().zip(["Now.", "Later."]) {
        assert_eq!(
            text(user),
            format!(
                "{words}\n\n[Image converted from image/bmp to image/png.]\n[Image: original 2500x500, displayed at \
                 2000x400. Multiply coordinates by 1.25 to map to original image.]"
            )
        );
        assert_eq!(png_size(&user["content"][1]["data"]), (2000, 400));
    }
    assert_eq!((users.len(), server.requests().len()), (2, 2));
}

#[test]
fn the_setting_leaves_images_in_their_size() {
    let (home, server) = home_with_eyes(reading("photo"));
    home.settings(&json!({"images": {"autoResize": false}}));
    std::fs::write(home.project().join("photo"), bitmap(2500, 10)).unwrap();
    let (content, _) = read(&home, &server);
    // Formats that no model accepts are converted nevertheless.
    assert_eq!(
        content[0]["text"],
        "Read image file [image/png]\n[Image converted from image/bmp to image/png.]"
    );
    assert_eq!(png_size(&content[1]["data"]), (2500, 10));
}

/// The interactive client gives the terminal the image once, and cells of its id where it stands; other terminals get its name.
#[test]
fn a_terminal_that_draws_images_gets_them() {
    let (home, server) = home_with_eyes([Reply::stream(sse::answer("A pixel."))]);
    let service = Service::start(&home, &[]);
    let mut client = service.client();
    let opened = client.done(json!({"type": "open_session", "cwd": home.project(), "env": {}}));
    let image = json!({"type": "image", "data": PIXEL, "mimeType": "image/png"});
    client.done(json!({"type": "prompt", "message": "Look.", "images": [image]}));
    client.event("agent_settled");
    assert_eq!(server.requests().len(), 1);
    let id = opened["sessionId"].as_str().unwrap();
    let shown = |term: &str| {
        let variables = [("TERM", term), ("COLORTERM", "truecolor")];
        let program = binaries::agentctl();
        let size = Some((80, 24));
        let mut terminal = Terminal::start_with(&home, &program, &["attach", id], size, &variables);
        terminal.wait_for("pixel.");
        terminal.press("\u{4}");
        let ended = terminal.finish();
        assert_eq!(ended.code, 0, "{ended:?}");
        ended.stdout
    };
    let kitty = shown("xterm-kitty");
    assert!(kitty.contains("\u{1b}_Ga=T,U=1,f=100,q=2,i=") && kitty.contains(",c=1,r=1,m=0;"), "{kitty}");
    assert_eq!(kitty.matches(PIXEL).count(), 1, "{kitty}");
    assert!(kitty.contains("\u{10EEEE}\u{305}\u{305}"), "{kitty}");
    let forgotten = kitty.find("\u{1b}_Ga=d,d=I,").expect("the terminal forgets the image");
    assert!(forgotten < kitty.rfind("\u{1b}[?1049l").unwrap(), "{kitty}");
    let other = shown("xterm-256color");
    assert!(other.contains("[image/png, 1 × 1]") && !other.contains("\u{1b}_G"), "{other}");
}
