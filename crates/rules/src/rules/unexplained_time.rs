//! More time than a tenth of an account is left that no finding explains and no criterion calls normal.

use words::duration::human;
use words::share;

use crate::evidence::{Many, Ns, Of, Share, ThreadMention, says};
use crate::{
    AccountRow, Base, Case, EvidenceNumber, Finding, FindingCost, OPEN_SHARE, Precedence,
    RecordNeeds, Remedy, Rule, RuleLook, Severity, TimeAccount, TimeAccounts, VcpuAccount, Verdict,
};

/// Rows that are listed.
const LISTED: usize = 4;

pub(crate) static RULE: Rule = Rule {
    id: "unexplained-time",
    title: "Time is left that no finding explains",
    described_as: &[
        "time of the VM that nothing explains",
        "performance problem without a known cause",
        "the VM is slow and nobody knows why",
    ],
    looks_at: "two accounts: the vCPUs' observed time, and the CPU time of other threads that work for VMs",
    needs: "kvm_exit and kvm_entry, or what perf kvm stat report prints; sched:sched_switch for waits and threads",
    record: &[RecordNeeds::Exits, RecordNeeds::Sched],
    measures: &[],
    cause: "No rule knows this cause, or what would show it was not recorded. The time is there nevertheless: the row \
        says where.",
    found: &[
        "More than {open} of an account is neither explained by a finding nor normal. A row is normal, as far as no \
         finding explains it, up to a share of its account: time in the guest, and halted time, always; the exits of \
         one reason 12.5 % in KVM and 12.5 % in the VMM (25 % where it is not known in which; of a printed table 75 \
         %); waits for a CPU 12.5 %, halt polling 10 %; sleep outside halts 5 %; a thread that is no vCPU's nine \
         tenths of one CPU. Time of which nothing was \
         recorded is neither. At most `medium`, \
         confidence 0.5: it is certain that the time is there, not that something is wrong.",
        "Where that is not so of all vCPUs together: of a single one, whose rows are normal up to twice these shares \
         (a fifth of sleep outside halts; 37.5 % where it is not known whether KVM or the VMM handled exits), one \
         class of exits being a row. What findings explain is taken for that vCPU's as far as it goes. vCPUs that were \
         observed for less than half of what the longest was are not judged.",
    ],
    limits: &[("open", EvidenceNumber::Share(OPEN_SHARE))],
    seen_from: "{open} of the vCPUs' time, or of that of threads that work for them",
    unknown: "*exits*; *all* for waits and threads.",
    advice: "",
    looks_alike: "",
    remedies: &[Remedy {
        what: "Open the largest row with the command that stands with it.",
        price: "None.",
        unless: "The guest has just started, or the recording is of a moment that is not typical.",
        check: "trapline diagnose of a recording after the change: the row is small, or gone.",
    }],
    sources: &["The account: crates/rules/src/account"],
    explains: &[],
    look: RuleLook::Account(look),
};

fn look(case: &Case<'_>, accounts: &TimeAccounts) -> Verdict {
    if let Some(unknown) = case.in_ticks() {
        return unknown;
    }
    let (vcpus, threads) = (&accounts.vcpus, &accounts.threads);
    if vcpus.observed_ns() == 0 {
        return Verdict::Unknown(
            "Record kvm:kvm_exit, kvm:kvm_entry and sched:sched_switch.".to_owned(),
        );
    }
    let open = |account: &TimeAccount| account.share(account.unexplained_ns()) > OPEN_SHARE;
    let account = match (open(vcpus), open(threads)) {
        (true, _) => vcpus,
        (false, true) => threads,
        (false, false) => return single(case, accounts),
    };
    if let Some(brief) = case.too_brief() {
        return brief;
    }
    let rows = account.unexplained();
    let Some(first) = rows.first() else {
        return Verdict::Clear;
    };
    say(case, account, first, &rows, std::ptr::eq(account, vcpus)).found()
}

/// All vCPUs together are accounted for: whether each of them is.
fn single(case: &Case<'_>, accounts: &TimeAccounts) -> Verdict {
    let unexplained = |one: &&VcpuAccount| one.account.unexplained_ns();
    let open: Vec<&VcpuAccount> = accounts.open_vcpus().collect();
    let Some(worst) = open.iter().copied().max_by_key(unexplained) else {
        return Verdict::Clear;
    };
    if let Some(brief) = case.too_brief() {
        return brief;
    }
    let account = &worst.account;
    let rows = account.unexplained();
    let Some(first) = rows.first() else {
        return Verdict::Clear;
    };
    let ns = open.iter().map(unexplained).fold(0, u64::saturating_add);
    let mut finding = Finding::new(&RULE, 0.5)
        .cost(case.vcpu_cost(ns))
        .title(format!(
            "No rule explains {} of {}, most of it {} ({}): 'trapline {}' shows it",
            share::tenths(account.share(account.unexplained_ns())),
            worst.called,
            first.name,
            share::tenths(account.share(first.unexplained_ns())),
            first.shown_by
        ))
        .evidence(says!(
            "{vcpu} was observed for {observed}; {unexplained} ({share}) of it neither a finding explains nor a \
             criterion calls normal. Of all vCPUs' time that is {share_of_all}.",
            vcpu = ThreadMention::named(&words::capital(&worst.called), worst.tid),
            observed = Ns(account.observed_ns()),
            unexplained = Ns(account.unexplained_ns()),
            share = Of(account.unexplained_ns(), account.observed_ns()),
            share_of_all = Of(account.unexplained_ns(), accounts.vcpus.observed_ns()),
        ));
    finding = list(case, account, &rows, finding);
    if open.len() > 1 {
        finding = finding.evidence(says!(
            "{vcpus} have such an account of their own.",
            vcpus = Many(u64::try_from(open.len()).unwrap_or(u64::MAX), "vCPU"),
        ));
    }
    finding.found()
}

/// Lists the largest rows, each with the command that opens it.
fn list(
    case: &Case<'_>,
    account: &TimeAccount,
    rows: &[&AccountRow],
    mut finding: Finding,
) -> Finding {
    let name = case.picture.names.first().map_or("REC", String::as_str);
    for row in rows.iter().take(LISTED) {
        finding = finding.evidence(says!(
            "{row}: {time}, {share}. See {command}.",
            row = words::capital(&row.name),
            time = Ns(row.unexplained_ns()),
            share = Share(account.share(row.unexplained_ns())),
            command = format!("trapline {} {name}", row.shown_by),
        ));
    }
    finding.precedence = Precedence::Leftover;
    finding.at_most = Severity::Medium;
    finding
}

fn say(
    case: &Case<'_>,
    account: &TimeAccount,
    first: &AccountRow,
    rows: &[&AccountRow],
    of_vcpus: bool,
) -> Finding {
    let ns = account.unexplained_ns();
    let base = match (of_vcpus, account.of_exits) {
        (true, false) => Base::VcpuTime,
        (true, true) => Base::Exits,
        (false, _) => Base::ThreadTime,
    };
    let cost = FindingCost::of(ns, account.observed_ns(), base);
    let most = share::tenths(account.share(first.unexplained_ns()));
    let mut finding = Finding::new(&RULE, 0.5)
        .cost(cost)
        .title(format!(
            "No rule explains {}, most of it {} ({most}): 'trapline {}' shows it",
            human(ns),
            first.name,
            first.shown_by
        ))
        .evidence(says!(
            "Of {observed} that were observed findings explain {explained}; {normal} are normal, {unknown} were not \
             recorded, and {unexplained} ({share}) are left.",
            observed = Ns(account.observed_ns()),
            explained = Ns(account.explained_ns()),
            normal = Ns(account.normal_ns()),
            unknown = Ns(account.unknown_ns()),
            unexplained = Ns(ns),
            share = Of(ns, account.observed_ns()),
        ));
    finding = list(case, account, rows, finding);
    finding
}
