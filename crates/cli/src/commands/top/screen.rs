//! What the live view shows, as a function of its state alone.

use std::cmp::Reverse;

use live::{Named, NamedRow, Way};
use model::State;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout as Areas, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Block, Clear, Paragraph};
use render::{Layout, neutral, top};

/// What rows are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Time.
    Time,
    /// How many.
    Count,
    /// The mean.
    Mean,
    /// The longest.
    Longest,
    /// VM and vCPU.
    Vcpu,
}

/// What the view is about to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Does {
    /// Go on.
    Goes,
    /// End.
    Ends,
}

/// A key, as far as the view knows keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pressed {
    /// A letter.
    Letter(char),
    /// Escape.
    Escape,
    /// Enter.
    Enter,
    /// The key that takes a letter back.
    Back,
    /// A line up.
    Up,
    /// A line down.
    Down,
    /// A page up.
    PageUp,
    /// A page down.
    PageDown,
    /// To the beginning.
    Home,
}

/// All that the view depends on.
#[derive(Debug, Clone)]
pub(super) struct View {
    /// What was counted last.
    pub(super) named: Named,
    /// Names of the VMs.
    pub(super) warnings: Vec<String>,
    pub(super) order: Order,
    /// Whether rows are of each vCPU.
    pub(super) expanded: bool,
    pub(super) paused: bool,
    pub(super) help: bool,
    /// The part that is scrolled: 1 exits, and so on.
    pub(super) from: usize,
    /// Only VMs whose name has this.
    pub(super) filter: String,
    /// Whether the filter is being typed.
    pub(super) typing: bool,
}

const HELP: &str = "\
 t c m x v  sort exits by time, count, mean, longest, vCPU
 e          a row for each vCPU, or for each VM
 f or /     show VMs whose name has what you type; Enter ends, Esc clears
 p or space pause, go on
 arrows     scroll; PgUp, PgDn, Home
 ? or h     this help
 q          quit";

impl View {
    /// Returns a view of nothing yet.
    pub(super) fn new() -> View {
        View {
            named: Named::default(),
            warnings: Vec::new(),
            order: Order::Time,
            expanded: true,
            paused: false,
            help: false,
            from: 0,
            filter: String::new(),
            typing: false,
        }
    }

    /// Takes a key.
    pub(super) fn press(&mut self, key: Pressed) -> Does {
        const PAGE: usize = 10;
        if self.typing {
            match key {
                Pressed::Letter(letter) if !letter.is_control() => self.filter.push(letter),
                Pressed::Back => {
                    self.filter.pop();
                }
                Pressed::Escape => {
                    self.filter.clear();
                    self.typing = false;
                }
                Pressed::Enter => self.typing = false,
                _ => {}
            }
            return Does::Goes;
        }
        match key {
            Pressed::Letter('q') => return Does::Ends,
            Pressed::Letter('?' | 'h') => self.help = !self.help,
            Pressed::Escape if self.help => self.help = false,
            Pressed::Escape => self.filter.clear(),
            Pressed::Letter('t') => self.order = Order::Time,
            Pressed::Letter('c') => self.order = Order::Count,
            Pressed::Letter('m') => self.order = Order::Mean,
            Pressed::Letter('x') => self.order = Order::Longest,
            Pressed::Letter('v') => self.order = Order::Vcpu,
            Pressed::Letter('e') => self.expanded = !self.expanded,
            Pressed::Letter('p' | ' ') => self.paused = !self.paused,
            Pressed::Letter('f' | '/') => self.typing = true,
            Pressed::Up => self.from = self.from.saturating_sub(1),
            Pressed::Down => self.from += 1,
            Pressed::PageUp => self.from = self.from.saturating_sub(PAGE),
            Pressed::PageDown => self.from += PAGE,
            Pressed::Home => self.from = 0,
            _ => {}
        }
        Does::Goes
    }

    /// Returns what is shown: sorted, and of the VMs that are wanted.
    fn shown(&self) -> Named {
        let mut named = self.named.clone();
        let wanted = |vm: &str| vm.contains(self.filter.as_str());
        named.vcpus.retain(|vcpu| wanted(&vcpu.whose.vm));
        named.rows.retain(|row| wanted(&row.whose.vm));
        named.threads.retain(|one| wanted(&one.whose.vm));
        named.behind.retain(|one| wanted(&one.whose.vm));
        let time = |row: &NamedRow| row.durations.total_ns;
        match self.order {
            Order::Time => named.rows.sort_by_key(|row| Reverse(time(row))),
            Order::Count => named.rows.sort_by_key(|row| Reverse(row.durations.count)),
            Order::Mean => named
                .rows
                .sort_by_key(|row| Reverse(row.durations.mean_ns())),
            Order::Longest => named.rows.sort_by_key(|row| Reverse(row.durations.max_ns)),
            Order::Vcpu => named
                .rows
                .sort_by(|a, b| (a.whose.cmp(&b.whose)).then_with(|| time(b).cmp(&time(a)))),
        }
        named
    }

    fn status(&self, named: &Named) -> String {
        let vms = {
            let mut vms: Vec<&str> = named
                .vcpus
                .iter()
                .map(|vcpu| vcpu.whose.vm.as_str())
                .collect();
            vms.dedup();
            vms.len()
        };
        let exits: u64 = named.vcpus.iter().map(|vcpu| vcpu.vcpu.exits).sum();
        let rate = exits as f64 * 1e9 / named.interval_ns.max(1) as f64;
        let steal: u64 = named
            .vcpus
            .iter()
            .map(|vcpu| vcpu.vcpu.times.get(State::Runnable))
            .sum();
        let all: u64 = named.vcpus.iter().map(|vcpu| vcpu.vcpu.times.total()).sum();
        let mut status = format!(
            "trapline top: {vms} VMs, {} vCPUs, {rate:.0} exits/s, {:.1} % of their time waiting for a CPU",
            named.vcpus.len(),
            100.0 * steal as f64 / all.max(1) as f64
        );
        if self.paused {
            status.push_str("  PAUSED");
        }
        if named.way != Way::Bpf {
            status.push_str(&format!("; counted {}", top::way(named)));
        }
        status
    }

    fn foot(&self) -> String {
        match (self.typing, self.filter.is_empty()) {
            (true, _) => format!("VMs with: {}_", self.filter),
            (false, false) => format!("VMs with: {}  (Esc: all)   ? help  q quit", self.filter),
            (false, true) => {
                "? help  q quit  p pause  f filter  e each vCPU  t c m x v sort".to_owned()
            }
        }
    }
}

/// Draws the view.
pub(super) fn draw(frame: &mut Frame<'_>, view: &View) {
    let named = view.shown();
    let area = frame.area();
    let layout = Layout {
        width: area.width.into(),
        limit: usize::MAX,
        nanoseconds: true,
    };
    let parts = top::parts(&named, layout);
    let lines = |part: &top::Part| part.lines.len() as u16;
    let [vcpus, exits, told, threads, behind] = &parts;
    // vCPUs and what stands last have as much as they need up to a part of the screen, and exits the rest.
    let third = area.height / 3;
    let sized = |part: &top::Part, most: u16| match part.lines.is_empty() {
        true => 0,
        false => (lines(part) + 2).min(most.max(3)),
    };
    let areas = Areas::vertical([
        Constraint::Length(1),
        Constraint::Length(sized(vcpus, third)),
        Constraint::Min(3),
        Constraint::Length(sized(told, area.height / 8)),
        Constraint::Length(sized(threads, area.height / 8)),
        Constraint::Length(sized(behind, area.height / 8)),
        Constraint::Length(1),
    ]);
    let [status, a, b, c, d, e, foot] = areas.areas(area);
    let bold = Style::new().add_modifier(Modifier::BOLD);
    frame.render_widget(Line::styled(view.status(&named), bold), status);
    for (part, area, from) in [
        (vcpus, a, 0),
        (exits, b, view.from),
        (told, c, 0),
        (threads, d, 0),
        (behind, e, 0),
    ] {
        table(frame, part, area, from);
    }
    let warning = view
        .warnings
        .first()
        .map(|warning| format!("warning: {warning}"));
    frame.render_widget(Line::from(warning.unwrap_or_else(|| view.foot())), foot);
    if view.help {
        help(frame, area);
    }
}

/// Draws a table: its title with how many rows have no room, its headings, its rows from one on.
fn table(frame: &mut Frame<'_>, part: &top::Part, area: Rect, from: usize) {
    if area.height < 3 && part.lines.is_empty() {
        return;
    }
    let room = usize::from(area.height.saturating_sub(2));
    let from = from.min(part.lines.len().saturating_sub(room));
    let mut title = part.title.to_owned();
    if part.lines.len() > room {
        title = format!(
            "{title} ({}-{} of {})",
            from + 1,
            from + room,
            part.lines.len()
        );
    }
    let dim = Style::new().add_modifier(Modifier::DIM);
    let heading = Style::new().add_modifier(Modifier::REVERSED);
    let mut text = Text::from(Line::styled(title, dim));
    let width = usize::from(area.width);
    text.push_line(Line::styled(format!("{:<width$}", part.head), heading));
    for line in part.lines.iter().skip(from).take(room) {
        // Names are neutral in their cells already.
        text.push_line(Line::raw(neutral::name(line).into_owned()));
    }
    frame.render_widget(Paragraph::new(text), area);
}

fn help(frame: &mut Frame<'_>, area: Rect) {
    let lines = HELP.lines().count() as u16 + 2;
    let width = HELP.lines().map(str::len).max().unwrap_or(0) as u16 + 3;
    let place = area.centered(
        Constraint::Length(width.min(area.width)),
        Constraint::Length(lines.min(area.height)),
    );
    frame.render_widget(Clear, place);
    frame.render_widget(
        Paragraph::new(HELP).block(Block::bordered().title("keys")),
        place,
    );
}

#[cfg(test)]
mod tests {
    use analysis::ExitTable;
    use live::{Durations, NamedBehind, NamedVcpu, Table, Vcpu, Whose};
    use model::{Polls, Times};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    fn whose(vm: &str, vcpu: u32) -> Whose {
        Whose {
            vm: vm.to_owned(),
            vm_pid: 10,
            vm_name: Some(vm.to_owned()),
            vcpu: Some(vcpu),
            tid: Some(11 + vcpu.cast_signed()),
        }
    }

    fn durations(count: u64, mean_ns: u64, max_ns: u64) -> Durations {
        Durations {
            count,
            total_ns: count * mean_ns,
            max_ns,
            buckets: vec![0; 40],
        }
    }

    fn row(vm: &str, key: &str, durations: Durations) -> NamedRow {
        NamedRow {
            table: Table::Of(ExitTable::Vmexit),
            whose: whose(vm, 0),
            key: key.to_owned(),
            name: None,
            waiting: key == "HLT",
            durations,
            min_ns: None,
            user_count: 0,
            whole_ns: 0,
            times: Times::default(),
        }
    }

    fn view() -> View {
        let mut times = Times::default();
        times.add(State::Guest, 750_000_000);
        times.add(State::Runnable, 250_000_000);
        let vcpu = |vm: &str| NamedVcpu {
            whose: whose(vm, 0),
            vcpu: Vcpu {
                tid: 11,
                pid: 10,
                number: Some(0),
                ended: false,
                times,
                exits: 1200,
                before_first_entry: 0,
                without_entry: 0,
                polls: Polls::default(),
                woken: durations(1, 5000, 5000),
                preempted: Durations::default(),
            },
        };
        View {
            named: Named {
                interval_ns: 1_000_000_000,
                vcpus: vec![vcpu("db"), vcpu("web")],
                rows: vec![
                    row("web", "HLT", durations(10, 50_000_000, 60_000_000)),
                    row("web", "MSR_WRITE", durations(1000, 2_000, 90_000_000)),
                    row("db", "EPT_VIOLATION", durations(2, 70_000_000, 80_000_000)),
                ],
                behind: vec![NamedBehind {
                    whose: whose("web", 0),
                    comm: Some("ksoftirqd/1".to_owned()),
                    count: 3,
                    ns: 250_000_000,
                    ..NamedBehind::default()
                }],
                ..Named::default()
            },
            ..View::new()
        }
    }

    fn screen(view: &View, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(140, height)).unwrap();
        terminal.draw(|frame| draw(frame, view)).unwrap();
        let buffer = terminal.backend().buffer();
        let rows = buffer.content.chunks(140);
        let rows = rows.map(|cells| cells.iter().map(|cell| cell.symbol()).collect::<String>());
        rows.map(|row| row.trim_end().to_owned()).collect()
    }

    /// The lines that have one of these words, by the first that they have.
    fn order<'w>(lines: &[String], words: &[&'w str]) -> Vec<&'w str> {
        let found = |line: &String| words.iter().find(|word| line.contains(**word)).copied();
        lines.iter().filter_map(found).collect()
    }

    #[test]
    fn the_screen_has_states_exits_and_who_ran_instead() {
        let lines = screen(&view(), 30);
        assert!(
            lines[0].contains("2 VMs, 2 vCPUs, 2400 exits/s, 25.0 % of their time waiting"),
            "{}",
            lines[0]
        );
        let text = lines.join("\n");
        for part in [
            "75.0",
            "25.0",
            "MSR_WRITE",
            "(waiting)",
            "ksoftirqd/1",
            "q quit",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    }

    #[test]
    fn keys_sort() {
        const KEYS: [&str; 3] = ["HLT", "MSR_WRITE", "EPT_VIOLATION"];
        let mut view = view();
        for (key, expected) in [
            ('t', ["HLT", "EPT_VIOLATION", "MSR_WRITE"]),
            ('c', ["MSR_WRITE", "HLT", "EPT_VIOLATION"]),
            ('m', ["EPT_VIOLATION", "HLT", "MSR_WRITE"]),
            ('x', ["MSR_WRITE", "EPT_VIOLATION", "HLT"]),
            ('v', ["EPT_VIOLATION", "HLT", "MSR_WRITE"]),
        ] {
            assert_eq!(view.press(Pressed::Letter(key)), Does::Goes);
            assert_eq!(order(&screen(&view, 30), &KEYS), expected, "{key}");
        }
        assert_eq!(view.press(Pressed::Letter('q')), Does::Ends);
    }

    #[test]
    fn a_filter_leaves_other_vms_out_and_keys_are_letters_while_it_is_typed() {
        let mut view = view();
        for key in ['f', 'd', 'q', 'b'] {
            assert_eq!(view.press(Pressed::Letter(key)), Does::Goes);
        }
        assert!(screen(&view, 30).join("\n").contains("VMs with: dqb_"));
        view.press(Pressed::Back);
        view.press(Pressed::Back);
        view.press(Pressed::Enter);
        let text = screen(&view, 30).join("\n");
        assert!(
            text.contains("1 VMs, 1 vCPUs") && !text.contains("MSR_WRITE"),
            "{text}"
        );
        view.press(Pressed::Escape);
        assert!(screen(&view, 30).join("\n").contains("MSR_WRITE"));
    }

    #[test]
    fn help_covers_and_goes() {
        let mut view = view();
        view.press(Pressed::Letter('?'));
        assert!(screen(&view, 30).join("\n").contains("sort exits by time"));
        view.press(Pressed::Escape);
        assert!(!screen(&view, 30).join("\n").contains("sort exits by time"));
    }

    #[test]
    fn small_screens_and_long_lists_are_drawn_too() {
        let mut view = view();
        for number in 0..500 {
            let key = format!("UNKNOWN({number})");
            view.named.rows.push(row("web", &key, durations(1, 1, 1)));
        }
        for height in [1, 2, 3, 5, 8, 24] {
            view.from = usize::MAX / 2;
            assert_eq!(screen(&view, height).len(), usize::from(height));
        }
        let text = screen(&view, 24).join("\n");
        assert!(
            text.contains("of 503)") && text.contains("UNKNOWN(499)"),
            "{text}"
        );
    }
}
