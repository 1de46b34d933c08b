#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| agentd_fuzz::hold(agentd_store::fuzz::LAWS, "ledgers", data));
