// Ten CUBIC flows through one bottleneck, with ns-3's fq_codel and with a tree of Fairgate, beside one another:
// goodput, fairness, the time in the queue, and drops.
#include "fairgate-queue-disc.h"

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <algorithm>
#include <cstdio>

using namespace ns3;

struct Setting {
    uint32_t flows = 10;
    std::string rate = "100Mbps";
    double seconds = 60;
    double from = 10;
    uint32_t run = 1;
};

struct Figures {
    double goodput = 0;  // Mbit/s of payload
    double jain = 0;
    double mean = 0, p95 = 0;  // time in the queue, ms
    uint32_t dropped = 0, marked = 0;
};

static std::vector<double> g_sojourn;

static void Sojourn(double from, Time time) {
    if (Simulator::Now().GetSeconds() >= from) g_sojourn.push_back(time.GetSeconds() * 1e3);
}

static Figures Simulate(const Setting &setting, const std::string &type, const std::string &tree) {
    g_sojourn.clear();
    RngSeedManager::SetRun(setting.run);
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::TcpCubic"));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(4 << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(4 << 20));

    NodeContainer routers(2), senders(setting.flows), receivers(setting.flows);
    InternetStackHelper().Install(NodeContainer(routers, senders, receivers));
    PointToPointHelper bottleneck, access;
    bottleneck.SetDeviceAttribute("DataRate", StringValue(setting.rate));
    bottleneck.SetChannelAttribute("Delay", StringValue("10ms"));
    bottleneck.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1p"));
    access.SetDeviceAttribute("DataRate", StringValue("1Gbps"));
    access.SetChannelAttribute("Delay", StringValue("5ms"));
    access.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("100000p"));

    TrafficControlHelper control, none;
    if (type == "ns3::FairgateQueueDisc") {
        control.SetRootQueueDisc(type, "Tree", StringValue(tree));
    } else {
        control.SetRootQueueDisc(type);
    }
    const auto devices = bottleneck.Install(routers);
    const auto discs = control.Install(devices);
    discs.Get(0)->TraceConnectWithoutContext("SojournTime", MakeBoundCallback(&Sojourn, setting.from));
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
    addresses.Assign(devices);
    std::vector<Ptr<PacketSink>> sinks;
    for (uint32_t flow = 0; flow < setting.flows; flow++) {
        for (bool isSender : {true, false}) {
            const auto end = isSender ? senders.Get(flow) : receivers.Get(flow);
            const auto link = access.Install(routers.Get(isSender ? 0 : 1), end);
            addresses.NewNetwork();
            const auto assigned = addresses.Assign(link);
            none.Uninstall(link);
            if (isSender) continue;
            const InetSocketAddress at(assigned.GetAddress(1), 5001);
            const auto sink = PacketSinkHelper("ns3::TcpSocketFactory", at).Install(end).Get(0);
            sinks.push_back(DynamicCast<PacketSink>(sink));
            auto source = BulkSendHelper("ns3::TcpSocketFactory", at).Install(senders.Get(flow));
            source.Start(Seconds(0.1 * flow));
        }
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    std::vector<double> before(setting.flows), bytes(setting.flows);
    Simulator::Schedule(Seconds(setting.from), [&] {
        for (uint32_t flow = 0; flow < setting.flows; flow++) before[flow] = sinks[flow]->GetTotalRx();
    });
    Simulator::Stop(Seconds(setting.seconds));
    Simulator::Run();
    Figures figures;
    double squares = 0;
    for (uint32_t flow = 0; flow < setting.flows; flow++) {
        const double mbit = (sinks[flow]->GetTotalRx() - before[flow]) * 8e-6;
        const double rate = mbit / (setting.seconds - setting.from);
        figures.goodput += rate;
        squares += rate * rate;
    }
    figures.jain = figures.goodput * figures.goodput / (setting.flows * squares);
    const auto &stats = discs.Get(0)->GetStats();
    figures.dropped = stats.nTotalDroppedPackets;
    figures.marked = stats.nTotalMarkedPackets;
    std::sort(g_sojourn.begin(), g_sojourn.end());
    for (double time : g_sojourn) figures.mean += time / g_sojourn.size();
    if (!g_sojourn.empty()) figures.p95 = g_sojourn[g_sojourn.size() * 95 / 100];
    Simulator::Destroy();
    Names::Clear();
    return figures;
}

int main(int count, char **words) {
    Setting setting;
    std::string tree = "fq_codel limit=10240 flows=1024 target=5ms interval=100ms quantum=1500";
    CommandLine command(__FILE__);
    command.AddValue("tree", "the tree of Fairgate, one line or TOML", tree);
    command.AddValue("flows", "TCP flows", setting.flows);
    command.AddValue("rate", "the rate of the bottleneck", setting.rate);
    command.AddValue("seconds", "simulated seconds", setting.seconds);
    command.AddValue("from", "measure from this second on", setting.from);
    command.AddValue("run", "the run of ns-3's random numbers", setting.run);
    command.Parse(count, words);
    std::printf("%-22s %14s %8s %12s %10s %8s %8s\n", "queue disc", "goodput Mbit/s", "Jain", "in queue ms",
                "p95 ms", "dropped", "marked");
    for (const std::string type : {"ns3::FqCoDelQueueDisc", "ns3::FairgateQueueDisc"}) {
        const auto figures = Simulate(setting, type, tree);
        std::printf("%-22s %14.2f %8.4f %12.2f %10.2f %8u %8u\n", type.substr(5).c_str(), figures.goodput,
                    figures.jain, figures.mean, figures.p95, figures.dropped, figures.marked);
        std::fflush(stdout);
    }
}
