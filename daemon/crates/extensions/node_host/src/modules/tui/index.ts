/** The exports of pi-tui. */
import { unavailableAll } from "../unavailable.ts";
import { CombinedAutocompleteProvider } from "./autocomplete.ts";
import * as colors from "./colors.ts";
import { Box, Container, MouseRegion, Spacer, Text, TruncatedText } from "./components/component.ts";
import { Editor } from "./components/editor.ts";
import { Image, setImageTranscoder } from "./components/image.ts";
import { Input } from "./components/input.ts";
import { CancellableLoader, Loader } from "./components/loader.ts";
import { Markdown, Marked, renderLatex } from "./components/markdown.ts";
import { SelectList } from "./components/select_list.ts";
import { SettingsList } from "./components/settings_list.ts";
import { HStack, ScrollView, VStack } from "./components/stacks.ts";
import { replaceControlCharacters, stripTerminalSequences } from "./escapes.ts";
import { fuzzyFilter, fuzzyMatch } from "./fuzzy.ts";
import * as imageSize from "./image_size.ts";
import * as keybindings from "./keybindings.ts";
import * as keys from "./keys.ts";
import { getOsc8LinkAtColumn, sliceByColumn, truncateToWidth } from "./slice.ts";
import { StdinBuffer } from "./stdin_buffer.ts";
import * as terminal from "./terminal.ts";
import * as terminalImage from "./terminal_image.ts";
import { visibleWidth } from "./width.ts";
import { wrapTextWithAnsi } from "./wrap.ts";

export const TUI_PACKAGE = "@earendil-works/pi-tui";

/** Exports that need a terminal, and OKHSL colors. */
const UNAVAILABLE = ["ProcessTerminal", "TuiAltScreen", "TuiMainScreen", "colorToOkhsl", "okhslColor"];

export function createTuiModule(): Record<string, unknown> {
  return {
    ...unavailableAll(TUI_PACKAGE, UNAVAILABLE),
    ...colors,
    ...imageSize,
    ...keybindings,
    ...keys,
    ...terminal,
    ...terminalImage,
    Box,
    CancellableLoader,
    CombinedAutocompleteProvider,
    Container,
    Editor,
    HStack,
    Image,
    Input,
    Loader,
    Markdown,
    Marked,
    MouseRegion,
    ScrollView,
    SelectList,
    SettingsList,
    Spacer,
    StdinBuffer,
    Text,
    TruncatedText,
    VStack,
    fuzzyFilter,
    fuzzyMatch,
    getOsc8LinkAtColumn,
    renderLatex,
    replaceControlCharacters,
    setImageTranscoder,
    sliceByColumn,
    stripTerminalSequences,
    truncateToWidth,
    visibleWidth,
    wrapTextWithAnsi,
  };
}
