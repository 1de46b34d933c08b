#![no_main]

use agentd_ai::fuzz::{answer, framed};

libfuzzer_sys::fuzz_target!(|data: &[u8]| answer("bedrock-converse-stream", &framed(data)));
