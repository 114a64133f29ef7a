//! The terminal in raw mode, on its alternate screen.

use std::io::{self, Stdout};

use crossterm::event::{Event, EventStream, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use crossterm::{cursor, execute};
use futures_util::StreamExt as _;
use ratatui::backend::CrosstermBackend;
use ratatui::{Frame, Terminal};

use crate::terminal::paint::{Paint, When};

/// The screen of a running view. Dropping it restores what was on the terminal before.
pub(crate) struct FullScreen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    keys: EventStream,
    pub(crate) paint: Paint,
}

/// What the user does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Input {
    Key(KeyCode),
    /// The terminal has another size.
    Resized,
    /// Ctrl-C, which is no signal in raw mode.
    Interrupt,
}

impl FullScreen {
    pub(crate) fn enter(colour: When) -> io::Result<Self> {
        let paint = Paint::new(colour, &io::stdout());
        enable_raw_mode()?;
        let entered = execute!(io::stdout(), EnterAlternateScreen, cursor::Hide)
            .and_then(|()| Terminal::new(CrosstermBackend::new(io::stdout())));
        match entered {
            Ok(terminal) => Ok(Self { terminal, keys: EventStream::new(), paint }),
            Err(error) => {
                restore();
                Err(error)
            }
        }
    }

    pub(crate) fn draw(&mut self, view: impl FnOnce(&mut Frame<'_>, Paint)) -> io::Result<()> {
        let paint = self.paint;
        self.terminal.draw(|frame| view(frame, paint)).map(drop)
    }

    /// The next input. Never completes if the terminal sends none any more.
    pub(crate) async fn input(&mut self) -> Input {
        loop {
            match self.keys.next().await {
                Some(Ok(Event::Key(key))) if key.kind != KeyEventKind::Release => return input(key),
                Some(Ok(Event::Resize(..))) => return Input::Resized,
                Some(Ok(_)) => {}
                Some(Err(_)) | None => std::future::pending().await,
            }
        }
    }
}

fn input(key: KeyEvent) -> Input {
    match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Input::Interrupt,
        code => Input::Key(code),
    }
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        restore();
    }
}

/// Nothing can be done if this fails: the terminal is probably gone.
fn restore() {
    drop(execute!(io::stdout(), LeaveAlternateScreen, cursor::Show));
    drop(disable_raw_mode());
}
