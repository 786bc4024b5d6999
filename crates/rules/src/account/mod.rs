//! Where all observed time is accounted for: what findings explain, what is normal, what nothing explains.
//!
//! Two accounts, never one sum: the vCPUs' observed time ([`vcpus`]), and the CPU time of other threads that work for
//! VMs ([`threads`]). Their rows add up to the time that was observed. Without findings a row is normal up to a limit,
//! which stands with its kind ([`AccountPart::normal_share`]); what is above it nothing explains, and more than
//! [`OPEN_SHARE`] of that is a finding of its own. Where there are several vCPUs each has its account too ([`single`]).

mod ledger;
mod part;
mod single;
mod threads;
mod vcpus;

pub(crate) use ledger::ExplainedCost;
pub use ledger::{AccountRow, OPEN_SHARE, TimeAccount};
pub use part::{AccountPart, ExplainedTime};
pub use single::VcpuAccount;

use crate::Case;

/// Both accounts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TimeAccounts {
    /// The vCPUs' observed time. Of printed tables it is the time of exits.
    pub vcpus: TimeAccount,
    /// The CPU time of other threads that work for VMs: the VMM's, back ends', helpers'.
    pub threads: TimeAccount,
    /// Of each vCPU by itself, where there are several: none of a printed table.
    pub each: Vec<VcpuAccount>,
}

impl TimeAccounts {
    /// Returns the accounts of a case with what findings explain of them, those first that stand first.
    pub(crate) fn of(case: &Case<'_>, costs: &[ExplainedCost<'_>]) -> TimeAccounts {
        if case.counts_ticks() {
            return TimeAccounts::default();
        }
        let mut accounts = TimeAccounts {
            vcpus: vcpus::account(case),
            threads: threads::account(case),
            each: Vec::new(),
        };
        for cost in costs {
            accounts.vcpus.explain(cost);
            accounts.threads.explain(cost);
        }
        accounts.vcpus.judge();
        accounts.threads.judge();
        accounts.each = single::accounts(case, &accounts.vcpus);
        accounts
    }

    pub(crate) fn merge(&mut self, other: TimeAccounts) {
        self.vcpus.merge(other.vcpus);
        self.threads.merge(other.threads);
        self.each.extend(other.each);
    }

    /// Returns whether something was observed, and so little of it is left that nothing large can be hidden in it.
    pub fn are_closed(&self) -> bool {
        let closed = self.vcpus.is_closed() && self.threads.is_closed();
        self.vcpus.observed_ns() > 0 && closed && self.open_vcpus().next().is_none()
    }

    /// Returns the vCPUs of whose own time more is unexplained than of all vCPUs' may be.
    pub fn open_vcpus(&self) -> impl Iterator<Item = &VcpuAccount> {
        self.each.iter().filter(|one| {
            let account = &one.account;
            account.share(account.unexplained_ns()) > OPEN_SHARE
        })
    }
}
