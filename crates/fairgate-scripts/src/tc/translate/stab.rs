//! `stab`: the lengths that packets have on the link.
//!
//! In the kernel `qdisc_calculate_pkt_len` changes a packet's length for the qdisc with the table and for all
//! that are below it. Here the disciplines that have a rate count what the link layer adds themselves (tbf,
//! and the classes of htb).

use fairgate_config::language::Written;

use super::Translation;
use crate::tc::kinds::LINK_LAYER;
use crate::tc::script::Qdisc;

/// Disciplines with a rate that count the lengths of packets as they are.
const WITHOUT: [(&str, &str); 4] = [
    ("hfsc", "lower its curves, or use htb"),
    ("cbq", "lower its rates, or use htb"),
    ("cake", "give cake the words overhead, mpu and atm"),
    ("fq", "lower its maxrate, or remove stab"),
];

impl<'a> Translation<'a> {
    /// Begins a qdisc, which may have a table.
    pub(super) fn begin_stab(&mut self, qdisc: &'a Qdisc) {
        if let Some(first) = qdisc.stab.first() {
            self.stab = &qdisc.stab;
            let text = "`stab`: the rates of tbf and htb count what it adds. Quanta and limits in bytes \
                        do not, and lengths are exact, where tc's table rounds them up";
            self.notes.add(first.span(), text.to_owned());
        }
        let kind = qdisc.kind.get_ref();
        if let Some((_, help)) = WITHOUT.iter().find(|(without, _)| without == kind)
            && let Some(first) = self.stab.first()
        {
            let message = format!("`{kind}` does not count what `stab` adds");
            self.problems
                .add(first.span(), message, "can't be carried over", *help);
        }
    }

    /// Adds what the table says to the settings of a rate.
    pub(super) fn add_stab(&mut self, settings: &mut Vec<Written>) {
        for (key, value) in self.line(self.stab, &[LINK_LAYER]) {
            if settings.iter().any(|(name, _)| name.get_ref() == key.get_ref()) {
                let message = format!("`{}` is given here and in `stab`", key.get_ref());
                let help = "the kernel adds both: write the sum once";
                self.problems.add(key.span(), message, "given twice", help);
            } else {
                settings.push((key, value));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::tc::{Device, Script};

    fn tree(text: &str) -> Result<String, String> {
        let script = Script::parse("test.tc", text, Device::default()).map_err(|error| error.to_string())?;
        let spec = script.spec().map_err(|error| error.to_string())?;
        Ok(spec.to_string())
    }

    /// Lines of sqm-scripts and FireQOS.
    #[test]
    fn rates_count_what_the_table_adds() {
        let stab = "stab mtu 2047 tsize 512 mpu 64 overhead 22 linklayer ethernet";
        let of_class = tree(&format!(
            "qdisc add dev e root handle 1: {stab} htb default 1
            class add dev e parent 1: classid 1:1 htb rate 5mbit burst 2k cburst 2k
            qdisc add dev e parent 1:1 handle 2: tbf rate 1mbit burst 2k limit 9k"
        ));
        let own = tree(
            "qdisc add dev e root handle 1: htb default 1
            class add dev e parent 1: classid 1:1 htb rate 5mbit burst 2k cburst 2k \
            mpu 64 overhead 22 linklayer ethernet
            qdisc add dev e parent 1:1 handle 2: tbf rate 1mbit burst 2k limit 9k mpu 64 overhead 22 \
            linklayer ethernet",
        );
        let own = own.expect("it is valid");
        assert_eq!(own.matches("overhead=22").count(), 2, "{own}");
        assert_eq!(of_class, Ok(own));
        let cells =
            tree("qdisc add dev e root stab linklayer adsl overhead 40 tbf rate 1mbit burst 2k limit 9k");
        assert!(cells.unwrap().contains("cells=atm"));
    }

    #[test]
    fn what_does_not_count_it_is_an_error() {
        let refused = |line: &str| tree(line).expect_err("it is refused");
        let message = refused("qdisc add dev e root handle 1: stab overhead 8 hfsc");
        assert_eq!(message, "`hfsc` does not count what `stab` adds");
        let twice =
            refused("qdisc add dev e root stab overhead 8 tbf rate 1mbit burst 2k limit 9k overhead 4");
        assert_eq!(twice, "`overhead` is given here and in `stab`");
        let empty = refused("qdisc add dev e root stab tsize 512 pfifo");
        assert!(empty.contains("`overhead`, `mpu` or `linklayer`"), "{empty}");
    }
}
