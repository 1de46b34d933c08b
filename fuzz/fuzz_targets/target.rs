//! The source of every target: each program holds the law that it is named after.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| agentd_fuzz::hold(env!("CARGO_BIN_NAME"), data));
