// Fairgate's disciplines in C++17: objects that free themselves, exceptions, and a payload for each packet.
// Header-only; link with the C library.
//
//   fairgate::Link<std::vector<std::uint8_t>> link(fairgate::Tree::from_line("fq_codel"), 1000, seed);
//   link.enqueue(packet, std::move(bytes), now, [](auto &&bytes, const char *reason) { ... });
//   auto next = link.dequeue(now, on_drop);
//   if (next.departure) send(std::move(next.payload));
//   else if (next.wait_until) call again at *next.wait_until;
//
// An object is used by one thread at a time. Times are nanoseconds and never go backwards.
#ifndef FAIRGATE_HPP
#define FAIRGATE_HPP

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "fairgate.h"

namespace fairgate {

static_assert(FAIRGATE_ABI_VERSION == 1, "fairgate.hpp and fairgate.h are of different versions");

// A wrong description or argument: place, rule and remedy.
class Error : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// A bug in Fairgate: the message is on standard error. The object can only be destroyed.
class Broken : public std::logic_error {
  public:
    using std::logic_error::logic_error;
};

namespace detail {

struct Free {
    void operator()(fairgate_tree *tree) const noexcept { fairgate_tree_free(tree); }
    void operator()(fairgate_pool *pool) const noexcept { fairgate_pool_free(pool); }
    void operator()(fairgate_node *node) const noexcept { fairgate_node_free(node); }
    void operator()(char *text) const noexcept { fairgate_string_free(text); }
};

template <typename T>
using Owned = std::unique_ptr<T, Free>;

// Throws the text of an error, and frees it.
[[noreturn]] inline void fail(char *text) {
    Owned<char> owned(text);
    throw Error(owned ? owned.get() : "unknown error");
}

// Calls `make` with a place for an error, and takes the object that it returns.
template <typename Make>
auto made(Make make) {
    char *error = nullptr;
    auto *object = make(&error);
    if (object == nullptr) fail(error);
    return Owned<std::remove_pointer_t<decltype(object)>>(object);
}

inline const char *or_null(const std::string &text) { return text.empty() ? nullptr : text.c_str(); }

}  // namespace detail

// A checked description of a tree of disciplines.
class Tree {
  public:
    // "tbf rate=20mbit burst=5kb / fq_codel"
    static Tree from_line(const std::string &line) {
        return Tree(detail::made([&](char **error) { return fairgate_tree_from_line(line.c_str(), error); }));
    }

    // The table [queue.NAME] of a configuration. The name may be empty if there is only one.
    static Tree from_toml(const std::string &toml, const std::string &name = {}) {
        return Tree(detail::made([&](char **error) {
            return fairgate_tree_from_toml(toml.c_str(), detail::or_null(name), error);
        }));
    }

    // Commands of tc. The device may be empty if all lines are for one device.
    static Tree from_tc(const std::string &script, const std::string &device = {}, std::uint32_t mtu = 0) {
        return Tree(detail::made([&](char **error) {
            return fairgate_tree_from_tc(script.c_str(), detail::or_null(device), mtu, error);
        }));
    }

    // The tree as the table [queue.NAME] of a configuration.
    std::string to_toml(const std::string &name) const {
        detail::Owned<char> text(fairgate_tree_to_toml(tree_.get(), name.c_str()));
        if (!text) throw Error("the tree was moved away");
        return text.get();
    }

    const fairgate_tree *get() const noexcept { return tree_.get(); }

  private:
    explicit Tree(detail::Owned<fairgate_tree> tree) : tree_(std::move(tree)) {}
    detail::Owned<fairgate_tree> tree_;
};

// The statistics of one node of a tree.
struct Node_statistics {
    std::string path;  // class numbers, like "1/20"; the root is empty
    std::string discipline;
    fairgate_statistics counters;
};

// A queue at the entrance of a link: a tree, and a payload of type T for each packet.
template <typename T>
class Link {
  public:
    // The result of a dequeue: a departure with its payload, or the time of the next call, or neither if
    // nothing is queued.
    struct Next {
        std::optional<fairgate_departure> departure;
        std::optional<T> payload;
        std::optional<std::uint64_t> wait_until;
    };

    Link(const Tree &tree, std::uint32_t capacity, std::uint64_t seed)
        : pool_(detail::made([&](char **error) { return fairgate_pool_new(capacity, error); })),
          node_(detail::made(
              [&](char **error) { return fairgate_node_new(tree.get(), pool_.get(), seed, error); })),
          payloads_(capacity) {
        free_.reserve(capacity);
        for (std::uint32_t place = capacity; place > 0; place--) free_.push_back(place - 1);
    }

    // Enqueues a packet. The packet's cookie is ignored. `on_drop(T &&payload, const char *reason)` is called
    // for each dropped packet, also for this one. Returns FAIRGATE_FULL, and leaves `payload` as it is, if
    // there is no room.
    template <typename OnDrop>
    fairgate_status enqueue(fairgate_packet packet, T &&payload, std::uint64_t now, OnDrop on_drop) {
        return put(std::move(payload), on_drop, [&](std::uint64_t place) {
            packet.cookie = place;
            return fairgate_node_enqueue(node_.get(), &packet, now);
        });
    }

    // The same, with headers read from the first `size` bytes of a frame.
    template <typename OnDrop>
    fairgate_status enqueue_frame(fairgate_packet packet, T &&payload, const std::uint8_t *frame,
                                  std::size_t size, std::uint32_t link_type, std::uint64_t now,
                                  OnDrop on_drop) {
        return put(std::move(payload), on_drop, [&](std::uint64_t place) {
            packet.cookie = place;
            return fairgate_node_enqueue_frame(node_.get(), &packet, frame, size, link_type, now);
        });
    }

    // Dequeues the next packet, when the link is free.
    template <typename OnDrop>
    Next dequeue(std::uint64_t now, OnDrop on_drop) {
        fairgate_departure departure;
        std::uint64_t until = FAIRGATE_NEVER;
        const auto status = checked(fairgate_node_dequeue(node_.get(), now, &departure, &until));
        Next next;
        if (status == FAIRGATE_PACKET) {
            next.departure = departure;
            next.payload = take(departure.cookie);
        } else if (status == FAIRGATE_WAIT) {
            next.wait_until = until;
        }
        collect(on_drop);
        return next;
    }

    // Returns the payload of the packet that the next dequeue will return, or NULL.
    template <typename OnDrop>
    const T *peek(std::uint64_t now, OnDrop on_drop) {
        fairgate_departure departure;
        const auto status = checked(fairgate_node_peek(node_.get(), now, &departure));
        collect(on_drop);
        return status == FAIRGATE_PACKET ? &*payloads_[departure.cookie] : nullptr;
    }

    // Lets disciplines duplicate packets, as netem does. From then on the caller calls `enqueue_copies` after
    // each enqueue, dequeue and peek.
    void allow_copies() { fairgate_pool_allow_copies(pool_.get()); }

    // Enqueues the copies that the last call has asked for. Their payloads are copied. Returns how many there
    // are; there is none for which no room is left.
    template <typename OnDrop>
    std::uint32_t enqueue_copies(std::uint64_t now, OnDrop on_drop) {
        const auto make = [](void *context, std::uint64_t cookie, std::uint64_t *copy) {
            auto &link = *static_cast<Link *>(context);
            if (link.free_.empty()) return false;
            *copy = link.free_.back();
            link.free_.pop_back();
            link.payloads_[*copy].emplace(*link.payloads_[cookie]);
            return true;
        };
        const auto count = fairgate_node_enqueue_copies(node_.get(), now, make, this);
        collect(on_drop);
        return count;
    }

    // When to dequeue again: FAIRGATE_NEVER if the tree does not hold packets back now.
    std::uint64_t watchdog() const noexcept { return fairgate_node_watchdog(node_.get()); }

    // See fairgate_node_transmits_until.
    bool transmits_until(std::uint64_t end) { return fairgate_node_transmits_until(node_.get(), end); }

    // Gives all packets to `on_drop` with the reason "flushed".
    template <typename OnDrop>
    void flush(OnDrop on_drop) {
        checked(fairgate_node_flush(node_.get()));
        collect(on_drop);
    }

    // Changes the parameters of the running tree. Packets stay queued.
    template <typename OnDrop>
    void change(const Tree &tree, std::uint64_t now, OnDrop on_drop) {
        char *error = nullptr;
        if (!fairgate_node_change(node_.get(), tree.get(), now, &error)) detail::fail(error);
        collect(on_drop);
    }

    // The statistics of the root and of every class, parents first.
    std::vector<Node_statistics> statistics() const {
        std::vector<Node_statistics> all;
        const auto each = [](void *context, const char *path, const char *discipline,
                             const fairgate_statistics *counters) {
            static_cast<std::vector<Node_statistics> *>(context)->push_back({path, discipline, *counters});
        };
        fairgate_node_visit(node_.get(), each, &all);
        return all;
    }

    // The number of queued packets.
    std::uint64_t size() const noexcept { return fairgate_pool_length(pool_.get()); }

  private:
    fairgate_status checked(fairgate_status status) const {
        if (status == FAIRGATE_INVALID) throw Error(fairgate_node_mistake(node_.get()));
        if (status == FAIRGATE_BROKEN) throw Broken("a bug in Fairgate");
        return status;
    }

    template <typename OnDrop, typename Enqueue>
    fairgate_status put(T &&payload, OnDrop &on_drop, Enqueue enqueue) {
        if (free_.empty()) return FAIRGATE_FULL;
        const auto place = free_.back();
        const auto status = checked(enqueue(place));
        if (status != FAIRGATE_FULL) {
            free_.pop_back();
            payloads_[place].emplace(std::move(payload));
            collect(on_drop);
        }
        return status;
    }

    T take(std::uint64_t place) {
        T payload = std::move(*payloads_[place]);
        payloads_[place].reset();
        free_.push_back(static_cast<std::uint32_t>(place));
        return payload;
    }

    template <typename OnDrop>
    void collect(OnDrop &on_drop) {
        fairgate_dropped dropped;
        while (fairgate_pool_take_dropped(pool_.get(), &dropped)) {
            on_drop(take(dropped.cookie), dropped.reason);
        }
    }

    detail::Owned<fairgate_pool> pool_;
    detail::Owned<fairgate_node> node_;
    std::vector<std::optional<T>> payloads_;
    std::vector<std::uint32_t> free_;
};

}  // namespace fairgate

#endif
