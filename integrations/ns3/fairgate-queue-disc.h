// Any tree of Fairgate's disciplines as a queue disc of ns-3's traffic-control layer.
#ifndef FAIRGATE_QUEUE_DISC_H
#define FAIRGATE_QUEUE_DISC_H

#include "ns3/queue-disc.h"
#include "ns3/queue-item.h"
#include "ns3/queue.h"
#include "ns3/random-variable-stream.h"

#include <fairgate.hpp>

#include <memory>

namespace ns3 {

// Holds the items of the queue disc, in no particular order. ns-3 counts packets in its own queues only.
class FairgateStore : public Queue<QueueDiscItem> {
  public:
    static TypeId GetTypeId();

    // Returns a free place for an item, a number that `Put` and `Take` use.
    std::size_t Reserve();

    // Gives back a place that was not used.
    void Release(std::size_t place);

    // Stores an item at a reserved place.
    void Put(std::size_t place, Ptr<QueueDiscItem> item);

    // Removes the item at a place.
    Ptr<QueueDiscItem> Take(std::size_t place);

    // Returns the item at a place.
    Ptr<const QueueDiscItem> At(std::size_t place) const;

    // The interface of Queue, in the order of arrival. The queue disc does not use it.
    bool Enqueue(Ptr<QueueDiscItem> item) override;
    Ptr<QueueDiscItem> Dequeue() override;
    Ptr<QueueDiscItem> Remove() override;
    Ptr<const QueueDiscItem> Peek() const override;

  private:
    std::vector<Iterator> m_places;
    std::vector<std::size_t> m_free;
};

// A queue disc whose packets a tree of Fairgate orders, drops and marks.
//
//   tc.SetRootQueueDisc("ns3::FairgateQueueDisc", "Tree", StringValue("fq_codel target=5ms"));
//
// Attributes: Tree, one line (a discipline and its settings, after each / the discipline that it holds) or a
// TOML table [queue.NAME]; Capacity, the packets that it can hold. AssignStreams sets the random stream that the
// seed of the tree is taken from.
class FairgateQueueDisc : public QueueDisc {
  public:
    static TypeId GetTypeId();
    FairgateQueueDisc();

    int64_t AssignStreams(int64_t stream);

    // The statistics of every class of the tree.
    std::vector<fairgate::Node_statistics> GetTreeStatistics() const;

  private:
    bool DoEnqueue(Ptr<QueueDiscItem> item) override;
    Ptr<QueueDiscItem> DoDequeue() override;
    Ptr<const QueueDiscItem> DoPeek() override;
    bool CheckConfig() override;
    void InitializeParams() override;
    void DoDispose() override;

    // Drops what the tree dropped. Returns the reason if the item at place `arriving`, which is not stored yet,
    // is among it.
    const char *CollectDropped(std::size_t arriving);

    // Stops the simulation on an answer that no correct program gets.
    void Check(fairgate_status status) const;

    std::string m_tree;
    uint32_t m_capacity;
    Ptr<UniformRandomVariable> m_random;
    std::unique_ptr<fairgate_pool, void (*)(fairgate_pool *)> m_pool;
    std::unique_ptr<fairgate_node, void (*)(fairgate_node *)> m_node;
    Ptr<FairgateStore> m_store;
    EventId m_watchdog;
};

}  // namespace ns3

#endif
