//! Work items that kworkers run (`include/trace/events/workqueue.h`).

use crate::define::{TextForm, event};

event! {
    /// `workqueue:workqueue_execute_start`: a kworker begins a work item. Texts name the function instead of its
    /// address.
    WorkqueueExecuteStart at StartPlaces {
        /// Address of the work item.
        work: u64 = "work",
        /// Address of its function.
        function: u64 = "function",
    }
    text: TextForm::No
}

event! {
    /// `workqueue:workqueue_execute_end`: it is done with it.
    WorkqueueExecuteEnd at EndPlaces {
        /// Address of the work item.
        work: u64 = "work",
    }
    text: TextForm::No
}
