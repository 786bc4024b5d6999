//! What the live view shows, as a function of its state alone.

use std::cmp::Reverse;

use counts::{CountingWay, NamedCounts, NamedRow};
use model::State;
use ratatui_core::layout::{Constraint, Layout as Areas, Rect};
use ratatui_core::style::{Modifier, Style};
use ratatui_core::terminal::Frame;
use ratatui_core::text::{Line, Text};
use ratatui_widgets::block::Block;
use ratatui_widgets::clear::Clear;
use ratatui_widgets::paragraph::Paragraph;
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
pub(super) enum ScreenAction {
    /// Go on.
    Goes,
    /// End.
    Ends,
}

/// A key, as far as the view knows keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PressedKey {
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
    /// Columns to the left.
    Left,
    /// Columns to the right.
    Right,
    /// To the beginning.
    Home,
}

/// All that the view depends on.
#[derive(Debug, Clone)]
pub(super) struct View {
    /// What was counted last.
    pub(super) named: NamedCounts,
    /// Names of the VMs.
    pub(super) warnings: Vec<String>,
    pub(super) order: Order,
    /// Whether rows are of each vCPU.
    pub(super) expanded: bool,
    pub(super) paused: bool,
    pub(super) help: bool,
    /// The part that is scrolled: 1 exits, and so on.
    pub(super) from: usize,
    /// How many columns of the terminal are left out before all tables.
    pub(super) across: usize,
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
 arrows     scroll rows and columns; PgUp, PgDn, Home
 ? or h     this help
 q          quit";

impl View {
    /// Returns a view of nothing yet.
    pub(super) fn new() -> View {
        View {
            named: NamedCounts::default(),
            warnings: Vec::new(),
            order: Order::Time,
            expanded: true,
            paused: false,
            help: false,
            from: 0,
            across: 0,
            filter: String::new(),
            typing: false,
        }
    }

    /// Takes a key.
    pub(super) fn press(&mut self, key: PressedKey) -> ScreenAction {
        const PAGE: usize = 10;
        // Columns of the terminal.
        const ASIDE: usize = 10;
        const MOST_ASIDE: usize = 500;
        if self.typing {
            match key {
                PressedKey::Letter(letter) if !letter.is_control() => self.filter.push(letter),
                PressedKey::Back => {
                    self.filter.pop();
                }
                PressedKey::Escape => {
                    self.filter.clear();
                    self.typing = false;
                }
                PressedKey::Enter => self.typing = false,
                _ => {}
            }
            return ScreenAction::Goes;
        }
        match key {
            PressedKey::Letter('q') => return ScreenAction::Ends,
            PressedKey::Letter('?' | 'h') => self.help = !self.help,
            PressedKey::Escape if self.help => self.help = false,
            PressedKey::Escape => self.filter.clear(),
            PressedKey::Letter('t') => self.order = Order::Time,
            PressedKey::Letter('c') => self.order = Order::Count,
            PressedKey::Letter('m') => self.order = Order::Mean,
            PressedKey::Letter('x') => self.order = Order::Longest,
            PressedKey::Letter('v') => self.order = Order::Vcpu,
            PressedKey::Letter('e') => self.expanded = !self.expanded,
            PressedKey::Letter('p' | ' ') => self.paused = !self.paused,
            PressedKey::Letter('f' | '/') => self.typing = true,
            PressedKey::Up => self.from = self.from.saturating_sub(1),
            PressedKey::Down => self.down(1),
            PressedKey::PageUp => self.from = self.from.saturating_sub(PAGE),
            PressedKey::PageDown => self.down(PAGE),
            PressedKey::Left => self.across = self.across.saturating_sub(ASIDE),
            PressedKey::Right => self.across = (self.across + ASIDE).min(MOST_ASIDE),
            PressedKey::Home => (self.from, self.across) = (0, 0),
            _ => {}
        }
        ScreenAction::Goes
    }

    /// Scrolls down, and not so far beyond the end that the way back takes as many keys.
    fn down(&mut self, rows: usize) {
        let last = self.named.rows.len().saturating_sub(1);
        self.from = self.from.saturating_add(rows).min(last);
    }

    /// Returns what is shown: sorted, and of the VMs that are wanted.
    fn shown(&self) -> NamedCounts {
        let mut named = self.named.clone();
        let wanted = |vm: &str| vm.contains(self.filter.as_str());
        named.vcpus.retain(|vcpu| wanted(&vcpu.whose.vm));
        named.counters.retain(|one| wanted(&one.whose.vm));
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

    fn status(&self, named: &NamedCounts) -> String {
        let vms = {
            let vms = named.vcpus.iter().map(|vcpu| vcpu.whose.vm.as_str());
            let mut vms: Vec<&str> = vms.collect();
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
            "trapline top: {}, {}, {rate:.0} exits/s, {:.1} % of their time waiting for a CPU",
            words::plural(vms as u64, "VM"),
            words::plural(named.vcpus.len() as u64, "vCPU"),
            100.0 * steal as f64 / all.max(1) as f64
        );
        if self.paused {
            status.push_str("  PAUSED");
        }
        if named.way != CountingWay::Bpf {
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
    let [vcpus, counters, exits, notifications, threads, behind] = &parts;
    // vCPUs and what stands last have as much as they need up to a part of the screen, and exits the rest.
    let third = area.height / 3;
    let sized = |part: &top::Part, most: u16| match part.lines.is_empty() {
        true => 0,
        false => (lines(part) + 2).min(most.max(3)),
    };
    let eighth = area.height / 8;
    let others = [
        (behind, eighth),
        (threads, eighth),
        (notifications, eighth),
        (counters, third / 2),
        (vcpus, third),
    ];
    let mut heights = others.map(|(part, most)| sized(part, most));
    // What exits leave is for whoever has more rows than room, those first that say who was in the way.
    let taken = heights
        .iter()
        .fold(lines(exits).saturating_add(4), |sum, one| {
            sum.saturating_add(*one)
        });
    let mut spare = area.height.saturating_sub(taken);
    for ((part, _), height) in others.iter().zip(&mut heights) {
        let more = sized(part, u16::MAX).saturating_sub(*height).min(spare);
        *height += more;
        spare -= more;
    }
    let [
        of_behind,
        of_threads,
        of_notifications,
        of_counters,
        of_vcpus,
    ] = heights.map(Constraint::Length);
    let one = Constraint::Length(1);
    let rest = Constraint::Min(3);
    let areas = Areas::vertical([
        one,
        of_vcpus,
        of_counters,
        rest,
        of_notifications,
        of_threads,
        of_behind,
        one,
    ]);
    let [status, a, counted, b, c, d, e, foot] = areas.areas(area);
    let bold = Style::new().add_modifier(Modifier::BOLD);
    frame.render_widget(Line::styled(view.status(&named), bold), status);
    for (part, area, from) in [
        (vcpus, a, 0),
        (counters, counted, 0),
        (exits, b, view.from),
        (notifications, c, 0),
        (threads, d, 0),
        (behind, e, 0),
    ] {
        table(frame, part, area, (from, view.across));
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

/// Draws a table: its title with how many rows and columns have no room, its headings, its rows from one on, all but
/// for so many columns of the terminal.
fn table(frame: &mut Frame<'_>, part: &top::Part, area: Rect, (from, across): (usize, usize)) {
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
    let width = usize::from(area.width);
    let longest = part.lines.iter().map(|line| line.chars().count()).max();
    let longest = longest.unwrap_or(0);
    if longest > width {
        title.push_str(" (more columns: arrow keys)");
    }
    // No further than to the last column of this table: others may be wider.
    let across = across.min(longest.max(part.head.chars().count()).saturating_sub(width));
    let aside = |line: &str| line.chars().skip(across).collect::<String>();
    let dim = Style::new().add_modifier(Modifier::DIM);
    let heading = Style::new().add_modifier(Modifier::REVERSED);
    let mut text = Text::from(Line::styled(title, dim));
    let head = aside(&part.head);
    text.push_line(Line::styled(format!("{head:<width$}"), heading));
    for line in part.lines.iter().skip(from).take(room) {
        // Names are neutral in their cells already.
        text.push_line(Line::raw(aside(&neutral::name(line))));
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
    use counts::{DurationBuckets, LiveVcpu, NamedBehind, NamedVcpu, RowOwner, RowTable};
    use model::{Polls, Times};
    use ratatui_core::backend::TestBackend;
    use ratatui_core::terminal::Terminal;

    use super::*;

    fn whose(vm: &str, vcpu: u32) -> RowOwner {
        RowOwner {
            vm: vm.to_owned(),
            vm_pid: 10,
            vm_name: Some(vm.to_owned()),
            vcpu: Some(vcpu),
            tid: Some(11 + vcpu.cast_signed()),
        }
    }

    fn durations(count: u64, mean_ns: u64, max_ns: u64) -> DurationBuckets {
        DurationBuckets {
            count,
            total_ns: count * mean_ns,
            max_ns,
            buckets: vec![0; 40],
        }
    }

    fn row(vm: &str, key: &str, durations: DurationBuckets) -> NamedRow {
        NamedRow {
            table: RowTable::Of(ExitTable::Vmexit),
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
            vcpu: LiveVcpu {
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
                preempted: DurationBuckets::default(),
            },
        };
        View {
            named: NamedCounts {
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
                ..NamedCounts::default()
            },
            ..View::new()
        }
    }

    fn screen(view: &View, height: u16) -> Vec<String> {
        narrow_screen(view, 140, height)
    }

    fn narrow_screen(view: &View, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, view)).unwrap();
        let buffer = terminal.backend().buffer();
        let rows = buffer.content.chunks(width.into());
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
            assert_eq!(view.press(PressedKey::Letter(key)), ScreenAction::Goes);
            assert_eq!(order(&screen(&view, 30), &KEYS), expected, "{key}");
        }
        assert_eq!(view.press(PressedKey::Letter('q')), ScreenAction::Ends);
    }

    #[test]
    fn a_filter_leaves_other_vms_out_and_keys_are_letters_while_it_is_typed() {
        let mut view = view();
        for key in ['f', 'd', 'q', 'b'] {
            assert_eq!(view.press(PressedKey::Letter(key)), ScreenAction::Goes);
        }
        assert!(screen(&view, 30).join("\n").contains("VMs with: dqb_"));
        view.press(PressedKey::Back);
        view.press(PressedKey::Back);
        view.press(PressedKey::Enter);
        let text = screen(&view, 30).join("\n");
        assert!(
            text.contains("1 VM, 1 vCPU,") && !text.contains("MSR_WRITE"),
            "{text}"
        );
        view.press(PressedKey::Escape);
        assert!(screen(&view, 30).join("\n").contains("MSR_WRITE"));
    }

    #[test]
    fn help_covers_and_goes() {
        let mut view = view();
        view.press(PressedKey::Letter('?'));
        assert!(screen(&view, 30).join("\n").contains("sort exits by time"));
        view.press(PressedKey::Escape);
        assert!(!screen(&view, 30).join("\n").contains("sort exits by time"));
    }

    #[test]
    fn columns_without_room_are_reached_with_arrows() {
        let mut view = view();
        let text = narrow_screen(&view, 80, 30).join("\n");
        assert!(text.contains("(more columns: arrow keys)"), "{text}");
        assert!(!text.contains("steal max"), "{text}");
        for _ in 0..4 {
            view.press(PressedKey::Right);
        }
        let text = narrow_screen(&view, 80, 30).join("\n");
        assert!(text.contains("steal max"), "{text}");
        view.press(PressedKey::Home);
        let text = narrow_screen(&view, 80, 30).join("\n");
        assert!(text.contains("VM           vCPU"), "{text}");
        let text = narrow_screen(&view, 140, 30).join("\n");
        assert!(!text.contains("more columns"), "{text}");
        for width in [1, 2, 12, 40] {
            assert_eq!(narrow_screen(&view, width, 12).len(), 12);
        }
    }

    #[test]
    fn rows_have_the_room_that_exits_do_not_take() {
        let mut view = view();
        let one = view.named.behind[0].clone();
        for number in 0..9 {
            let comm = Some(format!("task-{number}"));
            let behind = NamedBehind {
                comm,
                ..one.clone()
            };
            view.named.behind.push(behind);
        }
        let text = screen(&view, 40).join("\n");
        assert!(text.contains("task-0") && text.contains("task-8"), "{text}");
    }

    #[test]
    fn whoever_scrolls_beyond_the_end_is_soon_back() {
        let mut view = view();
        for _ in 0..100 {
            view.press(PressedKey::PageDown);
        }
        assert!(view.from < view.named.rows.len());
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
