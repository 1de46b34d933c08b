#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| agentd_fuzz::hold(agentd_process::fuzz::LAWS, "supervisor_frames", data));
