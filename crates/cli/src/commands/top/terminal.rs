//! The live view on a terminal.

use std::time::{Duration, Instant};

use anyhow::Result;
use counts::Choice;
use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui_core::terminal::Terminal;

use super::backend::ScreenBackend;
use super::screen::{PressedKey, ScreenAction, View, draw};
use super::watch::Watch;

/// How often it is looked which VMs there are.
const LOOK: Duration = Duration::from_secs(10);

/// Shows what is counted until the user ends it. The terminal is as before afterwards, after a panic too.
pub(super) fn run(mut watch: Watch, interval: Duration, choice: Choice) -> Result<()> {
    let mut terminal = Terminal::new(ScreenBackend::open()?)?;
    show(&mut terminal, &mut watch, interval, choice)
}

fn show(
    terminal: &mut Terminal<ScreenBackend>,
    watch: &mut Watch,
    interval: Duration,
    mut choice: Choice,
) -> Result<()> {
    let mut view = View::new();
    view.expanded = !choice.by_vm;
    view.warnings = watch.warnings();
    let mut looked = Instant::now();
    let mut next = Instant::now();
    let mut last = None;
    loop {
        if Instant::now() >= next {
            next = Instant::now() + interval;
            let counted = watch.interval()?;
            if looked.elapsed() >= LOOK {
                looked = Instant::now();
                watch.look()?;
            }
            if !view.paused {
                last = Some(counted);
            }
        }
        if let Some(counted) = &last {
            choice.by_vm = !view.expanded;
            view.named = watch.named(counted, &choice);
        }
        terminal.draw(|frame| draw(frame, &view))?;
        if event::poll(next.saturating_duration_since(Instant::now()))?
            && let Event::Key(key) = event::read()?
            && let Some(pressed) = pressed(key)
            && view.press(pressed) == ScreenAction::Ends
        {
            return Ok(());
        }
    }
}

fn pressed(key: KeyEvent) -> Option<PressedKey> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    Some(match key.code {
        KeyCode::Char('c' | 'd') if key.modifiers.contains(KeyModifiers::CONTROL) => {
            PressedKey::Letter('q')
        }
        KeyCode::Char(letter) => PressedKey::Letter(letter),
        KeyCode::Esc => PressedKey::Escape,
        KeyCode::Enter => PressedKey::Enter,
        KeyCode::Backspace => PressedKey::Back,
        KeyCode::Up => PressedKey::Up,
        KeyCode::Down => PressedKey::Down,
        KeyCode::Left => PressedKey::Left,
        KeyCode::Right => PressedKey::Right,
        KeyCode::PageUp => PressedKey::PageUp,
        KeyCode::PageDown => PressedKey::PageDown,
        KeyCode::Home => PressedKey::Home,
        _ => return None,
    })
}
