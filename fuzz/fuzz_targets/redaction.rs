#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| agentd_fuzz::hold(agentd_http::fuzz::LAWS, "redaction", data));
