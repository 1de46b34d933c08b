#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| agentd_fuzz::hold(agentd_images::fuzz::LAWS, "images", data));
