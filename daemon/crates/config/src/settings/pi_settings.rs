//! Settings of pi that agentd has no use for. Users of both programs share one file, so these are no mistakes.

/// Their names at the top of the file; of these also what is below. Some are of older versions.
pub(super) const OF_REFERENCE: [&str; 36] = [
    "autocompleteMaxVisible",
    "cacheWarming",
    "codemode",
    "collapseChangelog",
    "customTools",
    "deviceId",
    "doubleEscapeAction",
    "editorPaddingX",
    "enableAnalytics",
    "enableInstallTelemetry",
    "extensionChangelogVersions",
    "extensions",
    "externalEditor",
    "fullscreen",
    "hideThinkingBlock",
    "hookTimeout",
    "hooks",
    "lastChangelogVersion",
    "markdown",
    "npmCommand",
    "outputPad",
    "packages",
    "quietStartup",
    "selfUpdateCommand",
    "sessionShareDestination",
    "showCacheMissNotices",
    "showHardwareCursor",
    "terminal",
    "theme",
    "themes",
    "trackingId",
    "treeFilterMode",
    "tuiMode",
    "warnings",
    "websocketConnectTimeoutMs",
    "websockets",
];

/// Returns whether a key at the top of the file is one of pi's.
pub(super) fn is_pi_setting(key: &str) -> bool {
    OF_REFERENCE.contains(&key) || key.starts_with("fullscreen")
}
