//! `stab`: the lengths that packets have on the link.
//!
//! In the kernel `qdisc_calculate_pkt_len` changes a packet's length for the qdisc with the table and for all
//! that are below it. Here the disciplines that have a rate count what the link layer adds themselves (tbf,
//! hfsc, and the classes of htb).

use fairgate_config::language::Written;

use super::Translation;
use crate::tc::kinds::SIZE_TABLE;
use crate::tc::objects::Qdisc;

/// Disciplines with a rate that count the lengths of packets as they are.
const WITHOUT: [(&str, &str); 3] = [
    ("cbq", "lower its rates, or use htb"),
    ("cake", "give cake the words overhead, mpu and atm"),
    ("fq", "lower its maxrate, or remove stab"),
];

impl<'a> Translation<'a> {
    /// Begins a qdisc, which may have a table.
    pub(super) fn begin_stab(&mut self, qdisc: &'a Qdisc) {
        if let Some(first) = qdisc.stab.first() {
            self.stab = &qdisc.stab;
            let text = "`stab`: the rates of tbf, hfsc and htb count what it adds. Quanta and limits in \
                        bytes do not, and lengths are exact, where tc's table rounds them up";
            self.notes.add(first.span(), text.to_owned());
        }
        let kind = qdisc.kind.get_ref();
        let has_rate =
            |words: &Vec<crate::script::Word>| words.iter().any(|word| word.get_ref() == "maxrate");
        // Without a rate nothing depends on lengths.
        if kind == "fq" && !qdisc.options.iter().any(has_rate) {
            return;
        }
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
        for (key, value) in self.line(self.stab, &[SIZE_TABLE]) {
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
    fn an_overhead_may_be_negative_and_hfsc_counts_it() {
        let shorter = tree(
            "qdisc add dev e root handle 1: stab linklayer atm overhead -4 tbf rate 840kbit burst 2k limit 9k
            qdisc add dev e parent 1: fq limit 1000",
        );
        let shorter = shorter.expect("it is valid");
        assert!(
            shorter.contains("stripped=4") && shorter.contains("cells=atm"),
            "{shorter}"
        );
        let curves = tree(
            "qdisc add dev e root handle 1: stab overhead 44 hfsc default 1
            class add dev e parent 1: classid 1:1 hfsc sc rate 1mbit",
        );
        assert!(curves.unwrap().contains("overhead=44"));
        // Only `stab` may have one.
        let own = tree("qdisc add dev e root tbf rate 1mbit burst 2k limit 9k overhead -4");
        assert!(own.is_err());
    }

    #[test]
    fn what_does_not_count_it_is_an_error() {
        let refused = |line: &str| tree(line).expect_err("it is refused");
        let message = refused("qdisc add dev e root handle 1: stab overhead 8 fq maxrate 1mbit");
        assert_eq!(message, "`fq` does not count what `stab` adds");
        let twice =
            refused("qdisc add dev e root stab overhead 8 tbf rate 1mbit burst 2k limit 9k overhead 4");
        assert_eq!(twice, "`overhead` is given here and in `stab`");
        let empty = refused("qdisc add dev e root stab tsize 512 pfifo");
        assert!(empty.contains("`overhead`, `mpu` or `linklayer`"), "{empty}");
    }
}
