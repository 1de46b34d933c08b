//! The laws of all crates, by name.

/// The laws of each crate that has some.
const LAWS: [&[(&str, fn(&[u8]))]; 13] = [
    agentd_protocol::fuzz::LAWS,
    agentd_ai::fuzz::LAWS,
    agentd_http::fuzz::LAWS,
    agentd_auth::fuzz::LAWS,
    agentd_config::fuzz::LAWS,
    agentd_store::fuzz::LAWS,
    agentd_export_html::fuzz::LAWS,
    agentd_images::fuzz::LAWS,
    agentd_policy::fuzz::LAWS,
    agentd_process::fuzz::LAWS,
    agentd_tools::fuzz::LAWS,
    agentd_agent::fuzz::LAWS,
    agentd_mcp::fuzz::LAWS,
];

/// Holds the law `name` against an input.
///
/// # Panics
/// When the input breaks the law, or there is no law of that name.
pub fn hold(name: &str, input: &[u8]) {
    let law = LAWS.iter().copied().flatten().find(|(known, _)| *known == name).map(|(_, law)| law);
    law.unwrap_or_else(|| panic!("no law {name}"))(input);
}
