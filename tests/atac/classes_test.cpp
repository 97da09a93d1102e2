/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * <subutai/atac.hpp>, as a user has it: the thesis's classes in virtual time, live, and live with the model's delays.
 * Output: TAP.
 */
#include <subutai/atac.hpp>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <vector>

using namespace subutai::atac;

#define NEED(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            std::printf("not ok - %s:%d: %s\n", __FILE__, __LINE__, #condition);                                       \
            std::fflush(stdout);                                                                                       \
            std::_Exit(1);                                                                                             \
        }                                                                                                              \
    } while (0)

static int n_tests;
static void ok(const char *name, const char *way) {
    std::printf("ok %d - %s, %s\n", ++n_tests, name, way);
}

struct Way {
    const char *name;
    Options options;
};

static std::vector<Way> ways(int number_of_cores) {
    Options virtual_time, live, delayed;
    virtual_time.number_of_cores = live.number_of_cores = delayed.number_of_cores = number_of_cores;
    live.live = delayed.live = true;
    live.time_scale = 0;
    delayed.time_scale = 10;
    return {{"virtual time", virtual_time}, {"live", live}, {"live with delays", delayed}};
}

/* The error number that the call throws; 0: none. */
template <typename Call> static int thrown(Call call) {
    try {
        call();
    } catch (const std::system_error &error) {
        return error.code().value();
    }
    return 0;
}

/* ---- Table 4.2 ---- */

static void messages(const Way &way) {
    const int n = way.options.number_of_cores;
    VirtualChannel *channel = nullptr;
    std::atomic<int> n_received{0};
    run(
        way.options, [&] { NEED((channel = VirtualChannel::create()) != nullptr); },
        [&] {
            VirtualChannelPort port(channel);
            Message m;
            char data[8];
            ready();
            NEED(self() >= 0 && self() < n);
            if (self() == 0) {
                NEED(port.send_message(-42, 6, 9));
                NEED(port.send_message_long("a long one", 11, 6, 10));
                for (int i = 1; i < n; i++)
                    NEED(port.wait_and_receive_message(m) && m.payload == m.sender && m.tag == 1);
            } else {
                NEED(port.wait_and_receive_message(m));
                NEED(m.payload == -42 && m.signature == 6 && m.tag == 9 && m.sender == 0 && m.size == 4);
                NEED(port.wait_and_receive_message_long(m, data, sizeof data));
                NEED(m.size == 11 && m.tag == 10 && std::memcmp(data, "a long o", 8) == 0);
                NEED(port.send_message(self(), 1, 1));
                n_received++;
            }
            /* The others' messages to each other are there at last. */
            for (int i = 2; self() != 0 && i < n; i++) {
                while (!port.receive_message(m))
                    compute(10);
                NEED(m.payload == m.sender && m.sender != self());
            }
            NEED(!port.receive_message(m) && !port.receive_message_long(m, data, sizeof data));
        });
    NEED(n_received == n - 1);
    delete channel;
    ok("messages and long messages", way.name);
}

static void filters_and_refusals(const Way &way) {
    VirtualChannel *channel = nullptr;
    VirtualChannelPort *of_0 = nullptr;
    run(
        way.options, [&] { channel = VirtualChannel::create(); },
        [&] {
            VirtualChannelPort port(channel);
            Message m;
            NEED(port.set_local_filter(-1, self() == 0 ? OR : AND, self() == 0 ? -1 : 4));
            if (self() == 0)
                of_0 = &port;
            ready();
            errno = 0;
            NEED(!port.set_local_filter(1, 3, 1) && errno == EINVAL);
            NEED(!port.set_local_filter(1, -1, 1) && errno == EINVAL);
            errno = 0;
            NEED(!port.send_message_long("", MAX_BYTES + 1, 1, 1) && errno == EMSGSIZE);
            NEED(!port.send_message_long("", -1, 1, 1) && errno == EINVAL);
            errno = 0;
            NEED(self() == 0 || (!of_0->send_message(1, 1, 1) && errno == EPERM));
            for (int i = 1; self() == 0 && i < 8; i++)
                NEED(port.send_message(i, i, i));
            for (int i = 4; self() != 0 && i < 8; i++)
                NEED(port.wait_and_receive_message(m) && m.payload == i);
            ready();
        });
    delete channel;
    ok("filters, and calls that are refused", way.name);
}

/* ---- Table 5.1 ---- */

static void barriers(const Way &way) {
    const int n = way.options.number_of_cores;
    std::unique_ptr<BarrierMaster> bm;
    std::vector<std::atomic<int>> inside(100);
    Barrier *of_0 = nullptr;
    run(
        way.options, [&] { bm = std::make_unique<BarrierMaster>(n); },
        [&] {
            std::unique_ptr<Barrier> barrier(bm->generate_barrier());
            if (self() == 0)
                of_0 = barrier.get();
            ready();
            NEED(self() == 0 || thrown([&] { of_0->wait(); }) == EPERM);
            for (auto &count : inside) {
                compute(static_cast<unsigned long long>(self() * 37 % 100));
                count++;
                barrier->wait();
                NEED(count == n);
            }
        });
    ok("no thread leaves a barrier early", way.name);
}

/* ---- Table 5.2 ---- */

struct Tasks;
struct Task final : IWorkTask {
    Tasks *all = nullptr;
    int depth = 0;
    std::atomic<int> n_run{0};
    void run() override;
};
struct Tasks {
    std::vector<Task> tasks;
    std::atomic<size_t> used{0};
    std::vector<DWorkPile *> piles;
    Tasks(size_t n, size_t n_threads) : tasks(n), piles(n_threads) {
        for (auto &task : tasks)
            task.all = this;
    }
};

void Task::run() {
    DWorkPile *pile = all->piles[static_cast<size_t>(self())];
    n_run++;
    compute(100);
    pile->process_pending_request();
    for (int i = 0; i < 2 && depth > 0; i++) {
        Task &child = all->tasks[all->used++];
        child.depth = depth - 1;
        pile->put(&child);
    }
}

template <typename Master> static void stealing(const Way &way, const char *name) {
    enum { DEPTH = 6, ALL = (2 << DEPTH) - 1 };
    const int n = way.options.number_of_cores;
    Tasks all(ALL, static_cast<size_t>(n));
    std::unique_ptr<DWorkPileMaster> master;
    all.tasks[all.used++].depth = DEPTH;
    run(
        way.options, [&] { master = std::make_unique<Master>(n, ALL); },
        [&] {
            std::unique_ptr<DWorkPile> pile(master->generateLocalWorkPile());
            all.piles[static_cast<size_t>(self())] = pile.get();
            ready();
            if (self() == 0)
                pile->put(&all.tasks[0]);
            while (IWorkTask *task = pile->get()) {
                task->run();
                pile->update_filter();
            }
        });
    NEED(all.used == ALL);
    for (auto &task : all.tasks)
        NEED(task.n_run == 1);
    ok(name, way.name);
}

/* The application knows that it is done before its tasks are: finish ends all gets. */
static void finishes(const Way &way) {
    const int n = way.options.number_of_cores;
    std::unique_ptr<DWorkPileMaster> master;
    run(
        way.options, [&] { master = std::make_unique<VCDequePileMaster>(n, 4); },
        [&] {
            std::unique_ptr<DWorkPile> pile(master->generateLocalWorkPile());
            ready();
            if (self() == 0)
                pile->finish(n);
            NEED(pile->get() == nullptr && pile->get() == nullptr);
        });
    ok("finish", way.name);
}

/* ---- what cannot be ---- */

static void errors(const Way &way) {
    Options o = way.options;
    std::unique_ptr<VirtualChannel> channel;
    auto text = [&](std::function<void()> body) {
        try {
            run(
                o, [&] { channel.reset(VirtualChannel::create()); }, body);
        } catch (const std::runtime_error &error) {
            return std::string(error.what());
        }
        return std::string();
    };
    NEED(text([&] {
             VirtualChannelPort port(channel.get());
             Message m;
             port.wait_and_receive_message(m);
         }) == "thread 0 waits for a message of channel 0 for ever");
    NEED(text([&] { NEED(thrown([] { BarrierMaster(0); }) == EINVAL); }).empty());
    NEED(text([&] { NEED(self() != 0 || thrown([] { VCCasPileMaster(1, 65537); }) == EINVAL); }).empty());
    /* out of prepare: the next run runs */
    NEED(thrown([&] {
             run(
                 o, [] { BarrierMaster(0); }, [] {});
         }) == EINVAL);
    o.channels = 1;
    NEED(text([&] {
             errno = 0;
             NEED(VirtualChannel::create() == nullptr && errno == ENOSPC);
             NEED(thrown([] { BarrierMaster(1); }) == ENOSPC);
         }).empty());
    NEED(thrown([&] { VirtualChannelPort(channel.get()); }) == EPERM); /* outside a run */
    o.number_of_cores = 0;
    NEED(text([] {}) == "impossible run: cores");
    ok("errors", way.name);
}

/* Each thread handles its own exception while others do. */
static void exceptions(const Way &way) {
    run(way.options, {}, [] {
        const int me = self();
        int found = -1;
        try {
            try {
                throw me;
            } catch (int) {
                ready();
                compute(static_cast<unsigned long long>(1000 * (me + 1)));
                ready();
                throw;
            }
        } catch (int thrown) {
            found = thrown;
        }
        NEED(found == me && !std::uncaught_exception() && !std::current_exception());
    });
    ok("exceptions", way.name);
}

static void defaults() {
    const c::ATAC_options wanted = c::ATAC_options_default();
    const Options o;
    NEED(o.number_of_cores == wanted.number_of_cores && o.live == (wanted.live != 0) &&
         o.time_scale == wanted.time_scale && o.channels == wanted.channels &&
         o.transport_cycles == wanted.transport_cycles && o.controller_cycles == wanted.controller_cycles &&
         o.check_cycles == wanted.check_cycles && o.software_cycles == wanted.software_cycles &&
         o.lambda_limit == wanted.lambda_limit && o.buffer_limit == wanted.buffer_limit &&
         o.stack_bytes == wanted.stack_bytes);
    ok("the defaults", "those of C");
}

int main() {
    for (const Way &way : ways(4)) {
        messages(way);
        filters_and_refusals(way);
        barriers(way);
        stealing<VCDequePileMaster>(way, "VC with mutexes");
        stealing<VCCasPileMaster>(way, "VC with compare-and-swap");
        stealing<GlobalQueuePileMaster>(way, "one queue");
        stealing<CilkPileMaster>(way, "Cilk style");
        finishes(way);
        errors(way);
        exceptions(way);
    }
    for (const Way &way : ways(40))
        barriers(way);
    defaults();
    std::printf("1..%d\n", n_tests);
    return 0;
}
