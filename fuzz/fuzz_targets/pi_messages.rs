#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| agentd_ai::fuzz::answer("pi-messages", data));
