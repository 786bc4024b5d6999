//! The terminal that the live view is drawn on: what `ratatui-core` asks of one, by `crossterm`.
//!
//! `ratatui-crossterm` has the same for any program. It brings the colours, calendars and Windows consoles of others
//! with it, 22 packages, and the view uses attributes of text alone.

use std::io::{self, Stdout, Write, stdout};
use std::panic;
use std::sync::Once;

use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::style::{Attribute, Print, SetAttribute};
use crossterm::terminal::{
    self, Clear, ClearType as Cleared, EnterAlternateScreen, LeaveAlternateScreen,
};
use crossterm::{execute, queue};
use ratatui_core::backend::{Backend, ClearType, WindowSize};
use ratatui_core::buffer::Cell;
use ratatui_core::layout::{Position, Size};
use ratatui_core::style::Modifier;

/// Attributes of text, and how a terminal is asked for them.
const ATTRIBUTES: [(Modifier, Attribute); 5] = [
    (Modifier::BOLD, Attribute::Bold),
    (Modifier::DIM, Attribute::Dim),
    (Modifier::ITALIC, Attribute::Italic),
    (Modifier::UNDERLINED, Attribute::Underlined),
    (Modifier::REVERSED, Attribute::Reverse),
];

/// A terminal's other screen, in raw mode. Both end with this value, and before a panic's message.
#[derive(Debug)]
pub(super) struct ScreenBackend {
    out: Stdout,
}

impl ScreenBackend {
    /// Takes over the terminal of standard output.
    ///
    /// # Errors
    ///
    /// Standard output is no terminal, or cannot be written.
    pub(super) fn open() -> io::Result<ScreenBackend> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = panic::take_hook();
            panic::set_hook(Box::new(move |panicked| {
                restore();
                before(panicked);
            }));
        });
        terminal::enable_raw_mode()?;
        // From here on the terminal is given back, whatever fails.
        let mut backend = ScreenBackend { out: stdout() };
        execute!(backend.out, EnterAlternateScreen)?;
        Ok(backend)
    }
}

impl Drop for ScreenBackend {
    fn drop(&mut self) {
        restore();
    }
}

/// Gives the terminal back as it was. Nobody is left to hear of an error.
fn restore() {
    let _ = terminal::disable_raw_mode();
    let _ = execute!(stdout(), LeaveAlternateScreen, Show);
}

impl Backend for ScreenBackend {
    type Error = io::Error;

    fn draw<'a, I>(&mut self, content: I) -> io::Result<()>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        let mut modifier = Modifier::empty();
        let mut next = None;
        for (x, y, cell) in content {
            // Printing moves the cursor on by one.
            if next != Some((x, y)) {
                queue!(self.out, MoveTo(x, y))?;
            }
            next = Some((x.saturating_add(1), y));
            if cell.modifier != modifier {
                modifier = cell.modifier;
                queue!(self.out, SetAttribute(Attribute::Reset))?;
                for (_, attribute) in ATTRIBUTES.iter().filter(|(of, _)| modifier.contains(*of)) {
                    queue!(self.out, SetAttribute(*attribute))?;
                }
            }
            queue!(self.out, Print(cell.symbol()))?;
        }
        queue!(self.out, SetAttribute(Attribute::Reset))
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        execute!(self.out, Hide)
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        execute!(self.out, Show)
    }

    fn get_cursor_position(&mut self) -> io::Result<Position> {
        let (x, y) = crossterm::cursor::position()?;
        Ok(Position { x, y })
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        let Position { x, y } = position.into();
        execute!(self.out, MoveTo(x, y))
    }

    fn clear(&mut self) -> io::Result<()> {
        self.clear_region(ClearType::All)
    }

    fn clear_region(&mut self, region: ClearType) -> io::Result<()> {
        let cleared = match region {
            ClearType::All => Cleared::All,
            ClearType::AfterCursor => Cleared::FromCursorDown,
            ClearType::BeforeCursor => Cleared::FromCursorUp,
            ClearType::CurrentLine => Cleared::CurrentLine,
            ClearType::UntilNewLine => Cleared::UntilNewLine,
        };
        execute!(self.out, Clear(cleared))
    }

    fn size(&self) -> io::Result<Size> {
        let (width, height) = terminal::size()?;
        Ok(Size { width, height })
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        Ok(WindowSize {
            columns_rows: self.size()?,
            // Nobody draws pixels.
            pixels: Size::default(),
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
