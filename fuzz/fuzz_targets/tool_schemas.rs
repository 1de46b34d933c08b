#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| agentd_agent::fuzz::tool_schemas(data));
