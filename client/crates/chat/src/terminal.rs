//! The terminal while the program has it: raw, on its other screen, and given back whatever happens.

use std::{
    io::{self, Stdout, Write as _},
    sync::atomic::{AtomicBool, Ordering},
};

use crossterm::{
    cursor::Show,
    event::{
        DisableBracketedPaste, EnableBracketedPaste, KeyboardEnhancementFlags, PopKeyboardEnhancementFlags,
        PushKeyboardEnhancementFlags,
    },
    execute,
    style::Print,
    terminal::{
        Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
    },
};
use ratatui_core::{
    backend::Backend as _,
    layout::Rect,
    terminal::{Terminal, TerminalOptions, Viewport},
};
use ratatui_crossterm::CrosstermBackend;

use crate::transcript::CellSize;

/// Reports of buttons and the wheel, in the form for wide screens. Moves are not asked for.
const WHEEL_ON: &str = "\x1b[?1000h\x1b[?1006h";
const WHEEL_OFF: &str = "\x1b[?1006l\x1b[?1000l";

/// What a terminal that does not tell its size is taken for, as programs agree.
const UNTOLD: Rect = Rect::new(0, 0, 80, 24);

/// Whether the terminal is ours now.
static IS_OURS: AtomicBool = AtomicBool::new(false);

/// The terminal. It is given back when this is dropped.
pub(crate) struct Screen {
    pub(crate) terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Screen {
    /// Takes the terminal.
    ///
    /// # Errors
    /// When it cannot be set up.
    pub(crate) fn take() -> io::Result<Self> {
        give_back_at_panics();
        enter()?;
        let terminal = new_terminal().inspect_err(|_| give_back())?;
        Ok(Self { terminal })
    }

    /// Takes the terminal again after it was given back.
    ///
    /// # Errors
    /// When it cannot be set up.
    pub(crate) fn retake(&mut self) -> io::Result<()> {
        enter()?;
        self.clear()
    }

    /// Clears the terminal, so that the next screen is drawn whole.
    ///
    /// # Errors
    /// When the terminal cannot be written.
    pub(crate) fn clear(&mut self) -> io::Result<()> {
        // `Terminal::clear` asks the terminal for the cursor, and keys that are typed meanwhile would be taken for its answer.
        execute!(io::stdout(), Clear(ClearType::All))?;
        self.terminal = new_terminal()?;
        Ok(())
    }

    /// Writes sequences as they are.
    ///
    /// # Errors
    /// When the terminal cannot be written.
    pub(crate) fn put(&self, sequences: &str) -> io::Result<()> {
        if sequences.is_empty() {
            return Ok(());
        }
        let mut out = io::stdout();
        out.write_all(sequences.as_bytes())?;
        out.flush()
    }

    /// Rings the bell.
    ///
    /// # Errors
    /// When the terminal cannot be written.
    pub(crate) fn ring(&self) -> io::Result<()> {
        self.put("\x07")
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

fn new_terminal() -> io::Result<Terminal<CrosstermBackend<Stdout>>> {
    let backend = CrosstermBackend::new(io::stdout());
    let size = backend.size()?;
    if size.width > 0 && size.height > 0 {
        return Terminal::new(backend);
    }
    Terminal::with_options(backend, TerminalOptions { viewport: Viewport::Fixed(UNTOLD) })
}

fn enter() -> io::Result<()> {
    enable_raw_mode()?;
    IS_OURS.store(true, Ordering::SeqCst);
    let keys = PushKeyboardEnhancementFlags(KeyboardEnhancementFlags::DISAMBIGUATE_ESCAPE_CODES);
    execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste, keys, Print(WHEEL_ON))
        .inspect_err(|_| give_back())
}

/// Gives the terminal back, once. A terminal that is gone cannot be helped.
pub(crate) fn give_back() {
    if !IS_OURS.swap(false, Ordering::SeqCst) {
        return;
    }
    let _ = execute!(
        io::stdout(),
        Print(WHEEL_OFF),
        PopKeyboardEnhancementFlags,
        DisableBracketedPaste,
        LeaveAlternateScreen,
        Show
    );
    let _ = disable_raw_mode();
}

/// The pixels of a cell; those of a usual font where the terminal tells its size in cells alone.
pub(crate) fn cell_size() -> Option<CellSize> {
    const USUAL: CellSize = CellSize { width: 8, height: 16 };
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    let told = CellSize {
        width: size.ws_xpixel.checked_div(size.ws_col)?,
        height: size.ws_ypixel.checked_div(size.ws_row)?,
    };
    Some(if told.width > 0 && told.height > 0 { told } else { USUAL })
}

/// Lets a panic print on the screen that stays.
fn give_back_at_panics() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            before(panic);
        }));
    });
}
