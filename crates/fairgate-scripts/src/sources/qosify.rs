//! OpenWrt's `/etc/config/qosify`: the cakes that qosify attaches to interfaces. Its classifier is a program
//! in the kernel, which sets DSCPs by rules of other files.

use super::Writer;
use super::sections::{Section, uci};

pub(super) fn read(writer: &mut Writer<'_>) {
    let (sections, others) = uci(writer.text);
    for line in others {
        writer.problem(line, "this is no line of UCI", "write config, option or list");
    }
    let mut classifying = Vec::new();
    for section in &sections {
        match section.kind.get_ref().as_str() {
            "interface" | "device" => interface(writer, section),
            _ => classifying.extend(section.lines()),
        }
    }
    let text = "qosify sets DSCPs by these classes and by its files of rules, with a program in the \
        kernel: here \
        packets have the DSCP with which they arrive";
    writer.notes.add_lines(&classifying, text);
}

const KNOWN: [&str; 20] = [
    "name",
    "disabled",
    "bandwidth_up",
    "bandwidth_down",
    "bandwidth",
    "overhead_type",
    "overhead",
    "overhead_options",
    "ingress",
    "egress",
    "mode",
    "nat",
    "host_isolate",
    "autorate_ingress",
    "ingress_options",
    "egress_options",
    "options",
    "overhead_mpu",
    "mpu",
    "overhead_atm",
];

fn interface(writer: &mut Writer<'_>, section: &Section) {
    let at = section.at();
    for (key, _) in &section.entries {
        if !KNOWN.contains(&key.get_ref().as_str()) {
            let message = format!("the option `{}` can't be carried over", key.get_ref());
            writer.problem(
                key.span(),
                &message,
                format!("understood are {}", KNOWN.join(", ")),
            );
        }
    }
    if section.is_on("disabled", false) {
        let lines: Vec<_> = section.lines().collect();
        return writer
            .notes
            .add_lines(&lines, "this interface is disabled, and gives no tree");
    }
    let name = section
        .text("name")
        .map(str::to_owned)
        .or_else(|| section.name.clone());
    let Some(name) = writer.device.map(str::to_owned).or(name) else {
        return;
    };
    if section.kind.get_ref() == "interface" && writer.device.is_none() {
        let text = format!(
            "`{name}` is a network of OpenWrt; if its device has another name, give it with --device"
        );
        writer.note(&at, text);
    }
    let mut options = vec![section.text("mode").unwrap_or("diffserv4").to_owned()];
    options.push(
        if section.is_on("nat", section.kind.get_ref() == "interface") {
            "nat"
        } else {
            "nonat"
        }
        .to_owned(),
    );
    match section.text("overhead_type") {
        None | Some("none") => {}
        Some("manual") => {}
        // The names of cake for usual links.
        Some(kind) => options.push(kind.to_owned()),
    }
    for (key, word) in [("overhead", "overhead"), ("overhead_mpu", "mpu"), ("mpu", "mpu")] {
        options.extend(section.text(key).map(|number| format!("{word} {number}")));
    }
    options.extend(section.is_on("overhead_atm", false).then(|| "atm".to_owned()));
    options.extend(section.text("overhead_options").map(str::to_owned));
    let isolates = section.is_on("host_isolate", true);
    let bandwidth = |key: &str| {
        let given = section.text(key).or(section.text("bandwidth"));
        given.map_or("unlimited".to_owned(), |rate| format!("bandwidth {rate}"))
    };
    let own = |key: &str| -> String {
        let both = [section.text("options"), section.text(key)];
        both.into_iter()
            .flatten()
            .map(|options| format!(" {options}"))
            .collect()
    };
    let common = options.join(" ");
    if section.is_on("egress", true) {
        let hosts = if isolates { " dual-srchost" } else { "" };
        let (rate, own) = (bandwidth("bandwidth_up"), own("egress_options"));
        writer.command(
            &at,
            format!("tc qdisc replace dev {name} root cake {rate} {common}{hosts}{own}"),
        );
    }
    if section.is_on("ingress", true) {
        let hosts = if isolates { " dual-dsthost" } else { "" };
        let auto = if section.is_on("autorate_ingress", false) {
            " autorate-ingress"
        } else {
            ""
        };
        let (rate, own) = (bandwidth("bandwidth_down"), own("ingress_options"));
        let ifb = format!("ifb-{name}");
        writer.command(
            &at,
            format!("tc qdisc replace dev {ifb} root cake {rate} {common}{hosts}{auto} ingress{own}"),
        );
        writer.command(&at, format!("tc qdisc add dev {name} clsact"));
        writer.command(
            &at,
            format!("tc filter add dev {name} ingress matchall action mirred egress redirect dev {ifb}"),
        );
    }
}
