//! Which trees may get a super-packet as one packet: several packets of a connection that a host or an
//! interface has merged (GRO, GSO). A driver cuts it before the tree otherwise.

use fairgate::classify::Filter;

use super::Spec;

/// The queues that control the delay and limit the memory of super-packets: CoDel in flow queues.
const QUEUES: [&str; 2] = ["fq_codel", "msfc"];

/// The disciplines that only choose among their classes.
const SCHEDULERS: [&str; 3] = ["prio", "drr", "ets"];

impl Spec {
    /// Returns whether a super-packet may be one packet of this tree, as it is in Linux's `fq_codel`. Then
    /// the tree counts it as one packet, and drops or marks all of it. Flows take turns by super-packets, so
    /// shares are equal over longer times.
    ///
    /// * The tree must not shape: 64 KiB at once would be a burst.
    /// * It must not have a limit in packets that a user has set: this limit would hold many times as many
    ///   bytes.
    /// * It must not police, and no filter may match bytes of headers, which differ from segment to segment.
    ///
    /// ```
    /// use fairgate_config::Spec;
    ///
    /// assert!(Spec::inline("fq_codel")?.takes_super_packets());
    /// assert!(!Spec::inline("fq_codel limit=1000")?.takes_super_packets());
    /// assert!(!Spec::inline("tbf rate=1gbit burst=100kb / fq_codel")?.takes_super_packets());
    /// # Ok::<(), fairgate_config::FileError>(())
    /// ```
    pub fn takes_super_packets(&self) -> bool {
        let name = self.discipline();
        let is_taken = match QUEUES.contains(&name) {
            // With `auto_priority`, msfc counts the drops of each flow.
            true => !self.is_given("limit") && !self.is_given("auto_priority"),
            false => SCHEDULERS.contains(&name) && self.has_classes_that_take_them(),
        };
        let depends_on_packets =
            |filter: &Filter| filter.police.is_some() || !filter.condition.bytes.is_empty();
        is_taken && !self.settings.classifier.filters.iter().any(depends_on_packets)
    }

    fn has_classes_that_take_them(&self) -> bool {
        let mut trees = self.classes_and_trees().map(|(_, tree)| tree).peekable();
        trees.peek().is_some() && trees.all(|tree| tree.is_some_and(Spec::takes_super_packets))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Document;

    fn takes(text: &str) -> bool {
        Spec::inline(text).unwrap().takes_super_packets()
    }

    #[test]
    fn queues_with_a_limit_in_packets_take_none() {
        assert!(takes("fq_codel"));
        assert!(takes("fq_codel memory_limit=4mb target=1ms"));
        assert!(takes("msfc"));
        for refused in [
            "fq_codel limit=10240",
            "msfc auto_priority=true",
            "fifo",
            "fifo limit_bytes=100kb",
            "codel",
            "drr",
            "sfq",
            "cake",
            "qfq",
            "netem / fq_codel",
        ] {
            assert!(!takes(refused), "{refused}");
        }
    }

    #[test]
    fn shapers_take_none() {
        assert!(!takes("tbf rate=100mbit burst=20kb / fq_codel"));
        assert!(!takes("cake bandwidth=1gbit"));
    }

    #[test]
    fn each_class_and_each_filter_decides() {
        let tree = |second: &str, filter: &str| {
            let text = format!(
                "[queue.q]\ndiscipline = \"ets\"\n\
                 [[queue.q.class]]\nid = 1\ndiscipline = \"fq_codel\"\n\
                 [[queue.q.class]]\nid = 2\n{second}\n\
                 [[queue.q.filter]]\nclass = 1\n{filter}\n"
            );
            let document = Document::parse("test.toml", &text).unwrap();
            document.queue("q").unwrap().takes_super_packets()
        };
        let queue = "discipline = \"fq_codel\"";
        assert!(tree(queue, "dscp = \"ef\""));
        assert!(!tree("discipline = \"fifo\"", "dscp = \"ef\""));
        assert!(!tree(
            queue,
            "dscp = \"ef\"\npolice = { rate = \"1mbit\", burst = \"10kb\" }"
        ));
        assert!(!tree(queue, "tcp_flags = \"syn\""));
    }
}
