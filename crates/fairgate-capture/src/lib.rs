//! Reads packet captures (pcap, pcapng) as streams of packet descriptors.
