#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| agentd_fuzz::hold(agentd_tools::fuzz::LAWS, "ignore_files", data));
