#include "fairgate-queue-disc.h"

#include "ns3/ipv4-queue-disc-item.h"
#include "ns3/ipv6-queue-disc-item.h"
#include "ns3/simulator.h"
#include "ns3/string.h"
#include "ns3/uinteger.h"

#include <array>

namespace ns3 {

NS_LOG_COMPONENT_DEFINE("FairgateQueueDisc");
NS_OBJECT_ENSURE_REGISTERED(FairgateStore);
NS_OBJECT_ENSURE_REGISTERED(FairgateQueueDisc);

// No place: no arriving item.
static const std::size_t NOWHERE = SIZE_MAX;

TypeId FairgateStore::GetTypeId() {
    static TypeId tid = TypeId("ns3::FairgateStore")
                            .SetParent<Queue<QueueDiscItem>>()
                            .SetGroupName("TrafficControl")
                            .AddConstructor<FairgateStore>();
    return tid;
}

std::size_t FairgateStore::Reserve() {
    if (m_free.empty()) {
        m_places.emplace_back();
        return m_places.size() - 1;
    }
    const auto place = m_free.back();
    m_free.pop_back();
    return place;
}

void FairgateStore::Release(std::size_t place) { m_free.push_back(place); }

void FairgateStore::Put(std::size_t place, Ptr<QueueDiscItem> item) {
    const bool isStored = DoEnqueue(GetContainer().end(), item, m_places[place]);
    NS_ABORT_MSG_UNLESS(isStored, "the store has room for every packet of the tree");
}

Ptr<QueueDiscItem> FairgateStore::Take(std::size_t place) {
    Release(place);
    return DoDequeue(m_places[place]);
}

Ptr<const QueueDiscItem> FairgateStore::At(std::size_t place) const { return DoPeek(m_places[place]); }

bool FairgateStore::Enqueue(Ptr<QueueDiscItem> item) { return DoEnqueue(GetContainer().end(), item); }
Ptr<QueueDiscItem> FairgateStore::Dequeue() { return DoDequeue(GetContainer().begin()); }
Ptr<QueueDiscItem> FairgateStore::Remove() { return DoRemove(GetContainer().begin()); }
Ptr<const QueueDiscItem> FairgateStore::Peek() const { return DoPeek(GetContainer().begin()); }

TypeId FairgateQueueDisc::GetTypeId() {
    static TypeId tid =
        TypeId("ns3::FairgateQueueDisc")
            .SetParent<QueueDisc>()
            .SetGroupName("TrafficControl")
            .AddConstructor<FairgateQueueDisc>()
            .AddAttribute("Tree", "One line, or a TOML table [queue.NAME]", StringValue("fq_codel"),
                          MakeStringAccessor(&FairgateQueueDisc::m_tree), MakeStringChecker())
            .AddAttribute("Capacity", "The largest number of packets", UintegerValue(20000),
                          MakeUintegerAccessor(&FairgateQueueDisc::m_capacity),
                          MakeUintegerChecker<uint32_t>(1, 1000000));
    return tid;
}

FairgateQueueDisc::FairgateQueueDisc()
    : QueueDisc(QueueDiscSizePolicy::NO_LIMITS),
      m_random(CreateObject<UniformRandomVariable>()),
      m_pool(nullptr, fairgate_pool_free),
      m_node(nullptr, fairgate_node_free) {}

int64_t FairgateQueueDisc::AssignStreams(int64_t stream) {
    m_random->SetStream(stream);
    return 1;
}

std::vector<fairgate::Node_statistics> FairgateQueueDisc::GetTreeStatistics() const {
    std::vector<fairgate::Node_statistics> all;
    const auto each = [](void *context, const char *path, const char *discipline,
                         const fairgate_statistics *counters) {
        static_cast<std::vector<fairgate::Node_statistics> *>(context)->push_back(
            {path, discipline, *counters});
    };
    fairgate_node_visit(m_node.get(), each, &all);
    return all;
}

// Writes the first bytes of the IP packet. Returns how many.
static std::size_t Headers(Ptr<const QueueDiscItem> item, std::array<uint8_t, 128> &bytes) {
    Buffer buffer;
    const auto write = [&](const Header &header) {
        buffer.AddAtStart(header.GetSerializedSize());
        header.Serialize(buffer.Begin());
    };
    if (auto ipv4 = DynamicCast<const Ipv4QueueDiscItem>(item)) {
        write(ipv4->GetHeader());
    } else if (auto ipv6 = DynamicCast<const Ipv6QueueDiscItem>(item)) {
        write(ipv6->GetHeader());
    }
    const auto size = buffer.CopyData(bytes.data(), bytes.size());
    return size + item->GetPacket()->CopyData(bytes.data() + size, bytes.size() - size);
}

bool FairgateQueueDisc::DoEnqueue(Ptr<QueueDiscItem> item) {
    std::array<uint8_t, 128> bytes;
    const auto size = Headers(item, bytes);
    const auto place = m_store->Reserve();
    fairgate_packet packet{};
    packet.cookie = place;
    packet.length = item->GetSize();
    const auto now = static_cast<uint64_t>(Simulator::Now().GetNanoSeconds());
    const auto status =
        fairgate_node_enqueue_frame(m_node.get(), &packet, bytes.data(), size, FAIRGATE_RAW_IP, now);
    Check(status);
    const char *reason = status == FAIRGATE_FULL ? "the capacity is used up" : CollectDropped(place);
    if (reason) {
        m_store->Release(place);
        DropBeforeEnqueue(item, reason);
        return false;
    }
    m_store->Put(place, item);
    return true;
}

Ptr<QueueDiscItem> FairgateQueueDisc::DoDequeue() {
    const auto now = static_cast<uint64_t>(Simulator::Now().GetNanoSeconds());
    fairgate_departure departure;
    uint64_t until = FAIRGATE_NEVER;
    Ptr<QueueDiscItem> item;
    fairgate_status status;
    do {
        status = fairgate_node_dequeue(m_node.get(), now, &departure, &until);
        Check(status);
        item = status == FAIRGATE_PACKET ? m_store->Take(departure.cookie) : nullptr;
        // ns-3 computes no checksums by default, so no receiver would find the wrong bit.
        if (item && departure.corrupted_bit != FAIRGATE_NO_BIT) {
            DropAfterDequeue(item, "a wrong bit");
            item = nullptr;
        }
    } while (!item && status == FAIRGATE_PACKET);
    if (item) {
        if (departure.is_marked) Mark(item, "marked by the tree");
    } else if (status == FAIRGATE_WAIT && until != FAIRGATE_NEVER && !m_watchdog.IsRunning()) {
        m_watchdog = Simulator::Schedule(NanoSeconds(until - now), &QueueDisc::Run, this);
    }
    CollectDropped(NOWHERE);
    return item;
}

Ptr<const QueueDiscItem> FairgateQueueDisc::DoPeek() {
    const auto now = static_cast<uint64_t>(Simulator::Now().GetNanoSeconds());
    fairgate_departure departure;
    const auto status = fairgate_node_peek(m_node.get(), now, &departure);
    Check(status);
    CollectDropped(NOWHERE);
    return status == FAIRGATE_PACKET ? m_store->At(departure.cookie) : nullptr;
}

const char *FairgateQueueDisc::CollectDropped(std::size_t arriving) {
    const char *reason = nullptr;
    fairgate_dropped dropped;
    while (fairgate_pool_take_dropped(m_pool.get(), &dropped)) {
        if (dropped.cookie == arriving) {
            reason = dropped.reason;
        } else {
            DropAfterDequeue(m_store->Take(dropped.cookie), dropped.reason);
        }
    }
    return reason;
}

void FairgateQueueDisc::Check(fairgate_status status) const {
    NS_ABORT_MSG_IF(status == FAIRGATE_INVALID, "Fairgate: " << fairgate_node_mistake(m_node.get()));
    NS_ABORT_MSG_IF(status == FAIRGATE_BROKEN, "a bug in Fairgate");
}

bool FairgateQueueDisc::CheckConfig() {
    if (GetNQueueDiscClasses() > 0 || GetNPacketFilters() > 0) {
        NS_LOG_ERROR("the classes and filters of a FairgateQueueDisc are those of its tree");
        return false;
    }
    if (GetNInternalQueues() == 0) {
        const auto store = CreateObject<FairgateStore>();
        store->SetMaxSize(QueueSize(QueueSizeUnit::PACKETS, m_capacity));
        AddInternalQueue(store);
    }
    m_store = DynamicCast<FairgateStore>(GetInternalQueue(0));
    if (!m_store) NS_LOG_ERROR("the internal queue of a FairgateQueueDisc is its own");
    return m_store != nullptr;
}

void FairgateQueueDisc::InitializeParams() {
    try {
        const bool isToml = m_tree.find('[') != std::string::npos;
        const auto tree = isToml ? fairgate::Tree::from_toml(m_tree) : fairgate::Tree::from_line(m_tree);
        m_pool.reset(fairgate_pool_new(m_capacity, nullptr));
        const uint64_t seed = m_random->GetInteger(0, UINT32_MAX);
        char *error = nullptr;
        m_node.reset(fairgate_node_new(tree.get(), m_pool.get(), seed, &error));
        if (!m_node) fairgate::detail::fail(error);
    } catch (const fairgate::Error &error) {
        NS_FATAL_ERROR("Tree: " << error.what());
    }
}

void FairgateQueueDisc::DoDispose() {
    m_watchdog.Cancel();
    m_node.reset();
    m_pool.reset();
    m_store = nullptr;
    QueueDisc::DoDispose();
}

}  // namespace ns3
