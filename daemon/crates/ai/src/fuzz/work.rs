//! Long answers take work in proportion to their length. Counted, not timed: every byte that is copied, or parsed into a value,
//! is allocated first.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    sync::Arc,
};

use agentd_protocol::{event::MessageUpdate, message::ContentBlock, model::Model};

use super::{
    APIS, decode,
    work::bodies::{Content, body},
};
use crate::Accumulator;

#[path = "../../examples/stream_speed/bodies.rs"]
mod bodies;

thread_local! {
    static ALLOCATED: Cell<usize> = const { Cell::new(0) };
}

/// The allocator of these tests: counts what each thread asks for.
struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

fn count(bytes: usize) {
    // A thread that ends has no counter any more.
    let _ = ALLOCATED.try_with(|counter| counter.set(counter.get().wrapping_add(bytes)));
}

#[expect(unsafe_code, reason = "what an allocator is; everything is passed on as it came")]
// SAFETY: the system's allocator does all of the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller fulfils the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the caller fulfils the contract of the method.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        // SAFETY: the caller fulfils the contract of the method.
        unsafe { System.realloc(place, layout, size) }
    }
}

/// The bytes that are allocated on the way from an answer in such pieces to the JSON of its events, and the answer's only block.
fn work(api: &str, content: Content, text: &str, piece: usize) -> (usize, ContentBlock) {
    let mut pieces = text.as_bytes().chunks(piece).map(|piece| String::from_utf8_lossy(piece).into_owned());
    let body = body(api, content, &mut pieces)
        .unwrap_or_else(|| panic!("examples/stream_speed/bodies.rs has no answers of {api}"));
    let chunks: Vec<&[u8]> = body.chunks(16 * 1024).collect();
    let before = ALLOCATED.get();
    let mut accumulator = Accumulator::new(Arc::new(Model::placeholder()), 0);
    let mut line = Vec::new();
    for delta in decode(api, &chunks) {
        if let Some(assistant_message_event) = accumulator.fold(delta) {
            line.clear();
            let usage = accumulator.usage_json();
            serde_json::to_writer(&mut line, &MessageUpdate { usage, assistant_message_event }).unwrap();
        }
    }
    let mut message = accumulator.into_message();
    let done = ALLOCATED.get().wrapping_sub(before);
    assert_eq!(message.content.len(), 1, "{api}: {:?}", message.error_message);
    (done, message.content.remove(0))
}

fn arguments(length: usize) -> String {
    format!(r#"{{"path":"a.txt","content":"{}"}}"#, "fn main() {}\\n".repeat(length / 14))
}

fn arguments_work(api: &str, length: usize, piece: usize) -> usize {
    let text = arguments(length);
    let (done, block) = work(api, Content::Arguments, &text, piece);
    let expected: serde_json::Value = serde_json::from_str(&text).unwrap();
    let ContentBlock::ToolCall(call) = block else { panic!("{api}: {block:?}") };
    assert_eq!(serde_json::Value::Object(call.arguments), expected, "{api}");
    done
}

#[test]
fn arguments_in_tiny_pieces_take_linear_work() {
    for &api in APIS {
        let (half, whole) = (arguments_work(api, 32 * 1024, 4), arguments_work(api, 64 * 1024, 4));
        assert!(whole < half * 9 / 4, "{api}: {half} bytes for half of it, {whole} for all");
        // The work that does not depend on the number of pieces is a few copies of the text.
        let at_once = arguments_work(api, 1024 * 1024, 1024 * 1024);
        assert!(at_once < 40 * 1024 * 1024, "{api}: {at_once} bytes for arguments in one piece");
    }
}

#[test]
fn text_in_tiny_pieces_takes_linear_work() {
    for &api in APIS {
        let [half, whole] = [32 * 1024, 64 * 1024].map(|length| {
            let text = "word".repeat(length / 4);
            let (done, block) = work(api, Content::Text, &text, 4);
            assert_eq!(block.as_text(), Some(text.as_str()), "{api}");
            done
        });
        assert!(whole < half * 9 / 4, "{api}: {half} bytes for half of it, {whole} for all");
    }
}
