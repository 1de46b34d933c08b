//! Opening addresses in a browser.

use std::{
    env,
    process::{Command, Stdio},
};

/// Whether a browser window would be visible.
pub(super) fn has_screen() -> bool {
    let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
    cfg!(target_os = "macos") || is_set("DISPLAY") || is_set("WAYLAND_DISPLAY")
}

/// Opens a browser. When that fails, the address is on the screen.
pub(super) fn open(url: &str) {
    // agentd sends no other addresses, but a program that opens files must never get one.
    if !url.starts_with("https://") && !url.starts_with("http://") {
        return;
    }
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(program);
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Ok(mut browser) = command.spawn() {
        // Reaps the browser, which may live long.
        std::thread::spawn(move || browser.wait());
    }
}
