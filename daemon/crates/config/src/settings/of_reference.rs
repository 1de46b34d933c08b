//! Settings of the reference that agentd has no use for. Users of both share one file, so that they are no mistakes.

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

/// Whether a key at the top of the file is one of the reference's.
pub(super) fn is_of_reference(key: &str) -> bool {
    OF_REFERENCE.contains(&key) || key.starts_with("fullscreen")
}
